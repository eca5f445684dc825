// What has changed of a run since a `rev`: its attempts, entries and events of later writes, and the row as it is now.
import { storedObject } from '../kernel/stored.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { attemptsOf, continuationOf, eventsOf } from '../store/tables/journal.ts'
import { entriesSince, viewsOf } from '../store/tables/views.ts'
import type { AttemptView, RunView } from './run-view.ts'
import { attemptOf, currentHold, entryView, eventView, viewOf } from './run-view.ts'

export interface Position {
  readonly rev: number
  /** Entries up to this number have been seen. */
  readonly n: number
  /** The newest attempt whose beginning has been seen. */
  readonly attempt: number
}

export interface RunChanges {
  readonly run: RunView
  readonly attempts: readonly AttemptView[]
  readonly entries: readonly ReturnType<typeof entryView>[]
  readonly events: readonly ReturnType<typeof eventView>[]
  /** There are more entries than were read. */
  readonly more: boolean
  readonly next: Position
}

const ENTRIES_A_TIME = 500

export function* runChanges(
  _tx: Tx,
  id: string,
  position: Position,
): Steps<RunChanges | undefined> {
  const { rev, n } = position
  const [[row], attempts, steps, events] = yield* ask(
    viewsOf([id]),
    attemptsOf(id),
    entriesSince(id, n, rev, ENTRIES_A_TIME + 1),
    eventsOf(id, rev),
  )
  if (!row) return undefined
  const run = viewOf(row)
  const more = steps.length > ENTRIES_A_TIME
  const entries = steps.slice(0, ENTRIES_A_TIME).map(entryView)
  const lastEntry = entries.at(-1)?.n ?? n
  if (more)
    return {
      run,
      attempts: [],
      entries,
      events: [],
      more,
      next: { ...position, n: lastEntry },
    }
  const hold = currentHold(run)
  const begun = hold !== null && hold.attempt > position.attempt && run.rev > rev ? [hold] : []
  return {
    run,
    attempts: [...attempts.filter((each) => each.rev > rev).map(attemptOf), ...begun],
    entries,
    events: events.map(eventView),
    more,
    next: { rev: run.rev, n: lastEntry, attempt: run.attempt },
  }
}

/** The run that continues this one, or null. */
export function* successorOf(_tx: Tx, run: string): Steps<string | null> {
  const [[row]] = yield* ask(continuationOf(run))
  return row
    ? String(storedObject(row.data, `the event of ${run} that names its successor`)['as'])
    : null
}

/** These runs as they stand now. */
export function* runViews(
  tx: Tx,
  ids: readonly string[],
): Steps<{ now: number; runs: readonly RunView[] }> {
  const [rows] = yield* ask(viewsOf(ids))
  return { now: tx.now, runs: rows.map(viewOf) }
}
