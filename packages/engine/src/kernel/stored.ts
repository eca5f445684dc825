// JSON text as the store kept it. We wrote it, so it is JSON, unless somebody changed the row by hand: then what cannot be
// read concerns its own row alone, and is said in a sentence that names it.
import { Fault } from './errors.ts'
import { messageOf } from './json.ts'

/** Reads a stored text; throws `row_unreadable`, which names `what` it is. */
export const stored = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw unreadable(what, `it is not JSON: ${messageOf(error)}`)
  }
}

/** As `stored`, for a list of texts. */
export const storedTexts = (text: string, what: string): readonly string[] => {
  const list = stored(text, what)
  if (Array.isArray(list) && list.every((item) => typeof item === 'string')) return list
  throw unreadable(what, 'it is not a list of texts')
}

/** As `stored`, for an object. */
export const storedObject = (text: string, what: string): Readonly<Record<string, unknown>> => {
  const value = stored(text, what)
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw unreadable(what, 'it is not an object')
}

/** What `read` gives, or what is made of the sentence where the row cannot be read. */
export const readOr = <T>(read: () => T, otherwise: (sentence: string) => T): T => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Fault && error.code === 'row_unreadable') return otherwise(error.message)
    throw error
  }
}

/** The row, with the sentence in the place of each of these texts that cannot be read. */
export const legible = <R extends object>(row: R, columns: readonly (keyof R)[]): R => {
  const shown = Object.defineProperties({}, Object.getOwnPropertyDescriptors(row)) as R
  for (const column of columns) {
    const value: unknown = readOr<unknown>(
      () => row[column],
      (sentence) => sentence,
    )
    Object.defineProperty(shown, column, { value, enumerable: true })
  }
  return shown
}

/** `what` is as no program of ours has written it. */
export const unreadable = (what: string, why: string): Fault =>
  new Fault(
    'row_unreadable',
    `${what} cannot be read, since somebody changed it in the database: ${why}. Put it right there; other rows are not concerned`,
    { retryable: false },
  )
