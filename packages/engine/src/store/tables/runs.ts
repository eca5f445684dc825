// Runs: insertion and everything that is read of them. Their state columns are written in ../move/ alone.
import type { RunStatus } from '../../model/run.ts'
import type { NewRun } from '../../model/start.ts'
import type { RunRow } from '../move/run-row.ts'
import { runColumns } from '../move/run-row.ts'
import type { Statement } from '../sql.ts'
import { forEach, rows, sql, statement } from '../sql.ts'

interface InsertedRow {
  readonly id: string
  readonly lane: string
  readonly rank: number
  readonly status: RunStatus
  readonly rev: number
  readonly created_at: number
}
const INSERT = `with b as materialized (select * from {rows $1 as b: id text, workflow text, version text, queue text, labels text, lane text, priority int,
       weight double precision, tag double precision, floor double precision, owner text, key text, input_hash text, command text, status text, wait_on text, reason text, note text,
       ready_at bigint, ready_in_ms bigint, deadline_in_ms bigint, attempt_limit_ms bigint, start_by bigint, start_within_ms bigint, parent text, parent_key text,
       awaited int, on_parent_end text, depth int, root text, retry_of text, series text, on_end text, on_end_of text, limit_owner text, limit_global text,
       limit_a text, limit_b text, limit_modes text, units_a int, units_b int, pause_requested_at bigint, pause_by text, entries int, journal_bytes bigint, input text, state text}),
     low as materialized (
       select l.lane, (select r.tag from runs r where r.lane = l.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 1) as tag
         from (select distinct lane from b) l)
   insert into runs (id, workflow, version, queue, labels, lane, priority, tag, rank, owner, key, input_hash, command, status, wait_on, reason, note, not_before, ready_at,
       created_at, deadline, attempt_limit_ms, start_by, parent, parent_key, awaited, on_parent_end, depth, root, retry_of, series, on_end, on_end_of,
       limit_owner, limit_global, limit_a, limit_b, limit_modes, units_a, units_b, pause_requested_at, pause_by, entries, journal_bytes, input, state)
   select b.id, b.workflow, b.version, b.queue, b.labels, b.lane, b.priority, coalesce(b.tag, case when coalesce(low.tag, 0) > b.floor then low.tag else b.floor end + 1.0 / b.weight),
       coalesce(b.tag, case when coalesce(low.tag, 0) > b.floor then low.tag else b.floor end + 1.0 / b.weight) - b.priority * 10, b.owner, b.key, b.input_hash, b.command, b.status, b.wait_on, b.reason,
       b.note, coalesce(b.ready_at, {now} + b.ready_in_ms), coalesce(b.ready_at, {now} + b.ready_in_ms), {now}, {now} + b.deadline_in_ms, b.attempt_limit_ms, coalesce(b.start_by, coalesce(b.ready_at, {now} + coalesce(b.ready_in_ms, 0)) + b.start_within_ms),
       b.parent, b.parent_key, b.awaited, b.on_parent_end, b.depth, b.root, b.retry_of, b.series, b.on_end, b.on_end_of, b.limit_owner, b.limit_global,
       b.limit_a, b.limit_b, b.limit_modes, b.units_a, b.units_b, b.pause_requested_at, b.pause_by, b.entries, b.journal_bytes, b.input, b.state
     from b cross join low where low.lane = b.lane`

const insert = sql<InsertedRow>(
  'runs.insert',
  `${INSERT} on conflict do nothing returning id, lane, rank, status, rev, created_at`,
)
/** Answers the rows that were new. */
export const insertRuns = (runs: readonly NewRun[]): Statement<InsertedRow> =>
  statement(insert, rows(runs))

const bear = sql<never>('runs.bear', INSERT)
/** As `insertRuns`, of which each must be new: refused by a UniqueViolation otherwise. */
export const bearRuns = (runs: readonly NewRun[]): Statement<never> => statement(bear, rows(runs))

