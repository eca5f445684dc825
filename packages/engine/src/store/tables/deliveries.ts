// Deliveries: what is to be sent of notices to sinks, who is sending it, and what came of it; and the sinks themselves.
import type { DeliveryState } from '../../model/delivery.ts'
import type { NoticeKind } from '../../model/notice.ts'
import type { Statement } from '../sql.ts'
import { forEach, sql, statement } from '../sql.ts'

const OPEN = `state in ('due', 'sending')`
/** Its time has come; or it is put off for longer than anything is, by a clock that was ahead. */
const DUE = `d.${OPEN} and (d.due_at <= {now} or d.due_at > {now} + $2)`

const dueSinks = sql<{ sink: string }>(
  'deliveries.due_sinks',
  `select b.sink from {rows $1 as b: sink text} where exists (select 1 from deliveries d where d.sink = b.sink and ${DUE})`,
)
/** Which of these sinks have something to be sent. */
export const sinksWithDue = (
  sinks: readonly string[],
  putOffMaxMs: number,
): Statement<{ sink: string }> =>
  forEach(
    dueSinks,
    sinks.map((sink) => ({ sink })),
    putOffMaxMs,
  )

export interface ClaimedRow {
  readonly id: string
  readonly run: string
  readonly kind: NoticeKind
  readonly occurrence: string
  readonly claim: number
  readonly refusals: number
  readonly lapses: number
  readonly seq: number
}
const claim = sql<ClaimedRow>(
  'deliveries.claim',
  // those of one run go in their order: one that is open holds up those behind it, one that is dead does not
  `with pick as materialized (
     select d.id from deliveries d where d.sink = $1 and ${DUE}
        and not exists (select 1 from deliveries e where e.run = d.run and e.sink = d.sink and e.${OPEN} and (e.seq < d.seq or (e.seq = d.seq and e.id < d.id)))
      order by d.due_at, d.id limit $3 {lock d skip})
   update deliveries set state = 'sending', claim = claim + 1, holder = $4, due_at = {now} + $5,
          lapses = lapses + case when state = 'sending' then 1 else 0 end
     from pick where deliveries.id = pick.id
   returning deliveries.id, deliveries.run, deliveries.kind, deliveries.occurrence, deliveries.claim, deliveries.refusals, deliveries.lapses, deliveries.seq`,
)
/** Claims what is due for a sink, the first of each run, for so long. One whose claim has lapsed counts a lapse. */
export const claimDue = (
  sink: string,
  putOffMaxMs: number,
  most: number,
  holder: string,
  leaseMs: number,
): Statement<ClaimedRow> => statement(claim, sink, putOffMaxMs, most, holder, leaseMs)

export interface Claim {
  readonly id: string
  readonly claim: number
}
export interface SettledRow {
  readonly id: string
  readonly run: string
  readonly kind: NoticeKind
  readonly occurrence: string
  readonly sink: string
  readonly state: DeliveryState
}
const SETTLED = `deliveries.id, deliveries.run, deliveries.kind, deliveries.occurrence, deliveries.sink, deliveries.state`
const MINE = `deliveries.id = b.id and deliveries.claim = b.claim and deliveries.state = 'sending'`

const deliver = sql<SettledRow>(
  'deliveries.deliver',
  `update deliveries set state = 'delivered', holder = null, settled_at = {now}, note = b.note, error = null
     from {rows $1 as b: id text, claim int, note text} where ${MINE} returning ${SETTLED}`,
)
/** A compare-and-set: the sink has taken these, and who holds their claims says so first. */
export const deliverClaimed = (
  items: readonly (Claim & { readonly note: string })[],
): Statement<SettledRow> => forEach(deliver, items)

const refused = sql<SettledRow>(
  'deliveries.refuse',
  `update deliveries set refusals = refusals + 1, holder = null, error = b.error, due_at = {now} + b.ms,
          state = case when refusals + 1 >= b.most then 'dead' else 'due' end,
          settled_at = case when refusals + 1 >= b.most then {now} else null end
     from {rows $1 as b: id text, claim int, error text, ms bigint, most int} where ${MINE} returning ${SETTLED}`,
)
/** The sink has refused these: they are tried again after `ms`, or dead at the refusal that is their `most`th. */
export const refuseClaimed = (
  items: readonly (Claim & {
    readonly error: string
    readonly ms: number
    readonly most: number
  })[],
): Statement<SettledRow> => forEach(refused, items)

