// The delay that grows from one failure to the next: of every loop that tries again, and of every decision about when.

/** How a delay grows. */
export interface Growth {
  /** After the first failure, in milliseconds. */
  readonly firstMs: number
  /** The longest, in milliseconds. */
  readonly maxMs: number
  /** From one to the next. Default 2. */
  readonly factor?: number
}

/**
 * Milliseconds to wait after the `failures`-th failure in a row (1 and above): `firstMs`, and each time `factor` times as long,
 * up to `maxMs`. Chance is added by who waits, with `jittered` where many may come back at once.
 */
export const growingDelayMs = (failures: number, { firstMs, maxMs, factor = 2 }: Growth): number =>
  // nothing times more than a number can hold is no number
  firstMs === 0 ? 0 : Math.min(maxMs, firstMs * factor ** (failures - 1))
