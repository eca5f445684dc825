// Where a server is put together: the store, the engine with its loops, the handler and the socket; and the two things
// that are done to a store by hand. It chooses the database, so nothing else has to know which.
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Defect, Fault, LeaseholdError } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { watchProcess } from '../kernel/process-figures.ts'
import { systemOutgoing } from '../kernel/outgoing.ts'
import type { Ports } from '../kernel/ports.ts'
import type { Settings } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import type { SinkConfig } from '../model/sinks.ts'
import type { StoreAt, StoresAt } from '../model/store-at.ts'
import { nameOf, namesOf, storesIn } from '../model/store-at.ts'
import type { Migrated } from '../store/migrate.ts'
import { migrateSqlite, planNewSqlite, planSqlite } from '../store/migrate.ts'
import type { PlannedMigration } from '../store/migration-plan.ts'
import { look, takeFile } from '../store/owner.ts'
import { openSqlite } from '../store/sqlite.ts'
import type { PostgresStore } from '../store/postgres.ts'
import type { SqliteStore } from '../store/sqlite.ts'
import type { Transferred } from '../store/transfer.ts'
import { afterRestore, takeOverFile } from '../transitions/end-session.ts'
import type { Secrets } from '../queries/triggers.ts'
import { triggers } from '../queries/triggers.ts'
import type { Token } from './http/gate.ts'
import type { Opened } from './open.ts'
import { openOnSqlite } from './open.ts'
import type { Listening } from './http/server.ts'
import { mustListen, serve } from './http/server.ts'
import { all as settledAll } from './shards/shard-faults.ts'
import { joinShards } from './shards/shards.ts'
import { makeSinks } from './sinks/sinks.ts'

export interface ServerConfig {
  /** Several are joined as one store, in their order. */
  readonly store: StoresAt
  readonly host: string
  readonly port: number
  readonly tokens: readonly Token[]
  /** What senders of deliveries sign with, by the names that triggers have for it. */
  readonly hookSecrets?: Readonly<Record<string, string>>
  readonly settings: Settings
  /** Where notices are sent; in no particular order. */
  readonly sinks?: readonly SinkConfig[]
  readonly ports: Ports
  /** Hears of a mistake of our own: the process is to stop. */
  readonly onDefect: (error: unknown) => void
  /** Hears that the store’s file is not where it was: the process is to stop. */
  readonly onLost: (fault: Fault) => void
}

export interface RunningServer {
  readonly url: string
  /** The first where there are several. */
  readonly opened: Opened
  /** Refuses what comes, lets what is in flight finish, and closes the store. A second call gets the first one's promise. */
  stop(): Promise<void>
}

/** Opens the store and listens; when either cannot be done, nothing is left open. */
export const startServer = async (config: ServerConfig): Promise<RunningServer> => {
  const { store, ports } = config
  await mustListen(config)
  const all = await openAll(config)
  const [opened] = all
  const closeAll = async (): Promise<void> => {
    // one that does not answer keeps no other open
    await settledAll(all.map((each) => each.close()))
  }
  const watched = watchProcess()
  let listening: Listening
  try {
    const shards = all.length > 1 ? await joinShards(all) : null
    const page = dashboardPage()
    listening = await serve(opened.engine, {
      host: config.host,
      port: config.port,
      tokens: config.tokens,
      hookSecrets: config.hookSecrets ?? {},
      onDefect: config.onDefect,
      figures: () => watched.read(),
      reapSoon: () => {
        for (const { loops } of all) loops.all.find(({ name }) => name === 'reap-sessions')?.soon()
      },
      ...(shards === null ? {} : { shards }),
      ...(page === null ? {} : { dashboard: page }),
    })
  } catch (error) {
    watched.stop()
    await closeAll()
    throw error
  }
  const { url } = listening
  await sayFaults(opened, new Map(Object.entries(config.hookSecrets ?? {})), ports)
  ports.log.info('server.started', { url, store: namesOf(store), pid: process.pid })
  let stopped: Promise<void> | null = null
  const stop = async (): Promise<void> => {
    await listening.close()
    await closeAll()
    watched.stop()
    ports.log.info('server.stopped', { url })
  }
  return { url, opened, stop: () => (stopped ??= stop()) }
}

/** A trigger that does not work as meant is said where it will be looked for when it does not. */
const sayFaults = async ({ engine }: Opened, secrets: Secrets, { log }: Ports): Promise<void> => {
  try {
    const { triggers: all } = await engine.read((tx) => triggers(tx, secrets))
    for (const { name, faults } of all)
      for (const why of faults) log.warn('trigger.faulty', { trigger: name, why })
  } catch (error) {
    log.warn('triggers.not_read', { error })
  }
}

/** Opens each as the shard that it is; where one cannot be opened none is left open. */
const openAll = async (config: ServerConfig): Promise<readonly [Opened, ...Opened[]]> => {
  const places = storesIn(config.store)
  const opened: Opened[] = []
  try {
    for (const [number, at] of places.entries()) {
      const shard = { number, count: places.length }
      opened.push(await ofPlace(at, shard, () => open(at, config, shard)))
    }
  } catch (error) {
    await settledAll(opened.map((each) => each.close()))
    throw error
  }
  const [first, ...rest] = opened
  if (!first)
    throw new LeaseholdError('invalid_config', 'no store is named; expected one, or several')
  return [first, ...rest]
}

