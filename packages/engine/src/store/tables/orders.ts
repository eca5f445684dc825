// Orders (what one transaction wants of another run), receipts, commands, what each sweep did last, and facts of the store.
import type { Statement } from '../sql.ts'
import { forEach, rows, sql, statement } from '../sql.ts'

export type OrderKind = 'start' | 'signal' | 'cancel' | 'child_ended'
export interface OrderRow {
  readonly id: string
  readonly kind: OrderKind
  readonly run: string
  readonly payload: string | null
  readonly created_at: number
  readonly not_before: number
  readonly tries: number
  readonly failures: number
  readonly error: string | null
}
const insert = sql<{ id: string }>(
  'orders.insert',
  `insert into orders (id, kind, run, payload, created_at)
   select b.id, b.kind, b.run, b.payload, {now} from {rows $1 as b: id text, kind text, run text, payload text} where true on conflict do nothing returning id`,
)
export const insertOrders = (
  orders: readonly Pick<OrderRow, 'id' | 'kind' | 'run' | 'payload'>[],
): Statement<{ id: string }> => statement(insert, rows(orders))

const endChildren = sql<{ id: string }>(
  'orders.end_children',
  `insert into orders (id, kind, run, payload, created_at)
   select 'cancel:' || r.id, 'cancel', r.id, b.payload, {now} from {rows $1 as b: run text, payload text} join runs r on r.parent = b.run
    where r.ended_at is null and r.on_parent_end = 'cancel' and r.status <> 'canceling' on conflict do nothing returning id`,
)
/** Orders the end of the active children of these runs, as their policy says. */
export const orderChildrenToEnd = (
  parents: readonly { run: string; payload: string }[],
): Statement<{ id: string }> => statement(endChildren, rows(parents))

/** No order is put off for longer: an instant beyond it was written by a clock that was ahead. */
const PUT_OFF_MAX = 120_000
const dueOrders = sql<OrderRow>(
  'orders.due',
  `select o.id, o.kind, o.run, o.payload, o.created_at, o.not_before, o.tries, o.failures, o.error from orders o
    where (o.not_before <= {now} or o.not_before > {now} + ${PUT_OFF_MAX})
      and (o.kind = 'start' or o.kind = 'child_ended' or not exists (select 1 from orders s where s.id = 'start:' || o.run))
      and o.set_aside_at is null and (o.not_before, o.id) > ($2, $3)
    order by o.not_before, o.id limit $1`,
)
/** A place in the line of orders; their first is before all others. */
export type OrderPlace = Pick<OrderRow, 'id' | 'not_before'>
export const FIRST_ORDER: OrderPlace = { not_before: -1, id: '' }
/** Those behind a place whose time has come; what is asked of a run that an order is to start comes after its start. */
export const ordersDue = (most: number, after: OrderPlace): Statement<OrderRow> =>
  statement(dueOrders, most, after.not_before, after.id)

const remove = sql<{ id: string }>(
  'orders.remove',
  `with pick as materialized (
     select o.id from {rows $1 as b: id text} join orders o on o.id = b.id order by o.id {lock o skip})
   delete from orders where id in (select p.id from pick p) returning id`,
)
/**
 * The compare-and-set of orders' application: who deletes one applies it, in the same transaction. One that another
 * transaction has locked is left to it.
 */
export const takeOrders = (ids: readonly string[]): Statement<{ id: string }> =>
  forEach(
    remove,
    ids.map((id) => ({ id })),
  )

const postpone = sql<{ id: string }>(
  'orders.postpone',
  'update orders set tries = tries + 1, not_before = {now} + $2, error = $3 where id = $1 returning id',
)
export const postponeOrder = (id: string, ms: number, error: string): Statement<{ id: string }> =>
  statement(postpone, id, ms, error)

const fail = sql<FailedRow>(
  'orders.fail',
  `update orders set tries = tries + 1, failures = failures + 1, not_before = {now} + $2, error = $3,
          set_aside_at = case when failures + 1 >= $4 then {now} else null end
    where id = $1 and set_aside_at is null returning id, kind, run, failures, set_aside_at`,
)
interface FailedRow {
  readonly id: string
  readonly kind: OrderKind
  readonly run: string
  readonly failures: number
  readonly set_aside_at: number | null
}
/** Notes a failure by the order’s own content: it is put off, or set aside where it is the last of so many. */
export const failOrder = (
  id: string,
  ms: number,
  error: string,
  most: number,
): Statement<FailedRow> => statement(fail, id, ms, error, most)

type AsideRow = Omit<OrderRow, 'not_before' | 'tries'> & {
  readonly set_aside_at: number
}
const aside = sql<AsideRow>(
  'orders.aside',
  `select o.id, o.kind, o.run, o.payload, o.created_at, o.error, o.failures, o.set_aside_at from orders o
    where o.set_aside_at is not null order by o.set_aside_at, o.id limit $1`,
)
/** Those that were set aside, the oldest first. */
export const ordersSetAside = (most: number): Statement<AsideRow> => statement(aside, most)

const backlog = sql<{ open: number; oldest_at: number | null; aside: number }>(
  'orders.backlog',
  `select (select count(*) from (select 1 as one from orders o where o.set_aside_at is null limit $1) x) as open,
          (select min(x.created_at) from (select o.created_at from orders o where o.set_aside_at is null order by o.not_before, o.id limit $1) x) as oldest_at,
          (select count(*) from (select 1 as one from orders o where o.set_aside_at is not null limit $1) x) as aside`,
)
/** How many are open and how old the oldest of the first is, and how many were set aside; each counted up to `most`. */
export const backlogOfOrders = (
  most: number,
): Statement<{ open: number; oldest_at: number | null; aside: number }> => statement(backlog, most)

