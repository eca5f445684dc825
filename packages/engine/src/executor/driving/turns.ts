// Counts turns of the event loop for all drivers of an executor at once: one `soon` a turn, however many runs are driven.
import type { Timers } from '../../kernel/timers.ts'

export interface Ticking {
  /** One turn has passed; true to be called again in the next. */
  tick(): boolean
}

export interface Turns {
  add(ticking: Ticking): void
}

export const makeTurns = (timers: Timers): Turns => {
  let watched = new Set<Ticking>()
  let armed = false
  const turn = (): void => {
    armed = false
    const now = watched
    watched = new Set()
    for (const each of now) if (each.tick()) watched.add(each)
    if (watched.size > 0) arm()
  }
  const arm = (): void => {
    if (armed) return
    armed = true
    timers.soon(turn)
  }
  return {
    add(ticking) {
      watched.add(ticking)
      arm()
    },
  }
}
