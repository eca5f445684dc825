// What PostgreSQL and the way to it say, as faults: once, here. Codes are those of the manual's appendix A.
import { Defect, Fault, LeaseholdError } from '../kernel/errors.ts'
import { UniqueViolation } from './sql.ts'

/** How far a transaction had come when it failed. */
export type Stage = 'unsent' | 'open' | 'committing'

const codeOf = (error: Error): string => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Two transactions met: nothing was written, and the same transaction may be tried again. */
export const isConflict = (error: Error): boolean => ['40001', '40P01'].includes(codeOf(error))

/** A prepared plan outlived a change of its tables: it may be tried again under another name, and never under its own. */
export const isOutlived = (error: Error): boolean =>
  codeOf(error) === '0A000' && error.message.includes('cached plan')

/** A prepared statement is not where it was prepared, or is there already. */
export const isUnprepared = (error: Error): boolean => ['26000', '42P05'].includes(codeOf(error))

/**
 * What was sent cannot be kept, whenever it is sent: a number beyond its column, a text beyond its index (22, 54). It is the
 * item's own, so that it fails no other of its batch, and no server.
 */
export const isUnfit = (error: Error): boolean => /^(22|54)/.test(codeOf(error))

/** A row that must be new was there. */
export const violationOf = (error: Error): UniqueViolation | null =>
  codeOf(error) === '23505'
    ? new UniqueViolation((error as { table?: string }).table ?? 'a table', error)
    : null

/** Errors of the server after which the connection goes, too: shutdown, crash of another backend, idle limits. */
const isEnding = (code: string): boolean => code.startsWith('08') || /^57P0[1-5]$/.test(code)

const SENTENCES: readonly (readonly [RegExp, (message: string) => Fault])[] = [
  [
    /^(53100|58030)$/,
    (message) =>
      new Fault(
        'store_full',
        `the disk of the database is full: ${message}; free space, the engine goes on by itself`,
      ),
  ],
  [
    /^25006$/,
    (message) =>
      new Fault(
        'store_read_only',
        `the database refuses writes: ${message}; it is a standby, or was set so; the engine goes on once it is the primary`,
      ),
  ],
  [
    /^53300$/,
    (message) =>
      new Fault(
        'store_unavailable',
        `the database has no connection left: ${message}; raise its max_connections, or give the engine fewer`,
      ),
  ],
  [
    /^55P03$/,
    (message) => new Fault('store_busy', `a row was locked for too long: ${message}; repeat it`),
  ],
  [/^57014$/, (message) => new Fault('store_unavailable', `a statement took too long: ${message}`)],
  [/^(28|3D)/, (message) => new Fault('store_unavailable', `the database refuses us: ${message}`)],
  [/^(53|55|57|58)/, (message) => new Fault('store_unavailable', `the database: ${message}`)],
]

/** The fault for an error of `pg`. `at` names the statement, null where the connection was lost. */
export const faultOf = (error: Error, at: string | null, stage: Stage): Error => {
  const code = codeOf(error)
  const lost = at === null || isEnding(code)
  if (lost) {
    if (stage === 'committing')
      return new Fault(
        'unknown_outcome',
        `the connection to the database was lost while a transaction committed: ${error.message}; whether it did is found out by repeating it`,
        { cause: error },
      )
    return new Fault('store_unavailable', `the database cannot be reached: ${error.message}`, {
      cause: error,
    })
  }
  if (isOutlived(error))
    return new Fault(
      'store_unavailable',
      `the tables changed again and again under a statement: ${error.message}`,
      { cause: error },
    )
  if (isConflict(error))
    return new Fault('store_unavailable', `transactions kept meeting: ${error.message}`, {
      cause: error,
    })
  if (isUnfit(error))
    return new LeaseholdError(
      'invalid_request',
      `the database cannot keep what was sent: ${error.message} (${at}); send what fits, a repeat would be refused too`,
      { state: code },
      { cause: error },
    )
  for (const [pattern, make] of SENTENCES) {
    if (!pattern.test(code)) continue
    const fault = make(error.message)
    fault.cause = error
    return fault
  }
  return new Defect(`${at}: ${error.message} (${code})`)
}