const lowest = sql<{ lane: string; tag: number }>(
  'runs.lowest',
  `select b.lane, (select r.tag from runs r where r.lane = b.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 1) as tag
     from {rows $1 as b: lane text}`,
)
/** The virtual time of each lane: the tag of its lowest queued run, null when the lane is empty. */
export const lowestTags = (lanes: readonly string[]): Statement<{ lane: string; tag: number }> =>
  statement(lowest, rows(lanes.map((lane) => ({ lane }))))

const last = sql<{ tag: number | null }>(
  'runs.last_tag',
  `select max(r.tag) as tag from runs r where r.lane = $1 and r.status = 'queued' and r.priority = $2`,
)
export const lastTag = (lane: string, priority: number): Statement<{ tag: number | null }> =>
  statement(last, lane, priority)

export interface Known {
  readonly id: string
  readonly workflow: string
  readonly owner: string
  readonly key: string | null
  readonly command: string | null
  readonly input_hash: string
  readonly status: RunStatus
  readonly series: string
  readonly parent: string | null
  readonly parent_key: string | null
}
const KNOWN =
  'r.id, r.workflow, r.owner, r.key, r.command, r.input_hash, r.status, r.series, r.parent, r.parent_key'
const known = sql<Known>(
  'runs.known',
  `select ${KNOWN} from {rows $1 as b: id text} join runs r on r.id = b.id
   union select ${KNOWN} from {rows $1 as b: command text} join runs r on r.command = b.command
   union select ${KNOWN} from {rows $1 as b: owner text, workflow text, key text} join runs r on r.key is not null and r.owner = b.owner and r.workflow = b.workflow and r.key = b.key
   union select ${KNOWN} from {rows $1 as b: parent text, parent_key text} join runs r on r.parent = b.parent and r.parent_key = b.parent_key`,
)
/** The rows that an insert ran into: by id, command, key or place among their parent's children. */
export const knownRuns = (
  runs: readonly Pick<
    NewRun,
    'id' | 'command' | 'owner' | 'workflow' | 'key' | 'parent' | 'parent_key'
  >[],
): Statement<Known> =>
  statement(
    known,
    rows(
      runs.map(({ id, command, owner, workflow, key, parent, parent_key }) => ({
        id,
        command,
        owner,
        workflow,
        key,
        parent,
        parent_key,
      })),
    ),
  )

const present = sql<{ id: string }>(
  'runs.present',
  'select r.id from {rows $1 as b: run text} join runs r on r.id = b.run',
)
/** Which of these runs there are, whoever has locked them. */
export const presentRuns = (ids: readonly string[]): Statement<{ id: string }> =>
  forEach(
    present,
    ids.map((run) => ({ run })),
  )

const newest = sql<{ series: string; id: string; status: RunStatus }>(
  'runs.newest',
  `select b.series, r.id, r.status from {rows $1 as b: series text} join runs r on r.series = b.series and r.series <> r.id
     and coalesce(r.reason, '') <> 'continued'`,
)
/** The newest run of each series that has been continued: the one that no other continues. */
export const newestOfSeries = (
  series: readonly string[],
): Statement<{ series: string; id: string; status: RunStatus }> =>
  statement(newest, rows(series.map((each) => ({ series: each }))))

const due = sql<RunRow>(
  'runs.due',
  `select ${runColumns} from runs r where r.status = 'waiting' and r.ready_at <= {now} order by r.ready_at limit $1 {lock r skip}`,
)
export const dueRuns = (most: number): Statement<RunRow> => statement(due, most)

const someDue = sql<{ id: string }>(
  'runs.any_due',
  `select r.id from runs r where r.status = 'waiting' and r.ready_at <= {now} order by r.ready_at limit 1`,
)
/** Whether the instant of any run has come. */
export const anyDue = (): Statement<{ id: string }> => statement(someDue)

const withheld = sql<{ lane: string }>(
  'runs.withheld',
  `select r.lane from {rows $1 as x: run text} join runs r on r.id = x.run and coalesce(r.status, '') = 'queued'
   union all select '' as lane from (select w.id from runs w where w.suspect_since is not null limit 1) y`,
)
/**
 * Lanes with a run that others may be given and a session that excludes these runs may not; `''` stands for every lane,
 * where some run must be driven alone.
 */
