// A run's row and the run that the model decides about, each made from the other; and how rows are read and locked.
import { readOr, storedTexts } from '../../kernel/stored.ts'
import type { Run, RunStatus, WaitOn } from '../../model/run.ts'
import type { Statement, Values } from '../sql.ts'
import { forEach, rows, sql, statement } from '../sql.ts'

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
