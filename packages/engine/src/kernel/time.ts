// What time it is. Everything that reads a clock takes this port, so that a test can be its own clock.
export interface Time {
  /** Wall clock: integer milliseconds since the epoch. May jump either way. */
  now(): number
  /** Monotonic clock: milliseconds since an arbitrary start. Never falls; says nothing of the date. */
  mono(): number
}

export const systemTime: Time = {
  now: () => Date.now(),
  mono: () => performance.now(),
}

/** An instant in a sentence. */
export const utc = (instant: number): string => new Date(instant).toISOString()