export const withheldLanes = (except: readonly string[]): Statement<{ lane: string }> =>
  statement(withheld, rows(except.map((run) => ({ run }))))

const someQueued = sql<{ lane: string }>(
  'runs.any_queued',
  `select b.lane from {rows $1 as b: lane text} join lanes l on l.lane = b.lane
    where (select 1 from runs r where r.lane = b.lane and r.status = 'queued' and r.suspect_since is null order by r.lane, r.rank, r.id limit 1) is not null
      and not exists (select 1 from pauses p
          where (p.until is null or p.until > {now}) and ((p.kind = 'queue' and p.name = l.queue) or (p.kind = 'workflow' and p.name = l.workflow)))
    limit 1`,
)
/** Whether any of these lanes has a run that could be claimed now. */
export const anyQueued = (lanes: readonly string[]): Statement<{ lane: string }> =>
  statement(someQueued, rows(lanes.map((lane) => ({ lane }))))

const stillHeld = sql<{ run: string; attempt: number }>(
  'runs.still_held',
  `select r.id as run, r.attempt from {rows $1 as b: run text, attempt int} join runs r on r.id = b.run and r.attempt = b.attempt and r.session = $2 order by r.id`,
)
/** Which of these attempts still hold their run, for this session. */
export const stillHeldBy = (
  session: string,
  items: readonly { run: string; attempt: number }[],
): Statement<{ run: string; attempt: number }> =>
  forEach(
    stillHeld,
    items.map(({ run, attempt }) => ({ run, attempt })),
    session,
  )

const nextDue = sql<{ at: number | null }>(
  'runs.next_instant',
  `select min(x.at) as at from (
     select min(r.ready_at) as at from runs r where r.status = 'waiting' and r.ready_at is not null
     union all select min(r.deadline) from runs r where r.deadline is not null and r.ended_at is null and r.session is null
     union all select min(r.deadline) + $1 from runs r where r.deadline is not null and r.ended_at is null and r.session is not null
     union all select min(r.attempt_deadline) + $1 from runs r where r.attempt_deadline is not null
     union all select min(r.start_by) from runs r where r.start_by is not null and r.attempt = 0 and r.ended_at is null
     union all select min(r.cancel_requested_at) + $2 from runs r where r.status = 'canceling') x`,
)
/** The next instant at which the store would do something to a run by itself, or null. */
export const nextInstant = (
  limitGraceMs: number,
  cancelGraceMs: number,
): Statement<{ at: number | null }> => statement(nextDue, limitGraceMs, cancelGraceMs)

interface OrphanRow {
  readonly id: string
  readonly attempt: number
  readonly session: string
  readonly end_reason: string | null
  readonly evidence: string | null
}
const orphans = sql<OrphanRow>(
  'runs.orphans',
  `select r.id, r.attempt, r.session, s.end_reason, s.evidence from runs r left join sessions s on s.id = r.session
    where r.session is not null and (s.id is null or s.state = 'ended') order by r.session, r.claim limit $1 {lock r skip}`,
)
/** Held runs whose holder has ended or does not exist, locked; one that another transaction has locked is left out. */
export const orphanedRuns = (most: number): Statement<OrphanRow> => statement(orphans, most)

const ofSession = sql<RunRow>(
  'runs.of_session',
  `select ${runColumns} from runs r where r.session = $1 order by r.id limit $2 {lock r}`,
)
export const runsOfSession = (session: string, most: number): Statement<RunRow> =>
  statement(ofSession, session, most)

const heldBriefly = sql<{
  id: string
  attempt: number
  claim: number
  status: RunStatus
  pause_requested_at: number | null
}>(
  'runs.held_by',
  `select r.id, r.attempt, r.claim, r.status, r.pause_requested_at from runs r where r.session = $1 and r.claim <= $2 order by r.id`,
)
/** What a session holds from its claims up to a number. */
export const heldBy = (
  session: string,
  upToClaim: number,
): Statement<{
  id: string
  attempt: number
  claim: number
  status: RunStatus
  pause_requested_at: number | null
}> => statement(heldBriefly, session, upToClaim)

