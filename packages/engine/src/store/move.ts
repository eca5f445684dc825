// The one place that writes a run's state columns. A transition locks its runs, decides with pure functions of the
// model, and writes whole states here, each guarded by the `rev` that it read: a row that moved meanwhile is not written.
import { readOr, storedTexts } from '../kernel/stored.ts'
import type { Run, RunStatus, WaitOn } from '../model/run.ts'
import type { Statement, Values } from './sql.ts'
import { forEach, rows, sql, statement } from './sql.ts'

/** A run's state columns as the database names them. */
export interface RunRow {
  readonly id: string
  readonly workflow: string
  readonly version: string
  readonly queue: string
  readonly labels: string
  readonly lane: string
  readonly priority: number
  readonly tag: number
  readonly rank: number
  readonly owner: string
  readonly key: string | null
  readonly status: string
  readonly wait_on: string | null
  readonly reason: string | null
  readonly note: string | null
  readonly attempt: number
  readonly session: string | null
  readonly claim: number | null
  readonly leased_at: number | null
  readonly entries: number
  readonly journal_bytes: number
  readonly rev: number
  readonly created_at: number
  readonly ready_at: number | null
  readonly progress_at: number | null
  readonly ended_at: number | null
  readonly deadline: number | null
  readonly attempt_limit_ms: number | null
  readonly attempt_deadline: number | null
  readonly start_by: number | null
  readonly cancel_requested_at: number | null
  readonly cancel_by: string | null
  readonly pause_requested_at: number | null
  readonly pause_by: string | null
  readonly losses: number
  readonly suspect_since: number | null
  readonly hand_backs: number
  readonly failures: number
  readonly resumed: number
  readonly parent: string | null
  readonly parent_key: string | null
  readonly awaited: number
  readonly on_parent_end: string
  readonly depth: number
  readonly root: string
  readonly children: number
  readonly waits: number
  readonly retry_of: string | null
  readonly series: string
  readonly on_end: string | null
  readonly on_end_of: string | null
  readonly limit_owner: string | null
  readonly limit_global: string | null
  readonly limit_a: string | null
  readonly limit_b: string | null
  readonly limit_modes: string
  readonly units_a: number
  readonly units_b: number
}

export const runOf = (row: RunRow): Run => ({
  id: row.id,
  workflow: row.workflow,
  version: row.version,
  queue: row.queue,
  labels: labelsOf(row),
  lane: row.lane,
  priority: row.priority,
  tag: row.tag,
  rank: row.rank,
  owner: row.owner,
  key: row.key,
  status: row.status as RunStatus,
  waitOn: row.wait_on as WaitOn | null,
  reason: row.reason,
  note: row.note,
  attempt: row.attempt,
  session: row.session,
  claim: row.claim,
  leasedAt: row.leased_at,
  entries: row.entries,
  journalBytes: row.journal_bytes,
  rev: row.rev,
  createdAt: row.created_at,
  readyAt: row.ready_at,
  progressAt: row.progress_at,
  endedAt: row.ended_at,
  deadline: row.deadline,
  attemptLimitMs: row.attempt_limit_ms,
  attemptDeadline: row.attempt_deadline,
  startBy: row.start_by,
  cancelRequestedAt: row.cancel_requested_at,
  cancelBy: row.cancel_by,
  pauseRequestedAt: row.pause_requested_at,
  pauseBy: row.pause_by,
  losses: row.losses,
  suspectSince: row.suspect_since,
  handBacks: row.hand_backs,
  failures: row.failures,
  resumed: row.resumed,
  parent: row.parent,
  parentKey: row.parent_key,
  awaited: row.awaited,
  onParentEnd: row.on_parent_end as Run['onParentEnd'],
  depth: row.depth,
  root: row.root,
  children: row.children,
  waits: row.waits,
  retryOf: row.retry_of,
  series: row.series,
  onEnd: row.on_end,
  onEndOf: row.on_end_of,
  limitOwner: row.limit_owner,
  limitGlobal: row.limit_global,
  limitA: row.limit_a,
  limitB: row.limit_b,
  limitModes: row.limit_modes as Run['limitModes'],
  unitsA: row.units_a,
  unitsB: row.units_b,
})

const NONE: readonly string[] = []

