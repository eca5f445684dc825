// How values become the JSON text that is stored. Plain JSON by default; `rich` also keeps Date, Map, Set, BigInt, URL and
// typed arrays, inside a marked object, so that a reader without it still sees JSON.
import { parse, stringify } from 'devalue'
import { LeaseholdError } from '../../kernel/errors.ts'
import { decode, encode, messageOf } from '../../kernel/json.ts'

export interface Codec {
  /** `most` bytes: what is sure to be over may be refused at once. */
  encode(value: unknown, most?: number): string | null
  decode(text: string | null | undefined): unknown
}

export const plainCodec: Codec = { encode, decode }

const MARK = '$rich'

export const richCodec: Codec = {
  encode(value) {
    if (value === undefined) return null
    try {
      return JSON.stringify({ [MARK]: stringify(value) })
    } catch (error) {
      const path = (error as { path?: unknown }).path
      throw new LeaseholdError(
        'not_serializable',
        `$${typeof path === 'string' ? path : ''} cannot be carried: ${messageOf(error)}`,
        { path: path ?? '$' },
      )
    }
  },
  decode(text) {
    const value = decode(text)
    const marked =
      typeof value === 'object' && value !== null && Object.keys(value).length === 1
        ? (value as Record<string, unknown>)[MARK]
        : undefined
    return typeof marked === 'string' ? (parse(marked) as unknown) : value
  },
}

export const codecOf = (name: 'json' | 'rich' | undefined): Codec =>
  name === 'rich' ? richCodec : plainCodec
