// Where a server is put together: the store, the engine with its loops, the handler and the socket; and the two things
// that are done to a file while nobody serves it. It chooses the database, so nothing else has to know which.
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import type { Settings } from '../model/settings.ts'
import type { Migrated } from '../store/migrate.ts'
import { migrateSqlite } from '../store/migrate.ts'
import { own } from '../store/owner.ts'
import type { SqliteStore } from '../store/sqlite.ts'
import { openSqlite } from '../store/sqlite.ts'
import { afterRestore } from '../transitions/end-session.ts'
import type { Token } from './gate.ts'
import type { Opened } from './open.ts'
import { openOnSqlite } from './open.ts'
import type { Listening } from './server.ts'
import { serve } from './server.ts'

export interface ServerConfig {
  readonly file: string
  readonly host: string
  readonly port: number
  readonly tokens: readonly Token[]
  readonly settings: Settings
  readonly ports: Ports
  /** Hears of a mistake of our own: the process is to stop. */
  readonly onDefect: (error: unknown) => void
}

export interface RunningServer {
  readonly url: string
  readonly opened: Opened
  /** Refuses what comes, lets what is in flight finish, and closes the file. A second call gets the first one's promise. */
  stop(): Promise<void>
}

/** Opens the file and listens; when either cannot be done, nothing is left open. */
export const startServer = async (config: ServerConfig): Promise<RunningServer> => {
  const { file, ports, settings } = config
  makeFolder(file)
  const opened = await openOnSqlite({ file, ports, settings })
  let listening: Listening
  try {
    const page = dashboardPage()
    listening = await serve(opened.engine, {
      host: config.host,
      port: config.port,
      tokens: config.tokens,
      onDefect: config.onDefect,
      reapSoon: () => opened.loops.all.find(({ name }) => name === 'reap-sessions')?.soon(),
      ...(page === null ? {} : { dashboard: page }),
    })
  } catch (error) {
    await opened.close()
    throw error
  }
  const { url } = listening
  ports.log.info('server.started', { url, file, pid: process.pid })
  let stopped: Promise<void> | null = null
  const stop = async (): Promise<void> => {
    await listening.close()
    await opened.close()
    ports.log.info('server.stopped', { url })
  }
  return { url, opened, stop: () => (stopped ??= stop()) }
}

/** Brings a file to the newest schema; refused while somebody owns it. */
export const migrateFile = async (file: string, ports: Ports): Promise<Migrated> => {
  makeFolder(file)
  return withFile(file, ports, (store) => migrateSqlite(store.db, ports.time.now()))
}

/** After a restore from a backup: holders from before it are never honoured again. */
export const raiseGenerationOf = async (file: string, ports: Ports): Promise<number> => {
  if (!existsSync(file))
    throw new Fault('store_unavailable', `there is no file ${file}; name the restored one`, {
      retryable: false,
    })
  return withFile(file, ports, async (store) => {
    migrateSqlite(store.db, ports.time.now())
    return (await store.run((tx) => afterRestore(tx))).generation
  })
}

const withFile = async <T>(
  file: string,
  ports: Ports,
  act: (store: SqliteStore) => Promise<T> | T,
): Promise<T> => {
  const ownership = own(file, `process ${process.pid}`)
  try {
    const store = openSqlite(file, ports.time)
    try {
      return await act(store)
    } finally {
      await store.close()
    }
  } finally {
    ownership.release()
  }
}

const makeFolder = (file: string): void => {
  if (file !== ':memory:') mkdirSync(path.dirname(path.resolve(file)), { recursive: true })
}

/** The page that stands beside the program, or in a checkout beside the package; null where it was not built. */
const dashboardPage = (): string | null =>
  ['../dashboard/index.html', '../../../dashboard/dist/index.html']
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find((place) => existsSync(place)) ?? null
