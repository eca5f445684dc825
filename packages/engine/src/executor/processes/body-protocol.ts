// What passes between an executor and the process that drives an attempt for it, as JSON over their channel. The process has
// no session and no way to the engine of its own: it asks its executor, which lets through what is of this attempt alone.
import type { ErrorCode, FaultCode } from '../../kernel/codes.ts'
import { Fault, LeaseholdError, StaleAttemptError } from '../../kernel/errors.ts'
import { messageOf } from '../../kernel/json.ts'
import type { FirstReason } from '../../model/attempt.ts'
import type {
  AttemptWrite,
  ClaimedRun,
  Directive,
  Entry,
  RegisterOk,
  WriteAnswer,
} from '../../model/work.ts'
import type { Left } from '../driving/driver.ts'

/** All that a process needs to drive the attempt. */
export interface Begin {
  readonly claimed: ClaimedRun
  readonly generation: number
  readonly limits: RegisterOk['limits']
  /** JSON text, by the workflow's codec, of what its preparation gave. */
  readonly prepared: string | null
  /** As it was captured and as it is; null where the workflow has none. */
  readonly context: { readonly captured: string; readonly current: string } | null
  /** The store's clock as this was sent. */
  readonly now: number
  readonly maxChainDepth: number
  /** Workflows whose runs take slots of the same class. */
  readonly rivals: readonly string[]
}

export type ToBody =
  | { readonly kind: 'begin'; readonly begin: Begin }
  | { readonly kind: 'written'; readonly n: number; readonly answer: Answered<WriteAnswer> }
  | { readonly kind: 'page'; readonly n: number; readonly answer: Answered<readonly Entry[]> }
  /** No reason: its attempt is over, and nothing more of it is stored. */
  | { readonly kind: 'stop'; readonly reason: FirstReason | null; readonly note: string }
  | { readonly kind: 'drain' }
  | { readonly kind: 'told'; readonly directive: Directive; readonly note: string | null }
  | { readonly kind: 'ping' }

export type FromBody =
  /** Its module is loaded: it can begin. */
  | { readonly kind: 'loaded' }
  | { readonly kind: 'write'; readonly n: number; readonly write: AttemptWrite }
  | { readonly kind: 'journal'; readonly n: number; readonly after: number }
  | { readonly kind: 'left'; readonly left: Left }
  /** What its function has logged; `facts` is JSON text. */
  | { readonly kind: 'log'; readonly message: string; readonly facts: string | null }
  | { readonly kind: 'pong' }
  /** It cannot begin; its exit follows. */
  | { readonly kind: 'unfit'; readonly message: string }

export type Answered<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false
      readonly code: string | null
      readonly message: string
      readonly retryable: boolean | null
    }

/** What a call comes to, as data. */
export const answered = async <T>(call: Promise<T>): Promise<Answered<T>> => {
  try {
    return { ok: true, value: await call }
  } catch (error) {
    return {
      ok: false,
      code: error instanceof LeaseholdError ? error.code : null,
      message: messageOf(error),
      retryable: error instanceof Fault ? error.retryable : null,
    }
  }
}

/** The value of an answer, or its error thrown as it was on the other side. */
export const valueOf = <T>(answer: Answered<T>): T => {
  if (answer.ok) return answer.value
  const { code, message, retryable } = answer
  if (code === null) throw new Error(message)
  if (retryable !== null) throw new Fault(code as FaultCode, message, { retryable })
  if (code === 'stale_attempt') throw new StaleAttemptError(message)
  throw new LeaseholdError(code as ErrorCode, message)
}
