// Lanes: those that there are, how far each has come, and what stands in them.
import { COUNT_MAX } from '../count-max.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

export interface LaneRow {
  readonly lane: string
  readonly queue: string
  readonly workflow: string
  readonly version: string
  readonly labels: string
}
const addLane = sql<{ lane: string }>(
  'lanes.put',
  `insert into lanes (lane, queue, workflow, version, labels, created_at)
   select b.lane, b.queue, b.workflow, b.version, b.labels, {now} from {rows $1 as b: lane text, queue text, workflow text, version text, labels text} where true
   on conflict do nothing returning lane`,
)
export const putLanes = (lanes: readonly LaneRow[]): Statement<{ lane: string }> =>
  statement(addLane, rows(lanes))

const lanes = sql<LaneRow & { readonly tag: number }>(
  'lanes.all',
  'select l.lane, l.queue, l.workflow, l.version, l.labels, l.tag from lanes l order by l.lane',
)
export const allLanes = (): Statement<LaneRow & { readonly tag: number }> => statement(lanes)

const raise = sql<{ lane: string }>(
  'lanes.raise',
  `with pick as materialized (
     select l.lane, b.tag from {rows $1 as b: lane text, tag double precision} join lanes l on l.lane = b.lane and l.tag < b.tag order by l.lane {lock l skip})
   update lanes set tag = pick.tag from pick where lanes.lane = pick.lane returning lanes.lane`,
)
/** Keeps how far the virtual time of these lanes has come; of one that is locked it is kept when it has risen again. */
export const raiseLanes = (
  risen: readonly { lane: string; tag: number }[],
): Statement<{ lane: string }> => statement(raise, rows(risen))

export interface DepthRow {
  readonly lane: string
  readonly queue: string
  readonly workflow: string
  readonly version: string
  readonly labels: string
  readonly depth: number
  readonly oldest_at: number | null
  readonly since: number | null
  readonly parked: number
  readonly parked_since: number | null
}
const depths = sql<DepthRow>(
  'lanes.depths',
  `select l.lane, l.queue, l.workflow, l.version, l.labels,
     (select count(*) from (select 1 as one from runs r where r.lane = l.lane and r.status = 'queued' limit ${COUNT_MAX}) x) as depth,
     (select min(x.created_at) from (select r.created_at from runs r where r.lane = l.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 1000) x) as oldest_at,
     (select min(x.since) from (select coalesce(
         (select max(y.at) from (select a.ended_at as at from attempts a where a.run = r.id and a.attempt = r.attempt
            union all select w.settled_at as at from waits w where w.run = r.id and w.state in ('satisfied', 'lapsed')) y),
         r.not_before, r.created_at) as since
       from runs r where r.lane = l.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 100) x) as since,
     coalesce(p.n, 0) as parked, p.since as parked_since
   from lanes l left join (select x.lane, count(*) as n, min(x.created_at) as since from (select r.lane, r.created_at from runs r where r.status = 'waiting' and r.wait_on = 'slot' and r.reason = 'no_executor' limit ${COUNT_MAX}) x group by x.lane) p on p.lane = l.lane
   order by l.queue, l.workflow, l.version, l.lane limit $1`,
)
/**
 * Lanes with how many runs stand in them, when the oldest of the first thousand was started, and since when the first hundred
 * wait: since they were started, were last let go, or were woken.
 */
export const laneDepths = (most: number): Statement<DepthRow> => statement(depths, most)

const queuedAhead = sql<{ n: number }>(
  'lanes.ahead',
  `select count(*) as n from (select 1 as one from runs r where r.lane = $1 and r.status = 'queued' and (r.rank, r.id) < ($2, $3) limit ${COUNT_MAX}) x`,
)
/** How many can be claimed in the lane before a run of this place. */
export const aheadInLane = (lane: string, rank: number, id: string): Statement<{ n: number }> =>
  statement(queuedAhead, lane, rank, id)
