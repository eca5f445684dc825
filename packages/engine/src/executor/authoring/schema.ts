// Standard Schema at the doors: input, step output, signal and approval payloads, run output. Any library that speaks it.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { ErrorCode } from '../../kernel/codes.ts'
import { LeaseholdError } from '../../kernel/errors.ts'

export type Schema<I = unknown, O = I> = StandardSchemaV1<I, O>
export type { StandardSchemaV1 }

/** The value as the schema gives it back; throws `code` with every issue and its path. */
export const checked = async <O>(
  schema: Schema<unknown, O> | undefined,
  value: unknown,
  what: string,
  code: ErrorCode,
): Promise<O> => {
  if (!schema) return value as O
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return result.value
  const issues = result.issues.map((issue) => ({
    path: pathOf(issue.path),
    message: issue.message,
  }))
  throw new LeaseholdError(
    code,
    `${what} does not fit its schema: ${issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ')}`,
    { issues },
  )
}

/**
 * As `checked`, for a value that a workflow function waits for. A schema may take its time, and the function is at work
 * meanwhile: it neither departs from its journal nor is all that it does waiting.
 */
export const checkedFor = async <O>(
  driver: { inPlace(change: 1 | -1): void },
  ...[schema, value, what, code]: Parameters<typeof checked<O>>
): Promise<O> => {
  if (!schema) return value as O
  driver.inPlace(1)
  try {
    return await checked(schema, value, what, code)
  } finally {
    driver.inPlace(-1)
  }
}

const pathOf = (path: StandardSchemaV1.Issue['path']): string =>
  ['$', ...(path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))].join('.')

/** The JSON Schema of a schema, where its library can tell; null where it cannot. */
export const jsonSchemaOf = (
  schema: Schema | undefined,
  side: 'input' | 'output',
): object | null => {
  const standard = schema?.['~standard'] as
    { jsonSchema?: Record<'input' | 'output', (options: { target: string }) => object> } | undefined
  if (typeof standard?.jsonSchema?.[side] !== 'function') return null
  try {
    return standard.jsonSchema[side]({ target: 'draft-2020-12' })
  } catch {
    return null // the schema says what JSON Schema cannot: it is checked at the first claim
  }
}
