// The timers of a driver: each is armed when there is something to wait for, and none outlives its attempt but the one that
// shows things.
import type { Cancel, Timers } from '../../kernel/timers.ts'

/** A function that asks for nothing of its journal for so long departs from it. */
const DEPARTS_MS = 1_000
/** While other branches work, a wait of this run may be satisfied or due: look now and then, in case nobody tells. */
const LOOK_MS = 1_000
/** What is only shown is gathered for so long. */
const SHOW_MS = 200

export class LateTimers {
  readonly #timers: Timers
  #departs: Cancel | null = null
  #looks: Cancel | null = null
  #shows = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  departs(run: () => void): void {
    if (this.#departs) return
    this.#departs = this.#timers.after(DEPARTS_MS, () => {
      this.#departs = null
      run()
    })
  }

  /** The function has moved: it has not departed. */
  moved(): void {
    if (this.#departs === null) return
    this.#departs()
    this.#departs = null
  }

  look(run: () => void): void {
    if (this.#looks) return
    this.#looks = this.#timers.after(LOOK_MS, () => {
      this.#looks = null
      run()
    })
  }

  show(run: () => void): void {
    if (this.#shows) return
    this.#shows = true
    this.#timers.after(SHOW_MS, () => {
      this.#shows = false
      run()
    })
  }

  cancel(): void {
    this.moved()
    this.#looks?.()
    this.#looks = null
  }
}
