// A run's row as people see it: names in camelCase, JSON decoded, and what follows from the row worked out.
import { readOr, stored, storedTexts } from '../kernel/stored.ts'
import type { AttemptEnd } from '../model/attempt.ts'
import type { EntryKind } from '../model/work.ts'
import { isHeld } from '../model/run.ts'
import type { Run } from '../model/run.ts'
import { limitKeys, limitUses } from '../model/slots.ts'
import { runOf } from '../store/move/run-row.ts'
import type { AttemptRow, EventRow } from '../store/tables/journal.ts'
import type { ViewRow } from '../store/tables/views.ts'
import type { ApprovalRow } from '../store/tables/waits.ts'

/** The stored value of a column; what cannot be read is shown as the sentence that says so. */
export const value = <C extends string>(
  row: { readonly [name in C]: string | null },
  column: C,
): unknown =>
  readOr(
    () => {
      const text = row[column]
      return text === null ? null : stored(text, 'this value')
    },
    (sentence) => sentence,
  )

/** Who may decide; what cannot be read is shown as the one name that nobody has. */
export const decidersOf = (row: Pick<ApprovalRow, 'id' | 'deciders'>) =>
  readOr<readonly string[]>(
    () => storedTexts(row.deciders, `the list of deciders of ${row.id}`),
    (sentence) => [sentence],
  )

export type RunView = ReturnType<typeof viewOf>

export const viewOf = (row: ViewRow) => {
  const run = runOf(row)
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    labels: run.labels,
    priority: run.priority,
    owner: run.owner,
    key: run.key,
    status: run.status,
    waitOn: run.waitOn,
    reason: run.reason,
    note: run.note,
    attempt: run.attempt,
    session: run.session,
    leasedAt: run.leasedAt,
    entries: run.entries,
    journalBytes: run.journalBytes,
    rev: run.rev,
    createdAt: run.createdAt,
    readyAt: run.readyAt,
    progressAt: run.progressAt,
    noProgressSince: noProgressSince(run),
    endedAt: run.endedAt,
    deadline: run.deadline,
    attemptDeadline: run.attemptDeadline,
    startBy: run.startBy,
    cancelRequestedAt: run.cancelRequestedAt,
    cancelBy: run.cancelBy,
    pauseRequestedAt: run.pauseRequestedAt,
    pauseBy: run.pauseBy,
    losses: run.losses,
    handBacks: run.handBacks,
    failures: run.failures,
    parent: run.parent,
    parentKey: run.parentKey,
    depth: run.depth,
    root: run.root,
    children: run.children,
    retryOf: run.retryOf,
    series: run.series,
    onEnd: run.onEnd,
    onEndOf: run.onEndOf,
    limits: limitKeys(run),
    units: Object.fromEntries(limitUses(run).map(({ key, units }) => [key, units])),
    progress: value(row, 'progress'),
  }
}

/** Since when a held run has recorded nothing new; null while nobody holds it. */
export const noProgressSince = (run: Run): number | null =>
  isHeld(run.status) ? Math.max(run.leasedAt ?? 0, run.progressAt ?? 0) : null

export interface AttemptView {
  readonly attempt: number
  readonly session: string
  readonly leasedAt: number
  readonly endedAt: number | null
  /** `held` while it lasts. */
  readonly end: AttemptEnd | 'held'
  readonly reason: string | null
  readonly note: string | null
  readonly firstReason: string | null
  readonly rev: number
}

export const attemptOf = (row: AttemptRow): AttemptView => ({
  attempt: row.attempt,
  session: row.session,
  leasedAt: row.leased_at,
  endedAt: row.ended_at,
  end: row.end as AttemptView['end'],
  reason: row.reason,
  note: row.note,
  firstReason: row.first_reason,
  rev: row.rev,
})

/** The attempt that holds the run now, which has no row of history yet. */
export const currentHold = (
  run: Pick<RunView, 'session' | 'attempt' | 'leasedAt' | 'rev'>,
): AttemptView | null =>
  run.session === null
    ? null
    : {
        attempt: run.attempt,
        session: run.session,
        leasedAt: run.leasedAt ?? 0,
        endedAt: null,
        end: 'held',
        reason: null,
        note: null,
        firstReason: null,
        rev: run.rev,
      }

export const entryView = (row: {
  readonly n: number
  readonly key: string
  readonly kind: string
  readonly attempt: number
  readonly rev: number
  readonly at: number
  readonly output: string | null
  readonly error: string | null
}) => ({
  n: row.n,
  key: row.key,
  kind: row.kind as EntryKind,
  attempt: row.attempt,
  rev: row.rev,
  at: row.at,
  output: value(row, 'output'),
  error: value(row, 'error'),
})

export const eventView = (row: EventRow) => ({
  rev: row.rev,
  seq: row.seq,
  at: row.at,
  kind: row.kind,
  actor: row.actor,
  data: value(row, 'data'),
})

export const approvalView = (row: ApprovalRow) => ({
  id: row.id,
  run: row.run,
  key: row.key,
  prompt: row.prompt,
  data: value(row, 'data'),
  deciders: decidersOf(row),
  deadline: row.deadline,
  state: row.state,
  decidedBy: row.decided_by,
  decidedAt: row.decided_at,
  reason: row.reason,
  payload: value(row, 'payload'),
  createdAt: row.created_at,
})
