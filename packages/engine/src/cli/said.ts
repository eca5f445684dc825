// Times, durations and values as people read them.
import type { Output } from './output.ts'

/** `3 s`, `2 min`, `4 h`: one unit, rounded down. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, ms) / 1_000
  if (seconds < 1) return `${Math.round(Math.max(0, ms))} ms`
  if (seconds < 120) return `${Math.floor(seconds)} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

export const ago = (at: number | null, now: number): string =>
  at === null ? '-' : at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`

/** An instant in this machine's time, to the second. */
export const clock = (at: number | null): string => {
  if (at === null) return '-'
  const date = new Date(at)
  const two = (part: number): string => String(part).padStart(2, '0')
  return (
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  )
}

/** A value as JSON on one line, cut after `most` characters. */
export const short = (value: unknown, most = 100): string =>
  cut(JSON.stringify(value) ?? 'nothing', most)

/** A text as it is, cut after `most` characters. */
export const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most)}…` : text

/** What a name or note may carry into a terminal: no control characters. */
export const plainText = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')

/** Rows in columns that are as wide as their widest cell; colours go around a cell, never into its width. */
export const table = (
  out: Output,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  paint: (cell: string, column: number) => string = (cell) => cell,
): void => {
  const clean = rows.map((row) => row.map(plainText))
  const widths = head.map((title, i) =>
    Math.max(title.length, ...clean.map((row) => row[i]?.length ?? 0)),
  )
  const laid = (row: readonly string[], cell: (text: string, i: number) => string): string =>
    row
      .map(
        (text, i) =>
          cell(text, i) + (i === row.length - 1 ? '' : ' '.repeat((widths[i] ?? 0) - text.length)),
      )
      .join('  ')
      .trimEnd()
  out.line(
    laid(
      head.map((title) => title.toUpperCase()),
      (text) => out.colors.dim(text),
    ),
  )
  for (const row of clean) out.line(laid(row, paint))
}

/** A status in its colour; the word itself says it too. */
export const statusPaint = ({ colors }: Output, status: string): string => {
  switch (status) {
    case 'succeeded':
      return colors.green(status)
    case 'failed':
      return colors.red(status)
    case 'running':
      return colors.cyan(status)
    case 'canceling':
    case 'paused':
      return colors.yellow(status)
    case 'canceled':
      return colors.dim(status)
    default:
      return status
  }
}
