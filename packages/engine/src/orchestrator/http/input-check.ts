// Whether a run's input fits the JSON Schema of its workflow, before anything is stored. The schema is what the executor
// registered; one that cannot be compiled checks nothing here, since the first claim checks the input again. What compiles
// is loaded with the first schema, so that nobody waits for it at the start.
import type { ErrorObject, ValidateFunction } from 'ajv'
import type * as Ajv from 'ajv/dist/2020.js'
import { createRequire } from 'node:module'
import type { Log } from '../../kernel/log.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { Catalog } from '../../model/definition.ts'
import { definitionOf } from '../../model/definition.ts'
import type { PathFault } from '../faults.ts'
import { pathText } from '../faults.ts'

export type InputCheck = (
  catalog: Catalog,
  workflow: string,
  version: string | null,
  input: unknown,
) => Refusal | null

const KEPT = 1_000
const SHOWN = 50

/** A check that compiles each schema once. */
export const inputCheck = (log: Log): InputCheck => {
  const byText = new Map<string, ValidateFunction | null>()
  const bySchema = new WeakMap<object, ValidateFunction | null>()

  const compiled = (schema: object, workflow: string): ValidateFunction | null => {
    const seen = bySchema.get(schema)
    if (seen !== undefined) return seen
    const text = JSON.stringify(schema)
    let check = byText.get(text)
    if (check === undefined) {
      check = compile(schema, workflow, log)
      if (byText.size >= KEPT) byText.clear()
      byText.set(text, check)
    }
    bySchema.set(schema, check)
    return check
  }

  return (catalog, workflow, version, input) => {
    const definition = definitionOf(catalog, workflow, version)
    if (!definition?.input) return null
    const check = compiled(definition.input, workflow)
    if (check === null || check(input ?? null)) return null
    const faults = (check.errors ?? []).slice(0, SHOWN).map(faultOf)
    return refuse(
      'invalid_input',
      `the input does not fit ${workflow}: ${faults
        .slice(0, 5)
        .map(({ path, message }) => `${path} ${message}`)
        .join('; ')}`,
      { workflow, version: definition.version, faults },
    )
  }
}

const compile = (schema: object, workflow: string, log: Log): ValidateFunction | null => {
  try {
    const { Ajv2020 } = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof Ajv
    return new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(schema)
  } catch (error) {
    log.warn('workflow.schema_not_usable', { workflow, error })
    return null
  }
}

/** A JSON pointer as a path: `/items/0/id` is `$.items[0].id`. */
const faultOf = (error: ErrorObject): PathFault => {
  const parts = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  const missing: unknown = error.params['missingProperty'] ?? error.params['additionalProperty']
  return {
    path: pathText(typeof missing === 'string' ? [...parts, missing] : parts),
    message:
      error.keyword === 'required'
        ? 'is missing'
        : error.keyword === 'additionalProperties'
          ? 'is not known here'
          : (error.message ?? 'does not fit'),
  }
}
