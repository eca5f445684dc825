// The SQLite driver: one writer, one file. A transaction runs from begin to commit without leaving this turn of the
// event loop, so nothing can come between its statements.
import Database from 'better-sqlite3'
import { Defect } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import { sleep } from '../kernel/timers.ts'
import { rowSourceName, rowSources } from './dialect.ts'
import { keep } from './keep.ts'
import type { Sql, Statement, Steps, Tx } from './sql.ts'
import { UniqueViolation } from './sql.ts'
import { faultOf, isBusy } from './sqlite-faults.ts'
import type { Prepared } from './sqlite-rows.ts'
import { prepared } from './sqlite-rows.ts'
import type { Behind, Store, Tap } from './store.ts'

export interface SqliteStore extends Store {
  readonly kind: 'sqlite'
  readonly db: Database.Database
}

interface Options {
  /** `FULL` (default): an acknowledged write is on disk. `OFF` is for memory and tests. */
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF'
  readonly tap?: Tap
}

/** How long is waited while nobody is served yet; SQLite itself waits, and all of this process with it. */
const OPENING_MS = 5_000

/**
 * How long transactions wait for a lock that another program holds on the file, from the first that met it on: while it
 * lasts longer, each is refused as soon as it comes.
 */
const LOCKED_MS = 2_000
const AGAIN_MS = 20

/** Opens a database file, or `:memory:`; throws a Fault when it is not one. Does not migrate. */
export const openSqlite = (
  file: string,
  { time, timers }: Pick<Ports, 'time' | 'timers'>,
  options: Options = {},
): SqliteStore => {
  const db = opened(file, options)
  let serving = false
  let lockedSince: number | null = null
  const known = new Map<Sql<unknown>, Prepared>()
  const sources = new Set<string>()
  let batches: readonly (readonly object[])[] = []
  const immediate = keep(db.prepare('begin immediate'))
  const deferred = keep(db.prepare('begin'))
  const commit = keep(db.prepare('commit'))
  const mark = keep(db.prepare('savepoint behind'))
  const unmark = keep(db.prepare('release behind'))
  let roundTrips = 0

  /** The table through which SQLite reads the items of a batch; its one argument is the batch's place among `batches`. */
  const provide = (columns: readonly string[]): void => {
    const name = rowSourceName(columns)
    if (sources.has(name)) return
    sources.add(name)
    db.table(name, {
      columns: [...columns],
      parameters: ['batch'],
      *rows(at: unknown) {
        for (const item of batches[at as number] ?? [])
          yield columns.map((column) => (item as Readonly<Record<string, unknown>>)[column])
      },
    })
  }

  const prepare = (sql: Sql<unknown>): Prepared => {
    let found = known.get(sql)
    if (!found) {
      try {
        for (const columns of rowSources(sql.text)) provide(columns)
        found = prepared(db, sql)
      } catch (error) {
        throw new Defect(`${sql.name}: ${(error as Error).message}`)
      }
      known.set(sql, found)
    }
    return found
  }

  const run = ({ sql, params }: Statement, now: number): readonly unknown[] => {
    const { statement, rows } = prepare(sql)
    const bound: Record<number, unknown> = {}
    const found: (readonly object[])[] = []
    for (let i = 0; i < params.length; i++) {
      const param = params[i]
      const batch = typeof param === 'object' && param !== null
      bound[i + 1] = batch ? found.push(param.items) - 1 : param
    }
    bound[params.length + 1] = now
    batches = found
    if (rows) return rows(bound)
    statement.run(bound)
    return []
  }

  const drive = <T>(transaction: (tx: Tx) => Steps<T>): T => {
    const tx: Tx = { now: time.now(), kind: 'sqlite' }
    const steps = transaction(tx)
    let step = steps.next()
    while (!step.done) {
      const { statements, last } = step.value
      roundTrips += 1
      options.tap?.(statements)
      let results: (readonly unknown[])[]
      try {
        results = statements.map((each) => run(each, tx.now))
      } catch (error) {
        const violation = violationOf(error)
        if (violation === null) throw error
        steps.throw(violation)
        throw violation
      }
      step = steps.next(results)
      if (last && !step.done) throw new Defect('a transaction asked again after its last ask')
    }
    return step.value
  }

  const driveBehind = (transaction: (tx: Tx) => Steps<void>): void => {
    mark.run()
    try {
      drive(transaction)
    } catch (error) {
      // some errors, as a disk that is full, have undone all of it
      if (!db.inTransaction) throw error
      // else it is not done, which whoever gave it sees; it fails again, and is then told of, when it is done after the commit
      db.exec('rollback to behind')
    }
    unmark.run()
  }

  const once = <T>(
    begin: Database.Statement,
    transaction: (tx: Tx) => Steps<T>,
    behind?: Behind<T>,
  ): T => {
    try {
      begin.run()
      const answer = drive(transaction)
      const next = behind?.(answer)
      if (next) driveBehind(next)
      commit.run()
      return answer
    } catch (error) {
      if (db.open && db.inTransaction) db.exec('rollback')
      throw error
    }
  }

  const transact = async <T>(
    begin: Database.Statement,
    transaction: (tx: Tx) => Steps<T>,
    behind?: Behind<T>,
  ): Promise<T> => {
    // from the first transaction on others need the event loop, and SQLite would hold it while it waits
    if (!serving) db.pragma('busy_timeout = 0')
    serving = true
    for (;;)
      try {
        const answer = once(begin, transaction, behind)
        // reading is possible beside a lock that keeps everybody from writing
        if (begin === immediate) lockedSince = null
        return answer
      } catch (error) {
        if (!isBusy(error)) throw faultOf(error)
        lockedSince ??= time.mono()
        if (time.mono() - lockedSince >= LOCKED_MS) throw faultOf(error)
        await sleep(timers, AGAIN_MS)
        if (!db.open) throw faultOf(error)
      }
  }

  return {
    kind: 'sqlite',
    db,
    run: (transaction, _manner, behind) => transact(immediate, transaction, behind),
    read: (transaction) => transact(deferred, transaction),
    get roundTrips() {
      return roundTrips
    },
    close: async () => void db.close(),
  }
}

const opened = (file: string, options: Options): Database.Database => {
  try {
    const db = keep(new Database(file, { timeout: OPENING_MS }))
    db.exec('pragma journal_mode = WAL')
    db.exec(`pragma synchronous = ${options.synchronous ?? 'FULL'}`)
    // the log of a thousand pages that is the default is soon written over instead of growing, which a disk syncs twice as
    // fast; a longer one writes less at its checkpoints, and no figure gained by it
    db.exec('pragma foreign_keys = ON')
    db.exec('pragma cache_size = -65536')
    db.exec('pragma temp_store = MEMORY')
    // a batch is taken for large: it must lead each join, not have an index made for it of the other side's whole history
    db.exec('pragma automatic_index = OFF')
    return db
  } catch (error) {
    throw faultOf(error, file)
  }
}

const violationOf = (error: unknown): UniqueViolation | null => {
  const { code, message } = error as { code?: unknown; message: string }
  if (code !== 'SQLITE_CONSTRAINT_UNIQUE' && code !== 'SQLITE_CONSTRAINT_PRIMARYKEY') return null
  const [, table = 'a table'] = /failed: (?:index ')?(\w+)/.exec(message) ?? []
  return new UniqueViolation(table.split('_')[0] ?? table, error)
}
