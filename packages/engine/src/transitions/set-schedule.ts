// Schedules as people set them: made, changed, paused, resumed, fired by hand, taken away. Each locks the schedule's row first,
// so that no tick fires beside it by what was said before.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { readOr, storedTexts } from '../kernel/stored.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Calendar } from '../model/schedule.ts'
import { calendarFault } from '../model/schedule.ts'
import { marked } from '../model/shard.ts'
import type { PlanContext } from '../model/start.ts'
import { planStart } from '../model/start.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { ScheduleRow, ScheduleSpec } from '../store/tables/schedules.ts'
import {
  closeTicks,
  insertSchedule,
  lockScheduleByName,
  openTicks,
  pauseScheduleRow,
  putTicks,
  removeSchedule,
  resumeScheduleRow,
  scheduleByName,
  settleTick,
  tickById,
  updateSchedule,
} from '../store/tables/schedules.ts'
import { startTick } from './start-tick.ts'

type Answered<T = { readonly name: string }> = Steps<{ answer: Outcome<T>; follow: Follow }>

export const noSchedule = (name: string) =>
  refuse('not_found', `there is no schedule ${name}; \`leasehold schedules\` lists them`, { name })

/** What could never start is refused when it is said, and not at each tick. */
const specFault = (spec: ScheduleSpec, context: PlanContext) => {
  const planned = planStart(
    {
      id: marked('run_of_a_schedule', context.shard.number),
      workflow: spec.workflow,
      version: spec.version,
      input: spec.input,
      owner: spec.owner,
      queue: spec.queue,
      labels: readOr(
        () => storedTexts(spec.labels, 'the labels of the schedule'),
        () => [],
      ),
      priority: spec.priority,
    },
    {},
    context,
  )
  return planned.ok ? null : planned
}

export interface NewSchedule {
  readonly id: string
  readonly name: string
  readonly spec: ScheduleSpec
  readonly paused: boolean
  readonly by: string
}

export function* createSchedule(
  tx: Tx,
  { id, name, spec, paused, by }: NewSchedule,
  calendar: Calendar,
  context: PlanContext,
): Answered {
  const follow = nothing()
  // a transaction knows the store's clock with its first answer
  const [[known]] = yield* ask(scheduleByName(name))
  if (known?.id === id) return { answer: { ok: true, name }, follow }
  const first = calendarFault(calendar, spec, tx.now)
  const fault = specFault(spec, context) ?? (first.ok ? null : first)
  if (fault) return { answer: fault, follow }
  const nextAt = first.ok && !paused ? first.next : null
  const inserted = known ? [] : (yield* ask(insertSchedule(id, name, spec, nextAt, by)))[0]
  const taken = refuse(
    'schedule_exists',
    `there is a schedule ${name} already; update it instead`,
    { name },
  )
  return { answer: inserted.length > 0 ? { ok: true, name } : taken, follow }
}

/** Changes what is named; ticks that are due by then fire as they were set before, unless the calendar is changed. */
export function* changeSchedule(
  tx: Tx,
  name: string,
  change: Partial<ScheduleSpec>,
  by: string,
  calendar: Calendar,
  context: PlanContext,
): Answered {
  const [[row]] = yield* ask(lockScheduleByName(name))
  if (!row) return { answer: noSchedule(name), follow: nothing() }
  const spec: ScheduleSpec = { ...row, ...change }
  const moved = spec.cron !== row.cron || spec.zone !== row.zone
  const first = calendarFault(calendar, spec, tx.now)
  const fault = specFault(spec, context) ?? (first.ok ? null : first)
  if (fault) return { answer: fault, follow: nothing() }
  const nextAt = row.paused_at !== null ? null : moved && first.ok ? first.next : row.next_at
  yield* ask(updateSchedule(row, spec, nextAt, by))
  return { answer: { ok: true, name }, follow: nothing() }
}

export function* pauseSchedule(_tx: Tx, name: string, by: string, why: string | null): Answered {
  const [[row]] = yield* ask(lockScheduleByName(name))
  if (!row) return { answer: noSchedule(name), follow: nothing() }
  if (row.paused_at === null) yield* ask(pauseScheduleRow(row, by, why))
  return { answer: { ok: true, name }, follow: nothing() }
}

/** From the next tick after now: those of the pause are not missed. */
export function* resumeSchedule(tx: Tx, name: string, calendar: Calendar): Answered {
  const [[row]] = yield* ask(lockScheduleByName(name))
  if (!row) return { answer: noSchedule(name), follow: nothing() }
  if (row.paused_at === null)
    return {
      answer: refuse('not_paused', `the schedule ${name} is not paused`, { name }),
      follow: nothing(),
    }
  const first = calendarFault(calendar, row, tx.now)
  if (first.ok) yield* ask(resumeScheduleRow(row, first.next))
  return { answer: first.ok ? { ok: true, name } : first, follow: nothing() }
}

/**
 * Starts its run now, beside its ticks and whatever runs; `run` is the id of the run, so that a repeat starts nothing, save
 * where the start was refused: then it is tried anew.
 */
export function* runNow(
  tx: Tx,
  name: string,
  run: string,
  by: string,
  context: PlanContext,
): Answered<{ readonly name: string; readonly run: string }> {
  const follow = nothing()
  const [[row]] = yield* ask(lockScheduleByName(name))
  if (!row) return { answer: noSchedule(name), follow }
  const open = yield* endedOf(row)
  const [stored] = yield* ask(
    putTicks([
      {
        id: run,
        schedule: row.id,
        tick: tx.now,
        cause: 'person',
        outcome: 'started',
        note: `run now by ${by}`,
      },
    ]),
    closeTicks(open),
  )
  if (stored.length === 0) {
    const [[told]] = yield* ask(tickById(run))
    if (told?.schedule !== row.id || told.cause !== 'person')
      return {
        answer: refuse(
          'command_reused',
          `${run} is ${told?.schedule === row.id ? `a tick of ${name}` : 'the run of another schedule'}; give each run an id of its own`,
          { run },
        ),
        follow,
      }
    // what was refused may be had by now: a repeat asks for it again
    const [again] = yield* ask(settleTick(run, 'refused', 'started', `run now by ${by}`))
    if (again.length === 0) return { answer: { ok: true, name, run }, follow }
  }
  const refusal = yield* startTick(tx, row, run, by, context, follow)
  return { answer: refusal ?? { ok: true, name, run }, follow }
}

function* endedOf({ id }: ScheduleRow): Steps<string[]> {
  const [open] = yield* ask(openTicks(id))
  return open.flatMap((each) => (each.run === null ? [each.id] : []))
}

/** Takes a schedule away with what is known of its ticks; their runs stay, and ticks that wait start no more. */
export function* deleteSchedule(_tx: Tx, name: string): Answered {
  const [[row]] = yield* ask(lockScheduleByName(name))
  if (!row) return { answer: noSchedule(name), follow: nothing() }
  yield* ask(...removeSchedule(row.id))
  return { answer: { ok: true, name }, follow: nothing() }
}
