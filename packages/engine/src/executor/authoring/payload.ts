// What a function hands over, as the text that is stored. What cannot be carried, or is over the limit, is refused here by
// name, before a copy of it is made.
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Codec } from './codec.ts'

/** JSON text of a value; throws `not_serializable` with the path, or `payload_too_large` with the limit. */
export const payloadOf = (
  codec: Codec,
  value: unknown,
  most: number,
  what: string,
): string | null => {
  const text = codec.encode(value, most)
  const bytes = text === null ? 0 : Buffer.byteLength(text)
  if (bytes > most)
    throw new LeaseholdError(
      'payload_too_large',
      `${what} has ${bytes} bytes; the limit is ${most}. Store it elsewhere and pass a reference`,
      { bytes, limit: most },
    )
  return text
}
