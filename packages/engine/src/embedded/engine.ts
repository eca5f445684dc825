// The whole engine inside one process: store, loops and one executor on a SQLite file or a PostgreSQL database, called
// through the same client that programs elsewhere use, without a socket.
import { hostname } from 'node:os'
import type { Client } from '../client/client.ts'
import { connect } from '../client/connect.ts'
import type { Executor, ExecutorOptions } from '../executor/executor.ts'
import { makeExecutor } from '../executor/executor.ts'
import { temporaryScratch } from '../executor/preparing/scratch.ts'
import { systemProcesses } from '../executor/processes/system-processes.ts'
import type { AnyWorkflow } from '../executor/authoring/context.ts'
import type { Log } from '../kernel/log.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import { shown } from '../kernel/json.ts'
import type { MembersOf } from '../kernel/known-members.ts'
import { mustKnowMembers } from '../kernel/known-members.ts'
import { noLog } from '../kernel/log.ts'
import type { Ports } from '../kernel/ports.ts'
import { systemPorts } from '../kernel/ports.ts'
import { secretsIn } from '../model/redaction.ts'
import type { Settings } from '../model/settings.ts'
import { makeHandler } from '../orchestrator/http/handler.ts'
import { databaseRenewals } from './database-renewals.ts'
import { CLOSED, untilClosed } from './until-closed.ts'
import type { StoreAt } from '../model/store-at.ts'
import type { Opened } from '../orchestrator/open.ts'
import { openOnSqlite } from '../orchestrator/open.ts'
import type { TransactionVerbs } from '../orchestrator/user-transaction.ts'

/** What an engine in a process is made of, wherever it stores. */
export interface EngineOptions {
  /** What its executor drives. */
  readonly workflows: readonly AnyWorkflow[]
  /** Runs at once by slot class. Default `{ default: 10 }`. */
  readonly slots?: Readonly<Record<string, number>>
  /** Labels that its executor has. Default: none. */
  readonly labels?: readonly string[]
  /** Numbers of the engine that differ from their defaults. */
  readonly settings?: Partial<Settings>
  /** The module that exports `workflows`, as a path or URL: processes of isolated ones load it. */
  readonly module?: string
  /** Values that are taken out of what runs write, beside those of this environment that look secret. */
  readonly secrets?: readonly string[]
  /** Default: silent. */
  readonly log?: Log
}

export interface EmbeddedOptions extends EngineOptions {
  /** Path of the database file. One process owns it; a second one is refused with a sentence. */
  readonly file: string
}

/** A database that this process shares with any number of others, which see its runs and may drive them. */
export type EmbeddedOnDatabase = EngineOptions & Extract<StoreAt, { readonly database: string }>

/** The engine of this process, with all that a client can do. */
export interface EmbeddedEngine extends Client {
  readonly executor: Executor
  /** Lets steps end, hands back what is left, closes the store. What waits, and all that is asked later, gets `engine_closed`. */
  close(): Promise<void>
}

export interface Embedded extends EmbeddedEngine {
  /** Starts, signals or cancels inside a transaction of the caller's own; `work` must be synchronous. */
  transaction<T>(work: (tx: TransactionVerbs) => T): T
}

const COMMON: MembersOf<EngineOptions> = {
  workflows: true,
  slots: true,
  labels: true,
  settings: true,
  module: true,
  secrets: true,
  log: true,
}
const ON_FILE: MembersOf<EmbeddedOptions> = { file: true, ...COMMON }
const ON_DATABASE: MembersOf<EmbeddedOnDatabase> = {
  database: true,
  listen: true,
  connections: true,
  migrationLockMs: true,
  schema: true,
  ...COMMON,
}

/**
 * Where the engine is to store. It is named, never guessed: a PostgreSQL driver without an address takes whatever database
 * the environment names. Throws `invalid_config`.
 */
export const placeOf = (options: unknown): 'file' | 'database' => {
  mustKnowMembers(options, { ...ON_FILE, ...ON_DATABASE }, 'embedded')
  const { file, database } = options as Readonly<Record<string, unknown>>
  if ((file === undefined) === (database === undefined))
    throw new LeaseholdError(
      'invalid_config',
      `embedded was given ${file === undefined ? 'neither `file` nor `database`' : 'both `file` and `database`'}; expected one: the path of a SQLite file, or a URL as in postgres://user@host/name`,
    )
  const place = file === undefined ? 'database' : 'file'
  mustKnowMembers(
    options,
    place === 'file' ? { ...ON_FILE, database: true } : { ...ON_DATABASE, file: true },
    `embedded with a ${place}`,
  )
  const address = place === 'file' ? file : database
  if (typeof address !== 'string' || address === '')
    throw new LeaseholdError(
      'invalid_config',
      `\`${place}\` of embedded is ${shown(address)}; expected ${place === 'file' ? 'the path of a SQLite file' : 'a URL as in postgres://user@host/name'}`,
    )
  return place
}

export const openEmbedded = async (options: EmbeddedOptions): Promise<Embedded> => {
  const ports = systemPorts(options.log ?? noLog)
  const { file, settings } = options
  const opened = await openOnSqlite({ file, ports, ...(settings ? { settings } : {}) })
  const engine = await started(opened, ports, options)
  let closed = false
  return {
    ...engine,
    transaction(work) {
      if (closed) throw new LeaseholdError('engine_closed', CLOSED)
      return opened.transaction(work)
    },
    close() {
      closed = true
      return engine.close()
    },
  }
}

/** As `openEmbedded`, on PostgreSQL. Its executor has a lease as those of other processes have. */
export const openOnDatabase = async (options: EmbeddedOnDatabase): Promise<EmbeddedEngine> => {
  const ports = systemPorts(options.log ?? noLog)
  // who has a file never loads what speaks to PostgreSQL
  const { addressOf, openOnPostgres } = await import('../orchestrator/open-postgres.ts')
  const { settings } = options
  const opened = await openOnPostgres({
    ...addressOf(options),
    ports,
    ...(settings ? { settings } : {}),
  })
  return started(opened, ports, options, databaseRenewals(opened, addressOf(options)))
}

/** Starts the executor of an opened engine, and a client on it. */
const started = async (
  opened: Opened,
  ports: Ports,
  { workflows, slots, labels, module, secrets = [] }: EngineOptions,
  renewals?: ExecutorOptions['renewals'],
): Promise<EmbeddedEngine> => {
  const executor = makeExecutor({
    port: opened.embedded,
    ports,
    workflows,
    host: hostname(),
    pid: process.pid,
    scratch: temporaryScratch(),
    secrets: [...secretsIn(process.env), ...secrets],
    ...(module === undefined ? {} : { processes: systemProcesses({ module, env: process.env }) }),
    ...(slots ? { slots } : {}),
    ...(labels ? { labels } : {}),
    ...(renewals ? { renewals } : {}),
  })
  try {
    await executor.start()
  } catch (error) {
    await opened.close()
    throw error
  }
  const handler = untilClosed(makeHandler(opened.engine))
  const client = connect({
    url: 'http://localhost',
    fetch: (url, init) => handler.fetch(new Request(url, init)),
  })
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    // steps that are to end may ask until they have
    await executor.stop({ exiting: false })
    await handler.close()
    await opened.close()
  }
  return { ...client, executor, close: () => (closing ??= close()) }
}
