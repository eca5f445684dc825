// A workflow version's definition, as the server keeps it: all that admission, validation and pinning need without
// users' code.
import { LeaseholdError } from '../kernel/errors.ts'
import { canonical, shown } from '../kernel/json.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { RetryPolicy } from './retry.ts'
import type { LimitMode } from './slots.ts'

export interface LimitDeclaration {
  /** The limit's key; `{path.in.input}` parts are filled from the run's input, as in `customer:{customerId}`. */
  readonly key: string
  /** Units that runs may hold at once; an operator's own value beats it. */
  readonly value: number
  /** `while_held`: only while it is queued or driven; `whole_run`: also while it sleeps or waits. Default `while_held`. */
  readonly mode?: LimitMode
  /** What a start from outside meets at a full limit. Default `queue`. */
  readonly policy?: 'queue' | 'reject'
  /** How many units a run takes: a number, or the path of one in the input. Default 1. */
  readonly units?: number | string
}

export interface Definition {
  readonly workflow: string
  readonly version: string
  readonly queue: string
  readonly labels: readonly string[]
  /** JSON Schema (2020-12) of the input and output, null where the author gave none that can be shown. */
  readonly input: object | null
  readonly output: object | null
  readonly limits: readonly LimitDeclaration[]
  readonly totalLimitMs: number | null
  readonly attemptLimitMs: number | null
  readonly startByMs: number | null
  readonly retry: RetryPolicy | null
  /** Workflow that is started when a run ends other than by success. */
  readonly onEnd: string | null
  /** The executor's slot class. */
  readonly slotClass: string
  readonly isolation: 'inline' | 'process' | 'job'
}

/** All definitions that the store has, and which version of each is current. */
export interface Catalog {
  readonly definitions: ReadonlyMap<string, Definition>
  readonly current: ReadonlyMap<string, string>
  /** Whether a global limit is in force, so that runs carry its key. */
  readonly globalLimit: boolean
}

export const definitionKey = (workflow: string, version: string): string =>
  JSON.stringify([workflow, version])

export const emptyCatalog: Catalog = {
  definitions: new Map(),
  current: new Map(),
  globalLimit: false,
}

export const definitionOf = (
  catalog: Catalog,
  workflow: string,
  version?: string | null,
): Definition | undefined => {
  const pinned = version ?? catalog.current.get(workflow)
  return pinned === undefined ? undefined : catalog.definitions.get(definitionKey(workflow, pinned))
}

/** What a version was defined by and is not any more, member by member. */
export type Redefined = Readonly<Record<string, { readonly was: unknown; readonly is: unknown }>>

/**
 * Where a version that is registered again differs from what is stored of it; null where it does not. What one side leaves
 * out and the other has as null is the same, since one of them may be of an older build.
 */
export const redefined = (
  was: Readonly<Record<string, unknown>>,
  is: Readonly<Record<string, unknown>>,
): Redefined | null => {
  const differing = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter(
    (member) => canonical(was[member] ?? null) !== canonical(is[member] ?? null),
  )
  return differing.length === 0
    ? null
    : Object.fromEntries(
        differing.map((member) => [member, { was: was[member] ?? null, is: is[member] ?? null }]),
      )
}

/** One registration says of each version one thing: which of two would hold is nobody's to guess. */
export const eachOnce = (definitions: readonly Definition[]): Outcome<object> => {
  const seen = new Set<string>()
  for (const { workflow, version } of definitions) {
    const key = definitionKey(workflow, version)
    if (seen.has(key))
      return refuse(
        'duplicate_workflow',
        `two workflows are named ${workflow} in version ${version}; rename one`,
        { workflow, version },
      )
    seen.add(key)
  }
  return { ok: true }
}

/** `template` with its `{paths}` read from `input`; undefined where a path leads to nothing that can name a limit. */
export const limitKey = (template: string, input: unknown): string | undefined => {
  let missing = false
  const key = template.replace(/\{([^{}]*)\}/g, (_all, path: string) => {
    const found = at(input, path)
    if (typeof found !== 'string' && typeof found !== 'number' && typeof found !== 'boolean')
      missing = true
    return String(found)
  })
  return missing ? undefined : key
}

/** The value at a dotted path of own properties; `__proto__` and its like lead nowhere but to data (B118). */
export const at = (value: unknown, path: string): unknown => {
  let here: unknown = value
  for (const part of path
    .replace(/^input(\.|$)/, '')
    .split('.')
    .filter((each) => each !== '')) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, part)) return undefined
    here = (here as Record<string, unknown>)[part]
  }
  return here
}

const NAME = /^[^\u0000-\u001f\u007f]{1,200}$/u
const LONE = /[\ud800-\udfff]/u

/** What a name has to be, in a sentence that says it is not. */
export const NAME_EXPECTED = "1 to 200 characters without control characters, and not '.' or '..'"

/**
 * Whether a text can name something: 1 to 200 characters, no control characters, no lone surrogates. `.` and `..` could not be
 * asked for: in the path of a URL they mean the folder, also when percent-encoded (https://url.spec.whatwg.org, dot segments).
 */
export const isName = (text: unknown): text is string =>
  typeof text === 'string' && NAME.test(text) && !LONE.test(text) && text !== '.' && text !== '..'

/** Throws `invalid_request` when the text cannot name `what`. */
export const mustName = (text: unknown, what: string): string => {
  if (isName(text)) return text
  throw new LeaseholdError(
    'invalid_request',
    `${what} is ${shown(text)}; expected ${NAME_EXPECTED}`,
    { what },
  )
}
