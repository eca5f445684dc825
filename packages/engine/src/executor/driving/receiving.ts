// What the function receives, one outcome at a time and in its order: first what is recorded, then what comes about here, which
// is numbered and timed as it is received.
import type { ClaimedRun, Entry } from '../../model/work.ts'
import type { Branches } from './branches.ts'
import type { Ready, Received } from './driver.ts'
import type { LateTimers } from './late-timers.ts'
import type { Outgoing } from './outgoing.ts'
import { Replay } from './replay.ts'

interface Receiver {
  readonly branches: Branches
  readonly outgoing: Outgoing
  readonly late: LateTimers
  /** The store's clock. */
  readonly clock: () => number
  /** The function moves. */
  readonly stir: () => void
  /** What it asks for is not what is recorded. */
  readonly departs: (note: string) => void
}

export class Receiving {
  readonly #of: Receiver
  readonly #replay: Replay
  readonly #queue: Ready[] = []
  #lastAt: number

  constructor(claimed: ClaimedRun, of: Receiver) {
    this.#of = of
    this.#replay = new Replay(claimed.journal)
    this.#lastAt = claimed.firstAt
  }

  /** What `ctx.now()` answers: the instant of the last outcome received. */
  get lastAt(): number {
    return this.#lastAt
  }

  get isReplaying(): boolean {
    return this.#replay.isGoing
  }

  get replayed(): Entry | undefined {
    return this.#replay.next
  }

  get length(): number {
    return this.#replay.length
  }

  get isWaiting(): boolean {
    return this.#queue.length > 0
  }

  extend(more: readonly Entry[]): void {
    this.#replay.extend(more)
  }

  /** Takes a recorded mark at once, wherever it stands. */
  takeMark(key: string): boolean {
    return this.#replay.take(key)
  }

  has(key: string): boolean {
    return this.#queue.some((each) => each.key === key)
  }

  add(ready: Ready): void {
    this.#queue.push(ready)
  }

  stamp(): number {
    this.#lastAt = Math.max(this.#lastAt, Math.floor(this.#of.clock()))
    return this.#lastAt
  }

  /** Gives the next outcome that came about here; false where what it has received is to be stored first. */
  next(): boolean {
    const { branches, outgoing, stir } = this.#of
    if (outgoing.isFull) return false
    const next = this.#queue.shift()
    if (!next) return true
    if (branches.isClosed(next.key)) stir()
    else {
      outgoing.receive(next, this.stamp())
      this.#give(next.key, next)
    }
    return true
  }

  /** Gives the next recorded outcome, where the function has come to it. */
  replayNext(): void {
    const { branches, late, stir, departs } = this.#of
    const entry = this.#replay.next
    if (!entry) return
    const branch = branches.get(entry.key)
    if (this.#replay.isConsumed(entry.key) || branches.isClosed(entry.key)) {
      this.#replay.pass()
      stir()
    } else if (branch && branch.kind !== entry.kind)
      departs(
        `entry ${entry.n} of the journal is ${entry.key} as ${entry.kind}; the function asks for it as ${branch.kind}`,
      )
    else if (branch) {
      this.#replay.pass()
      this.#lastAt = entry.at
      this.#give(entry.key, entry)
    } else
      late.departs(() => {
        const asked = branches.keys()
        departs(
          `entry ${entry.n} of the journal is ${entry.key} (${entry.kind}); the function ${asked.length === 0 ? 'asks for nothing' : `asks for ${asked.join(', ')}`}`,
        )
      })
  }

  #give(key: string, received: Received): void {
    const { branches, stir } = this.#of
    const branch = branches.take(key)
    stir()
    branch?.receive(received)
  }
}
