// A whole number of an option.
import { UsageError } from './exit.ts'

export const wholeNumber = (text: string | undefined, option: string): number | undefined => {
  if (text === undefined) return undefined
  const number = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(number))
    throw new UsageError(`${option} is ${JSON.stringify(text)}; expected a whole number`)
  return number
}
