// The PostgreSQL driver: a pool of connections, one round trip an ask. A transaction of one ask is one implicit
// transaction under its Sync; one of several begins with the first and commits with the last.
import pg from 'pg'
import { Defect, Fault } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import type { Random } from '../kernel/random.ts'
import { jittered } from '../kernel/random.ts'
import type { Time } from '../kernel/time.ts'
import type { Timers } from '../kernel/timers.ts'
import { sleep } from '../kernel/timers.ts'
import { clockParam, postgresText } from './dialect.ts'
import type { Migrated } from './migrate.ts'
import { migratePostgres, migrations, planPostgres } from './migrate.ts'
import type { PlannedMigration } from './migration-plan.ts'
import type { PipelineError, Plan, Send } from './pipeline.ts'
import { Pipeline } from './pipeline.ts'
import type { Stage } from './postgres-faults.ts'
import {
  faultOf,
  isConflict,
  isOutlived,
  isUnfit,
  isUnprepared,
  violationOf,
} from './postgres-faults.ts'
import type { Ask, Param, Sql, Statement, Steps, Tx } from './sql.ts'
import type { Manner, Store, Tap } from './store.ts'

export interface PostgresStore extends Store {
  readonly kind: 'postgres'
  readonly pool: pg.Pool
  readonly schema: string
  readonly migrationLockMs: number
}

export interface PostgresOptions {
  /** `postgres://…`, as libpq reads it. */
  readonly url: string
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  /** Connections at most. Default 10. */
  readonly connections?: number
  /** Of these, so many are only for what must not wait behind the rest: renewals. Default 1; none where there is only one. */
  readonly reserved?: number
  /** How long a statement may take before the server ends it, in ms. Default 30,000. */
  readonly statementMs?: number
  /** How long a statement waits for a row that another transaction has locked, in ms. Default 2,000. */
  readonly lockMs?: number
  /** How long a transaction may stand open between two asks before the server ends it, in ms. Default 10,000. */
  readonly idleMs?: number
  /** How long a transaction waits for a free connection, and a new one for its server, in ms. Default 5,000. */
  readonly connectMs?: number
  /** How long a migration waits for a table that another transaction uses, in ms. Default 5,000. */
  readonly migrationLockMs?: number
  /** A schema of the database other than `public`: small letters, digits and underscores. */
  readonly schema?: string
  /** The clock, where it is not the database's own: for tests. */
  readonly time?: Time
  readonly tap?: Tap
}

const TRIES = 5
/** How long a sweep's statement waits for a row that another transaction has locked, in ms: it is back within a second. */
const SWEEP_LOCK_MS = 50
/** How long a transaction of ours may stand open without a word, in ms: its next ask follows at once, or never. */
const IDLE_MS = 10_000
const APPLICATION = 'leasehold'

