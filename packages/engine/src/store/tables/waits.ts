// Waits, signals and approvals: what runs pause for, and what answers them. Read and written under the run's lock.
import type { ApprovalState } from '../../model/approval.ts'
import type { Signal, Wait } from '../../model/wait.ts'
import type { Statement } from '../sql.ts'
import { forEach, rows, sql, statement } from '../sql.ts'

export interface WaitRow {
  readonly run: string
  readonly key: string
  readonly seq: number
  readonly kind: string
  readonly name: string | null
  readonly due_at: number | null
  readonly state: string
  readonly result: string | null
  readonly tries: number
  readonly error: string | null
}
export const waitOf = (row: WaitRow): Wait => ({
  run: row.run,
  key: row.key,
  seq: row.seq,
  kind: row.kind as Wait['kind'],
  name: row.name,
  dueAt: row.due_at,
  state: row.state as Wait['state'],
  result: row.result,
  tries: row.tries,
  error: row.error,
})

const WAIT = 'w.run, w.key, w.seq, w.kind, w.name, w.due_at, w.state, w.result, w.tries, w.error'
const live = sql<WaitRow>(
  'waits.live',
  `select ${WAIT} from {rows $1 as b: run text} join waits w on w.run = b.run where w.state in ('open', 'satisfied', 'lapsed') order by w.run, w.seq`,
)
/** The waits of these runs that the function has not received yet. */
export const liveWaits = (runs: readonly string[]): Statement<WaitRow> =>
  forEach(
    live,
    runs.map((run) => ({ run })),
  )

const gone = sql<WaitRow>(
  'waits.gone',
  `select ${WAIT} from {rows $1 as b: run text, key text} join waits w on w.run = b.run and w.key = b.key where w.state in ('closed', 'taken') order by w.run, w.seq`,
)
/** Those of these waits that the function has received, or that were closed. */
export const goneWaits = (
  keys: readonly { readonly run: string; readonly key: string }[],
): Statement<WaitRow> => forEach(gone, keys)

const ofClaim = sql<WaitRow>(
  'waits.of_claim',
  `select ${WAIT} from runs r join waits w on w.run = r.id
    where r.session = $1 and r.claim = $2 and r.waits > 0 and w.state in ('open', 'satisfied', 'lapsed') order by w.run, w.seq`,
)
export const waitsOfClaim = (session: string, claim: number): Statement<WaitRow> =>
  statement(ofClaim, session, claim)

const ofRun = sql<WaitRow & { created_at: number; settled_at: number | null }>(
  'waits.of_run',
  `select ${WAIT}, w.created_at, w.settled_at from waits w where w.run = $1 order by w.seq`,
)
export const waitsOf = (
  run: string,
): Statement<WaitRow & { created_at: number; settled_at: number | null }> => statement(ofRun, run)

const put = sql<{ run: string; key: string }>(
  'waits.put',
  `insert into waits (run, key, seq, kind, name, due_at, state, result, tries, error, created_at, settled_at, rev)
   select b.run, b.key, b.seq, b.kind, b.name, b.due_at, b.state, b.result, b.tries, b.error, {now}, case when b.state = 'open' then null else {now} end, b.rev
     from {rows $1 as b: run text, key text, seq int, kind text, name text, due_at bigint, state text, result text, tries int, error text, rev bigint} where true
   on conflict (run, key) do update set due_at = excluded.due_at, state = excluded.state, result = excluded.result, tries = excluded.tries,
     error = excluded.error, settled_at = case when excluded.settled_at is null then null else coalesce(waits.settled_at, excluded.settled_at) end, rev = excluded.rev returning run, key`,
)
/** Writes these waits whole: new ones are inserted, others take their new state. */
export const putWaits = (
  waits: readonly Wait[],
  rev: (run: string) => number,
): Statement<{ run: string; key: string }> =>
  statement(
    put,
    rows(
      waits.map((wait) => ({
        run: wait.run,
        key: wait.key,
        seq: wait.seq,
        kind: wait.kind,
        name: wait.name,
        due_at: wait.dueAt,
        state: wait.state,
        result: wait.result,
        tries: wait.tries,
        error: wait.error,
        rev: rev(wait.run),
      })),
    ),
  )

