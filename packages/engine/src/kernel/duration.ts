// Durations as people write them: 1500 (milliseconds), '10m', '1h 30m'. Anything else is refused by name.
import { LeaseholdError } from './errors.ts'

export type Duration = number | string

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** The longest delay that is kept: 1,000 years. */
export const LONGEST_MS = 1_000 * 365 * 86_400_000

/** Milliseconds of `duration`; throws `invalid_duration` with what was found. */
export const milliseconds = (duration: Duration, what = 'duration'): number => {
  const ms = typeof duration === 'number' ? duration : parsed(duration)
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0 || ms > LONGEST_MS)
    throw new LeaseholdError(
      'invalid_duration',
      `${what} is ${String(duration)}; expected milliseconds from 0 to ${LONGEST_MS}, or a text such as '10m' or '1h 30m'`,
      { found: String(duration) },
    )
  return Math.ceil(ms)
}

const parsed = (text: unknown): number => {
  if (typeof text !== 'string' || !/^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$/.test(text))
    return Number.NaN
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)/g))
    sum += Number(amount) * (UNITS[unit ?? ''] ?? Number.NaN)
  return sum
}

const WORDS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** A duration in a sentence, in its two largest units: `250 ms`, `2.5 s`, `1 min 30 s`, `3 h`, `2 d 4 h`. */
export const inWords = (ms: number): string => {
  const whole = Math.round(Math.abs(ms))
  if (whole < 1_000) return `${whole} ms`
  if (whole < 60_000) return `${Math.floor(whole / 100) / 10} s`
  const at = WORDS.findIndex(([, unit]) => whole >= unit)
  let left = whole
  return WORDS.slice(at, at + 2)
    .flatMap(([name, unit]) => {
      const count = Math.floor(left / unit)
      left -= count * unit
      return count === 0 ? [] : [`${count} ${name}`]
    })
    .join(' ')
}