/** Opens a pool; does not connect yet, and does not migrate. */
export const openPostgres = (options: PostgresOptions): PostgresStore => {
  const { timers, random, log, tap, time } = options
  const {
    connections = 10,
    reserved = 1,
    statementMs = 30_000,
    lockMs = 2_000,
    idleMs = IDLE_MS,
    connectMs = 5_000,
    schema = 'public',
    migrationLockMs = 5_000,
  } = options
  // one is never two: what is urgent waits then with the rest
  const sizes =
    reserved > 0 && connections > reserved ? [connections - reserved, reserved] : [connections]
  const pools = sizes.map((max) => {
    const pool = new pg.Pool({
      connectionString: options.url,
      max,
      connectionTimeoutMillis: connectMs,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      application_name: APPLICATION,
      ...(schema === 'public' ? {} : { options: `-c search_path=${schema}` }),
    })
    // a connection that is lost is replaced by the next that is wanted; what it was doing hears of it by itself
    pool.on('error', (error) => log.warn('store.connection_lost', { error: error.message }))
    pool.on('connect', (client) => {
      client.on('error', (error) => log.debug('store.connection_lost', { error: error.message }))
    })
    return pool
  })
  const plans = new Map<string, Plan>()
  /** Rises when names are given up whose plans have outlived a change of their tables. */
  let naming = 0
  const clock = time !== undefined
  let named = true
  let roundTrips = 0

  const planOf = ({ name, text, of }: Sql<unknown>): Plan => {
    let plan = plans.get(text)
    if (!plan) {
      plan = {
        name: `${name.slice(0, 44)}_${plans.size}${naming === 0 ? '' : `_${naming}`}`,
        text: postgresText(text, clock),
        of,
        columns: null,
      }
      plans.set(text, plan)
    }
    return plan
  }
  const plain = (name: string, text: string): Plan => ({ name, text, of: undefined, columns: null })
  // plans stay generic, since a batch says nothing about the next, and are made for indexes, however small a table was when
  // it was analysed: what is read must not grow with history
  const openingOf = (name: string, waitMs: number): Send => ({
    plan: plain(
      name,
      `select ${clock ? '0::bigint' : postgresText('{now}')} as now, pg_is_in_recovery()::int as standby, ` +
        `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true), ` +
        `set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), ` +
        `set_config('statement_timeout', '${statementMs}', true), set_config('lock_timeout', '${waitMs}', true), ` +
        // a process that stands still within a transaction would keep its locks for as long
        `set_config('idle_in_transaction_session_timeout', '${idleMs}', true)`,
    ),
    values: [],
  })
  const OPENING = openingOf('opening', lockMs)
  const OPENING_SWEEP = openingOf('opening_sweep', Math.min(lockMs, SWEEP_LOCK_MS))
  const BEGIN = { plan: plain('begin', 'begin isolation level read committed'), values: [] }
  const BEGIN_READ = {
    plan: plain('begin_read', 'begin isolation level repeatable read read only'),
    values: [],
  }
  const COMMIT = { plan: plain('commit', 'commit'), values: [] }
  const ROLLBACK = { plan: plain('rollback', 'rollback'), values: [] }

  const sendOf = ({ sql, params }: Statement, now: number): Send => {
    const plan = planOf(sql)
    const values = params.map(text)
    if (clock && clockParam(sql.text) > 0) values.push(String(now))
    return { plan, values }
  }

  /** One round trip. Rejects with a `Failed`. */
  const send = (client: pg.PoolClient, sends: readonly Send[]): Promise<unknown[][]> => {
    roundTrips += 1
    return new Promise((resolve, reject) => {
      const pipeline = new Pipeline(sends, named, (error, rows) => {
        stop()
        if (error) reject(new Failed(error))
        else if (sends.at(-1) === COMMIT && pipeline.tag !== 'COMMIT')
          reject(new Defect(`a commit was answered ${pipeline.tag}`))
        else resolve(rows)
      })
      // the server ends a statement that takes too long; a server that says nothing at all is given up a little later
      const stop = timers.after(statementMs + connectMs, () =>
        pipeline.abandon(new Error(`no answer for ${statementMs + connectMs} ms`)),
      )
      client.query(pipeline)
    })
  }

  const once = async <T>(
    pool: pg.Pool,
    begin: Send,
    opening: Send,
    transaction: (tx: Tx) => Steps<T>,
  ): Promise<T> => {
    let now: number | null = time ? time.now() : null
    const tx: Tx = {
      kind: 'postgres',
      get now() {
        if (now === null) throw new Defect('the store’s clock was read before the first ask')
        return now
      },
    }
    const steps = transaction(tx)
    let step = steps.next()
    if (step.done) return step.value
    const client = await pool.connect().catch((error: unknown) => {
      throw new Failed({ error: error as Error, at: null }, 'unsent')
    })
    const writes = begin === BEGIN
    /** Whether the server has a transaction of ours open, which is to be ended before the connection is given back. */
    let open = false
    const exchange = async (
      sends: readonly Send[],
      first: boolean,
      last: boolean,
    ): Promise<unknown[][]> => {
      // an ask alone under its Sync ends with it, whatever comes of it; a commit that was not reached ends nothing
      open = !(first && last)
      try {
        const found = await send(client, sends)
        open = !last
        return found
      } catch (error) {
        if (error instanceof Failed && last && writes) error.stage = 'committing'
        throw error
      }
    }
    let spoiled: Error | undefined
    let ending: Promise<unknown> | null = null
    try {
      for (let first = true; !step.done; first = false) {
        const { statements, last }: Ask = step.value
        tap?.(statements)
        const sends = statements.map((each) => sendOf(each, now ?? 0))
        // alone under its Sync an ask is a transaction by itself
        const before = !first ? [] : last ? [opening] : [begin, opening]
        const after = last && !first ? [COMMIT] : []
        let found: unknown[][]
        try {
          found = await exchange([...before, ...sends, ...after], first, last)
        } catch (error) {
          const violation = error instanceof Failed ? violationOf(error.failure.error) : null
          if (violation === null) throw error
          steps.throw(violation)
          throw violation
        }
        if (first) {
          const [opened] = found.at(before.length - 1) as [{ now: number; standby: number }]
          if (opened.standby) {
            // another connection may lead to the primary
            spoiled = new Error('it led to a standby')
            throw followsOnly()
          }
          now ??= opened.now
        }
        step = steps.next(found.slice(before.length, before.length + sends.length))
        if (last && !step.done) throw new Defect('a transaction asked again after its last ask')
      }
      if (open && writes) await exchange([COMMIT], false, true)
      // what was read is read: nobody waits for the end of a transaction that wrote nothing
      else if (open) ending = send(client, [COMMIT])
      return step.value
    } catch (error) {
      if (error instanceof Failed && error.failure.at === null) spoiled = error.failure.error
      else if (open)
        await send(client, [ROLLBACK]).catch((lost: Failed) => (spoiled = lost.failure.error))
      throw error
    } finally {
      if (ending === null) client.release(spoiled)
      else
        void ending.then(
          () => client.release(),
          (lost: Failed) => client.release(lost.failure.error),
        )
    }
  }

  const transact = async <T>(
    pool: pg.Pool,
    begin: Send,
    transaction: (tx: Tx) => Steps<T>,
    manner?: Manner,
  ): Promise<T> => {
    const opening = manner === 'sweep' ? OPENING_SWEEP : OPENING
    for (let tries = 1; ; tries++) {
      // others may learn meanwhile that names are not carried over, or that their plans are of no more use
      const wasNamed = named
      const wasNaming = naming
      try {
        return await once(pool, begin, opening, transaction)
      } catch (error) {
        if (!(error instanceof Failed)) throw error
        const { failure, stage } = error
        // a pooler that gives each transaction another connection, and does not carry prepared statements over
        const unprepared = wasNamed && isUnprepared(failure.error)
        if (unprepared && named) {
          named = false
          log.info('store.unprepared', { error: failure.error.message })
        }
        // a migration has changed what a statement answers, and every connection keeps its plan under the old name
        const outlived = isOutlived(failure.error)
        if (outlived && naming === wasNaming) {
          naming += 1
          plans.clear()
          log.info('store.plans_outlived', { error: failure.error.message, at: failure.at })
        }
        if ((!unprepared && !outlived && !isConflict(failure.error)) || tries >= TRIES) {
          // said here too, since what sends it may be a mistake of our own
          if (failure.at !== null && isUnfit(failure.error))
            log.warn('store.content_refused', { error: failure.error.message, at: failure.at })
          throw faultOf(failure.error, failure.at, stage)
        }
        if (!unprepared && !outlived) await sleep(timers, jittered(random, 5 * 2 ** tries))
      }
    }
  }

  const [main, reserve = main] = pools as [pg.Pool, pg.Pool?]
  return {
    kind: 'postgres',
    pool: main,
    schema,
    migrationLockMs,
    run: (transaction, manner) =>
      transact(manner === 'urgent' ? reserve : main, BEGIN, transaction, manner),
    read: (transaction) => transact(main, BEGIN_READ, transaction),
    get roundTrips() {
      return roundTrips
    },
    close: async () => void (await Promise.all(pools.map((pool) => pool.end()))),
  }
}