const again = sql<{ run: string; kind: OrderKind }>(
  'orders.retry',
  `update orders set set_aside_at = null, failures = 0, tries = 0, not_before = 0 where id = $1 and set_aside_at is not null returning run, kind`,
)
/** Tries an order anew that was set aside. */
export const retryOrder = (id: string): Statement<{ run: string; kind: OrderKind }> =>
  statement(again, id)

const drop = sql<{ run: string; kind: OrderKind }>(
  'orders.drop',
  'delete from orders where id = $1 and set_aside_at is not null returning run, kind',
)
/** Removes an order that was set aside. */
export const dropOrder = (id: string): Statement<{ run: string; kind: OrderKind }> =>
  statement(drop, id)

export interface ReceiptRow {
  readonly run: string
  readonly kind: string
  readonly attempt: number
  readonly recipient: string
  readonly outcome: string
}
const receipt = sql<{ run: string }>(
  'receipts.insert',
  `insert into receipts (run, kind, attempt, recipient, at, outcome)
   select b.run, b.kind, b.attempt, b.recipient, {now}, b.outcome from {rows $1 as b: run text, kind text, attempt int, recipient text, outcome text} where true
   on conflict do nothing returning run`,
)
/** A compare-and-set: of two that write the same receipt exactly one gets its row back. */
export const insertReceipts = (receipts: readonly ReceiptRow[]): Statement<{ run: string }> =>
  statement(receipt, rows(receipts))

const receipts = sql<ReceiptRow & { at: number }>(
  'receipts.of_run',
  'select c.run, c.kind, c.attempt, c.recipient, c.at, c.outcome from receipts c where c.run = $1 order by c.at',
)
export const receiptsOf = (run: string): Statement<ReceiptRow & { at: number }> =>
  statement(receipts, run)

export interface CommandRow {
  readonly id: string
  readonly route: string
  readonly request_hash: string
  readonly status: number
  readonly answer: string
}
const command = sql<CommandRow>(
  'commands.by_id',
  'select c.id, c.route, c.request_hash, c.status, c.answer from commands c where c.id = $1',
)
export const commandById = (id: string): Statement<CommandRow> => statement(command, id)

const putCommand = sql<{ id: string }>(
  'commands.insert',
  `insert into commands (id, route, request_hash, status, answer, at) select $1, $2, $3, $4, $5, {now} where true on conflict do nothing returning id`,
)
export const insertCommand = (row: CommandRow): Statement<{ id: string }> =>
  statement(putCommand, row.id, row.route, row.request_hash, row.status, row.answer)

const answered = sql<{ id: string }>(
  'commands.answer',
  'update commands set status = $2, answer = $3 where id = $1 returning id',
)
export const answerCommand = (
  id: string,
  status: number,
  answer: string,
): Statement<{ id: string }> => statement(answered, id, status, answer)

const withdrawn = sql<{ id: string }>(
  'commands.remove',
  'delete from commands where id = $1 returning id',
)
export const removeCommand = (id: string): Statement<{ id: string }> => statement(withdrawn, id)

const forget = sql<{ id: string }>(
  'commands.forget',
  `with pick as materialized (select c.id from commands c where c.at < {now} - $1 {lock c skip})
   delete from commands where id in (select p.id from pick p) returning id`,
)
export const forgetCommands = (olderMs: number): Statement<{ id: string }> =>
  statement(forget, olderMs)

/** The fact of a store that says which of several databases it is. */
export const MEMBERSHIP = 'shard'

const meta = sql<{ name: string; value: string }>('meta.all', 'select m.name, m.value from meta m')
export const allMeta = (): Statement<{ name: string; value: string }> => statement(meta)

const putMeta = sql<{ name: string }>(
  'meta.put_once',
  'insert into meta (name, value) select $1, $2 where true on conflict do nothing returning name',
)
export const putMetaOnce = (name: string, value: string): Statement<{ name: string }> =>
  statement(putMeta, name, value)

const raise = sql<{ value: string }>(
  'meta.raise',
  `update meta set value = cast(cast(value as int) + 1 as text) where name = 'generation' returning value`,
)
/** Raises the store's generation: holders from before a restore are never honoured. */
export const raiseGeneration = (): Statement<{ value: string }> => statement(raise)

export interface SweepRow {
  readonly name: string
  readonly interval_ms: number
  readonly last_at: number
  readonly examined: number
  readonly acted: number
  readonly skipped: number
  readonly error: string | null
  readonly duration_ms: number
}
const beat = sql<{ name: string }>(
  'sweeps.beat',
  `insert into sweeps (name, interval_ms, last_at, examined, acted, skipped, error, duration_ms) select $1, $2, {now}, $3, $4, $5, $6, $7 where true
   on conflict (name) do update set interval_ms = excluded.interval_ms, last_at = excluded.last_at, examined = excluded.examined, acted = excluded.acted,
     skipped = excluded.skipped, error = excluded.error, duration_ms = excluded.duration_ms returning name`,
)
export const beatSweep = (row: Omit<SweepRow, 'last_at'>): Statement<{ name: string }> =>
  statement(
    beat,
    row.name,
    row.interval_ms,
    row.examined,
    row.acted,
    row.skipped,
    row.error,
    row.duration_ms,
  )

const sweeps = sql<SweepRow>(
  'sweeps.all',
  'select w.name, w.interval_ms, w.last_at, w.examined, w.acted, w.skipped, w.error, w.duration_ms from sweeps w order by w.name',
)
export const allSweeps = (): Statement<SweepRow> => statement(sweeps)

const answering = sql<{ id: string }>(
  'meta.store_answers',
  'select m.name as id from meta m limit 1',
)
/** The least that shows that the store answers and is migrated. */
export const storeAnswers = (): Statement<{ id: string }> => statement(answering)
