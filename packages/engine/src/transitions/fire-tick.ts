// Fires a tick: moves its schedule to the next one by a compare-and-set, says what became of this one, and starts its run,
// all in one transaction. So of all replicas one fires it, and none of the three is there without the others.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { TickPlan } from '../model/schedule.ts'
import { planOverlap } from '../model/schedule.ts'
import type { PlanContext } from '../model/start.ts'
import type { Statement, Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { insertOrders } from '../store/tables/orders.ts'
import type { ScheduleRow } from '../store/tables/schedules.ts'
import {
  closeTicks,
  lockFreeSchedule,
  moveTick,
  openTicks,
  putTicks,
  settleTick,
  waitingTicks,
} from '../store/tables/schedules.ts'
import { startTick, tickId } from './start-tick.ts'

export interface Fired {
  /** False where another transaction holds the schedule, or somebody was first. */
  readonly moved: boolean
  readonly busy: boolean
  readonly follow: Follow
}

const WAITING_SEEN = 200

/** `seen` is the schedule as it was when the plan for its next tick was made. */
export function* fireTick(
  tx: Tx,
  seen: ScheduleRow,
  { fire, missed, next }: TickPlan,
  context: PlanContext,
): Steps<Fired> {
  const follow = nothing()
  const [[schedule]] = yield* ask(lockFreeSchedule(seen.id))
  if (!schedule) return { moved: false, busy: true, follow }
  const [moved, open, waiting] = yield* ask(
    moveTick(seen, next, fire, fire ?? missed?.last ?? 0),
    openTicks(seen.id),
    waitingTicks(seen.id, WAITING_SEEN),
  )
  if (moved.length === 0) return { moved: false, busy: false, follow }
  const more: Statement[] = []
  if (missed !== null)
    more.push(
      putTicks([
        {
          id: tickId(seen.id, missed.first, context.shard),
          schedule: seen.id,
          tick: missed.first,
          cause: 'time',
          outcome: 'missed',
          note: missedNote(missed, schedule),
        },
      ]),
    )
  if (fire === null) {
    yield* ask(...more)
    return { moved: true, busy: false, follow }
  }
  const active = open.flatMap(({ run }) => (run === null ? [] : [run]))
  const plan = planOverlap(schedule.overlap, active, waiting.length)
  const id = tickId(seen.id, fire, context.shard)
  const [stored] = yield* ask(
    putTicks([
      {
        id,
        schedule: seen.id,
        tick: fire,
        cause: 'time',
        outcome: plan.outcome,
        note: plan.note,
      },
    ]),
    closeTicks(open.filter(({ run }) => run === null).map((each) => each.id)),
    ...more,
  )
  // it had fired before the store's clock went back
  if (stored.length === 0) return { moved: true, busy: false, follow }
  if (plan.cancels) {
    const by = `schedule:${schedule.name}`
    const payload = JSON.stringify({ by, reason: 'its schedule has come to its next tick' })
    yield* ask(
      ...waiting.map((each) =>
        settleTick(each.id, 'waiting', 'replaced', 'a later tick came before it could start'),
      ),
      insertOrders(
        active.map((run) => ({ id: `cancel:${run}`, kind: 'cancel' as const, run, payload })),
      ),
    )
    follow.orders = true
  }
  if (plan.outcome === 'started')
    yield* startTick(tx, schedule, id, `schedule:${schedule.name}`, context, follow)
  return { moved: true, busy: false, follow }
}

const missedNote = (
  { first, last }: { readonly first: number; readonly last: number },
  { missed }: Pick<ScheduleRow, 'missed'>,
): string =>
  `${first === last ? 'this tick was' : `this tick and those until ${new Date(last).toISOString()} were`} missed; the schedule fires ${missed === 'one' ? 'the last of them' : 'none of them'}`

/** Starts the first tick that waits, once every run of the ticks before it has ended. */
export function* startWaiting(tx: Tx, id: string, context: PlanContext): Steps<Fired> {
  const follow = nothing()
  const [[schedule]] = yield* ask(lockFreeSchedule(id))
  if (!schedule) return { moved: false, busy: true, follow }
  const [open, [first]] = yield* ask(openTicks(id), waitingTicks(id, 1))
  if (schedule.paused_at !== null || !first || open.some(({ run }) => run !== null))
    return { moved: false, busy: false, follow }
  const [taken] = yield* ask(
    settleTick(first.id, 'waiting', 'started', first.note),
    closeTicks(open.map((each) => each.id)),
  )
  if (taken.length === 0) return { moved: false, busy: false, follow }
  yield* startTick(tx, schedule, first.id, `schedule:${schedule.name}`, context, follow)
  return { moved: true, busy: false, follow }
}
