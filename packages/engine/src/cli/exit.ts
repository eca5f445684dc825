// Exit codes that scripts can rely on, and which of them an error comes to.
import type { ErrorCode } from '../kernel/codes.ts'
import { codes } from '../kernel/codes.ts'
import { Fault, LeaseholdError } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { systemTimers } from '../kernel/timers.ts'
import type { Output } from './output.ts'

export const exit = {
  ok: 0,
  /** A run failed, or something is wrong. */
  failed: 1,
  /** The command or the configuration cannot be used. */
  usage: 2,
  notFound: 3,
  /** It is in a state in which that cannot be done. */
  conflict: 4,
  denied: 5,
  unreachable: 6,
  timedOut: 7,
} as const

/** Ends the process after a mistake of our own: what it has answered stays, and one that has been wrong once is not asked again. */
export const exitOnDefect = (): void =>
  void systemTimers.after(100, () => process.exit(exit.failed))

/** Ends the process when its store is gone from under it, before every loop and call says so in its turn. */
export const exitWhenLost =
  (out: Output) =>
  (fault: LeaseholdError): void => {
    tell(fault, out)
    process.exit(exit.failed)
  }

/** A person's mistake in a command, told without a stack. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

const USAGE: readonly ErrorCode[] = ['invalid_config', 'invalid_request', 'invalid_input']
const DENIED: readonly ErrorCode[] = ['unauthorized', 'not_allowed', 'forbidden_origin']
const UNREACHABLE: readonly ErrorCode[] = ['peer_unreachable', 'draining', 'unknown_outcome']
const CONFLICT: readonly ErrorCode[] = ['owned_elsewhere', 'limit_full', 'signals_full']

export const exitCodeOf = (error: unknown): number => {
  if (error instanceof UsageError) return exit.usage
  const code = codeOf(error)
  if (code === null) return exit.failed
  if (USAGE.includes(code)) return exit.usage
  if (DENIED.includes(code)) return exit.denied
  if (UNREACHABLE.includes(code)) return exit.unreachable
  if (CONFLICT.includes(code) || codes[code].status === 409) return exit.conflict
  return codes[code].status === 404 ? exit.notFound : exit.failed
}

const codeOf = (error: unknown): ErrorCode | null => {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && Object.hasOwn(codes, code) ? (code as ErrorCode) : null
}

/**
 * What there is to do beside what the message says: what a code advises, but nothing where no repeat helps and the message
 * itself says what does.
 */
const todoOf = (error: unknown): string | null => {
  const code = codeOf(error)
  if (code === 'peer_unreachable' && error instanceof LeaseholdError && 'url' in error.detail)
    return 'Start one with `leasehold serve`, or name another with --url or LEASEHOLD_URL.'
  if (code === null || codes[code].kind === 'failure') return null
  return error instanceof Fault && !error.retryable ? null : codes[code].todo
}

/** Tells an error to a program: one line of JSON, `{"error":{"code","message","todo"}}`, with `faults` where it lists several. */
export const tellJson = (error: unknown, out: Output): void => {
  const usage = error instanceof UsageError
  const code = usage ? 'invalid_request' : (codeOf(error) ?? 'internal_error')
  const faults = error instanceof LeaseholdError ? error.detail['faults'] : undefined
  out.jsonNote({
    error: {
      code,
      message: messageOf(error),
      todo: usage ? null : codeOf(error) === null ? codes[code].todo : todoOf(error),
      ...(Array.isArray(faults) ? { faults: faults as unknown[] } : {}),
      ...(!usage && codeOf(error) === null && error instanceof Error ? { stack: error.stack } : {}),
    },
  })
}

/** Tells an error to a person: what happened, each fault on a line, and what to do. */
export const tell = (error: unknown, out: Output): void => {
  const code = codeOf(error)
  const faults = error instanceof LeaseholdError ? error.detail['faults'] : undefined
  if (Array.isArray(faults) && code === 'invalid_config') {
    out.error(
      faults.length === 1
        ? 'the configuration has a fault'
        : `the configuration has ${faults.length} faults`,
    )
    for (const fault of faults) out.note(`  ${String(fault)}`)
    return
  }
  out.error(messageOf(error))
  const todo = todoOf(error)
  if (code !== null && codes[code].kind !== 'failure')
    out.note(`  ${todo === null ? '' : `${todo} `}(${code})`)
  else if (code === null && !(error instanceof UsageError) && error instanceof Error && error.stack)
    out.note(error.stack.split('\n').slice(1).join('\n'))
}
