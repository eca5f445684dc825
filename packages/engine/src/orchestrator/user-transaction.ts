// Starting, signaling, canceling and retrying inside a user's own transaction: each is one order, which ordinary transitions apply
// after the commit. On SQLite the transaction is a synchronous callback on the engine's connection; on PostgreSQL it is the
// user's own, on a connection that the engine never sees.
import type Database from 'better-sqlite3'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Ids } from '../kernel/ids.ts'
import { encode } from '../kernel/json.ts'
import type { MembersOf } from '../kernel/known-members.ts'
import { mustKnowMembers } from '../kernel/known-members.ts'
import { systemPorts } from '../kernel/ports.ts'
import { mustName } from '../model/definition.ts'
import { nothing } from '../model/follow.ts'
import type { Shard } from '../model/shard.ts'
import { ALONE, shardIds, shardOfId, shardOfOwner } from '../model/shard.ts'
import type { StartCommand } from '../model/start.ts'
import type { RetryOrder } from '../transitions/apply-orders.ts'
import type { SqliteStore } from '../store/sqlite.ts'
import type { PlacedOrder } from '../store/user-transaction.ts'
import { inUserTransaction } from '../store/user-transaction.ts'
import type { RunStatement } from '../store/user-transaction-postgres.ts'
import { placeOrder } from '../store/user-transaction-postgres.ts'
import type { Engine } from './engine.ts'

type Started = Omit<StartCommand, 'id' | 'workflow' | 'input'>
type Named = { readonly name: string } | string

/** How a run is started again: from its step of this key (default from the beginning), in this version (default its own). */
export interface Again {
  readonly from?: string
  readonly version?: string
}

/** What a user's transaction can ask of the engine; each takes effect after the commit. */
export interface TransactionVerbs {
  /** The connection that the transaction runs on. */
  readonly db: Database.Database
  /** Answers the id that the run will have; limits and keys are judged when it is applied. */
  start(workflow: Named, input: unknown, options?: Started): string
  signal(run: string, name: string, payload?: unknown): void
  cancel(run: string, reason?: string): void
  /** Answers the id of the run that starts again what `run` has done; refused where that has not ended by then. */
  retry(run: string, options?: Again): string
}

/** As `TransactionVerbs`, on a connection of the user's own to PostgreSQL: each is one statement there. */
export interface OwnTransaction {
  /** Answers the id that the run will have; limits and keys are judged when it is applied. */
  start(workflow: Named, input: unknown, options?: Started): Promise<string>
  signal(run: string, name: string, payload?: unknown): Promise<void>
  cancel(run: string, reason?: string): Promise<void>
  /** Answers the id of the run that starts again what `run` has done; refused where that has not ended by then. */
  retry(run: string, options?: Again): Promise<string>
}

const BY = 'transaction'
const START_OPTIONS: MembersOf<Started> = {
  command: true,
  version: true,
  key: true,
  owner: true,
  queue: true,
  labels: true,
  priority: true,
  delayMs: true,
  startAt: true,
  startByMs: true,
  totalLimitMs: true,
  attemptLimitMs: true,
}
const RETRY_OPTIONS: MembersOf<Again> = { from: true, version: true }

const startOrder = (
  ids: Ids,
  workflow: Named,
  input: unknown,
  options: Started = {},
): PlacedOrder => {
  const name = mustName(typeof workflow === 'string' ? workflow : workflow.name, 'workflow name')
  mustKnowMembers(options, START_OPTIONS, `the start of ${name}`, 'invalid_request')
  const id = ids.next('run')
  const command: StartCommand = {
    ...options,
    id,
    workflow: name,
    input: encode(input),
  }
  return { id: `start:${id}`, kind: 'start', run: id, payload: command }
}

const signalOrder = (ids: Ids, run: string, name: string, payload: unknown): PlacedOrder => ({
  id: ids.next('ord'),
  kind: 'signal',
  run,
  payload: { name: mustName(name, 'the name of a signal'), payload: encode(payload), by: BY },
})