/** What a standby answers may be behind what was acknowledged: a run that is there would not be found. */
const followsOnly = (): Fault =>
  new Fault(
    'store_read_only',
    'the database that was reached is a standby, which takes no writes and may be behind what was acknowledged; expected the primary. The engine goes on once its URL leads there',
  )

const MADE_ALREADY = ['23505', '42P06']

/** What went wrong in a transaction, and how far it had come. */
class Failed extends Error {
  readonly failure: PipelineError
  stage: Stage
  constructor(failure: PipelineError, stage: Stage = 'open') {
    super(failure.error.message)
    this.failure = failure
    this.stage = stage
  }
}

const text = (param: Param): string | null => (param === null ? null : String(param))

/**
 * Brings the database to the newest schema, after a look at what it is: its version (13 and above), and that its texts
 * compare by bytes, since ids order by them.
 */
export const preparePostgres = async (store: PostgresStore): Promise<Migrated> => {
  try {
    const client = await store.pool.connect()
    let spoiled: Error | undefined
    try {
      const { rows } = await client.query<{ version: number; encoding: string; collation: string }>(
        `select current_setting('server_version_num')::int as version, pg_encoding_to_char(encoding) as encoding, datcollate as collation from pg_database where datname = current_database()`,
      )
      const [found] = rows
      const faults = [
        ...(found && found.version >= 130_000
          ? []
          : [`PostgreSQL ${found?.version} is older than 13; upgrade it`]),
        ...(found?.encoding === 'UTF8' ? [] : [`its encoding is ${found?.encoding}, not UTF8`]),
        ...(found && /^(C|POSIX|C\.(UTF-8|utf8))$/.test(found.collation)
          ? []
          : [
              `its collation is ${found?.collation}, not C: create it with template template0 lc_collate 'C' encoding 'UTF8'`,
            ]),
      ]
      if (faults.length > 0)
        throw new Fault('invalid_config', `the database cannot be used: ${faults.join('; ')}`, {
          retryable: false,
        })
      const { rows: there } = await client.query<{ schema: string | null }>(
        'select current_schema() as schema',
      )
      // a schema in the search path that is not there is as none
      if (there[0]?.schema === null)
        await client
          .query(`create schema if not exists "${store.schema.replaceAll('"', '""')}"`)
          .catch((error: unknown) => {
            // of two that make it at once one is refused by the catalog
            if (!MADE_ALREADY.includes((error as { code?: string }).code ?? '')) throw error
          })
      return await migratePostgres(client, migrations(), { lockMs: store.migrationLockMs })
    } catch (error) {
      spoiled = error as Error
      throw error
    } finally {
      client.release(spoiled)
    }
  } catch (error) {
    throw error instanceof Fault
      ? error
      : faultOf(
          error as Error,
          (error as { severity?: unknown }).severity === undefined ? null : 'opening',
          'open',
        )
  }
}

/** What `preparePostgres` would apply to it; a schema that is not there yet is as an empty one. */
export const planOn = async (store: PostgresStore): Promise<PlannedMigration[]> => {
  try {
    const client = await store.pool.connect()
    try {
      return await planPostgres(client)
    } finally {
      client.release()
    }
  } catch (error) {
    throw error instanceof Fault ? error : faultOf(error as Error, null, 'open')
  }
}
