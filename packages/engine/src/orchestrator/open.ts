// Opens an engine on a SQLite file: takes the file, migrates it, takes back what lived in its earlier owner, and starts
// the loops. Everything that runs on SQLite begins here.
import { hostname } from 'node:os'
import type { Fault } from '../kernel/errors.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Files } from '../kernel/files.ts'
import { systemFiles } from '../kernel/files.ts'
import type { Ports } from '../kernel/ports.ts'
import type { Sink } from '../model/delivery.ts'
import type { Settings } from '../model/settings.ts'
import { defaults, settingsFaults } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import { ALONE } from '../model/shard.ts'
import type { ExecutorPort } from '../model/work.ts'
import { migrateSqlite } from '../store/migrate.ts'
import type { Ownership } from '../store/owner.ts'
import { takeFile } from '../store/owner.ts'
import { openSqlite } from '../store/sqlite.ts'
import { standing, whileStanding } from '../store/standing.ts'
import { takeOverFile } from '../transitions/end-session.ts'
import type { Engine } from './engine.ts'
import { openEngine } from './engine.ts'
import type { DirectPort } from './executor-port.ts'
import { executorPort } from './executor-port.ts'
import { outspoken } from './outspoken.ts'
import type { TransactionVerbs } from './user-transaction.ts'
import { userTransaction } from './user-transaction.ts'
import { mustBeHere } from '../store/transfer.ts'
import type { Loops, LoopsOptions } from './upkeep.ts'
import { startLoops } from './upkeep.ts'

export interface OpenOptions {
  /** Path of the database file, or `:memory:`. */
  readonly file: string
  readonly ports: Ports
  readonly settings?: Partial<Settings>
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF'
  /** The loops pass only when told: for tests that own the clock. */
  readonly manualLoops?: boolean
  /** Where notices are sent. */
  readonly sinks?: readonly Sink[]
  /** Which of several databases that are joined as one store. Default: it is a store by itself. */
  readonly shard?: Shard
  readonly files?: Files
  /** Hears that a file of the store was moved, replaced or deleted: all work is refused then. Default: it is logged. */
  readonly onLost?: (fault: Fault) => void
}

export interface Opened {
  readonly engine: Engine
  readonly loops: Loops
  /** Executors inside this process: on SQLite their sessions live and die with it. */
  readonly embedded: DirectPort
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
  sinks = [],
  shard = ALONE,
  files = systemFiles,
  onLost = (error) => ports.log.error('store.moved', { error }),
}: OpenOptions): Promise<OpenedFile> => {
  const settings = settingsOf(given)
  const self = `${hostname()}:${process.pid}:${ports.ids.next('own')}`
  const ownership: Ownership = takeFile(file, `process ${process.pid} on ${hostname()}`)
  try {
    const bare = openSqlite(ownership.file, ports, synchronous === undefined ? {} : { synchronous })
    try {
      migrateSqlite(bare.db, ports.time.now())
      mustBeHere(bare.db, file)
      const stands = standing(file, {
        place: ownership.file,
        files,
        time: ports.time,
        // else the log would be read into whatever file stands there at the next start
        settle: () => void bare.db.pragma('wal_checkpoint(TRUNCATE)'),
        onLost,
      })
      const store = whileStanding(bare, stands)
      const engine = await openEngine({ store, ports, settings, shard })
      const taken = await store.run((tx) =>
        takeOverFile(
          tx,
          self,
          `the owner lock of the file was free when process ${process.pid} took it`,
        ),
      )
      if (taken.ended + taken.recounted > 0)
        ports.log.info('store.taken_over', { file, ended: taken.ended, recounted: taken.recounted })
      const opened = started(engine, self, { manual: manualLoops, sinks })
      return {
        ...opened,
        transaction(work) {
          stands.check()
          return userTransaction(engine, store, work)
        },
        async close() {
          await opened.close()
          ownership.release()
        },
      }
    } catch (error) {
      await bare.close()
      throw error
    }
  } catch (error) {
    ownership.release()
    throw error
  }
}

/** Starts the loops of an open engine, and its two ways in. */
export const started = (engine: Engine, self: string, options: LoopsOptions): Opened => {
  const loops = startLoops(engine, self, options)
  return {
    engine,
    loops,
    // only the owner lock of a file proves that what lived in its process is gone; elsewhere a lease must tell
    embedded: outspoken(
      executorPort(engine, { process: self, embedded: engine.store.kind === 'sqlite' }),
      engine.ports,
    ),
    remote: executorPort(engine, { process: self, embedded: false }),
    async close() {
      await loops.stop()
      await engine.idle()
      await engine.store.close()
    },
  }
}
