// A clock that only moves when it is told to. Timers are kept by instant; `soon` is a real turn of the event loop, counted
// so that a test can see when nothing is left to run.
import type { Time } from '../kernel/time.ts'
import type { Timers } from '../kernel/timers.ts'
import { systemTimers } from '../kernel/timers.ts'

export interface VirtualClock {
  readonly time: Time
  /** Timers of one process: after `kill` none of its callbacks runs any more. */
  timers(): Timers & { kill(): void }
  /** The instant of the next timer, or null. */
  next(): number | null
  /** Moves to an instant and runs the timers that are due by then, in their order. */
  moveTo(instant: number): void
  /** Callbacks asked for with `soon` that have not run. */
  readonly pending: number
}

interface Timer {
  readonly at: number
  readonly seq: number
  readonly run: () => void
  readonly alive: () => boolean
}

export const virtualClock = (start: number): VirtualClock => {
  let now = start
  let seq = 0
  let pending = 0
  const timers = new Set<Timer>()
  const first = (): Timer | null => {
    let found: Timer | null = null
    for (const timer of timers)
      if (found === null || timer.at < found.at || (timer.at === found.at && timer.seq < found.seq))
        found = timer
    return found
  }
  return {
    time: { now: () => now, mono: () => now },
    timers() {
      let alive = true
      return {
        after(ms, run) {
          const timer: Timer = { at: now + Math.max(0, ms), seq: ++seq, run, alive: () => alive }
          timers.add(timer)
          return () => void timers.delete(timer)
        },
        soon(run) {
          pending += 1
          systemTimers.soon(() => {
            pending -= 1
            if (alive) run()
          })
        },
        kill() {
          alive = false
          for (const timer of timers) if (!timer.alive()) timers.delete(timer)
        },
      }
    },
    next: () => first()?.at ?? null,
    moveTo(instant) {
      for (;;) {
        const timer = first()
        if (timer === null || timer.at > instant) break
        timers.delete(timer)
        now = Math.max(now, timer.at)
        if (timer.alive()) timer.run()
      }
      now = Math.max(now, instant)
    },
    get pending() {
      return pending
    },
  }
}
