// What the functions of an attempt write, as lines: captured where they run, kept with the attempt, read by people. Lines are
// numbered as they are written, so that a number that is missing is a line that was left out.
import type { Refusal } from '../kernel/outcome.ts'

export const logSources = ['log', 'stdout', 'stderr'] as const
/** `log` is written by `ctx.log`; the others are what an isolated process prints. */
export type LogSource = (typeof logSources)[number]

export interface LogLine {
  /** 1, 2, 3 … within its attempt, of all that was written. */
  readonly n: number
  /** As it was captured, on the store's clock. */
  readonly at: number
  readonly source: LogSource
  readonly text: string
  /** JSON text of what was logged beside it. */
  readonly facts: string | null
}

/** Lines of one attempt, in their order. */
export interface LogPart {
  readonly run: string
  readonly attempt: number
  readonly lines: readonly LogLine[]
}

/** `kept`: how many parts were new, and of attempts that this session has had. */
export type LogAnswer = { readonly ok: true; readonly kept: number } | Refusal

/** What a line may take; of a longer one its beginning and its end are kept. */
export const LINE_MAX = 8_192
/** What one source of an attempt may bring in one part. */
export const PART_MAX = 64 * 1024
/** What one request may bring. */
export const PARTS_MAX = 1024 ** 2

/** A line is shown with how many before it were left out, counted from the line that was read before it. */
export interface ShownLine extends LogLine {
  readonly attempt: number
  readonly dropped: number
}

/** A place in the lines of a run. */
export interface LogPlace {
  readonly attempt: number
  readonly n: number
}

/** Lines after a place, each with what is missing before it. */
export const shownAfter = (
  place: LogPlace,
  lines: readonly (LogLine & { readonly attempt: number })[],
): ShownLine[] => {
  let { attempt, n } = place
  return lines.map((line) => {
    const before = line.attempt === attempt ? n : 0
    attempt = line.attempt
    n = line.n
    return { ...line, dropped: line.n - before - 1 }
  })
}

/** A text within a size, with its beginning, its end and how much between them is missing. */
export const cutText = (text: string, most: number, missing = 0): string => {
  if (text.length <= most && missing === 0) return text
  const half = Math.floor(Math.min(most, text.length) / 2)
  const left = text.length - 2 * half + missing
  // a character that takes two units is not cut in half
  const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, '')
  const tail = text.slice(text.length - half).replace(/^[\udc00-\udfff]/, '')
  return `${head} … ${left} characters left out … ${tail}`
}
