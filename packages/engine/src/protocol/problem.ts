// A problem document (RFC 9457): how every refusal and fault looks on the wire, and how a client reads it back.
import * as z from 'zod'
import type { ErrorCode, FaultCode } from '../kernel/codes.ts'
import { codes } from '../kernel/codes.ts'
import { Fault, LeaseholdError, StaleAttemptError } from '../kernel/errors.ts'

export const PROBLEM_TYPE = 'application/problem+json'

export const problem = z
  .looseObject({
    type: z
      .string()
      .describe('A stable name of the kind of problem: `urn:leasehold:` and the code'),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().describe('What was found, what was expected, what to do'),
    code: z.string(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457; more members say what was found' })

export type Problem = z.output<typeof problem>

const OWN = new Set(['type', 'title', 'status', 'detail', 'code'])

/** Members of `detail` stand beside the standard ones and never in their place. */
export const problemOf = (
  code: ErrorCode,
  message: string,
  detail: Readonly<Record<string, unknown>> = {},
): Problem => {
  const own = {
    type: `urn:leasehold:${code}`,
    title: codes[code].what,
    status: codes[code].status,
    detail: message,
    code,
  }
  return { ...Object.fromEntries(Object.entries(detail).filter(([key]) => !OWN.has(key))), ...own }
}

/** The problem in a body, or undefined where it is somebody else's. */
export const readProblem = (
  body: unknown,
): { code: ErrorCode; message: string; detail: Record<string, unknown> } | undefined => {
  const read = problem.safeParse(body)
  if (!read.success || !read.data.type.startsWith('urn:leasehold:')) return undefined
  const { type: _type, title: _title, status: _status, detail, code, ...more } = read.data
  return Object.hasOwn(codes, code)
    ? { code: code as ErrorCode, message: detail, detail: more }
    : { code: 'unknown_outcome', message: `${code}: ${detail}`, detail: { ...more, code } }
}

/** What a client throws for a problem: a fault where the same request may be repeated. */
export const errorFromProblem = (found: {
  code: ErrorCode
  message: string
  detail: Record<string, unknown>
}): LeaseholdError => {
  const { kind, status } = codes[found.code]
  if (kind === 'fault')
    return new Fault(found.code as FaultCode, found.message, {
      detail: found.detail,
      retryable: status === 503,
    })
  return found.code === 'stale_attempt'
    ? new StaleAttemptError(found.message, found.detail)
    : new LeaseholdError(found.code, found.message, found.detail)
}
