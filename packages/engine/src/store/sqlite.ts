// The SQLite driver: one writer, one file. A transaction runs from begin to commit without leaving this turn of the
// event loop, so nothing can come between its statements.
import Database from 'better-sqlite3'
import { Defect, Fault } from '../kernel/errors.ts'
import type { Time } from '../kernel/time.ts'
import { sqliteText } from './dialect.ts'
import type { Sql, Statement, Steps, Tx } from './sql.ts'
import type { Store, Tap } from './store.ts'

export interface SqliteStore extends Store {
  readonly kind: 'sqlite'
  readonly db: Database.Database
}

interface Options {
  /** `FULL` (default): an acknowledged write is on disk. `OFF` is for memory and tests. */
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF'
  readonly tap?: Tap
}

/** Opens a database file, or `:memory:`; throws a Fault when it is not one. Does not migrate. */
export const openSqlite = (file: string, time: Time, options: Options = {}): SqliteStore => {
  const db = opened(file, options)
  const prepared = new Map<Sql<unknown>, Database.Statement>()
  let roundTrips = 0

  const prepare = (sql: Sql<unknown>): Database.Statement => {
    let found = prepared.get(sql)
    if (!found) {
      try {
        found = db.prepare(sqliteText(sql.text))
      } catch (error) {
        throw new Defect(`${sql.name}: ${(error as Error).message}`)
      }
      prepared.set(sql, found)
    }
    return found
  }

  const run = ({ sql, params }: Statement, now: number): readonly unknown[] => {
    const found = prepare(sql)
    const bound: Record<number, unknown> = {}
    for (let i = 0; i < params.length; i++) bound[i + 1] = params[i]
    bound[params.length + 1] = now
    if (found.reader) return found.all(bound)
    found.run(bound)
    return []
  }

  const drive = <T>(transaction: (tx: Tx) => Steps<T>): T => {
    const tx: Tx = { now: time.now() }
    const steps = transaction(tx)
    let step = steps.next()
    while (!step.done) {
      const { statements, last } = step.value
      roundTrips += 1
      options.tap?.(statements)
      const results = statements.map((each) => run(each, tx.now))
      step = steps.next(results)
      if (last && !step.done) throw new Defect('a transaction asked again after its last ask')
    }
    return step.value
  }

  const transact = async <T>(begin: string, transaction: (tx: Tx) => Steps<T>): Promise<T> => {
    try {
      db.exec(begin)
      const answer = drive(transaction)
      db.exec('commit')
      return answer
    } catch (error) {
      if (db.open && db.inTransaction) db.exec('rollback')
      throw translated(error)
    }
  }

  return {
    kind: 'sqlite',
    db,
    run: (transaction) => transact('begin immediate', transaction),
    read: (transaction) => transact('begin', transaction),
    get roundTrips() {
      return roundTrips
    },
    close: async () => void db.close(),
  }
}

const opened = (file: string, options: Options): Database.Database => {
  try {
    const db = new Database(file, { timeout: 5_000 })
    db.pragma('journal_mode = WAL')
    db.pragma(`synchronous = ${options.synchronous ?? 'FULL'}`)
    db.pragma('foreign_keys = ON')
    db.pragma('cache_size = -65536')
    db.pragma('temp_store = MEMORY')
    return db
  } catch (error) {
    throw translated(error, file)
  }
}

/** Driver errors become faults here, once; anything that is not the outside's doing passes unchanged. */
const translated = (error: unknown, file?: string): unknown => {
  const code = (error as { code?: unknown } | null)?.code
  if (error instanceof Fault || error instanceof Defect || typeof code !== 'string') {
    if (file !== undefined && error instanceof TypeError)
      return new Fault(
        'not_a_database',
        `cannot open ${file}: ${error.message}; name a file in a folder that exists`,
        { retryable: false, cause: error },
      )
    return error
  }
  const message = (error as Error).message
  const where = file === undefined ? '' : ` (${file})`
  if (code === 'SQLITE_NOTADB')
    return new Fault(
      'not_a_database',
      `the file is not a SQLite database${where}; name another file`,
      { retryable: false, cause: error },
    )
  if (code.startsWith('SQLITE_FULL'))
    return new Fault(
      'store_full',
      `the disk of the store is full${where}; free space, the engine goes on by itself`,
      { cause: error },
    )
  if (code.startsWith('SQLITE_READONLY'))
    return new Fault('store_read_only', `the store refuses writes${where}: ${message}`, {
      cause: error,
    })
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
    return new Fault(
      'store_unavailable',
      `another process is using the database${where}: ${message}`,
      { cause: error },
    )
  if (code.startsWith('SQLITE_IOERR') || code.startsWith('SQLITE_CANTOPEN'))
    return new Fault('store_unavailable', `the database cannot be reached${where}: ${message}`, {
      cause: error,
    })
  if (code.startsWith('SQLITE_CORRUPT'))
    return new Fault('not_a_database', `the database file is damaged${where}: ${message}`, {
      retryable: false,
      cause: error,
    })
  return error
}
