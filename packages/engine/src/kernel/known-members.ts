// What a caller hands over by name: a member that nobody reads is a mistyped one, and is refused instead of ignored.
import type { ErrorCode } from './codes.ts'
import { LeaseholdError } from './errors.ts'
import { shown } from './json.ts'

/** Every member of `T` by name, so that the compiler sees when one is missing. */
export type MembersOf<T> = Readonly<Record<keyof T, true>>

/** A sentence for the members of `given` that `known` does not name; none where there are none. */
export const strangeMembers = (given: object, known: object, what: string): string[] => {
  const strange = Object.keys(given).filter((name) => !Object.hasOwn(known, name))
  if (strange.length === 0) return []
  return [
    `${what} has no option ${strange.slice(0, SHOWN).map(shown).join(', ')}; it has ${Object.keys(known).join(', ')}`,
  ]
}
const SHOWN = 5

/** Throws `code` where `given` is no object, or has a member that `known` does not name. */
export const mustKnowMembers = (
  given: unknown,
  known: object,
  what: string,
  code: ErrorCode = 'invalid_config',
): void => {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new LeaseholdError(
      code,
      `the options of ${what} are ${shown(given)}; expected an object with ${Object.keys(known).join(', ')}`,
    )
  const [fault] = strangeMembers(given, known, what)
  if (fault !== undefined) throw new LeaseholdError(code, fault)
}
