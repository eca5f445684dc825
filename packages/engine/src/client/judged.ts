// What a server said to an executor, sorted: what it judged of a run or a session is a value, and everything else a fault.
import type { ErrorCode, FaultCode, RefusalCode } from '../kernel/codes.ts'
import { codes } from '../kernel/codes.ts'
import { Fault, LeaseholdError } from '../kernel/errors.ts'
import type { Refusal } from '../kernel/outcome.ts'

/** Codes that say nothing of the run or the session: the same request may be answered another time. */
const NOT_JUDGED: readonly ErrorCode[] = [
  'draining',
  'unauthorized',
  'not_allowed',
  'forbidden_origin',
  'internal_error',
  'connection_superseded',
]

const kindOf = (code: string): string | undefined =>
  Object.hasOwn(codes, code) ? codes[code as ErrorCode].kind : undefined
export const isRefusal = (code: string): code is RefusalCode => kindOf(code) === 'refusal'
export const isFault = (code: string): code is FaultCode => kindOf(code) === 'fault'

/** What the server judged, as the value that the port answers; undefined for everything else. */
export const refusalOf = (
  error: unknown,
  notJudged: readonly ErrorCode[] = NOT_JUDGED,
): Refusal | undefined =>
  error instanceof LeaseholdError && isRefusal(error.code) && !notJudged.includes(error.code)
    ? { ok: false, code: error.code, message: error.message, detail: error.detail }
    : undefined

export const faultOf = (error: unknown): unknown =>
  error instanceof LeaseholdError && !(error instanceof Fault)
    ? new Fault('peer_unreachable', error.message, {
        cause: error,
        detail: { ...error.detail, code: error.code },
      })
    : error

export const thrown = (error: unknown): never => {
  throw faultOf(error)
}
