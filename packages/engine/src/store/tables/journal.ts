// The journal: recorded steps in the order in which the function received them, and the history of attempts.
import type { Statement } from '../sql.ts'
import { forEach, rows, sql, statement } from '../sql.ts'

export interface StepRow {
  readonly run: string
  readonly key: string
  readonly n: number
  readonly kind: string
  readonly attempt: number
  readonly at: number
  readonly output: string | null
  readonly error: string | null
}

const insert = sql<never>(
  'steps.insert',
  `insert into steps (run, key, n, kind, attempt, rev, at, output, error)
   select b.run, b.key, b.n, b.kind, b.attempt, b.rev, b.at, b.output, b.error
     from {rows $1 as b: run text, key text, n int, kind text, attempt int, rev bigint, at bigint, output text, error text} where true`,
)
/** Refused by a UniqueViolation where an entry has the key of an earlier one. */
export const insertSteps = (steps: readonly (StepRow & { rev: number })[]): Statement<never> =>
  forEach(insert, steps)

const beforeEnd = sql<never>(
  'steps.before_end',
  `insert into steps (run, key, n, kind, attempt, rev, at, output, error)
   select b.run, b.key, b.n, b.kind, b.attempt, r.rev + 1, b.at, b.output, b.error
     from {rows $1 as b: run text, attempt int, session text, key text, n int, kind text, at bigint, output text, error text}
     join runs r on r.id = b.run and coalesce(r.attempt = b.attempt and r.session = b.session, false)
    where exists (select 1 from attempts a where a.run = b.run and a.attempt = b.attempt)`,
)
/** The entries of completions whose attempts were stored just before. */
export const insertLastSteps = (
  steps: readonly (StepRow & { readonly session: string })[],
): Statement<never> => forEach(beforeEnd, steps)

const STEP = 's.run, s.key, s.n, s.kind, s.attempt, s.at, s.output, s.error'
const ofClaim = sql<StepRow>(
  'steps.of_claim',
  `select ${STEP} from (
     select t.*, sum(coalesce(length(t.output), 0) + coalesce(length(t.error), 0) + 100) over (order by t.run, t.n) as bytes
       from runs r join steps t on t.run = r.id where r.session = $1 and r.claim = $2 and r.entries > 0) s
    where s.bytes <= $3 order by s.run, s.n`,
)
/** The journals of a claim's runs, up to so many bytes in all; the rest is paged with `stepsAfter`. */
export const stepsOfClaim = (session: string, claim: number, bytes: number): Statement<StepRow> =>
  statement(ofClaim, session, claim, bytes)

const after = sql<StepRow>(
  'steps.after',
  `select ${STEP} from steps s where s.run = $1 and s.n > $2 order by s.n limit $3`,
)
export const stepsAfter = (run: string, n: number, most: number): Statement<StepRow> =>
  statement(after, run, n, most)

const holder = sql<{ id: string; attempt: number }>(
  'runs.held_here',
  'select r.id, r.attempt from runs r where r.id = $1 and r.session = $2',
)
/** The run, where this session holds it. */
export const heldHere = (
  run: string,
  session: string,
): Statement<{ id: string; attempt: number }> => statement(holder, run, session)

const copyFrom = sql<{ key: string }>(
  'steps.copy',
  `insert into steps (run, key, n, kind, attempt, rev, at, output, error)
   select $2, s.key, s.n, s.kind, s.attempt, 1, s.at, s.output, s.error from steps s where s.run = $1 and s.n < $3 returning key`,
)
const goOn = sql<never>(
  'runs.replay_from',
  `update runs set replay_seed = coalesce(o.replay_seed, o.id), replay_at = coalesce(o.replay_at, o.created_at)
     from runs o where runs.id = $2 and o.id = $1`,
)
/** Lets a run replay as the one would whose entries it begins with: by its chance, from its first instant on. */
export const replayFrom = (from: string, to: string): Statement<never> => statement(goOn, from, to)

/** Copies the entries before number `n` to another run. */
export const copySteps = (from: string, to: string, beforeN: number): Statement<{ key: string }> =>
  statement(copyFrom, from, to, beforeN)

const bytes = sql<{ bytes: number }>(
  'steps.bytes',
  `select coalesce(sum(coalesce(octet_length(s.output), 0) + coalesce(octet_length(s.error), 0)), 0) as bytes from steps s where s.run = $1 and s.n < $2`,
)
/** Bytes of the entries before number `n`. */
export const stepBytes = (run: string, beforeN: number): Statement<{ bytes: number }> =>
  statement(bytes, run, beforeN)

const byKey = sql<StepRow>(
  'steps.by_key',
  `select ${STEP} from steps s where s.run = $1 and s.key = $2`,
)
export const stepByKey = (run: string, key: string): Statement<StepRow> =>
  statement(byKey, run, key)