/** A run's lane decides who is given it; labels that somebody broke in the database are not shown, and stop nothing. */
const labelsOf = (row: RunRow): readonly string[] =>
  readOr(
    () => (row.labels === '[]' ? NONE : storedTexts(row.labels, `the labels of ${row.id}`)),
    () => NONE,
  )

const rowOf = (run: Run): Omit<RunRow, ImmutableColumn> & { readonly id: string } => ({
  id: run.id,
  version: run.version,
  lane: run.lane,
  priority: run.priority,
  tag: run.tag,
  rank: run.rank,
  status: run.status,
  wait_on: run.waitOn,
  reason: run.reason,
  note: run.note,
  attempt: run.attempt,
  session: run.session,
  claim: run.claim,
  leased_at: run.leasedAt,
  entries: run.entries,
  journal_bytes: run.journalBytes,
  rev: run.rev,
  ready_at: run.readyAt,
  progress_at: run.progressAt,
  ended_at: run.endedAt,
  attempt_deadline: run.attemptDeadline,
  cancel_requested_at: run.cancelRequestedAt,
  cancel_by: run.cancelBy,
  pause_requested_at: run.pauseRequestedAt,
  pause_by: run.pauseBy,
  losses: run.losses,
  suspect_since: run.suspectSince,
  hand_backs: run.handBacks,
  failures: run.failures,
  resumed: run.resumed,
  parent: run.parent,
  parent_key: run.parentKey,
  children: run.children,
  waits: run.waits,
  limit_owner: run.limitOwner,
  limit_global: run.limitGlobal,
  limit_a: run.limitA,
  limit_b: run.limitB,
  limit_modes: run.limitModes,
})

type ImmutableColumn =
  | 'id'
  | 'workflow'
  | 'queue'
  | 'labels'
  | 'owner'
  | 'key'
  | 'created_at'
  | 'deadline'
  | 'attempt_limit_ms'
  | 'start_by'
  | 'awaited'
  | 'on_parent_end'
  | 'depth'
  | 'root'
  | 'retry_of'
  | 'series'
  | 'on_end'
  | 'on_end_of'
  | 'units_a'
  | 'units_b'

/** Every state column of the row alias `r`, for the statements that read whole runs. */
export const runColumns =
  'r.id, r.workflow, r.version, r.queue, r.labels, r.lane, r.priority, r.tag, r.rank, r.owner, r.key, r.status, r.wait_on, r.reason, r.note, r.attempt, r.session, r.claim, r.leased_at, r.entries, r.journal_bytes, r.rev, r.created_at, r.ready_at, r.progress_at, r.ended_at, r.deadline, r.attempt_limit_ms, r.attempt_deadline, r.start_by, r.cancel_requested_at, r.cancel_by, r.pause_requested_at, r.pause_by, r.losses, r.suspect_since, r.hand_backs, r.failures, r.resumed, r.parent, r.parent_key, r.awaited, r.on_parent_end, r.depth, r.root, r.children, r.waits, r.retry_of, r.series, r.on_end, r.on_end_of, r.limit_owner, r.limit_global, r.limit_a, r.limit_b, r.limit_modes, r.units_a, r.units_b'

/** A row of `runColumns`. */
const runRowOf = (v: Values): RunRow => ({
  id: v[0] as string,
  workflow: v[1] as string,
  version: v[2] as string,
  queue: v[3] as string,
  labels: v[4] as string,
  lane: v[5] as string,
  priority: v[6] as number,
  tag: v[7] as number,
  rank: v[8] as number,
  owner: v[9] as string,
  key: v[10] as string | null,
  status: v[11] as string,
  wait_on: v[12] as string | null,
  reason: v[13] as string | null,
  note: v[14] as string | null,
  attempt: v[15] as number,
  session: v[16] as string | null,
  claim: v[17] as number | null,
  leased_at: v[18] as number | null,
  entries: v[19] as number,
  journal_bytes: v[20] as number,
  rev: v[21] as number,
  created_at: v[22] as number,
  ready_at: v[23] as number | null,
  progress_at: v[24] as number | null,
  ended_at: v[25] as number | null,
  deadline: v[26] as number | null,
  attempt_limit_ms: v[27] as number | null,
  attempt_deadline: v[28] as number | null,
  start_by: v[29] as number | null,
  cancel_requested_at: v[30] as number | null,
  cancel_by: v[31] as string | null,
  pause_requested_at: v[32] as number | null,
  pause_by: v[33] as string | null,
  losses: v[34] as number,
  suspect_since: v[35] as number | null,
  hand_backs: v[36] as number,
  failures: v[37] as number,
  resumed: v[38] as number,
  parent: v[39] as string | null,
  parent_key: v[40] as string | null,
  awaited: v[41] as number,
  on_parent_end: v[42] as string,
  depth: v[43] as number,
  root: v[44] as string,
  children: v[45] as number,
  waits: v[46] as number,
  retry_of: v[47] as string | null,
  series: v[48] as string,
  on_end: v[49] as string | null,
  on_end_of: v[50] as string | null,
  limit_owner: v[51] as string | null,
  limit_global: v[52] as string | null,
  limit_a: v[53] as string | null,
  limit_b: v[54] as string | null,
  limit_modes: v[55] as string,
  units_a: v[56] as number,
  units_b: v[57] as number,
})

