// Schedules and what became of their ticks. A schedule's row is its lock; the compare-and-set of a tick is on it.
import type { MissedPolicy, OverlapPolicy, TickOutcome } from '../../model/schedule.ts'
import type { RunStatus } from '../../model/run.ts'
import type { Statement } from '../sql.ts'
import { forEach, sql, statement } from '../sql.ts'

export interface ScheduleRow {
  readonly id: string
  readonly name: string
  readonly cron: string
  readonly zone: string
  readonly workflow: string
  readonly version: string | null
  readonly input: string | null
  readonly owner: string
  readonly queue: string | null
  readonly labels: string
  readonly priority: number
  readonly missed: MissedPolicy
  readonly overlap: OverlapPolicy
  readonly rev: number
  readonly next_at: number | null
  readonly last_at: number | null
  readonly paused_at: number | null
  readonly paused_by: string | null
  readonly why: string | null
  readonly created_at: number
  readonly updated_at: number
  readonly updated_by: string
}
const SCHEDULE =
  's.id, s.name, s.cron, s.zone, s.workflow, s.version, s.input, s.owner, s.queue, s.labels, s.priority, s.missed, s.overlap, s.rev, s.next_at, s.last_at, s.paused_at, s.paused_by, s.why, s.created_at, s.updated_at, s.updated_by'

export interface TickRow {
  readonly id: string
  readonly schedule: string
  readonly tick: number
  readonly cause: 'time' | 'person'
  readonly outcome: TickOutcome
  readonly note: string | null
  readonly at: number
}
const TICK = 't.id, t.schedule, t.tick, t.cause, t.outcome, t.note, t.at'

/** What is set by people. */
export type ScheduleSpec = Pick<
  ScheduleRow,
  | 'cron'
  | 'zone'
  | 'workflow'
  | 'version'
  | 'input'
  | 'owner'
  | 'queue'
  | 'labels'
  | 'priority'
  | 'missed'
  | 'overlap'
>

const insert = sql<{ id: string }>(
  'schedules.insert',
  `insert into schedules (id, name, cron, zone, workflow, version, input, owner, queue, labels, priority, missed, overlap, next_at, paused_at, paused_by, created_at, updated_at, updated_by)
   select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, cast($11 as int), $12, $13, cast($14 as bigint), case when $15 = 1 then {now} end, case when $15 = 1 then $16 end, {now}, {now}, $16 where true
   on conflict do nothing returning id`,
)
/** A new schedule, paused where it has no next tick; no row where the name or the id is taken. */
export const insertSchedule = (
  id: string,
  name: string,
  spec: ScheduleSpec,
  nextAt: number | null,
  by: string,
): Statement<{ id: string }> =>
  statement(insert, id, name, ...values(spec), nextAt, nextAt === null ? 1 : 0, by)

const values = (spec: ScheduleSpec) =>
  [
    spec.cron,
    spec.zone,
    spec.workflow,
    spec.version,
    spec.input,
    spec.owner,
    spec.queue,
    spec.labels,
    spec.priority,
    spec.missed,
    spec.overlap,
  ] as const

const update = sql<{ id: string }>(
  'schedules.update',
  `update schedules set cron = $3, zone = $4, workflow = $5, version = $6, input = $7, owner = $8, queue = $9, labels = $10, priority = $11, missed = $12, overlap = $13,
     next_at = $14, updated_at = {now}, updated_by = $15, rev = rev + 1 where id = $1 and rev = $2 returning id`,
)
export const updateSchedule = (
  { id, rev }: Pick<ScheduleRow, 'id' | 'rev'>,
  spec: ScheduleSpec,
  nextAt: number | null,
  by: string,
): Statement<{ id: string }> => statement(update, id, rev, ...values(spec), nextAt, by)

const pause = sql<{ id: string }>(
  'schedules.pause',
  'update schedules set paused_at = {now}, paused_by = $3, why = $4, next_at = null, rev = rev + 1 where id = $1 and rev = $2 returning id',
)
export const pauseScheduleRow = (
  { id, rev }: Pick<ScheduleRow, 'id' | 'rev'>,
  by: string,
  why: string | null,
): Statement<{ id: string }> => statement(pause, id, rev, by, why)

