// Opens an engine on a SQLite file: takes the file, migrates it, takes back what lived in its earlier owner, and starts
// the loops. Everything that runs on SQLite begins here.
import { hostname } from 'node:os'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import type { Settings } from '../model/settings.ts'
import { defaults, settingsFaults } from '../model/settings.ts'
import type { ExecutorPort } from '../model/work.ts'
import { migrateSqlite } from '../store/migrate.ts'
import type { Ownership } from '../store/owner.ts'
import { own } from '../store/owner.ts'
import { openSqlite } from '../store/sqlite.ts'
import { takeOverFile } from '../transitions/end-session.ts'
import type { Engine } from './engine.ts'
import { openEngine } from './engine.ts'
import { executorPort } from './executor-port.ts'
import type { TransactionVerbs } from './user-transaction.ts'
import { userTransaction } from './user-transaction.ts'
import type { Loops } from './upkeep.ts'
import { startLoops } from './upkeep.ts'

export interface OpenOptions {
  /** Path of the database file, or `:memory:`. */
  readonly file: string
  readonly ports: Ports
  readonly settings?: Partial<Settings>
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF'
  /** The loops pass only when told: for tests that own the clock. */
  readonly manualLoops?: boolean
}

export interface Opened {
  readonly engine: Engine
  readonly loops: Loops
  /** Executors inside this process: their sessions live and die with it. */
  readonly embedded: ExecutorPort
  /** Executors in other processes, as the HTTP routes call it. */
  readonly remote: ExecutorPort
  /** Runs `work` in a transaction of its own on the engine's connection; it may also use the user's own tables there. */
  transaction<T>(work: (tx: TransactionVerbs) => T): T
  close(): Promise<void>
}

/** Throws a Fault or `invalid_config` with a sentence when the file or a setting cannot be used; nothing is left open then. */
export const openOnSqlite = async ({
  file,
  ports,
  settings: given = {},
  synchronous,
  manualLoops = false,
}: OpenOptions): Promise<Opened> => {
  const settings: Settings = { ...defaults, ...given }
  const faults = settingsFaults(settings)
  if (faults.length > 0) throw new LeaseholdError('invalid_config', faults.join('; '), { faults })
  const self = `${hostname()}:${process.pid}:${ports.ids.next('own')}`
  const ownership: Ownership = own(file, `process ${process.pid} on ${hostname()}`)
  try {
    const store = openSqlite(file, ports.time, synchronous === undefined ? {} : { synchronous })
    try {
      migrateSqlite(store.db, ports.time.now())
      const engine = await openEngine({ store, ports, settings })
      const taken = await store.run((tx) =>
        takeOverFile(
          tx,
          self,
          `the owner lock of the file was free when process ${process.pid} took it`,
        ),
      )
      if (taken.ended + taken.recounted > 0)
        ports.log.info('store.taken_over', { file, ended: taken.ended, recounted: taken.recounted })
      const loops = startLoops(engine, manualLoops)
      return {
        engine,
        loops,
        embedded: executorPort(engine, { process: self, embedded: true }),
        remote: executorPort(engine, { process: self, embedded: false }),
        transaction: (work) => userTransaction(engine, store, work),
        async close() {
          await loops.stop()
          await engine.idle()
          await store.close()
          ownership.release()
        },
      }
    } catch (error) {
      await store.close()
      throw error
    }
  } catch (error) {
    ownership.release()
    throw error
  }
}