/** Locks these runs in the order of their ids; one that another transaction has locked is left out. */
const lockSkipping = sql<RunRow>(
  'runs.lock_skipping',
  `select ${runColumns} from {rows $1 as b: run text} join runs r on r.id = b.run order by r.id {lock r skip}`,
  runRowOf,
)
/** As above, but waits for the lock. */
const lockWaiting = sql<RunRow>(
  'runs.lock',
  `select ${runColumns} from {rows $1 as b: run text} join runs r on r.id = b.run order by r.id {lock r}`,
  runRowOf,
)

const byId = sql<RunRow>(
  'runs.by_id',
  `select ${runColumns} from {rows $1 as b: run text} join runs r on r.id = b.run order by r.id`,
  runRowOf,
)
/** These runs as they are, to look at. */
export const readRuns = (ids: readonly string[]): Statement<RunRow> =>
  statement(byId, rows(ids.map((run) => ({ run }))))

export const lockRuns = (
  ids: Iterable<string>,
  busy: 'skip' | 'wait' = 'wait',
): Statement<RunRow> =>
  forEach(
    busy === 'skip' ? lockSkipping : lockWaiting,
    [...new Set(ids)].map((run) => ({ run })),
  )

const write = sql<{ id: string }>(
  'runs.write',
  `update runs set version = b.version, lane = b.lane, priority = b.priority, tag = b.tag, rank = b.rank, status = b.status, wait_on = b.wait_on, reason = b.reason, note = b.note, attempt = b.attempt, session = b.session, claim = b.claim, leased_at = b.leased_at, entries = b.entries, journal_bytes = b.journal_bytes, rev = b.rev, ready_at = b.ready_at, progress_at = b.progress_at, ended_at = b.ended_at, attempt_deadline = b.attempt_deadline, cancel_requested_at = b.cancel_requested_at, cancel_by = b.cancel_by, pause_requested_at = b.pause_requested_at, pause_by = b.pause_by, losses = b.losses, suspect_since = b.suspect_since, hand_backs = b.hand_backs, failures = b.failures, resumed = b.resumed, parent = b.parent, parent_key = b.parent_key, children = b.children, waits = b.waits, limit_owner = b.limit_owner, limit_global = b.limit_global, limit_a = b.limit_a, limit_b = b.limit_b, limit_modes = b.limit_modes
     from {rows $1 as b: id text, version text, lane text, priority int, tag double precision, rank double precision, status text, wait_on text, reason text, note text, attempt int, session text, claim int, leased_at bigint, entries int, journal_bytes bigint, rev bigint, ready_at bigint, progress_at bigint, ended_at bigint, attempt_deadline bigint, cancel_requested_at bigint, cancel_by text, pause_requested_at bigint, pause_by text, losses int, suspect_since bigint, hand_backs int, failures int, resumed int, parent text, parent_key text, children int, waits int, limit_owner text, limit_global text, limit_a text, limit_b text, limit_modes text}
    where runs.id = b.id and runs.rev = b.rev - 1 returning runs.id`,
)

/** Writes these runs as they are after exactly one move each; returns the ids written. */
export const writeRuns = (runs: readonly Run[]): Statement<{ id: string }> =>
  forEach(write, runs.map(rowOf))

