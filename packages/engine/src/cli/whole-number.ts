// A whole number of an option.
import { UsageError } from './exit.ts'

export interface Bounds {
  readonly least: number
  /** Default: none. */
  readonly most?: number
}

/** How many a page of a list has, where its route takes up to 1,000. */
export const PAGE: Bounds = { least: 1, most: 1_000 }
export const PRIORITY: Bounds = { least: -100, most: 100 }

/** The number that an option was given, or undefined; throws a UsageError that names the option and its bounds. */
export const wholeNumber = (
  text: string | undefined,
  option: string,
  { least, most = Infinity }: Bounds,
): number | undefined => {
  if (text === undefined) return undefined
  const number = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(number) || number < least || number > most)
    throw new UsageError(
      `${option} is ${JSON.stringify(text)}; expected a whole number ${most === Infinity ? `of ${least} or more` : `from ${least} to ${most}`}`,
    )
  return number
}