/** Does something at one of several databases; what it fails for says at which. */
export const ofPlace = async <T>(
  at: StoreAt,
  { number, count }: Shard,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (count === 1 || !(error instanceof LeaseholdError)) throw error
    const message = `the database at place ${number} of ${count}, numbered from 0 (${nameOf(at)}): ${error.message}`
    throw error instanceof Fault
      ? new Fault(error.code as ConstructorParameters<typeof Fault>[0], message, {
          retryable: error.retryable,
          cause: error,
          detail: { ...error.detail },
        })
      : new LeaseholdError(error.code, message, error.detail, { cause: error })
  }
}

const open = async (
  at: StoreAt,
  { ports, settings, sinks: configs = [], onLost }: ServerConfig,
  shard: Shard,
): Promise<Opened> => {
  const sinks = await makeSinks(configs, ports, systemOutgoing(), settings.deliveryTimeoutMs)

  if ('file' in at) {
    makeFolder(at.file)
    return openOnSqlite({ file: at.file, ports, settings, sinks, onLost, shard })
  }
  // a server on a file never loads what speaks to PostgreSQL
  const { addressOf, openOnPostgres } = await import('./open-postgres.ts')
  return openOnPostgres({ ...addressOf(at), ports, settings, sinks, shard })
}

/** Brings a store to the newest schema; a file is refused while somebody owns it. */
export const migrateStore = async (at: StoreAt, ports: Ports): Promise<Migrated> => {
  if ('file' in at) makeFolder(at.file)
  return withStore(at, ports, async (_store, migrated) => migrated)
}

/** What `migrateStore` would do, statement by statement with its locks; it changes nothing. */
export const planMigrations = async (at: StoreAt, ports: Ports): Promise<PlannedMigration[]> => {
  if ('file' in at) {
    return look(at.file, (db) => planSqlite(db)) ?? planNewSqlite()
  }
  const { openPostgres, planOn } = await import('../store/postgres.ts')
  const { addressOf } = await import('./open-postgres.ts')
  const { timers, random, log } = ports
  const store = openPostgres({ ...addressOf(at), timers, random, log, connections: 1 })
  try {
    return await planOn(store)
  } finally {
    await store.close()
  }
}

/**
 * Moves all that a file holds to an empty database; a file that somebody owns is refused. What is cut off leaves nothing
 * there, and is begun anew. Executors that hold something go on with it once a server is up on the database.
 */
export const moveStore = async (
  file: string,
  at: Extract<StoreAt, { readonly database: string }>,
  ports: Ports,
  tell: (table: string, rows: number) => void,
): Promise<Transferred> => {
  if (!existsSync(file))
    throw new Fault('store_unavailable', `there is no file ${file}; name the one to be moved`, {
      retryable: false,
    })
  const { markTransferred, transfer } = await import('../store/transfer.ts')
  return withFile(file, ports, (from) =>
    withStore(at, ports, async (to) => {
      if (to.kind !== 'postgres') throw new Defect('a store is moved to a database')
      // what lived in the file's earlier owner is gone, since its lock was free
      await from.run((tx) =>
        takeOverFile(
          tx,
          `move:${process.pid}`,
          'the owner lock of the file was free when it was moved',
        ),
      )
      const client = await to.pool.connect()
      try {
        const done = await transfer(from.db, file, client, tell)
        markTransferred(from.db, nameOf(at))
        return done
      } finally {
        client.release()
      }
    }),
  )
}

/** After a restore from a backup: holders from before it are never honoured again. */
export const raiseGenerationOf = async (at: StoreAt, ports: Ports): Promise<number> => {
  if ('file' in at && !existsSync(at.file))
    throw new Fault('store_unavailable', `there is no file ${at.file}; name the restored one`, {
      retryable: false,
    })
  return withStore(
    at,
    ports,
    async (store) => (await store.run((tx) => afterRestore(tx))).generation,
  )
}

/** Opens a store, migrated, for one thing that is done to it. */
const withStore = async <T>(
  at: StoreAt,
  ports: Ports,
  act: (store: SqliteStore | PostgresStore, migrated: Migrated) => Promise<T>,
): Promise<T> => {
  if ('database' in at) {
    const { openPostgres, preparePostgres } = await import('../store/postgres.ts')
    const { timers, random, log } = ports
    const store = openPostgres({
      url: at.database,
      timers,
      random,
      log,
      connections: 2,
      ...(at.migrationLockMs === undefined ? {} : { migrationLockMs: at.migrationLockMs }),
      ...(at.schema === undefined ? {} : { schema: at.schema }),
    })
    try {
      return await act(store, await preparePostgres(store))
    } finally {
      await store.close()
    }
  }
  return withFile(at.file, ports, act)
}

const withFile = async <T>(
  file: string,
  ports: Ports,
  act: (store: SqliteStore, migrated: Migrated) => Promise<T>,
): Promise<T> => {
  const ownership = takeFile(file, `process ${process.pid}`)
  try {
    const store = openSqlite(ownership.file, ports)
    try {
      return await act(store, migrateSqlite(store.db, ports.time.now()))
    } finally {
      await store.close()
    }
  } finally {
    ownership.release()
  }
}

const makeFolder = (file: string): void => {
  if (file === ':memory:') return
  const folder = path.dirname(path.resolve(file))
  try {
    // no more than its own: a path that is mistyped further up would be made, and an empty store served there
    if (!existsSync(folder)) mkdirSync(folder)
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw new Fault(
      'store_unavailable',
      `the folder ${folder} cannot be made: ${isMissing ? `${path.dirname(folder)} is not there; make it, or name a file in a folder that is` : `${messageOf(error)}; name a file where this process may write`}`,
      { retryable: false, cause: error },
    )
  }
}

/** The page that stands beside the program, or in a checkout beside the package; null where it was not built. */
const dashboardPage = (): string | null =>
  ['../dashboard/index.html', '../../../dashboard/dist/index.html']
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find((place) => existsSync(place)) ?? null
