// What the SQLite driver throws, said once as the faults of the engine: what happened, to which file, and what to do.
import { existsSync, statfsSync } from 'node:fs'
import path from 'node:path'
import type { FaultCode } from '../kernel/codes.ts'
import { Defect, Fault, LeaseholdError } from '../kernel/errors.ts'
import { placeOf } from './file-place.ts'

/** The fault that an error of the driver means; anything that is not the outside's doing passes unchanged. */
export const faultOf = (error: unknown, file?: string): unknown => {
  const { code } = (error ?? {}) as { code?: unknown }
  if (error instanceof Fault || error instanceof Defect) return error
  if (typeof code !== 'string')
    return file !== undefined && error instanceof TypeError
      ? new Fault(
          'not_a_database',
          `cannot open ${file}: ${error.message}; name a file in a folder that exists`,
          { retryable: false, cause: error },
        )
      : error
  const { message } = error as Error
  const where = file === undefined ? '' : ` (${file})`
  const fault = (name: FaultCode, sentence: string, retryable = true): Fault =>
    new Fault(name, sentence, { retryable, cause: error })
  const is = (...starts: readonly string[]): boolean =>
    starts.some((start) => code.startsWith(`SQLITE_${start}`))
  // it was one when it was opened, or an engine has had it: its lock stands beside it
  const damaged = is('NOTADB') && (file === undefined || existsSync(`${placeOf(file)}.owner`))
  if (is('TOOBIG'))
    return new LeaseholdError(
      'invalid_request',
      `the store cannot keep what was sent: ${message}; send what fits, a repeat would be refused too`,
      {},
      { cause: error },
    )
  if (is('NOTADB') && !damaged)
    return fault(
      'not_a_database',
      `the file is not a SQLite database${where}; name another file`,
      false,
    )
  if (damaged || is('CORRUPT'))
    return fault(
      'store_damaged',
      `the database file is damaged${where}: ${message}; stop what uses it, put a backup in its place and run \`leasehold doctor --after-restore\``,
      false,
    )
  if (is('FULL') || (is('IOERR') && file !== undefined && isFull(file)))
    return fault(
      'store_full',
      `the disk of the store is full${where}; free space, the engine goes on by itself`,
    )
  if (is('READONLY'))
    return fault('store_read_only', `the store refuses writes${where}: ${message}`)
  if (isBusy(error))
    return fault(
      'store_unavailable',
      `another program holds a lock on the database file${where}, and nothing can be written until it lets go: ${message}; end its transaction, the engine goes on by itself`,
    )
  if (is('IOERR', 'CANTOPEN'))
    return fault('store_unavailable', `the database cannot be reached${where}: ${message}`)
  return error
}

/** Whether somebody else's lock on the file is what stands in the way. */
export const isBusy = (error: unknown): boolean =>
  /^SQLITE_(BUSY|LOCKED)/.test(String((error as { code?: unknown } | null)?.code))

/** Some writes, as of the file that SQLite shares between processes, fail on a full disk without saying so. */
const isFull = (file: string): boolean => {
  try {
    return statfsSync(path.dirname(path.resolve(file))).bavail === 0
  } catch {
    return false
  }
}
