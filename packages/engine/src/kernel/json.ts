// Values as JSON. What JSON cannot carry is refused with its path before anything is written, so that what a function
// sees live is what it sees on replay: decode(encode(value)).
import { LeaseholdError } from './errors.ts'

export const DEPTH_MAX = 500
/** What may stand around a value where it is sent or kept: a request, the outcome of a wait, the causes of an error. */
export const AROUND = 20

/** Bytes that the rest of a value may still take. */
interface Room {
  readonly most: number
  left: number
}

/** A plain, detached copy of `value`; throws `not_serializable` naming the path of what JSON cannot carry. */
export const plain = (value: unknown, most = Number.POSITIVE_INFINITY, around = 0): unknown =>
  copy(value, '$', -around, [], { most, left: most })

/**
 * JSON text of `value`; undefined (a function that returns nothing) is null text. What is sure to take more than `most`
 * bytes is refused as `payload_too_large` as soon as that is sure, so that it is neither walked nor copied to its end.
 * `around`: how deep what stands around a value is nested, which does not count.
 */
export const encode = (
  value: unknown,
  most = Number.POSITIVE_INFINITY,
  around = 0,
): string | null => {
  if (value === undefined) return null
  if (typeof value === 'string') takes({ most, left: most }, value.length + 2)
  if (value === null || typeof value === 'boolean' || typeof value === 'string')
    return JSON.stringify(value)
  return JSON.stringify(plain(value, most, around))
}

const takes = (room: Room, bytes: number): void => {
  room.left -= bytes
  if (room.left >= 0) return
  throw new LeaseholdError(
    'payload_too_large',
    `the value has more than ${room.most} bytes, which is the limit. Store it elsewhere and pass a reference`,
    { limit: room.most },
  )
}

/** Reads a text that `encode` made; where somebody changed it since, `row_unreadable` says so. */
export const decode = (text: string | null | undefined): unknown => {
  if (text === null || text === undefined) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new LeaseholdError(
      'row_unreadable',
      `a stored value of the run cannot be read, since somebody changed it in the database: it is not JSON: ${messageOf(error)}`,
    )
  }
}

/**
 * What is wrong with a JSON text that came from outside, or null: it must parse, and be nested no deeper than we go, since
 * the text that is built around it later is written by recursion (B114).
 */
export const jsonFault = (text: string, deep = DEPTH_MAX): string | null => {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (quoted) {
      if (char === BACKSLASH) i += 1
      else if (char === QUOTE) quoted = false
    } else if (char === QUOTE) quoted = true
    else if (char === OPEN_ARRAY || char === OPEN_OBJECT) deepest = Math.max(deepest, ++depth)
    else if (char === CLOSE_ARRAY || char === CLOSE_OBJECT) depth -= 1
  }
  if (deepest > deep) return `it is nested ${deepest} deep; the limit is ${deep}`
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    return `it is not JSON: ${messageOf(error)}`
  }
}
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** JSON text with the keys of every object in order, so that equal values have equal text. */
export const canonical = (value: unknown): string => JSON.stringify(sorted(plain(value)))

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort())
    set(out, key, sorted((value as Record<string, unknown>)[key]))
  return out
}

/** `__proto__` is data here, never behaviour (B118). */
const set = (target: Record<string, unknown>, key: string, value: unknown): void => {
  if (key === '__proto__')
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    })
  else target[key] = value
}

const refused = (path: string, what: string): LeaseholdError =>
  new LeaseholdError(
    'not_serializable',
    `${shortened(path)} is ${what}, which JSON cannot carry; use plain JSON values`,
    { path: shortened(path), what },
  )

const shortened = (path: string): string => (path.length <= 300 ? path : `${path.slice(0, 300)}…`)

function copy(value: unknown, path: string, depth: number, seen: object[], room: Room): unknown {
  switch (typeof value) {
    case 'string':
      takes(room, value.length + 2)
      return value
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) throw refused(path, String(value))
      return value
    case 'bigint':
      throw refused(path, 'a BigInt')
    case 'undefined':
      throw refused(path, 'undefined')
    case 'function':
      throw refused(path, 'a function')
    case 'symbol':
      throw refused(path, 'a symbol')
    case 'object':
      return value === null ? null : copyObject(value, path, depth, seen, room)
  }
}

function copyObject(
  value: object,
  path: string,
  depth: number,
  seen: object[],
  room: Room,
): unknown {
  if (depth >= DEPTH_MAX) throw refused(path, `nested more than ${DEPTH_MAX} deep`)
  if (seen.includes(value)) throw refused(path, 'a cycle')
  seen.push(value)
  try {
    if (Array.isArray(value)) {
      const out: unknown[] = []
      for (let i = 0; i < value.length; i++) {
        takes(room, 2)
        out.push(copy(value[i], `${path}[${i}]`, depth + 1, seen, room))
      }
      return out
    }
    const toJSON: unknown = reading(value, 'toJSON', path)
    if (typeof toJSON === 'function')
      return copy(calling(value, toJSON as () => unknown, path), path, depth + 1, seen, room)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (
      prototype !== Object.prototype &&
      prototype !== null &&
      Object.getPrototypeOf(prototype) !== null
    )
      throw refused(path, `an instance of ${nameOf(prototype)} without toJSON`)
    const out: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      const item = reading(value, key, path)
      if (item === undefined) continue
      takes(room, key.length + 4)
      set(out, key, copy(item, childPath(path, key), depth + 1, seen, room))
    }
    return out
  } finally {
    seen.pop()
  }
}

const nameOf = (prototype: unknown): string => {
  const made = (prototype as { constructor?: { name?: unknown } } | null)?.constructor?.name
  return typeof made === 'string' && made !== '' ? made : 'a class'
}

const childPath = (path: string, key: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`

const reading = (value: object, key: string, path: string): unknown => {
  try {
    return (value as Record<string, unknown>)[key]
  } catch (error) {
    throw refused(childPath(path, key), `a getter that throws (${messageOf(error)})`)
  }
}

const calling = (value: object, toJSON: () => unknown, path: string): unknown => {
  try {
    return toJSON.call(value)
  } catch (error) {
    throw refused(path, `an object whose toJSON throws (${messageOf(error)})`)
  }
}

/** A value that was not expected, as a sentence shows it. */
export const shown = (value: unknown): string => {
  try {
    return JSON.stringify(value)?.slice(0, 80) ?? (value === undefined ? 'missing' : typeof value)
  } catch {
    return typeof value
  }
}

/** A sentence from whatever was thrown: an error, a string, null, or an odd object. */
export const messageOf = (thrown: unknown): string => {
  try {
    // an author may have set anything as a message
    if (thrown instanceof Error) return String(thrown.message)
    if (typeof thrown === 'string') return thrown
    return JSON.stringify(thrown) ?? String(thrown)
  } catch {
    return 'something that cannot be shown'
  }
}