export interface AttemptRow {
  readonly run: string
  readonly attempt: number
  readonly session: string
  readonly leased_at: number
  readonly ended_at: number
  readonly end: string
  readonly reason: string | null
  readonly note: string | null
  readonly first_reason: string | null
  readonly rev: number
}
const insertAttempt = sql<{ run: string }>(
  'attempts.insert',
  `insert into attempts (run, attempt, session, leased_at, ended_at, "end", reason, note, first_reason, rev)
   select b.run, b.attempt, b.session, b.leased_at, b.ended_at, b.how, b.reason, b.note, b.first_reason, b.rev
     from {rows $1 as b: run text, attempt int, session text, leased_at bigint, ended_at bigint, how text, reason text, note text, first_reason text, rev bigint}
    where true returning run`,
)
export const insertAttempts = (attempts: readonly AttemptRow[]): Statement<{ run: string }> =>
  forEach(
    insertAttempt,
    attempts.map((each) => ({
      run: each.run,
      attempt: each.attempt,
      session: each.session,
      leased_at: each.leased_at,
      ended_at: each.ended_at,
      how: each.end,
      reason: each.reason,
      note: each.note,
      first_reason: each.first_reason,
      rev: each.rev,
    })),
  )

const ATTEMPT =
  'a.run, a.attempt, a.session, a.leased_at, a.ended_at, a."end", a.reason, a.note, a.first_reason, a.rev'
const ofRun = sql<AttemptRow>(
  'attempts.of_run',
  `select ${ATTEMPT} from attempts a where a.run = $1 order by a.attempt`,
)
export const attemptsOf = (run: string): Statement<AttemptRow> => statement(ofRun, run)

const ended = sql<AttemptRow>(
  'attempts.ended',
  `select ${ATTEMPT} from {rows $1 as b: run text, attempt int} join attempts a on a.run = b.run and a.attempt = b.attempt`,
)
/** How these attempts ended, for the repeat that is answered with the first answer. */
export const endedAttempts = (
  items: readonly { run: string; attempt: number }[],
): Statement<AttemptRow> => forEach(ended, items)

export interface EventRow {
  readonly run: string
  readonly rev: number
  readonly seq: number
  readonly at: number
  readonly kind: string
  readonly actor: string | null
  readonly data: string | null
}
const insertEvent = sql<{ run: string }>(
  'events.insert',
  `insert into events (run, rev, seq, at, kind, actor, data)
   select b.run, b.rev, b.seq, {now}, b.kind, b.actor, b.data
     from {rows $1 as b: run text, rev bigint, seq int, kind text, actor text, data text} join runs r on r.id = b.run where true on conflict do nothing returning run`,
)
/** Notes facts of runs that are stored: of a start that ran into an earlier one there is nothing to note. */
export const insertEvents = (events: readonly Omit<EventRow, 'at'>[]): Statement<{ run: string }> =>
  statement(insertEvent, rows(events))

const insertEventOnce = sql<{ run: string }>(
  'events.insert_once',
  `insert into events (run, rev, seq, at, kind, actor, data)
   select b.run, b.rev, b.seq, {now}, b.kind, b.actor, b.data
     from {rows $1 as b: run text, rev bigint, seq int, kind text, actor text, data text}
    where not exists (select 1 from events e where e.run = b.run and e.kind = b.kind and e.data = b.data)
       on conflict do nothing returning run`,
)
/** Notes what an attempt says of itself; a repeat of the same words is not noted again. */
export const insertEventsOnce = (
  events: readonly Omit<EventRow, 'at'>[],
): Statement<{ run: string }> => statement(insertEventOnce, rows(events))

const eventsAfter = sql<EventRow>(
  'events.after',
  `select e.run, e.rev, e.seq, e.at, e.kind, e.actor, e.data from events e where e.run = $1 and e.rev > $2 order by e.rev, e.seq`,
)
export const eventsOf = (run: string, afterRev = 0): Statement<EventRow> =>
  statement(eventsAfter, run, afterRev)

const continued = sql<{ data: string }>(
  'events.continued',
  `select e.data from events e where e.run = $1 and e.kind = 'run.continued'`,
)
/** What a run that was continued says of its successor. */
export const continuationOf = (run: string): Statement<{ data: string }> =>
  statement(continued, run)

const insertItems = sql<{ run: string; seq: number }>(
  'streams.insert',
  `insert into streams (run, stream, seq, data, at) select b.run, b.stream, b.seq, b.data, {now}
     from {rows $1 as b: run text, stream text, seq int, data text} where true on conflict do nothing returning run, seq`,
)
export const insertStreamItems = (
  items: readonly { run: string; stream: string; seq: number; data: string | null }[],
): Statement<{ run: string; seq: number }> => statement(insertItems, rows(items))

const itemsAfter = sql<{ seq: number; data: string | null; at: number }>(
  'streams.after',
  `select t.seq, t.data, t.at from streams t where t.run = $1 and t.stream = $2 and t.seq > $3 order by t.seq limit $4`,
)
export const streamAfter = (
  run: string,
  stream: string,
  seq: number,
  most: number,
): Statement<{ seq: number; data: string | null; at: number }> =>
  statement(itemsAfter, run, stream, seq, most)