const progress = sql<{ id: string }>(
  'runs.progress',
  `update runs set rev = b.rev, entries = b.entries, journal_bytes = b.journal_bytes, progress_at = b.progress_at, losses = b.losses,
          suspect_since = b.suspect_since, hand_backs = b.hand_backs, children = b.children, waits = b.waits
     from {rows $1 as b: id text, rev bigint, entries int, journal_bytes bigint, progress_at bigint, losses int, suspect_since bigint, hand_backs int, children int,
           waits int}
    where runs.id = b.id and runs.rev = b.rev - 1 returning runs.id`,
)

/** A checkpoint's write: new entries, and nothing that the status depends on. */
export const writeProgress = (runs: readonly Run[]): Statement<{ id: string }> =>
  forEach(
    progress,
    runs.map((run) => ({
      id: run.id,
      rev: run.rev,
      entries: run.entries,
      journal_bytes: run.journalBytes,
      progress_at: run.progressAt,
      losses: run.losses,
      suspect_since: run.suspectSince,
      hand_backs: run.handBacks,
      children: run.children,
      waits: run.waits,
    })),
  )

const admitted = sql<{ id: string }>(
  'runs.admit',
  `update runs set rev = b.rev, rank = b.rank, status = 'queued', wait_on = null, ready_at = null, reason = null, note = null
     from {rows $1 as b: id text, rev bigint, rank double precision} where runs.id = b.id and runs.rev = b.rev - 1 returning runs.id`,
)

/** Runs that come from their line into the queue: nothing else of them changes. */
export const writeAdmitted = (runs: readonly Run[]): Statement<{ id: string }> =>
  forEach(
    admitted,
    runs.map(({ id, rev, rank }) => ({ id, rev, rank })),
  )

const ends = sql<{ id: string }>(
  'runs.end',
  `update runs set rev = b.rev, status = b.status, reason = b.reason, note = b.note, entries = b.entries, journal_bytes = b.journal_bytes,
          progress_at = b.progress_at, ended_at = b.ended_at, failures = b.failures, losses = b.losses, hand_backs = b.hand_backs, output = b.output, error = b.error, session = null, claim = null,
          leased_at = null, attempt_deadline = null, wait_on = null, ready_at = null, pause_requested_at = null, suspect_since = null, resumed = 1,
          children = b.children, waits = b.waits
     from {rows $1 as b: id text, rev bigint, status text, reason text, note text, entries int, journal_bytes bigint, progress_at bigint, ended_at bigint,
           failures int, losses int, hand_backs int, output text, error text, children int, waits int}
    where runs.id = b.id and runs.rev = b.rev - 1 returning runs.id`,
)

/** The terminal write: status, result and the end of the holding, once. */
export const writeEnds = (
  ended: readonly { run: Run; output: string | null; error: string | null }[],
): Statement<{ id: string }> =>
  forEach(
    ends,
    ended.map(({ run, output, error }) => ({
      id: run.id,
      rev: run.rev,
      status: run.status,
      reason: run.reason,
      note: run.note,
      entries: run.entries,
      journal_bytes: run.journalBytes,
      progress_at: run.progressAt,
      ended_at: run.endedAt,
      failures: run.failures,
      losses: run.losses,
      hand_backs: run.handBacks,
      output,
      error,
      children: run.children,
      waits: run.waits,
    })),
  )

/** What a claim gives its session for each run. */
export interface ClaimRow {
  readonly id: string
  readonly workflow: string
  readonly version: string
  readonly attempt: number
  readonly leased_at: number
  readonly entries: number
  readonly waits: number
  readonly rank: number
  readonly tag: number
  readonly input: string | null
  readonly created_at: number
  readonly deadline: number | null
  readonly attempt_deadline: number | null
  readonly failures: number
  readonly owner: string
  readonly rev: number
}

const CLAIMED = `runs.id, runs.workflow, runs.version, runs.attempt, runs.leased_at, runs.entries, runs.waits, runs.rank, runs.tag, runs.input, runs.created_at,
      runs.deadline, runs.attempt_deadline, runs.failures, runs.owner, runs.rev`
