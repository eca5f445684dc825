// Opens an engine on a PostgreSQL database, which any number of processes share: brings it to the newest schema, starts the
// loops, and listens for what the others do.
import { hostname } from 'node:os'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import type { Sink } from '../model/delivery.ts'
import type { Settings } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import { ALONE } from '../model/shard.ts'
import type { StoreAt } from '../model/store-at.ts'
import type { RenewAnswer, RenewRequest } from '../model/work.ts'
import { openPostgres, preparePostgres } from '../store/postgres.ts'
import { channelOf } from '../store/user-transaction-postgres.ts'
import { openEngine } from './engine.ts'
import type { Opened } from './open.ts'
import { settingsOf, started } from './open.ts'
import { renewOn } from './renewer.ts'
import { startWakeups } from './wakeups.ts'

export interface OpenPostgresOptions {
  /** `postgres://…`, as libpq reads it. */
  readonly url: string
  /** Where to listen for wake-ups, when `url` leads through a pooler that gives each transaction another connection. */
  readonly listenUrl?: string
  readonly ports: Ports
  readonly settings?: Partial<Settings>
  /** Connections at most, of which one is kept for renewals where there are two or more. Default 10. */
  readonly connections?: number
  /** How long a migration waits for a table that another transaction uses, in ms. Default 5,000. */
  readonly migrationLockMs?: number
  /** A schema of the database other than `public`. */
  readonly schema?: string
  /** The store's clock is the port's instead of the database's: for tests. */
  readonly clockOfPorts?: boolean
  readonly manualLoops?: boolean
  /** Where notices are sent. */
  readonly sinks?: readonly Sink[]
  /** Which of several databases that are joined as one store. Default: it is a store by itself. */
  readonly shard?: Shard
}

/** A database as configuration names it, as what opens it takes it. */
export const addressOf = ({
  database: url,
  listen,
  connections,
  migrationLockMs,
  schema,
}: Extract<StoreAt, { readonly database: string }>): Pick<
  OpenPostgresOptions,
  'url' | 'listenUrl' | 'connections' | 'migrationLockMs' | 'schema'
> => ({
  url,
  ...(listen ? { listenUrl: listen } : {}),
  ...(connections === undefined ? {} : { connections }),
  ...(migrationLockMs === undefined ? {} : { migrationLockMs }),
  ...(schema === undefined ? {} : { schema }),
})

/** Throws a Fault or `invalid_config` with a sentence when the database or a setting cannot be used; nothing is left open then. */
export const openOnPostgres = async ({
  url,
  ports,
  settings: given = {},
  listenUrl,
  clockOfPorts = false,
  manualLoops = false,
  sinks = [],
  shard = ALONE,
  ...pool
}: OpenPostgresOptions): Promise<Opened> => {
  const settings = settingsOf(given)
  mustBeUsable(pool.schema, url, listenUrl ?? url)
  const self = `${hostname()}:${process.pid}:${ports.ids.next('own')}`
  const { timers, random, log, time } = ports
  const store = openPostgres({
    url,
    timers,
    random,
    log,
    ...pool,
    ...(clockOfPorts ? { time } : {}),
  })
  try {
    await preparePostgres(store)
    const engine = await openEngine({ store, ports, settings, shard })
    const opened = started(engine, self, { manual: manualLoops, sinks })
    if (manualLoops) return opened
    const wakeups = startWakeups(engine, {
      url: listenUrl ?? url,
      channel: channelOf(pool.schema ?? 'public'),
      self,
    })
    return {
      ...opened,
      async close() {
        await wakeups.close()
        await opened.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Renews sessions of a database over connections of its own, which `close` ends; nothing of an answer is applied here. */
export const renewerOn = (
  { url, schema }: Pick<OpenPostgresOptions, 'url' | 'schema'>,
  { timers, random, log }: Pick<Ports, 'timers' | 'random' | 'log'>,
  limitMs: number,
): {
  renew(request: RenewRequest): Promise<RenewAnswer>
  close(): Promise<void>
} => {
  const store = openPostgres({
    url,
    timers,
    random,
    log,
    // one that hangs is not waited for by the next
    connections: 2,
    reserved: 0,
    connectMs: limitMs,
    statementMs: limitMs,
    ...(schema === undefined ? {} : { schema }),
  })
  return { renew: (request) => renewOn(store, request), close: () => store.close() }
}

/** The channel of a schema is named after it, and its name is sent where nothing can quote it. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,52}$/

const mustBeUsable = (schema: string | undefined, ...urls: readonly unknown[]): void => {
  if (schema !== undefined && !SCHEMA.test(schema))
    throw new LeaseholdError(
      'invalid_config',
      `the schema ${JSON.stringify(schema)} cannot be used; expected 1 to 53 small letters, digits and underscores`,
    )
  for (const url of urls)
    // without an address the driver would take whatever database the environment names
    if (typeof url !== 'string' || !URL.canParse(url))
      throw new LeaseholdError(
        'invalid_config',
        'the address of the database cannot be read; expected a URL such as postgres://user@host/database',
      )
}
