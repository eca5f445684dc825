// Doing something later. Every delay in the engine passes through this port.
export type Cancel = () => void

export interface Timers {
  /** Calls `run` once after `ms` milliseconds (0 and above, any size), unless canceled before. */
  after(ms: number, run: () => void): Cancel
  /** Calls `run` in the next turn of the event loop, after all promises that are ready have run. */
  soon(run: () => void): void
}

/** Node holds a delay in a signed 32-bit integer and turns a larger one into 1 ms (B063): sleep in parts. */
const LONGEST = 2 ** 31 - 1

export const systemTimers: Timers = {
  after(ms, run) {
    let rest = ms
    let handle: NodeJS.Timeout
    const arm = (): void => {
      const part = Math.min(rest, LONGEST)
      rest -= part
      handle = setTimeout(() => (rest > 0 ? arm() : run()), part)
    }
    arm()
    return () => clearTimeout(handle)
  },
  soon: (run) => void setImmediate(run),
}

/** A promise for `ms` milliseconds from now; resolves early with `aborted` when `signal` is. */
export const sleep = (
  timers: Timers,
  ms: number,
  signal?: AbortSignal,
): Promise<'slept' | 'aborted'> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve('aborted')
    const onAbort = (): void => {
      cancel()
      resolve('aborted')
    }
    const cancel = timers.after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve('slept')
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
