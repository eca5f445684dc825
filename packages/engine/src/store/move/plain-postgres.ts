// PostgreSQL's twins of the plain writes (ADR 22): a writing statement there can read what another of the same text returned,
// so that each is one statement and one round trip. Guards and assignments are those of their portable twins in ./plain.ts.
import type { PlainEnd, PlainWrite, Progressed } from './plain.ts'
import { COMPLETED, ENDS_PLAINLY, PLAIN_ROW, PROGRESSED } from './plain.ts'
import type { Statement } from '../sql.ts'
import { forEach, rows, sql } from '../sql.ts'
import type { StepRow } from '../tables/journal.ts'

// a look into one object for each entry: joined, two batches would be compared each with each
const REV = '((select jsonb_object_agg(up.id, up.rev) from up) ->> s.run)'
const STORED = `insert into steps (run, key, n, kind, attempt, rev, at, output, error)
     select s.run, s.key, s.n, s.kind, s.attempt, ${REV}::bigint, s.at, s.output, s.error
       from {rows $4 as s: run text, attempt int, key text, n int, kind text, at bigint, output text, error text}
      where ${REV} is not null`

const progressWhole = sql<Progressed>(
  'runs.progress_whole',
  `with held as materialized (
     select r.id, b.entries, b.bytes from {rows $1 as b: run text, attempt int, session text, before int, entries int, bytes bigint}
       join runs r on r.id = b.run and coalesce(${PLAIN_ROW}, false) order by r.id {lock r skip}),
   up as (
     update runs set ${PROGRESSED}
       from held where runs.id = held.id returning runs.id, runs.rev, runs.note),
   stored as (${STORED})
   select id, rev, note from up`,
)
const completeWhole = sql<PlainEnd>(
  'runs.complete_whole',
  `with held as materialized (
     select r.id, r.attempt, r.session, r.leased_at, r.rev, b.before, b.entries, b.bytes, b.output from {rows $1 as b: run text, attempt int, session text, before int, entries int, bytes bigint, output text}
       join runs r on r.id = b.run and coalesce(${PLAIN_ROW} and ${ENDS_PLAINLY}, false) order by r.id {lock r skip}),
   up as (
     update runs set ${COMPLETED.replaceAll('b.', 'held.')}
       from held where runs.id = held.id returning runs.id, runs.rev, runs.limit_owner, runs.limit_global, runs.limit_a, runs.limit_b, runs.units_a, runs.units_b),
   stored as (${STORED}),
   ended as (
     insert into attempts (run, attempt, session, leased_at, ended_at, "end", rev)
     select held.id, held.attempt, held.session, held.leased_at, {now}, 'completed', held.rev + 1 from held)
   select id, rev, limit_owner, limit_global, limit_a, limit_b, units_a, units_b from up`,
)
/** Checkpoints with their entries; returns the runs that were as they must be. */
export const progressAtOnce = (
  items: readonly PlainWrite[],
  steps: readonly StepRow[],
  entriesMax: number,
  journalMax: number,
): Statement<Progressed> => forEach(progressWhole, items, entriesMax, journalMax, rows(steps))
/** Completions with their entries and attempts; returns the runs that were as they must be. */
export const completeAtOnce = (
  items: readonly PlainWrite[],
  steps: readonly StepRow[],
  entriesMax: number,
  journalMax: number,
): Statement<PlainEnd> => forEach(completeWhole, items, entriesMax, journalMax, rows(steps))
