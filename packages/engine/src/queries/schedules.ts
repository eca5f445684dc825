// Schedules as people see them, and what the loop that fires them looks at.
import { readOr, storedTexts } from '../kernel/stored.ts'
import type { Calendar } from '../model/schedule.ts'
import { ticksOf } from '../model/schedule.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { ScheduleRow } from '../store/tables/schedules.ts'
import {
  nearestTick,
  newestTicks,
  scheduleByName,
  schedulesAfter,
  schedulesAhead,
  schedulesDue,
  schedulesWaiting,
} from '../store/tables/schedules.ts'
import { value } from './run-view.ts'

export type { ScheduleRow }

const NEXT_SHOWN = 10
const TICKS_SHOWN = 50
const MOST = 1_000

const scheduleView = (row: ScheduleRow) => ({
  id: row.id,
  name: row.name,
  cron: row.cron,
  zone: row.zone,
  workflow: row.workflow,
  version: row.version,
  input: value(row, 'input'),
  owner: row.owner,
  queue: row.queue,
  labels: readOr<readonly string[]>(
    () => storedTexts(row.labels, `the labels of the schedule ${row.name}`),
    () => [],
  ),
  priority: row.priority,
  missed: row.missed,
  overlap: row.overlap,
  nextAt: row.next_at,
  lastAt: row.last_at,
  pausedAt: row.paused_at,
  pausedBy: row.paused_by,
  why: row.why,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  updatedBy: row.updated_by,
})

export function* schedules(
  tx: Tx,
): Steps<{ now: number; schedules: ReturnType<typeof scheduleView>[] }> {
  const [rows] = yield* ask(schedulesAfter('', MOST))
  return { now: tx.now, schedules: rows.map(scheduleView) }
}

/** A schedule with the next ten ticks that it has, or would have were it not paused, and what became of the newest. */
export function* scheduleDetail(tx: Tx, name: string, calendar: Calendar) {
  const [[row]] = yield* ask(scheduleByName(name))
  if (!row) return undefined
  const [ticks] = yield* ask(newestTicks(row.id, TICKS_SHOWN))
  return {
    now: tx.now,
    schedule: scheduleView(row),
    next: nextTicks(row, tx.now, calendar),
    ticks: ticks.map((tick) => ({
      tick: tick.tick,
      cause: tick.cause,
      outcome: tick.outcome,
      run: tick.outcome === 'started' ? tick.id : null,
      status: tick.outcome === 'started' ? tick.status : null,
      note: tick.note,
      at: tick.at,
    })),
  }
}

const nextTicks = (row: ScheduleRow, now: number, calendar: Calendar): number[] => {
  // a zone that another server knew and this one does not
  if (calendar.fault(row.cron, row.zone) !== null) return []
  const ticks = ticksOf(calendar, row)
  const out: number[] = []
  let at = row.next_at ?? ticks.next(now)
  while (at !== null && out.length < NEXT_SHOWN) {
    out.push(at)
    at = ticks.next(at)
  }
  return out
}

/** Before all ticks. */
const FIRST = { at: -1e15, id: '' }

/** What there is to fire now, behind a schedule that was looked at. */
export function* dueSchedules(tx: Tx, most: number, after?: ScheduleRow) {
  const place = after ? { at: after.next_at ?? FIRST.at, id: after.id } : FIRST
  const [due] = yield* ask(schedulesDue(most, place))
  return { now: tx.now, due }
}

/** Schedules with ticks that wait for runs to end, behind this id. */
export function* waitingSchedules(_tx: Tx, most: number, after: string) {
  const [waiting] = yield* ask(schedulesWaiting(after, most))
  return waiting
}

/** When the next tick is due that is not due yet. */
export function* nextTick(tx: Tx) {
  const [[nearest]] = yield* ask(nearestTick())
  return { now: tx.now, at: nearest?.at ?? null }
}

/** Schedules whose next tick is to come, a page behind this id. */
export function* aheadSchedules(tx: Tx, after: string, most: number) {
  const [rows] = yield* ask(schedulesAhead(after, most))
  return { now: tx.now, rows }
}