const resume = sql<{ id: string }>(
  'schedules.resume',
  'update schedules set paused_at = null, paused_by = null, why = null, next_at = $3, rev = rev + 1 where id = $1 and rev = $2 returning id',
)
export const resumeScheduleRow = (
  { id, rev }: Pick<ScheduleRow, 'id' | 'rev'>,
  nextAt: number | null,
): Statement<{ id: string }> => statement(resume, id, rev, nextAt)

const remove = sql<{ id: string }>(
  'schedules.remove',
  'delete from schedules where id = $1 returning id',
)
const removeTicks = sql<{ id: string }>(
  'ticks.remove',
  'delete from ticks where schedule = $1 returning id',
)
export const removeSchedule = (id: string) =>
  [statement(remove, id), statement(removeTicks, id)] as const

const move = sql<{ id: string }>(
  'schedules.move',
  'update schedules set next_at = $4, last_at = coalesce($5, last_at) where id = $1 and rev = $2 and next_at = $3 and cast($6 as bigint) <= {now} returning id',
)
/** The compare-and-set of a tick: of all who would fire it one gets the row, and nobody before `last` has come. */
export const moveTick = (
  { id, rev, next_at: due }: Pick<ScheduleRow, 'id' | 'rev' | 'next_at'>,
  nextAt: number | null,
  fired: number | null,
  last: number,
): Statement<{ id: string }> => statement(move, id, rev, due, nextAt, fired, last)

const putBack = sql<{ id: string }>(
  'schedules.put_back',
  'update schedules set next_at = $4 where id = $1 and rev = $2 and next_at = $3 and next_at > $4 returning id',
)
/** The store's clock was ahead and is right again: an earlier tick is the next. */
export const putBackTick = (
  { id, rev, next_at: due }: Pick<ScheduleRow, 'id' | 'rev' | 'next_at'>,
  nextAt: number,
): Statement<{ id: string }> => statement(putBack, id, rev, due, nextAt)

const byName = sql<ScheduleRow>(
  'schedules.by_name',
  `select ${SCHEDULE} from schedules s where s.name = $1`,
)
export const scheduleByName = (name: string): Statement<ScheduleRow> => statement(byName, name)

const lockName = sql<ScheduleRow>(
  'schedules.lock_name',
  `select ${SCHEDULE} from schedules s where s.name = $1 {lock s}`,
)
export const lockScheduleByName = (name: string): Statement<ScheduleRow> =>
  statement(lockName, name)

const lockFree = sql<ScheduleRow>(
  'schedules.lock_skipping',
  `select ${SCHEDULE} from schedules s where s.id = $1 {lock s skip}`,
)
/** Locks a schedule without waiting; no row where another transaction has locked it, or it is gone. */
export const lockFreeSchedule = (id: string): Statement<ScheduleRow> => statement(lockFree, id)

const list = sql<ScheduleRow>(
  'schedules.list',
  `select ${SCHEDULE} from schedules s where s.name > $1 order by s.name limit $2`,
)
export const schedulesAfter = (name: string, most: number): Statement<ScheduleRow> =>
  statement(list, name, most)

const due = sql<ScheduleRow>(
  'schedules.due',
  `select ${SCHEDULE} from schedules s where s.next_at <= {now} and (s.next_at, s.id) > ($2, $3) order by s.next_at, s.id limit $1`,
)
/** What is due behind a place in the line of ticks. */
export const schedulesDue = (
  most: number,
  { at, id }: { readonly at: number; readonly id: string },
): Statement<ScheduleRow> => statement(due, most, at, id)

const ahead = sql<ScheduleRow>(
  'schedules.ahead',
  `select ${SCHEDULE} from schedules s where s.next_at > {now} and s.id > $1 order by s.id limit $2`,
)
/** Schedules whose next tick is to come, by pages. */
export const schedulesAhead = (after: string, most: number): Statement<ScheduleRow> =>
  statement(ahead, after, most)

const nearest = sql<{ at: number | null }>(
  'schedules.nearest',
  'select min(s.next_at) as at from schedules s where s.next_at > {now}',
)
export const nearestTick = (): Statement<{ at: number | null }> => statement(nearest)

