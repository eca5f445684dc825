// What is thrown. A fault is the world's and may be retried at the edge; a defect is ours; the rest is for users' code.
import type { ErrorCode, FaultCode } from './codes.ts'
import type { Refusal } from './outcome.ts'

/** Base of all errors that the engine throws to its users. Compare `code`, never the class. */
export class LeaseholdError extends Error {
  readonly code: ErrorCode
  readonly detail: Readonly<Record<string, unknown>>
  constructor(
    code: ErrorCode,
    message: string,
    detail: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'LeaseholdError'
    this.code = code
    this.detail = detail
  }
}

/** The outside failed: the store, the network, a peer. */
export class Fault extends LeaseholdError {
  /** Whether the same request may be repeated. */
  readonly retryable: boolean
  constructor(
    code: FaultCode,
    message: string,
    options: { retryable?: boolean; cause?: unknown; detail?: Record<string, unknown> } = {},
  ) {
    super(
      code,
      message,
      options.detail ?? {},
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.name = 'Fault'
    this.retryable = options.retryable ?? true
  }
}

/** A loss of the fence: another attempt holds the run. Never a failure of the run. */
export class StaleAttemptError extends LeaseholdError {
  constructor(message: string, detail: Readonly<Record<string, unknown>> = {}) {
    super('stale_attempt', message, detail)
    this.name = 'StaleAttemptError'
  }
}

/** Thrown by users' code: this step or run is not tried again. */
export class FatalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FatalError'
  }
}

/** Thrown by users' code: try again, but not before `afterMs` milliseconds. */
export class RetryAfterError extends Error {
  readonly afterMs: number
  constructor(message: string, afterMs: number, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RetryAfterError'
    this.afterMs = afterMs
  }
}

/** Our own mistake: an invariant does not hold. Caught only at the top, which logs it and exits. */
export class Defect extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Defect'
  }
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Defect(message)
}

/** The error form of a refusal, for callers who asked for a value. */
export const errorOf = (refusal: Refusal): LeaseholdError =>
  refusal.code === 'stale_attempt'
    ? new StaleAttemptError(refusal.message, refusal.detail)
    : new LeaseholdError(refusal.code, refusal.message, refusal.detail)