const close = sql<{ run: string }>(
  'waits.close',
  `update waits set state = 'closed', settled_at = coalesce(settled_at, {now}) from {rows $1 as b: run text}
    where waits.run = b.run and waits.state in ('open', 'satisfied', 'lapsed') returning waits.run`,
)
/** Closes whatever these runs still wait on: they have ended. */
export const closeWaits = (runs: readonly string[]): Statement<{ run: string }> =>
  statement(close, rows(runs.map((run) => ({ run }))))

export interface SignalRow {
  readonly run: string
  readonly id: string
  readonly seq: number
  readonly name: string
  readonly payload: string | null
  readonly taken_by: string | null
  readonly bytes: number
}
export const signalOf = (row: SignalRow): Signal => ({
  run: row.run,
  id: row.id,
  seq: row.seq,
  name: row.name,
  payload: row.payload,
  takenBy: row.taken_by,
})

const SIGNAL = 'g.run, g.id, g.seq, g.name, g.payload, g.taken_by, g.bytes'
const unread = sql<SignalRow>(
  'signals.unread',
  `select ${SIGNAL} from {rows $1 as b: run text} join signals g on g.run = b.run where g.read_at is null order by g.run, g.seq`,
)
export const unreadSignals = (runs: readonly string[]): Statement<SignalRow> =>
  forEach(
    unread,
    runs.map((run) => ({ run })),
  )

const byId = sql<SignalRow>(
  'signals.by_id',
  `select ${SIGNAL} from signals g where g.id = $3
      and (g.run = $1 or g.run = $2 or g.run in (select r.id from runs r where r.series = $2 and r.series <> r.id))`,
)
/** The signal of this id that the run, or one that it continues, has been sent. */
export const signalById = (run: string, series: string, id: string): Statement<SignalRow> =>
  statement(byId, run, series, id)

const lastSeq = sql<{ seq: number; unread: number; bytes: number }>(
  'signals.totals',
  `select coalesce((select max(g.seq) from signals g where g.run = $1), 0) as seq, count(*) as unread, coalesce(sum(g.bytes), 0) as bytes
     from signals g where g.run = $1 and g.read_at is null`,
)
export const signalTotals = (
  run: string,
): Statement<{ seq: number; unread: number; bytes: number }> => statement(lastSeq, run)

const insertSignal = sql<{ id: string }>(
  'signals.insert',
  `insert into signals (run, id, seq, name, payload, bytes, sent_by, created_at, taken_by)
   select $1, $2, $3, $4, $5, $6, $7, {now}, $8 where true on conflict do nothing returning id`,
)
export const addSignal = (
  signal: Signal,
  bytes: number,
  sentBy: string | null,
): Statement<{ id: string }> =>
  statement(
    insertSignal,
    signal.run,
    signal.id,
    signal.seq,
    signal.name,
    signal.payload,
    bytes,
    sentBy,
    signal.takenBy,
  )

const take = sql<{ id: string }>(
  'signals.take',
  `update signals set taken_by = b.taken_by from {rows $1 as b: run text, id text, taken_by text} where signals.run = b.run and signals.id = b.id returning signals.id`,
)
/** Pairs signals with the waits that they satisfy, or lets them go again (`takenBy` null). */
export const takeSignals = (signals: readonly Signal[]): Statement<{ id: string }> =>
  statement(take, rows(signals.map(({ run, id, takenBy }) => ({ run, id, taken_by: takenBy }))))

const read = sql<{ id: string }>(
  'signals.read',
  `update signals set read_at = {now} from {rows $1 as b: run text, key text} where signals.run = b.run and signals.taken_by = b.key and signals.read_at is null returning signals.id`,
)
/** The waits that took these signals are entries of the journal now. */
export const readSignals = (
  keys: readonly { run: string; key: string }[],
): Statement<{ id: string }> => statement(read, rows(keys))

const release = sql<{ id: string }>(
  'signals.release',
  `update signals set taken_by = null from {rows $1 as b: run text, key text} where signals.run = b.run and signals.taken_by = b.key and signals.read_at is null returning signals.id`,
)
/** The waits that had taken these signals were closed before the function received them. */
export const releaseSignals = (
  keys: readonly { run: string; key: string }[],
): Statement<{ id: string }> => statement(release, rows(keys))

