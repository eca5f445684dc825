// A value made from a document by JSON pointers (RFC 6901): `{ "$": "/pull_request/number" }` stands for what is there. Pure.
// What came from outside is data only: no pointer leads to anything but own members.
import { shown } from '../kernel/json.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'

/** What pointers are read from: `/…` leads into the payload, and a bare word names what came with it. */
export interface Source {
  readonly payload: unknown
  /** `delivery`, `event`, `trigger`: texts, or null where the sender says nothing of it. */
  readonly facts: Readonly<Record<string, string | null>>
}

type Json = Readonly<Record<string, unknown>>
export type Filled = Outcome<{ readonly value: unknown }>

const HOLE = '$'
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isHole = (value: unknown): value is Json => isObject(value) && Object.hasOwn(value, HOLE)

/** The value at a pointer; undefined where it leads to nothing. */
export const pointed = (document: unknown, pointer: string): unknown => {
  let here: unknown = document
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(here)) {
      if (!/^(0|[1-9]\d{0,9})$/.test(key)) return undefined
      here = (here as readonly unknown[])[Number(key)]
    } else if (isObject(here) && Object.hasOwn(here, key)) here = here[key]
    else return undefined
  }
  return here
}

/** What is wrong with a pointer, as a sentence; null where it can be followed. */
export const pointerFault = (pointer: unknown, facts: readonly string[] = []): string | null => {
  if (typeof pointer !== 'string') return `${shown(pointer)} is no JSON pointer`
  if (facts.includes(pointer) || pointer === '') return null
  if (!pointer.startsWith('/'))
    return `${shown(pointer)} is no JSON pointer; expected one that begins with /${facts.length === 0 ? '' : `, or one of ${facts.join(', ')}`}`
  return /~(?![01])/.test(pointer) ? `${shown(pointer)} has a ~ that is neither ~0 nor ~1` : null
}

/** What is wrong with a template, as a sentence; null where it can be filled. */
export const templateFault = (template: unknown, facts: readonly string[]): string | null => {
  if (Array.isArray(template)) return firstFault(template, facts)
  if (!isObject(template)) return null
  if (!isHole(template)) return firstFault(Object.values(template), facts)
  const extra = Object.keys(template).find((key) => key !== HOLE && key !== 'default')
  return extra === undefined
    ? pointerFault(template[HOLE], facts)
    : `${shown(template)} has the member ${extra} beside $; expected a pointer in $, and a default at most`
}
const firstFault = (parts: readonly unknown[], facts: readonly string[]): string | null =>
  parts.map((part) => templateFault(part, facts)).find((fault) => fault !== null) ?? null

/** The template with everything that it points to; refused where it points to nothing and has no default. */
export const filled = (template: unknown, source: Source): Filled => {
  if (Array.isArray(template)) {
    const out: unknown[] = []
    for (const part of template as readonly unknown[]) {
      const done = filled(part, source)
      if (!done.ok) return done
      out.push(done.value)
    }
    return { ok: true, value: out }
  }
  if (!isObject(template)) return { ok: true, value: template }
  if (isHole(template)) return hole(template, source)
  const out: [string, unknown][] = []
  for (const [key, part] of Object.entries(template)) {
    const done = filled(part, source)
    if (!done.ok) return done
    out.push([key, done.value])
  }
  // defines members, whatever they are called
  return { ok: true, value: Object.fromEntries(out) }
}

const hole = (template: Json, { payload, facts }: Source): Filled => {
  const pointer = String(template[HOLE])
  const found = Object.hasOwn(facts, pointer)
    ? (facts[pointer] ?? undefined)
    : pointed(payload, pointer)
  if (found !== undefined) return { ok: true, value: found }
  if (Object.hasOwn(template, 'default')) return { ok: true, value: template['default'] }
  return refuse(
    'invalid_input',
    `the delivery has nothing at ${shown(pointer)}, which the trigger reads; correct the pointer, or give it a default`,
    { pointer },
  )
}

/** What a template comes to as a name: a text or a number, or a list of them that are joined. */
export const filledName = (
  template: unknown,
  what: string,
  source: Source,
): Outcome<{ readonly name: string }> => {
  const done = filled(template, source)
  if (!done.ok) return done
  const parts: readonly unknown[] = Array.isArray(done.value) ? done.value : [done.value]
  const texts = parts.map((part) => (typeof part === 'number' ? String(part) : part))
  return texts.length > 0 && texts.every((part) => typeof part === 'string')
    ? { ok: true, name: texts.join('') }
    : refuse(
        'invalid_input',
        `the ${what} comes to ${shown(done.value)}; expected a text or a number, or a list of them`,
        { what },
      )
}
