// Waiting for something to look at again: a hint, a poll in case the hint was lost, the end of the time, or a stop.
import type { Timers } from '../../kernel/timers.ts'

export interface Change {
  /** Resolves at the first hint since this was made, after `ms`, or when stopped; then the hints are let go. */
  wait(ms: number): Promise<void>
  drop(): void
}

/** Listens from now on; make it before reading, so that what changes after the read is heard. */
export const awaitChange = (
  listen: (hear: () => void) => () => void,
  timers: Timers,
  signal: AbortSignal,
): Change => {
  let heard = false
  let resolve: (() => void) | null = null
  const hear = (): void => {
    heard = true
    resolve?.()
  }
  const stop = listen(hear)
  const drop = (): void => {
    stop()
    signal.removeEventListener('abort', hear)
  }
  signal.addEventListener('abort', hear, { once: true })
  return {
    async wait(ms) {
      if (!heard && !signal.aborted)
        await new Promise<void>((done) => {
          const cancel = timers.after(ms, done)
          resolve = () => {
            cancel()
            done()
          }
        })
      drop()
    },
    drop,
  }
}
