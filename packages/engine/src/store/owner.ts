// On SQLite one process owns the file: an exclusive transaction on a side file, held for life by a connection of its
// own. The operating system lets it go with the process, so a lock that is free is proof that its holder has ended.
import Database from 'better-sqlite3'
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Fault } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { placeOf } from './file-place.ts'
import { keep } from './keep.ts'
import { planSqlite } from './migrate.ts'
import { faultOf, isBusy } from './sqlite-faults.ts'

export interface Ownership {
  /** The path of the file, through all links. */
  readonly file: string
  release(): void
}

/** As `own`, for a file that was looked at first: one that is not ours is refused, and nothing is written to it or beside it. */
export const takeFile = (file: string, who: string): Ownership => {
  look(file, (db) => planSqlite(db))
  return own(file, who)
}

/** Reads a file without owning it, changing it, or leaving anything beside it; null where there is none. */
export const look = <T>(file: string, read: (db: Database.Database) => T): T | null => {
  const place = placeOf(file)
  if (place === ':memory:') return null
  mustAllow(place)
  if (!existsSync(place)) return null
  let db: Database.Database | null = null
  try {
    db = keep(new Database(place, { fileMustExist: true, timeout: 5_000 }))
    return read(db)
  } catch (error) {
    throw faultOf(error, file)
  } finally {
    db?.close()
  }
}

/** What SQLite and our lock keep beside a file. */
const BESIDE = ['', '-wal', '-shm', '.owner', '.owner.txt']

/**
 * Refuses a store of which a file may not be read and written, before anything is opened: what SQLite makes beside a file that
 * it cannot write stays there, and has that file's permissions. Nothing is opened to see it, since a close of any of them would
 * drop the locks that this process has on it.
 */
const mustAllow = (place: string): void => {
  for (const end of BESIDE)
    try {
      accessSync(`${place}${end}`, constants.R_OK | constants.W_OK)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') continue
      throw new Fault(
        'store_read_only',
        `${place}${end} may not be read and written by this process (${code ?? messageOf(error)}); allow it, as with \`chmod u+rw\` by its owner, or start as a user who may`,
        { retryable: false, cause: error },
      )
    }
}

/** Takes the file, or throws the fault `owned_elsewhere` that names the owner. `who` is shown to those refused. */
export const own = (file: string, who: string): Ownership => {
  const place = placeOf(file)
  if (place === ':memory:') return { file: place, release: () => undefined }
  const side = `${place}.owner`
  const db = locked(side, file)
  const release = (): void => {
    if (!db.open) return
    db.exec('rollback')
    db.close()
  }
  try {
    writeFileSync(`${side}.txt`, who)
  } catch (error) {
    release()
    throw sideFault(`${side}.txt`, error)
  }
  return { file: place, release }
}

/** Throws where the lock is another's, and also where it would be none: on a file that may not be written SQLite locks nothing. */
const locked = (side: string, file: string): Database.Database => {
  let db: Database.Database
  try {
    db = keep(new Database(side, { timeout: 0 }))
  } catch (error) {
    throw sideFault(side, error)
  }
  try {
    // with a journal on the disk one could not be taken while that is full, and one that was killed would leave it behind
    db.exec('pragma journal_mode = MEMORY')
    db.exec('begin exclusive')
    // never committed: that it can be written is the proof that the lock is one
    db.exec('pragma user_version = 1')
    return db
  } catch (error) {
    db.close()
    throw isBusy(error)
      ? new Fault(
          'owned_elsewhere',
          `${file} is owned by ${ownerOf(side)}; stop that process, or talk to it over HTTP`,
          { retryable: false, cause: error },
        )
      : sideFault(side, error)
  }
}

/** That a side file cannot be made, read or written says nothing of an owner. */
const sideFault = (side: string, error: unknown): Fault => {
  const said = (error as { code?: unknown }).code
  const code = typeof said === 'string' ? said : ''
  const options = { retryable: false, cause: error }
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)/.test(code))
    return new Fault(
      'store_full',
      `the disk of ${side} is full; free space and start again`,
      options,
    )
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return new Fault(
      'store_damaged',
      `the lock ${side} is damaged (${messageOf(error)}); make sure that no process uses the file that it belongs to, then delete the lock: it holds nothing`,
      options,
    )
  const means = code.startsWith('SQLITE_READONLY') ? 'written' : 'opened'
  return new Fault(
    'store_unavailable',
    `${side} cannot be ${means}: ${messageOf(error)}; the folder must be there, and this process must be allowed to write in it and to this file`,
    options,
  )
}

const ownerOf = (side: string): string => {
  try {
    return readFileSync(`${side}.txt`, 'utf8').trim() || 'another process'
  } catch {
    return 'another process'
  }
}