const told = sql<{ id: string; attempt: number; status: RunStatus; note: string | null }>(
  'runs.directives',
  `select r.id, r.attempt, r.status, r.note from runs r where r.session = $1 and (r.status = 'canceling' or r.pause_requested_at is not null) order by r.id`,
)
/** Runs of a session that have been canceled or asked to pause since it last heard. */
export const directivesOf = (
  session: string,
): Statement<{ id: string; attempt: number; status: RunStatus; note: string | null }> =>
  statement(told, session)

const pastLimits = sql<{ id: string }>(
  'runs.past_limits',
  `select distinct id from (
     select r.id from runs r where r.deadline <= {now} and r.ended_at is null and (r.session is null or r.deadline <= {now} - $1)
     union all select r.id from runs r where r.attempt_deadline <= {now} - $1
     union all select r.id from runs r where r.start_by <= {now} and r.attempt = 0 and r.ended_at is null
     union all select r.id from runs r where r.status = 'canceling' and r.cancel_requested_at <= {now} - $2) x order by id limit $3`,
)
/** Runs past a limit: at once where nobody holds them, after their grace where somebody does. */
export const runsPastLimits = (
  limitGraceMs: number,
  cancelGraceMs: number,
  most: number,
): Statement<{ id: string }> => statement(pastLimits, limitGraceMs, cancelGraceMs, most)

export interface OverdueRow {
  readonly id: string
  readonly workflow: string
  readonly status: RunStatus
  readonly wait_on: string | null
  readonly reason: string | null
  readonly since: number
}
const ACTIVE_PAGE = `(select r.* from runs r where r.ended_at is null and r.id > $1 order by r.id limit $2)`
const overdue = sql<OverdueRow>(
  'runs.overdue',
  `select x.id, x.workflow, x.status, x.wait_on, x.reason, coalesce(x.not_before, x.created_at) as since from ${ACTIVE_PAGE} x
    where x.attempt = 0 and x.start_by is null and coalesce(x.not_before, x.created_at) <= {now} - $3
      and (x.status = 'queued' or (x.status = 'waiting' and x.wait_on = 'slot'))
      and not exists (select 1 from notices n where n.run = x.id and n.kind = 'start_overdue') order by x.id limit $4`,
)
/** Of a page of active runs, those that nobody has claimed so long after they could have been, and nobody was told of. */
export const overdueStarts = (
  after: string,
  page: number,
  ms: number,
  most: number,
): Statement<OverdueRow> => statement(overdue, after, page, ms, most)

const pageEnd = sql<{ n: number; last: string | null }>(
  'runs.active_page',
  `select count(*) as n, max(x.id) as last from (select r.id from runs r where r.ended_at is null and r.id > $1 order by r.id limit $2) x`,
)
/** How many active runs a page after this id has, and where it ends. */
export const activePage = (
  after: string,
  page: number,
): Statement<{ n: number; last: string | null }> => statement(pageEnd, after, page)

const payload = sql<{
  id: string
  input: string | null
  output: string | null
  error: string | null
  state: string | null
  status: RunStatus
  reason: string | null
  note: string | null
}>(
  'runs.payload',
  `select r.id, r.input, r.output, r.error, r.state, r.status, r.reason, r.note from {rows $1 as b: run text} join runs r on r.id = b.run`,
)
export const payloadsOf = (
  runs: readonly string[],
): Statement<{
  id: string
  input: string | null
  output: string | null
  error: string | null
  state: string | null
  status: RunStatus
  reason: string | null
  note: string | null
}> =>
  forEach(
    payload,
    runs.map((run) => ({ run })),
  )

const UNTOLD = `where w.kind = 'child' and w.state = 'open' and r.ended_at is not null and coalesce(r.reason, '') <> 'continued'
      and not exists (select 1 from orders o where o.id = 'child:' || r.id)`
