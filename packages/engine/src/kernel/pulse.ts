// Whether the other end of a connection is still there: it is asked each interval, and given up when it has shown no sign
// of life for two of them. What is half open is noticed so, which no operating system tells.
import type { Timers } from './timers.ts'

export interface Pulse {
  /** The other end has shown that it lives. */
  alive(): void
  stop(): void
}

export const startPulse = (
  timers: Timers,
  everyMs: number,
  ask: () => void,
  lost: () => void,
): Pulse => {
  let silent = 0
  let cancel = (): void => undefined
  const beat = (): void => {
    if (silent >= 2) return lost()
    silent += 1
    ask()
    cancel = timers.after(everyMs, beat)
  }
  cancel = timers.after(everyMs, beat)
  return {
    alive() {
      silent = 0
    },
    stop: () => cancel(),
  }
}
