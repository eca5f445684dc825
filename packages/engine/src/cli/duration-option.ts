// A duration of an option: milliseconds, or a text such as `25s`.
import { milliseconds } from '../kernel/duration.ts'
import { UsageError } from './exit.ts'

const aDuration = 'a duration such as 25s, or milliseconds'

/** On a command line milliseconds are a text too. */
const durationOf = (given: string): number =>
  milliseconds(/^\d+$/.test(given) ? Number(given) : given)

export const durationOption = (text: string | undefined, option: string): number | undefined => {
  if (text === undefined) return undefined
  try {
    return durationOf(text)
  } catch {
    throw new UsageError(`${option} is ${JSON.stringify(text)}; expected ${aDuration}`)
  }
}
