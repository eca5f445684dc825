// The recorded journal of a run, and how far its function has come in it.
import type { Entry } from '../../model/work.ts'

export class Replay {
  #journal: readonly Entry[]
  #at = 0
  #consumed: Set<string> | null = null

  constructor(journal: readonly Entry[]) {
    this.#journal = journal
  }

  get isGoing(): boolean {
    return this.#at < this.#journal.length
  }

  /** The entry that the function must receive next. */
  get next(): Entry | undefined {
    return this.#journal[this.#at]
  }

  get length(): number {
    return this.#journal.length
  }

  isConsumed(key: string): boolean {
    return this.#consumed !== null && this.#consumed.has(key)
  }

  pass(): void {
    this.#at += 1
  }

  extend(more: readonly Entry[]): void {
    this.#journal = [...this.#journal, ...more]
  }

  /** Takes the entry of this key at once, wherever it stands; false where there is none. */
  take(key: string): boolean {
    if (!this.#journal.some((entry) => entry.key === key)) return false
    this.#consumed ??= new Set()
    this.#consumed.add(key)
    if (this.next?.key === key) this.pass()
    return true
  }
}
