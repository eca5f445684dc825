// On SQLite one process owns the file: an exclusive transaction on a side file, held for life by a connection of its
// own. The operating system lets it go with the process, so a lock that is free is proof that its holder has ended.
import Database from 'better-sqlite3'
import { readFileSync, writeFileSync } from 'node:fs'
import { Fault } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { keep } from './keep.ts'

export interface Ownership {
  release(): void
}

/** Takes the file, or throws the fault `owned_elsewhere` that names the owner. `who` is shown to those refused. */
export const own = (file: string, who: string): Ownership => {
  if (file === ':memory:') return { release: () => undefined }
  const side = `${file}.owner`
  const db = keep(opened(side))
  try {
    db.exec('pragma journal_mode = DELETE')
    db.exec('begin exclusive')
  } catch (error) {
    db.close()
    throw new Fault(
      'owned_elsewhere',
      `${file} is owned by ${ownerOf(side)}; stop that process, or talk to it over HTTP`,
      { retryable: false, cause: error },
    )
  }
  writeFileSync(`${side}.txt`, who)
  return {
    release() {
      if (!db.open) return
      db.exec('rollback')
      db.close()
    },
  }
}

/** That a side file cannot be made says nothing of an owner: the folder is missing, or is not for this process to write. */
const opened = (side: string): Database.Database => {
  try {
    return new Database(side, { timeout: 0 })
  } catch (error) {
    throw new Fault(
      'store_unavailable',
      `${side} cannot be opened: ${messageOf(error)}; the folder must be there, and this process must be allowed to write in it`,
      { retryable: false, cause: error },
    )
  }
}

const ownerOf = (side: string): string => {
  try {
    return readFileSync(`${side}.txt`, 'utf8')
  } catch {
    return 'another process'
  }
}