const shed = sql<SettledRow>(
  'deliveries.shed',
  `update deliveries set state = 'due', holder = null, due_at = {now}, lapses = lapses + b.cut
     from {rows $1 as b: id text, claim int, cut int} where ${MINE} returning ${SETTLED}`,
)
/** Lets these go unsent; `cut`: 1 for one that was cut off while it was sent, which counts as a lapse. */
export const shedClaimed = (
  items: readonly (Claim & { readonly cut: 0 | 1 })[],
): Statement<SettledRow> => forEach(shed, items)

const annul = sql<SettledRow>(
  'deliveries.annul',
  `update deliveries set state = 'void', holder = null, settled_at = {now}, note = b.note
     from {rows $1 as b: id text, claim int, note text} where ${MINE} returning ${SETTLED}`,
)
/** These can never be done. */
export const annulClaimed = (
  items: readonly (Claim & { readonly note: string })[],
): Statement<SettledRow> => forEach(annul, items)

const annulSinks = sql<SettledRow>(
  'deliveries.annul_sink',
  `with pick as materialized (
     select d.id from deliveries d where d.${OPEN} and not exists (select 1 from sinks s where s.name = d.sink) order by d.id limit $1 {lock d skip})
   update deliveries set state = 'void', holder = null, settled_at = {now}, note = 'sink_removed'
     from pick where deliveries.id = pick.id and deliveries.${OPEN} returning ${SETTLED}`,
)
/** What is open for sinks that were removed. */
export const annulOfRemoved = (most: number): Statement<SettledRow> => statement(annulSinks, most)

const standing = sql<{ id: string; state: DeliveryState; claim: number }>(
  'deliveries.standing',
  `select d.id, d.state, d.claim from {rows $1 as b: id text} join deliveries d on d.id = b.id`,
)
export const deliveriesNow = (
  ids: readonly string[],
): Statement<{ id: string; state: DeliveryState; claim: number }> =>
  forEach(
    standing,
    ids.map((id) => ({ id })),
  )

const freed = sql<{ id: string }>(
  'deliveries.free',
  `update deliveries set due_at = 0 where state = 'sending' and due_at > 0 returning id`,
)
/** Whoever was sending is proven gone: what they had claimed can be claimed at once. */
export const freeClaims = (): Statement<{ id: string }> => statement(freed)

const revive = sql<SettledRow>(
  'deliveries.revive',
  `update deliveries set state = 'due', settled_at = null, refusals = 0, due_at = {now} where id = $1 and state = 'dead' returning ${SETTLED}`,
)
export const reviveDelivery = (id: string): Statement<SettledRow> => statement(revive, id)

const drop = sql<SettledRow>(
  'deliveries.drop',
  `update deliveries set state = 'dropped', settled_at = {now}, note = $2 where id = $1 and state in ('due', 'dead') returning ${SETTLED}`,
)
export const dropDelivery = (id: string, note: string): Statement<SettledRow> =>
  statement(drop, id, note)

const forget = sql<{ id: string }>(
  'deliveries.forget',
  `with pick as materialized (select d.id from deliveries d where d.settled_at is not null and d.settled_at < {now} - $1 order by d.settled_at limit $2 {lock d skip})
   delete from deliveries where id in (select p.id from pick p) returning id`,
)
/** Removes so many that were settled, or have been dead, for longer than the age. */
export const forgetDeliveries = (olderMs: number, most: number): Statement<{ id: string }> =>
  statement(forget, olderMs, most)