/** A row of `CLAIMED`. */
const claimRowOf = (v: Values): ClaimRow => ({
  id: v[0] as string,
  workflow: v[1] as string,
  version: v[2] as string,
  attempt: v[3] as number,
  leased_at: v[4] as number,
  entries: v[5] as number,
  waits: v[6] as number,
  rank: v[7] as number,
  tag: v[8] as number,
  input: v[9] as string | null,
  created_at: v[10] as number,
  deadline: v[11] as number | null,
  attempt_deadline: v[12] as number | null,
  failures: v[13] as number,
  owner: v[14] as string,
  rev: v[15] as number,
})
const TAKE = `status = 'running', attempt = runs.attempt + 1, session = $1, claim = $2, leased_at = {now}, rev = runs.rev + 1,
      reason = null, note = null, attempt_deadline = {now} + runs.attempt_limit_ms`
/** How long a suspect run may be due before sessions empty themselves for it. */
const SUSPECT_DUE_MS = 60_000

/** The lane is not paused. */
const notPaused = (
  lane: string,
): string => `not exists (select 1 from pauses p join lanes l on l.lane = ${lane}
          where (p.until is null or p.until > {now}) and ((p.kind = 'queue' and p.name = l.queue) or (p.kind = 'workflow' and p.name = l.workflow)))`
/** The session is live and this claim is its newest. */
const NEWEST = `exists (select 1 from sessions s where s.id = $1 and s.claim_no = $2 and s.state = 'live')`
/** As it will be when the claim is made. */
const NEXT = `exists (select 1 from sessions s where s.id = $1 and s.claim_no < $2 and s.state = 'live')`
const MAY = `${NEWEST}
      and ${notPaused('$3')}`

// a status that a planner cannot read leads it to the few suspects instead of through all that is queued
const ofLane = (
  may: string,
): string => `r.lane = $3 and r.status = 'queued' and (r.rank, r.id) >= ($4, $5) and r.suspect_since is null and ${may}
        and not exists (select 1 from runs h where h.session = $1 and h.suspect_since is not null)
        and not exists (select 1 from runs w where w.suspect_since < {now} - $7 and coalesce(w.status, '') = 'queued' and w.lane in (select x.lane from {rows $9 as x: lane text}))
        and r.id not in (select x.run from {rows $8 as x: run text})
      order by r.lane, r.rank, r.id`

const claimLane = sql<ClaimRow>(
  'runs.claim',
  `with pick as materialized (
     select r.id from runs r
      where ${ofLane(MAY)}
      limit (select case when c.n < $6 then $6 - c.n else 0 end from (select count(*) as n from runs h where h.session = $1 and h.claim = $2) c) {lock r skip})
   update runs set ${TAKE} from pick where runs.id = pick.id returning ${CLAIMED}`,
  claimRowOf,
)

/** A run that was lost twice in a row goes only to a session that holds nothing else, alone (RUN-12). */
const suspectOfLane = (
  may: string,
): string => `r.lane = $3 and r.suspect_since is not null and coalesce(r.status, '') = 'queued' and ${may}
        and not exists (select 1 from runs h where h.session = $1)
        and r.id not in (select x.run from {rows $4 as x: run text})
      order by r.suspect_since limit 1`

const claimSuspect = sql<ClaimRow>(
  'runs.claim_suspect',
  `with pick as materialized (
     select r.id from runs r
      where ${suspectOfLane(MAY)} {lock r skip})
   update runs set ${TAKE} from pick where runs.id = pick.id returning ${CLAIMED}`,
  claimRowOf,
)

/** What a claim would be given, to be offered. */
export interface OfferRow {
  readonly id: string
  readonly lane: string
  readonly rank: number
  readonly tag: number
}
const offerLane = sql<OfferRow>(
  'runs.offer',
  `select r.id, r.lane, r.rank, r.tag from runs r where ${ofLane(`${NEXT} and ${notPaused('$3')}`)} limit $6`,
)
const offerSuspect = sql<OfferRow>(
  'runs.offer_suspect',
  `select r.id, r.lane, r.rank, r.tag from runs r where ${suspectOfLane(`${NEXT} and ${notPaused('$3')}`)}`,
)

