// The lines of one source that wait to be sent: as many as there is room for, of the first and of the last.
import { LINE_MAX, PART_MAX } from '../../model/log.ts'
import type { LogSource } from '../../model/log.ts'

/** What a line takes beside its text. */
const LINE_SIZE = 80

export interface RawLine {
  readonly n: number
  readonly at: number
  readonly source: LogSource
  readonly text: string
  /** Characters of its middle that are not there. */
  readonly missing: number
  readonly facts: string | null
}

export class KeptLines {
  #head: RawLine[] = []
  #headSize = 0
  #tail: RawLine[] = []
  #tailSize = 0

  /** In characters. */
  get size(): number {
    return this.#headSize + this.#tailSize
  }

  add(line: RawLine): void {
    const size = sizeOf(line)
    if (this.#tail.length === 0 && this.#headSize + size <= PART_MAX / 2) {
      this.#head.push(line)
      this.#headSize += size
      return
    }
    this.#tail.push(line)
    this.#tailSize += size
    while (this.#tailSize > PART_MAX / 2 && this.#tail.length > 1)
      this.#tailSize -= sizeOf(this.#tail.shift() as RawLine)
  }

  take(): RawLine[] {
    const all = [...this.#head, ...this.#tail]
    this.#head = []
    this.#headSize = 0
    this.#tail = []
    this.#tailSize = 0
    return all
  }
}

/** What is kept of it in the end. */
const sizeOf = ({ text, facts }: RawLine): number =>
  LINE_SIZE + Math.min(text.length, LINE_MAX) + Math.min(facts?.length ?? 0, LINE_MAX)
