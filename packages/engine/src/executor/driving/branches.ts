// Where the branches of a function stand, which of its recorded waits it has not received, and which scopes have lost their
// race.
import type { LiveWait } from '../../model/work.ts'
import type { Branch } from './driver.ts'
import type { Outgoing } from './outgoing.ts'

export class Branches {
  readonly #standing = new Map<string, Branch>()
  // most runs have none of these, and a thousand are driven at once: made when needed
  #live: Map<string, LiveWait> | null = null
  #unreached: Set<string> | null = null
  #retried: Set<string> | null = null
  readonly #closed: string[] = []
  /** What races that are decided, and not recorded, are to close. */
  readonly #toClose = new Map<string, readonly string[]>()

  constructor(waits: readonly LiveWait[]) {
    if (waits.length === 0) return
    this.#live = new Map(waits.map((wait) => [wait.key, wait]))
    this.#unreached = new Set(this.#live.keys())
    this.#retried = new Set(waits.filter((wait) => wait.kind === 'retry').map((wait) => wait.key))
  }

  add(branch: Branch): void {
    this.#standing.set(branch.key, branch)
  }

  get(key: string): Branch | undefined {
    return this.#standing.get(key)
  }

  all(): Branch[] {
    return [...this.#standing.values()]
  }

  keys(): string[] {
    return [...this.#standing.keys()]
  }

  /** The branch that is to receive the outcome of its name: it stands there no more. */
  take(key: string): Branch | undefined {
    const branch = this.#standing.get(key)
    this.#standing.delete(key)
    this.#live?.delete(key)
    this.#unreached?.delete(key)
    this.#toClose.delete(key)
    return branch
  }

  /** Branches that the journal holds nothing for look at what they stand at; whether there were any. */
  lookAsked(): boolean {
    let asked = false
    for (const branch of this.#standing.values()) {
      if (branch.state !== 'asked') continue
      asked = true
      this.#unreached?.delete(branch.key)
      branch.look(this.#live?.get(branch.key))
    }
    return asked
  }

  note(wait: LiveWait): void {
    this.#live ??= new Map()
    this.#live.set(wait.key, wait)
  }

  get hasUnreached(): boolean {
    return (this.#unreached?.size ?? 0) > 0
  }

  get retried(): ReadonlySet<string> | null {
    return this.#retried
  }

  /** From here on its retry may stand open in the store, and a race that this branch loses is to close it. */
  mayRetry(key: string): void {
    this.#retried ??= new Set()
    this.#retried.add(key)
  }

  isClosed(key: string): boolean {
    return this.#closed.length > 0 && this.#closed.some((prefix) => key.startsWith(prefix))
  }

  /**
   * A scope is over: its branches are dropped, and the keys of its waits are returned, to be closed. `by`: the race in whose
   * entry they are. Where that race is itself part of a scope that ends before its entry is received, they are of that end.
   */
  close(prefix: string, outgoing: Outgoing, by: string | null): string[] {
    this.#closed.push(prefix)
    const lost = new Set<string>()
    for (const [key, branch] of this.#standing) {
      if (!key.startsWith(prefix)) continue
      this.#standing.delete(key)
      if (branch.state === 'wait' && !outgoing.hasWait(key)) lost.add(key)
    }
    for (const key of this.#live?.keys() ?? []) if (key.startsWith(prefix)) lost.add(key)
    for (const key of this.#retried ?? []) if (key.startsWith(prefix)) lost.add(key)
    for (const [race, keys] of this.#toClose) {
      if (!race.startsWith(prefix)) continue
      this.#toClose.delete(race)
      for (const key of keys) lost.add(key)
    }
    if (by !== null) this.#toClose.set(by, [...(this.#toClose.get(by) ?? []), ...lost])
    for (const key of lost) {
      this.#live?.delete(key)
      this.#unreached?.delete(key)
    }
    outgoing.dropWaits(prefix)
    return [...lost]
  }
}