const inherit = sql<{ id: string }>(
  'signals.inherit',
  `update signals set run = $2, taken_by = null where run = $1 and read_at is null returning id`,
)
/** Unread signals belong to the series: its next run reads them. */
export const inheritSignals = (from: string, to: string): Statement<{ id: string }> =>
  statement(inherit, from, to)

export interface ApprovalRow {
  readonly id: string
  readonly run: string
  readonly key: string
  readonly prompt: string
  readonly data: string | null
  readonly deciders: string
  readonly deadline: number
  readonly state: ApprovalState
  readonly decided_by: string | null
  readonly decided_at: number | null
  readonly reason: string | null
  readonly payload: string | null
  readonly created_at: number
}
export const approvalColumns =
  'p.id, p.run, p.key, p.prompt, p.data, p.deciders, p.deadline, p.state, p.decided_by, p.decided_at, p.reason, p.payload, p.created_at'

const insertApproval = sql<{ id: string }>(
  'approvals.insert',
  `insert into approvals (id, run, key, prompt, data, deciders, deadline, state, created_at, rev)
   select b.id, b.run, b.key, b.prompt, b.data, b.deciders, b.deadline, 'open', {now}, b.rev
     from {rows $1 as b: id text, run text, key text, prompt text, data text, deciders text, deadline bigint, rev bigint} where true
   on conflict do nothing returning id`,
)
export interface NewApproval {
  readonly id: string
  readonly run: string
  readonly key: string
  readonly prompt: string
  readonly data: string | null
  readonly deciders: string
  readonly deadline: number
  readonly rev: number
}
export const insertApprovals = (approvals: readonly NewApproval[]): Statement<{ id: string }> =>
  statement(insertApproval, rows(approvals))

type LapsingRow = Pick<ApprovalRow, 'id' | 'run' | 'key' | 'prompt' | 'deadline'>
const lapsing = sql<LapsingRow>(
  'approvals.lapsing',
  `select p.id, p.run, p.key, p.prompt, p.deadline from approvals p
    where p.state = 'open' and p.deadline <= {now} + $1 and 2 * {now} >= p.created_at + p.deadline
      and not exists (select 1 from notices n where n.run = p.run and n.kind = 'approval_lapsing' and n.occurrence = p.key)
    order by p.deadline, p.id limit $2`,
)
/** Open ones whose deadline is so near, half of whose time has gone, and that nobody was told of. */
export const lapsingApprovals = (withinMs: number, most: number): Statement<LapsingRow> =>
  statement(lapsing, withinMs, most)

const approvalById = sql<ApprovalRow>(
  'approvals.by_id',
  `select ${approvalColumns} from approvals p where p.id = $1`,
)
export const approval = (id: string): Statement<ApprovalRow> => statement(approvalById, id)

const decide = sql<{ id: string }>(
  'approvals.decide',
  `update approvals set state = b.state, decided_by = b.decided_by, decided_at = {now}, reason = b.reason, payload = b.payload, rev = b.rev
     from {rows $1 as b: id text, state text, decided_by text, reason text, payload text, rev bigint}
    where approvals.id = b.id and approvals.state = 'open' returning approvals.id`,
)
export interface Decision {
  readonly id: string
  readonly state: Exclude<ApprovalState, 'open'>
  readonly decided_by: string | null
  readonly reason: string | null
  readonly payload: string | null
  readonly rev: number
}
export const decideApprovals = (decisions: readonly Decision[]): Statement<{ id: string }> =>
  statement(decide, rows(decisions))

const cancelOpen = sql<{ id: string }>(
  'approvals.cancel',
  `update approvals set state = 'canceled', decided_at = {now}, reason = 'the run ended' from {rows $1 as b: run text}
    where approvals.run = b.run and approvals.state = 'open' returning approvals.id`,
)
export const cancelApprovals = (runs: readonly string[]): Statement<{ id: string }> =>
  statement(cancelOpen, rows(runs.map((run) => ({ run }))))