export interface DeliveryRow {
  readonly id: string
  readonly run: string
  readonly kind: NoticeKind
  readonly occurrence: string
  readonly sink: string
  readonly state: DeliveryState
  readonly holder: string | null
  readonly due_at: number
  readonly refusals: number
  readonly lapses: number
  readonly error: string | null
  readonly note: string | null
  readonly created_at: number
  readonly settled_at: number | null
}
const DELIVERY =
  'd.id, d.run, d.kind, d.occurrence, d.sink, d.state, d.holder, d.due_at, d.refusals, d.lapses, d.error, d.note, d.created_at, d.settled_at'

const newest = sql<DeliveryRow>(
  'deliveries.newest',
  `select ${DELIVERY} from deliveries d where (d.created_at, d.id) < ($1, $2) order by d.created_at desc, d.id desc limit $3`,
)
const newestOf = sql<DeliveryRow>(
  'deliveries.newest_of',
  `select ${DELIVERY} from deliveries d where d.state = $4 and (d.created_at, d.id) < ($1, $2) order by d.created_at desc, d.id desc limit $3`,
)
/** Deliveries before a place, newest first, of one state or of all. */
export const deliveriesBefore = (
  before: { readonly at: number; readonly id: string },
  most: number,
  state: DeliveryState | null,
): Statement<DeliveryRow> =>
  state === null
    ? statement(newest, before.at, before.id, most)
    : statement(newestOf, before.at, before.id, most, state)

// sinks

export interface SinkRow {
  readonly name: string
  readonly kind: NoticeKind
  readonly type: string
  readonly seen_at: number
}
const sinks = sql<SinkRow>(
  'sinks.all',
  'select s.name, s.kind, s.type, s.seen_at from sinks s order by s.name, s.kind',
)
export const allSinks = (): Statement<SinkRow> => statement(sinks)

const put = sql<{ name: string }>(
  'sinks.put',
  `insert into sinks (name, kind, type, seen_at) select b.name, b.kind, b.type, {now} from {rows $1 as b: name text, kind text, type text} where true
   on conflict (name, kind) do update set type = excluded.type, seen_at = excluded.seen_at returning name`,
)
/** Stores what these sinks take, as of now. */
export const putSinks = (
  items: readonly { readonly name: string; readonly kind: NoticeKind; readonly type: string }[],
): Statement<{ name: string }> => forEach(put, items)

const narrow = sql<{ name: string }>(
  'sinks.narrow',
  `delete from sinks where name in (select b.name from {rows $1 as b: name text, kind text})
      and not exists (select 1 from {rows $1 as b: name text, kind text} where b.name = sinks.name and b.kind = sinks.kind) returning name`,
)
/** Removes the kinds that these sinks do not take any more. */
export const narrowSinks = (
  items: readonly { readonly name: string; readonly kind: NoticeKind }[],
): Statement<{ name: string }> => forEach(narrow, items)

const removeUnseen = sql<{ name: string; kind: string }>(
  'sinks.remove_unseen',
  `delete from sinks where seen_at < {now} - $1 returning name, kind`,
)
/** Removes the sinks that no server has said to have for so long. */
export const removeUnseenSinks = (ms: number): Statement<{ name: string; kind: string }> =>
  statement(removeUnseen, ms)

export interface BacklogRow {
  readonly sink: string
  readonly open: number
  readonly oldest_at: number | null
  readonly dead: number
}
const backlog = sql<BacklogRow>(
  'deliveries.backlog',
  `select x.sink, cast(sum(x.open) as int) as open, min(x.oldest) as oldest_at, cast(sum(x.dead) as int) as dead from (
     select d.sink, count(*) as open, min(d.created_at) as oldest, 0 as dead from (
       select o.sink, o.created_at from deliveries o where o.state = 'due' order by o.created_at limit $1) d group by d.sink
     union all select d.sink, count(*), min(d.created_at), 0 from (
       select o.sink, o.created_at from deliveries o where o.state = 'sending' order by o.created_at limit $1) d group by d.sink
     union all select d.sink, 0, null, count(*) from (
       select o.sink from deliveries o where o.state = 'dead' order by o.created_at limit $1) d group by d.sink) x group by x.sink order by x.sink`,
)
/** What is open and dead for each sink, counted among so many of each state, the oldest first. */
export const backlogOfSinks = (most: number): Statement<BacklogRow> => statement(backlog, most)
