// Writes runs as the model has decided them, each guarded by the `rev` that was read: a row that moved meanwhile is not
// written.
import type { Run } from '../../model/run.ts'
import type { Statement } from '../sql.ts'
import { forEach, sql } from '../sql.ts'
import type { RunRow } from './run-row.ts'

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