const put = sql<{ id: string }>(
  'ticks.put',
  `insert into ticks (id, schedule, tick, cause, outcome, note, open, at)
   select b.id, b.schedule, b.tick, b.cause, b.outcome, b.note, b.open, {now} from {rows $1 as b: id text, schedule text, tick bigint, cause text, outcome text, note text, open int} where true
   on conflict (id) do update set outcome = excluded.outcome, note = excluded.note, open = excluded.open, at = excluded.at where ticks.outcome = 'missed' returning id`,
)
/** Says once what became of a tick; one that was missed may still fire, where the clock was ahead. */
export const putTicks = (ticks: readonly Omit<TickRow, 'at'>[]): Statement<{ id: string }> =>
  forEach(
    put,
    ticks.map((tick) => ({ ...tick, open: tick.outcome === 'started' ? 1 : 0 })),
  )

const settle = sql<{ id: string }>(
  'ticks.settle',
  "update ticks set outcome = $3, note = $4, open = case when $3 = 'started' then 1 else 0 end where id = $1 and outcome = $2 returning id",
)
/** From one outcome to another: a compare-and-set. */
export const settleTick = (
  id: string,
  from: TickOutcome,
  to: TickOutcome,
  note: string | null,
): Statement<{ id: string }> => statement(settle, id, from, to, note)

const tickOf = sql<TickRow>('ticks.by_id', `select ${TICK} from ticks t where t.id = $1`)
export const tickById = (id: string): Statement<TickRow> => statement(tickOf, id)

const close = sql<{ id: string }>(
  'ticks.close',
  'update ticks set open = 0 from {rows $1 as b: id text} where ticks.id = b.id returning ticks.id',
)
export const closeTicks = (ids: readonly string[]): Statement<{ id: string }> =>
  forEach(
    close,
    ids.map((id) => ({ id })),
  )

const open = sql<{ id: string; run: string | null }>(
  'ticks.open',
  `select t.id, coalesce(
     (select r.id from runs r where r.id = t.id and r.ended_at is null),
     (select max(n.id) from runs r join runs n on n.series = r.series where r.id = t.id and r.reason = 'continued' and n.series <> n.id and n.ended_at is null)) as run
   from ticks t where t.schedule = $1 and t.open = 1 order by t.id`,
)
/** Ticks whose run may be active, with the run that is: the newest of its series. */
export const openTicks = (schedule: string): Statement<{ id: string; run: string | null }> =>
  statement(open, schedule)

const waiting = sql<TickRow>(
  'ticks.waiting',
  `select ${TICK} from ticks t where t.schedule = $1 and t.outcome = 'waiting' order by t.tick, t.id limit $2`,
)
export const waitingTicks = (schedule: string, most: number): Statement<TickRow> =>
  statement(waiting, schedule, most)

const waitedFor = sql<{ schedule: string; workflow: string; version: string | null }>(
  'ticks.waited_for',
  `select s.id as schedule, s.workflow, s.version from schedules s
    where s.paused_at is null and s.id > $1 and exists (select 1 from ticks t where t.schedule = s.id and t.outcome = 'waiting') order by s.id limit $2`,
)
/** Schedules that are not paused and have ticks that wait, by pages. */
export const schedulesWaiting = (after: string, most: number) => statement(waitedFor, after, most)

const newest = sql<TickRow & { status: RunStatus | null }>(
  'ticks.newest',
  `select ${TICK}, (select r.status from runs r where r.id = t.id) as status from ticks t where t.schedule = $1 order by t.at desc, t.id desc limit $2`,
)
export const newestTicks = (
  schedule: string,
  most: number,
): Statement<TickRow & { status: RunStatus | null }> => statement(newest, schedule, most)

const forget = sql<{ id: string }>(
  'ticks.forget',
  `with pick as materialized (
     select t.id from ticks t where t.at < {now} - $1 and t.outcome <> 'waiting' and (select 1 from runs r where r.id = t.id) is null {lock t skip})
   delete from ticks where id in (select p.id from pick p) returning id`,
)
/** Forgets old ticks whose run is gone, and those that had none. */
export const forgetTicks = (olderMs: number): Statement<{ id: string }> =>
  statement(forget, olderMs)