const untold = sql<{ id: string; parent: string; parent_key: string }>(
  'runs.untold_parents',
  `select x.id, x.parent, x.parent_key from (
     select r.id, w.run as parent, w.key as parent_key from waits w join runs r on r.id = w.name ${UNTOLD}
     union select r.id, w.run, w.key from waits w join runs r on r.series = w.name and r.series <> r.id ${UNTOLD}) x order by x.id limit $1`,
)
/** Ended children, or the last runs that continued them, whose parent’s wait is still open and to whom no order is on its way. */
export const untoldParents = (
  most: number,
): Statement<{ id: string; parent: string; parent_key: string }> => statement(untold, most)

const orphanChildren = sql<{ id: string }>(
  'runs.orphan_children',
  `select r.id from runs r join runs p on p.id = r.parent
    where r.ended_at is null and r.depth > 0 and r.on_parent_end = 'cancel' and p.ended_at is not null
      and not exists (select 1 from runs s where s.series = p.series and s.series <> s.id and s.ended_at is null)
      and r.status <> 'canceling' and not exists (select 1 from orders o where o.id = 'cancel:' || r.id) order by r.parent limit $1`,
)
/** Active children, bound to end with their parent, of parents that have ended. */
export const strandedChildren = (most: number): Statement<{ id: string }> =>
  statement(orphanChildren, most)

const extras = sql<{ id: string }>(
  'runs.extras',
  `update runs set state = case when b.has_state = 1 then b.state else runs.state end,
          progress = case when b.progress is not null then b.progress else runs.progress end
     from {rows $1 as b: id text, has_state int, state text, progress text} where runs.id = b.id returning runs.id`,
)
/** What the author shows of a run beside its journal: its state and its progress. */
export const writeExtras = (
  items: readonly {
    id: string
    has_state: number
    state: string | null
    progress: string | null
  }[],
): Statement<{ id: string }> => statement(extras, rows(items))

const unserved = sql<RunRow>(
  'runs.queued_in_lane',
  `select ${runColumns} from runs r where r.lane = $1 and r.status = 'queued' order by r.lane, r.rank, r.id limit $2 {lock r skip}`,
)
export const queuedInLane = (lane: string, most: number): Statement<RunRow> =>
  statement(unserved, lane, most)

const parked = sql<RunRow>(
  'runs.parked_in_lane',
  `select ${runColumns} from runs r where r.status = 'waiting' and r.wait_on = 'slot' and r.reason = 'no_executor' and r.lane = $1 order by r.rank limit $2 {lock r skip}`,
)
export const parkedInLane = (lane: string, most: number): Statement<RunRow> =>
  statement(parked, lane, most)

const lanesWaiting = sql<{ lane: string; status: string }>(
  'runs.lanes_waiting',
  // as a value the look ends at the first run of a lane; as a condition PostgreSQL makes a join of it that reads them all
  `select l.lane, 'queued' as status from lanes l where (select 1 from runs r where r.lane = l.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 1) is not null
   union all select distinct r.lane, 'parked' from runs r where r.status = 'waiting' and r.wait_on = 'slot' and r.reason = 'no_executor'`,
)
export const lanesWithWork = (): Statement<{ lane: string; status: string }> =>
  statement(lanesWaiting)

const inSeries = sql<{ id: string; status: RunStatus }>(
  'runs.current_of_series',
  `select r.id, r.status from runs r where (r.id = $1 or r.series = $1) and r.ended_at is null order by r.id desc limit 1`,
)
/** The active run of a series, by the series’ first id. */
export const currentOfSeries = (series: string): Statement<{ id: string; status: RunStatus }> =>
  statement(inSeries, series)

const adopt = sql<{ id: string }>(
  'runs.adopt_children',
  `update runs set parent = $2, parent_key = case when parent_key like '%!%@%' escape '!' then parent_key else parent_key || '%@' || $1 end
    where parent = $1 and ended_at is null returning id`,
)
/**
 * Children belong to the series: when a run is continued, its successor is their parent. Their keys name the run that
 * started them, once, so that the successor may use the same key for a child of its own; in a key as its author made it `%`
 * comes before two digits alone.
 */
export const adoptChildren = (from: string, to: string): Statement<{ id: string }> =>
  statement(adopt, from, to)
