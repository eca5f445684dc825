// What a measurement answers, and the arithmetic of it.
export type Figures = Readonly<Record<string, number>>

/** Milliseconds since it was made. */
export const stopwatch = (): (() => number) => {
  const from = performance.now()
  return () => performance.now() - from
}

export const percentile = (values: readonly number[], part: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

export const median = (values: readonly number[]): number => percentile(values, 0.5)
