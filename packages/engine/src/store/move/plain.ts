// Writes that need no decision (ADR 21), checked and stored without reading the row first.
import type { Statement } from '../sql.ts'
import { forEach, sql } from '../sql.ts'

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
