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
  /** Executors inside this process: on SQLite their sessions live and die with it. */
  readonly embedded: ExecutorPort
  /** Executors in other processes, as the HTTP routes call it. */
  readonly remote: ExecutorPort
  close(): Promise<void>
}

export interface OpenedFile extends Opened {
  /** Runs `work` in a transaction of its own on the engine's connection; it may also use the user's own tables there. */
  transaction<T>(work: (tx: TransactionVerbs) => T): T
}

/** The settings with their defaults; throws `invalid_config` with all faults. */
export const settingsOf = (given: Partial<Settings>): Settings => {
  const settings: Settings = { ...defaults, ...given }
  const faults = settingsFaults(settings)
  if (faults.length > 0) throw new LeaseholdError('invalid_config', faults.join('; '), { faults })
  return settings
}

/** Throws a Fault or `invalid_config` with a sentence when the file or a setting cannot be used; nothing is left open then. */
export const openOnSqlite = async ({
  file,
  ports,
  settings: given = {},
  synchronous,
  manualLoops = false,
}: OpenOptions): Promise<OpenedFile> => {
  const settings = settingsOf(given)
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
      const opened = started(engine, self, manualLoops)
      return {
        ...opened,
        transaction: (work) => userTransaction(engine, store, work),
        async close() {
          await opened.close()
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

/** Starts the loops of an open engine, and its two ways in. */
export const started = (engine: Engine, self: string, manualLoops: boolean): Opened => {
  const loops = startLoops(engine, manualLoops)
  return {
    engine,
    loops,
    // only the owner lock of a file proves that what lived in its process is gone; elsewhere a lease must tell
    embedded: executorPort(engine, { process: self, embedded: engine.store.kind === 'sqlite' }),
    remote: executorPort(engine, { process: self, embedded: false }),
    async close() {
      await loops.stop()
      await engine.idle()
      await engine.store.close()
    },
  }
}