/** Exactly these, by the rules of a claim from lanes: a suspect one alone, and only to a session that holds nothing. */
const claimNamed = sql<ClaimRow>(
  'runs.claim_named',
  `with pick as materialized (
     select r.id from {rows $3 as x: run text} join runs r on r.id = x.run
      where coalesce(r.status, '') = 'queued' and r.lane in (select o.lane from {rows $4 as o: lane text})
        and ${NEWEST}
        and ${notPaused('r.lane')}
        and (r.suspect_since is null or $5 = 1)
        and not exists (select 1 from runs h where h.session = $1 and (h.suspect_since is not null or r.suspect_since is not null))
        and (r.suspect_since is not null
          or not exists (select 1 from runs w where w.suspect_since < {now} - $6 and coalesce(w.status, '') = 'queued' and w.lane in (select v.lane from {rows $7 as v: lane text})))
        and r.id not in (select e.run from {rows $8 as e: run text})
      order by r.id limit $9 {lock r skip})
   update runs set ${TAKE} from pick where runs.id = pick.id returning ${CLAIMED}`,
  claimRowOf,
)

const adopt = sql<ClaimRow>(
  'runs.adopt',
  `update runs set session = $4, claim = $5, rev = runs.rev + 1
    where runs.id = $1 and runs.attempt = $2 and coalesce(runs.session, '') = $3 and coalesce(runs.status, '') = 'running' returning ${CLAIMED}`,
  claimRowOf,
)
/** Moves a running attempt from one session to another, under a claim of that one. */
export const adoptRun = (
  { run, attempt, from, session }: Adoption,
  claim: number,
): Statement<ClaimRow> => statement(adopt, run, attempt, from, session, claim)

const claimAgain = sql<ClaimRow>(
  'runs.claim_again',
  `select ${CLAIMED} from runs where runs.session = $1 and runs.claim = $2 order by runs.id`,
  claimRowOf,
)

/** An attempt, the session that holds it, and the one that is to. */
export interface Adoption {
  readonly run: string
  readonly attempt: number
  readonly from: string
  readonly session: string
}

export interface LaneClaim {
  readonly session: string
  readonly claim: number
  readonly lane: string
  /** Where the scan starts: the lowest (rank, id) that may still be queued. */
  readonly from: { readonly rank: number; readonly id: string }
  /** Runs in all that the claim may hold, over all its lanes. */
  readonly most: number
  /** Every lane that the session serves: a suspect run that is due too long in one of them empties the session. */
  readonly serves: readonly string[]
  readonly except: readonly string[]
}

const suspectValues = ({ session, claim, lane, except }: LaneClaim) =>
  [session, claim, lane, rows(except.map((run) => ({ run })))] as const
const laneValues = ({ session, claim, lane, from, most, except, serves }: LaneClaim) =>
  [
    session,
    claim,
    lane,
    from.rank,
    from.id,
    most,
    SUSPECT_DUE_MS,
    rows(except.map((run) => ({ run }))),
    rows(serves.map((each) => ({ lane: each }))),
  ] as const

export const claimStatements = (claim: LaneClaim): [Statement<ClaimRow>, Statement<ClaimRow>] => [
  statement(claimSuspect, ...suspectValues(claim)),
  statement(claimLane, ...laneValues(claim)),
]

/** What such a claim would be given now; nothing is locked or written. */
export const offerStatements = (claim: LaneClaim): [Statement<OfferRow>, Statement<OfferRow>] => [
  statement(offerSuspect, ...suspectValues(claim)),
  statement(offerLane, ...laneValues(claim)),
]

export interface NamedClaim extends Omit<LaneClaim, 'lane' | 'from'> {
  readonly runs: readonly string[]
  /** Lanes from which it may take. */
  readonly open: readonly string[]
}

/** Takes those of these runs that may still be had. */
export const claimNamedRuns = (claim: NamedClaim): Statement<ClaimRow> => {
  const runs = [...new Set(claim.runs)]
  return statement(
    claimNamed,
    claim.session,
    claim.claim,
    rows(runs.map((run) => ({ run }))),
    rows(claim.open.map((lane) => ({ lane }))),
    runs.length,
    SUSPECT_DUE_MS,
    rows(claim.serves.map((lane) => ({ lane }))),
    rows(claim.except.map((run) => ({ run }))),
    claim.most,
  )
}

/** What this claim still holds: the answer to a second copy of it. */
export const heldUnderClaim = (session: string, claim: number): Statement<ClaimRow> =>
  statement(claimAgain, session, claim)

