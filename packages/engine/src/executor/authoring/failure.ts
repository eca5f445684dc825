// Errors as data: what was thrown, kept with its name, message, stack, cause chain and its author's own fields.
import { LeaseholdError } from '../../kernel/errors.ts'
import { decode, encode, messageOf } from '../../kernel/json.ts'

export interface FailureData {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly stack?: string
  readonly cause?: FailureData
  /** The author's own fields, where JSON can carry them. */
  readonly fields?: Readonly<Record<string, unknown>>
}

const TEXT_MAX = 32_768
const DEPTH_MAX = 8
/** Bytes that the author's own fields may take, over all causes of a chain less than a payload. */
const FIELDS_MAX = 65_536
const KNOWN = new Set(['name', 'message', 'stack', 'cause', 'code'])

/** Makes data of anything that was thrown: an error, a string, null, or an odd object with throwing getters. */
export const failureOf = (thrown: unknown, depth = 0): FailureData => {
  try {
    if (!(thrown instanceof Error)) return { name: 'Error', message: cut(messageOf(thrown)) }
    const code = part(() => (thrown as { code?: unknown }).code)
    const stack = part(() => thrown.stack)
    const cause = part(() => thrown.cause)
    const fields = ownFields(thrown)
    return {
      name: cut(part(() => String(thrown.name)) ?? 'Error'),
      message: cut(messageOf(thrown)),
      ...(typeof code === 'string' || typeof code === 'number' ? { code: cut(String(code)) } : {}),
      ...(typeof stack === 'string' ? { stack: cut(stack) } : {}),
      ...(cause !== undefined && depth < DEPTH_MAX ? { cause: failureOf(cause, depth + 1) } : {}),
      ...(Object.keys(fields).length > 0 ? { fields } : {}),
    }
  } catch {
    return { name: 'Error', message: 'something was thrown that cannot be read' }
  }
}

/** One part of an error; that it cannot be read takes nothing from the others. */
const part = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const ownFields = (error: Error): Record<string, unknown> => {
  const fields: Record<string, unknown> = {}
  let left = FIELDS_MAX
  for (const key of Object.keys(error)) {
    if (KNOWN.has(key) || key === '__proto__') continue
    if (left <= key.length) break
    try {
      const text = encode((error as unknown as Record<string, unknown>)[key], left) ?? 'null'
      fields[key] = text.length <= left ? decode(text) : '(too large)'
      left -= Math.min(text.length, left)
    } catch (refusal) {
      const large = (refusal as { code?: unknown } | null)?.code === 'payload_too_large'
      fields[key] = large ? '(too large)' : '(not JSON)'
    }
    left -= key.length + 16
  }
  return fields
}

const cut = (text: string): string =>
  text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX)}… (${text.length} characters)`

/** An error as the workflow function sees it, live and on replay: made of its data, so that both are the same. */
export class StepError extends Error {
  readonly code: string | undefined
  readonly fields: Readonly<Record<string, unknown>>
  constructor(data: FailureData) {
    super(data.message, data.cause ? { cause: new StepError(data.cause) } : undefined)
    this.name = data.name
    this.code = data.code
    this.fields = data.fields ?? {}
    if (data.stack !== undefined) this.stack = data.stack
  }
}

/** A child run did not succeed; `run` and `status` say which and how. */
export class ChildFailedError extends LeaseholdError {
  constructor(child: {
    run: string
    status: string
    reason: string | null
    note: string | null
    error: FailureData | null
  }) {
    super(
      'child_failed',
      `child ${child.run} ${child.status}${child.reason === null ? '' : ` (${child.reason})`}: ${child.error?.message ?? child.note ?? 'no message'}`,
      { run: child.run, status: child.status, reason: child.reason },
      child.error ? { cause: new StepError(child.error) } : undefined,
    )
    this.name = 'ChildFailedError'
  }
}
