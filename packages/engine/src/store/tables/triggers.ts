// Triggers, and what arrived at them. An arrival's row is the claim of its delivery: who inserts it first is who acts.
import type { ArrivalOutcome, TriggerKind } from '../../model/trigger.ts'
import type { Statement } from '../sql.ts'
import { sql, statement } from '../sql.ts'

export interface TriggerRow {
  readonly name: string
  readonly kind: TriggerKind
  /** JSON text. */
  readonly spec: string
  readonly rev: number
  readonly paused_at: number | null
  readonly paused_by: string | null
  readonly why: string | null
  readonly created_at: number
  readonly updated_at: number
  readonly updated_by: string
}
const TRIGGER =
  't.name, t.kind, t.spec, t.rev, t.paused_at, t.paused_by, t.why, t.created_at, t.updated_at, t.updated_by'

export interface ArrivalRow {
  readonly hook: string
  readonly delivery: string
  readonly event: string | null
  readonly outcome: ArrivalOutcome
  readonly run: string | null
  readonly note: string | null
  readonly times: number
  readonly at: number
  readonly last_at: number
}
const ARRIVAL = 'a.hook, a.delivery, a.event, a.outcome, a.run, a.note, a.times, a.at, a.last_at'

const put = sql<{ name: string }>(
  'triggers.put',
  `insert into triggers (name, kind, spec, created_at, updated_at, updated_by) select $1, $2, $3, {now}, {now}, $4 where true
   on conflict (name) do update set kind = excluded.kind, spec = excluded.spec, updated_at = excluded.updated_at, updated_by = excluded.updated_by, rev = triggers.rev + 1 returning name`,
)
/** Makes a trigger, or makes it what is said now; it stays paused where it was. */
export const putTrigger = (
  name: string,
  kind: TriggerKind,
  spec: string,
  by: string,
): Statement<{ name: string }> => statement(put, name, kind, spec, by)

const pause = sql<{ name: string }>(
  'triggers.pause',
  'update triggers set paused_at = {now}, paused_by = $2, why = $3, rev = rev + 1 where name = $1 and paused_at is null returning name',
)
/** No row where it is paused already. */
export const pauseTriggerRow = (
  name: string,
  by: string,
  why: string | null,
): Statement<{ name: string }> => statement(pause, name, by, why)

const resume = sql<{ name: string }>(
  'triggers.resume',
  'update triggers set paused_at = null, paused_by = null, why = null, rev = rev + 1 where name = $1 and paused_at is not null returning name',
)
/** No row where it is not paused. */
export const resumeTriggerRow = (name: string): Statement<{ name: string }> =>
  statement(resume, name)

const remove = sql<{ name: string }>(
  'triggers.remove',
  'delete from triggers where name = $1 returning name',
)
/** What has arrived stays known until its window is over, also for one that is made anew under the name. */
export const removeTriggerRow = (name: string): Statement<{ name: string }> =>
  statement(remove, name)

const byName = sql<TriggerRow>(
  'triggers.by_name',
  `select ${TRIGGER} from triggers t where t.name = $1`,
)
export const triggerByName = (name: string): Statement<TriggerRow> => statement(byName, name)

const list = sql<TriggerRow>(
  'triggers.list',
  `select ${TRIGGER} from triggers t where t.name > $1 order by t.name limit $2`,
)
export const triggersAfter = (name: string, most: number): Statement<TriggerRow> =>
  statement(list, name, most)

const arrival = sql<ArrivalRow>(
  'arrivals.by_id',
  `select ${ARRIVAL} from arrivals a where a.hook = $1 and a.delivery = $2`,
)
export const arrivalOf = (hook: string, delivery: string): Statement<ArrivalRow> =>
  statement(arrival, hook, delivery)

const claim = sql<ArrivalRow>(
  'arrivals.claim',
  `insert into arrivals (hook, delivery, event, outcome, at, last_at) select $1, $2, $3, 'refused', {now}, {now} where true
   on conflict (hook, delivery) do update set times = arrivals.times + 1, last_at = excluded.last_at
   returning hook, delivery, event, outcome, run, note, times, at, last_at`,
)
/** The row of a delivery, locked: new and `refused` until it is settled, or as whoever was first has left it. */
export const claimArrival = (
  hook: string,
  delivery: string,
  event: string | null,
): Statement<ArrivalRow> => statement(claim, hook, delivery, event)

const settle = sql<{ delivery: string }>(
  'arrivals.settle',
  `update arrivals set outcome = $3, run = $4, note = $5 where hook = $1 and delivery = $2 and outcome = 'refused' returning delivery`,
)
/** Says what became of a delivery that was claimed: once, but for one that was refused. */
export const settleArrival = (
  { hook, delivery }: Pick<ArrivalRow, 'hook' | 'delivery'>,
  outcome: ArrivalOutcome,
  run: string | null,
  note: string | null,
): Statement<{ delivery: string }> => statement(settle, hook, delivery, outcome, run, note)

const newest = sql<ArrivalRow>(
  'arrivals.newest',
  `select ${ARRIVAL} from arrivals a where a.hook = $1 order by a.at desc, a.delivery desc limit $2`,
)
export const newestArrivals = (hook: string, most: number): Statement<ArrivalRow> =>
  statement(newest, hook, most)

const forget = sql<{ delivery: string }>(
  'arrivals.forget',
  `with pick as materialized (
     select a.hook, a.delivery from arrivals a where a.at < {now} - $1 order by a.at limit $2 {lock a skip})
   delete from arrivals where (hook, delivery) in (select p.hook, p.delivery from pick p) returning delivery`,
)
/** Forgets deliveries whose window is over. */
export const forgetArrivals = (olderMs: number, most: number): Statement<{ delivery: string }> =>
  statement(forget, olderMs, most)
