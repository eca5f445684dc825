// All that is known of one run, in one read; its journal by pages; and how it ended.
import { stored } from '../kernel/stored.ts'
import type { RunStatus } from '../model/run.ts'
import { isTerminal } from '../model/run.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { attemptsOf, eventsOf } from '../store/tables/journal.ts'
import { noticesOf } from '../store/tables/notices.ts'
import { receiptsOf } from '../store/tables/orders.ts'
import { newestOfSeries, payloadsOf } from '../store/tables/runs.ts'
import {
  approvalsOf,
  children,
  entriesSince,
  series,
  signalsUnread,
  viewsOf,
} from '../store/tables/views.ts'
import type { WaitRow } from '../store/tables/waits.ts'
import { waitOf, waitsOf } from '../store/tables/waits.ts'
import { noticeView } from './notices.ts'
import {
  approvalView,
  attemptOf,
  currentHold,
  entryView,
  eventView,
  value,
  viewOf,
} from './run-view.ts'

const JOURNAL_PAGE = 200
const FAMILY_MAX = 200

export function* runDetail(_tx: Tx, id: string) {
  const [
    [row],
    [payload],
    attempts,
    steps,
    waits,
    approvals,
    signals,
    events,
    family,
    receipts,
    notices,
  ] = yield* ask(
    viewsOf([id]),
    payloadsOf([id]),
    attemptsOf(id),
    entriesSince(id, 0, 0, JOURNAL_PAGE + 1),
    waitsOf(id),
    approvalsOf(id),
    signalsUnread(id, 1_000),
    eventsOf(id),
    children(id, FAMILY_MAX),
    receiptsOf(id),
    noticesOf(id, FAMILY_MAX),
  )
  if (!row || !payload) return undefined
  const run = viewOf(row)
  const [members] = yield* ask(series(run.series, FAMILY_MAX))
  const hold = currentHold(run)
  const journal = steps.slice(0, JOURNAL_PAGE).map(entryView)
  return {
    run,
    input: value(payload, 'input'),
    output: value(payload, 'output'),
    error: value(payload, 'error'),
    state: value(payload, 'state'),
    attempts: [...attempts.map(attemptOf), ...(hold === null ? [] : [hold])],
    journal,
    journalNext: steps.length > JOURNAL_PAGE ? (journal.at(-1)?.n ?? null) : null,
    waits: waits.map(waitView),
    approvals: approvals.map(approvalView),
    signals: signals.map((signal) => ({
      id: signal.id,
      seq: signal.seq,
      name: signal.name,
      payload: value(signal, 'payload'),
      takenBy: signal.taken_by,
    })),
    events: events.map(eventView),
    children: family.map(viewOf),
    receipts: receipts.map(({ kind, attempt, recipient, at, outcome }) => ({
      kind,
      attempt,
      recipient,
      at,
      outcome,
    })),
    notices: notices.map(noticeView),
    series: members
      .map((member) => ({ id: member.id, status: member.status, createdAt: member.created_at }))
      .sort((a, b) => a.createdAt - b.createdAt),
  }
}

const waitView = (row: WaitRow & { created_at: number; settled_at: number | null }) => {
  const wait = waitOf(row)
  return {
    key: wait.key,
    kind: wait.kind,
    name: wait.name,
    dueAt: wait.dueAt,
    state: wait.state,
    tries: wait.tries,
    result: value(wait, 'result'),
    error: value(wait, 'error'),
    createdAt: row.created_at,
    settledAt: row.settled_at,
  }
}

/** A page of a run's journal; undefined where there is no such run. */
export function* journalPage(_tx: Tx, id: string, after: number, limit: number) {
  const [[run], steps] = yield* ask(viewsOf([id]), entriesSince(id, after, 0, limit + 1))
  if (!run) return undefined
  const entries = steps.slice(0, limit).map(entryView)
  return { entries, next: steps.length > limit ? (entries.at(-1)?.n ?? null) : null }
}

export interface RunResult {
  readonly run: string
  readonly ended: boolean
  readonly status: RunStatus
  readonly reason: string | null
  readonly note: string | null
  readonly output: unknown
  readonly error: unknown
  readonly endedAt: number | null
}

/** How a run stands; one that was continued is answered by the newest of its series. */
export function* runResult(_tx: Tx, id: string): Steps<RunResult | undefined> {
  const [[asked]] = yield* ask(viewsOf([id]))
  if (!asked) return undefined
  let row = asked
  if (asked.reason === 'continued') {
    const [[newest]] = yield* ask(newestOfSeries([asked.series]))
    const [[last]] = yield* ask(viewsOf([newest?.id ?? id]))
    row = last ?? asked
  }
  const ended = isTerminal(row.status as RunStatus)
  const [[payload]] = ended ? yield* ask(payloadsOf([row.id])) : [[]]
  return {
    run: row.id,
    ended,
    status: row.status as RunStatus,
    reason: row.reason,
    note: row.note,
    // what a program goes on with is read, or refused: never a sentence in its place
    output: payload?.output ? stored(payload.output, `the result of ${row.id}`) : null,
    error: payload?.error ? stored(payload.error, `the error of ${row.id}`) : null,
    endedAt: row.ended_at,
  }
}