const cancelOrder = (ids: Ids, run: string, reason: string | undefined): PlacedOrder => ({
  id: ids.next('ord'),
  kind: 'cancel',
  run,
  payload: { by: BY, reason: reason ?? null },
})

const retryOrder = (ids: Ids, run: string, options: Again = {}): PlacedOrder => {
  mustKnowMembers(options, RETRY_OPTIONS, `the retry of ${run}`, 'invalid_request')
  const { from, version } = options
  const id = ids.next('run')
  const payload: RetryOrder = { retryOf: run, from: from ?? null, version: version ?? null, by: BY }
  return { id: `start:${id}`, kind: 'start', run: id, payload }
}

export const userTransaction = <T>(
  engine: Engine,
  store: SqliteStore,
  work: (tx: TransactionVerbs) => T,
): T => {
  const { ids, time } = engine.ports
  let placed = 0
  const result = inUserTransaction(store.db, time.now(), (db, place) => {
    const put = (order: PlacedOrder): PlacedOrder => {
      placed += 1
      place(order)
      return order
    }
    return work({
      db,
      start: (workflow, input, options) => put(startOrder(ids, workflow, input, options)).run,
      signal: (run, name, payload) => void put(signalOrder(ids, run, name, payload)),
      cancel: (run, reason) => void put(cancelOrder(ids, run, reason)),
      retry: (run, options) => put(retryOrder(ids, run, options)).run,
    })
  })
  if (placed > 0) {
    const follow = nothing()
    follow.orders = true
    engine.follow(follow)
  }
  return result
}

/** One for all, so that what one transaction asks is applied in its order. */
const { ids: ownIds } = systemPorts()

/** A client of `pg` inside a transaction, or anything that runs a text with its values on such a connection. */
export type UserConnection =
  { query(text: string, values: string[]): Promise<unknown> } | RunStatement

export interface InTransactionOptions {
  /** The one that the servers use. Default `public`. */
  readonly schema?: string
  /** Which of several databases that are joined as one store the connection is to. Default: it is a store by itself. */
  readonly shard?: Shard
}

/**
 * The verbs of a transaction that the caller has begun on PostgreSQL, and commits or rolls back by itself: rolled back,
 * nothing of it was. Of several databases each has its own owners and runs: what belongs to another is refused at once, with
 * `invalid_request`.
 */
export const inTransaction = (
  connection: UserConnection,
  { schema = 'public', shard = ALONE }: InTransactionOptions = {},
): OwnTransaction => {
  const query = typeof connection === 'function' ? connection : runOn(connection)
  const ids = shardIds(ownIds, shard)
  const put = async (order: PlacedOrder): Promise<string> => {
    await placeOrder(query, schema, order)
    return order.run
  }
  const mustBeHere = (what: string, of: number): void => {
    if (shard.count > 1 && of !== shard.number)
      throw new LeaseholdError(
        'invalid_request',
        `${what} is of shard ${of}, and this transaction is on shard ${shard.number} of ${shard.count}; take a connection to that database`,
        { shard: of },
      )
  }
  const ofRun = (run: string): void => mustBeHere(run, shardOfId(run))
  return {
    async start(workflow, input, options) {
      const owner = options?.owner ?? ''
      mustBeHere(
        owner === '' ? 'what has no owner' : `the owner ${owner}`,
        shardOfOwner(owner, shard.count),
      )
      return put(startOrder(ids, workflow, input, options))
    },
    async signal(run, name, payload) {
      ofRun(run)
      await put(signalOrder(ids, run, name, payload))
    },
    async cancel(run, reason) {
      ofRun(run)
      await put(cancelOrder(ids, run, reason))
    },
    async retry(run, options) {
      ofRun(run)
      return put(retryOrder(ids, run, options))
    },
  }
}

const runOn = (connection: Exclude<UserConnection, RunStatement>): RunStatement => {
  if (typeof (connection as { query?: unknown } | null)?.query !== 'function')
    throw new LeaseholdError(
      'invalid_request',
      'inTransaction got nothing that runs a statement; give it a client of pg on which the transaction was begun, or a function (text, values) => Promise',
    )
  return (text, values) => connection.query(text, [...values])
}