/**
 * A plain write is one that its own content and a row with nothing special about it decide alike: it is checked and
 * stored in one round trip, without reading the row first. What it does is what the model does to such a row.
 */
export interface PlainWrite {
  readonly run: string
  readonly attempt: number
  readonly session: string
  /** Entries that were recorded before it, and with it. */
  readonly before: number
  readonly entries: number
  readonly bytes: number
  readonly output: string | null
}
export interface Progressed {
  readonly id: string
  readonly rev: number
  readonly note: string | null
}
export interface PlainEnd {
  readonly id: string
  readonly rev: number
  readonly limit_owner: string | null
  readonly limit_global: string | null
  readonly limit_a: string | null
  readonly limit_b: string | null
  readonly units_a: number
  readonly units_b: number
}
export const PLAIN_ROW = `r.attempt = b.attempt and r.session = b.session and r.status = 'running' and r.pause_requested_at is null
       and (b.before < 0 or r.entries = b.before) and b.entries <= $2 and r.journal_bytes + b.bytes <= $3`
export const ENDS_PLAINLY = 'r.waits = 0 and r.children = 0 and (r.parent is null or r.awaited = 0)'
export const PROGRESSED = `rev = runs.rev + 1, entries = held.entries, journal_bytes = runs.journal_bytes + held.bytes, progress_at = {now},
          losses = 0, suspect_since = null, hand_backs = 0`
export const COMPLETED = `rev = runs.rev + 1, status = 'succeeded', reason = null, note = null, entries = case when b.before < 0 then runs.entries else b.entries end, journal_bytes = runs.journal_bytes + b.bytes,
          progress_at = case when b.entries > b.before then {now} else runs.progress_at end, losses = case when b.entries > b.before then 0 else runs.losses end,
          hand_backs = case when b.entries > b.before then 0 else runs.hand_backs end, ended_at = {now}, output = b.output, session = null, claim = null,
          leased_at = null, attempt_deadline = null, suspect_since = null, resumed = 1`

const progressPlainly = sql<Progressed>(
  'runs.progress_plainly',
  `with held as materialized (
     select r.id, b.entries, b.bytes from {rows $1 as b: run text, attempt int, session text, before int, entries int, bytes bigint}
       join runs r on r.id = b.run and coalesce(${PLAIN_ROW}, false) order by r.id {lock r skip})
   update runs set ${PROGRESSED}
     from held where runs.id = held.id returning runs.id, runs.rev, runs.note`,
)
/** Checkpoints; returns the runs that were as they must be. */
export const progressPlain = (
  items: readonly PlainWrite[],
  entriesMax: number,
  journalMax: number,
): Statement<Progressed> => forEach(progressPlainly, items, entriesMax, journalMax)

const endPlainly = sql<{ run: string }>(
  'attempts.complete_plainly',
  `with held as materialized (
     select r.id, r.attempt, r.session, r.leased_at, r.rev from {rows $1 as b: run text, attempt int, session text, before int, entries int, bytes bigint}
       join runs r on r.id = b.run and coalesce(${PLAIN_ROW} and ${ENDS_PLAINLY}, false)
      order by r.id {lock r skip})
   insert into attempts (run, attempt, session, leased_at, ended_at, "end", rev)
   select held.id, held.attempt, held.session, held.leased_at, {now}, 'completed', held.rev + 1 from held where true on conflict do nothing returning run`,
)
const completePlainly = sql<PlainEnd>(
  'runs.complete_plainly',
  `update runs set ${COMPLETED}
     from {rows $1 as b: run text, attempt int, session text, before int, entries int, bytes bigint, output text}
    where runs.id = b.run and coalesce(runs.attempt = b.attempt and runs.session = b.session, false)
      and exists (select 1 from attempts a where a.run = b.run and a.attempt = b.attempt)
    returning runs.id, runs.rev, runs.limit_owner, runs.limit_global, runs.limit_a, runs.limit_b, runs.units_a, runs.units_b`,
)
/** Completions: their attempts, then (with the entries between them) their runs. */
export const endPlain = (
  items: readonly PlainWrite[],
  entriesMax: number,
  journalMax: number,
): Statement<{ run: string }> => forEach(endPlainly, items, entriesMax, journalMax)
export const completePlain = (items: readonly PlainWrite[]): Statement<PlainEnd> =>
  forEach(completePlainly, items)
