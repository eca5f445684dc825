// Fires the ticks of schedules when they are due, and starts those that wait once the runs before them have ended. Any replica
// may do it at any time: who moves the schedule on fires the tick. A schedule that cannot be fired keeps no other from it.
import { Fault } from '../kernel/errors.ts'
import type { Calendar } from '../model/schedule.ts'
import { planTick, ticksOf } from '../model/schedule.ts'
import type { ScheduleRow } from '../queries/schedules.ts'
import { aheadSchedules, dueSchedules, nextTick, waitingSchedules } from '../queries/schedules.ts'
import { fireTick, startWaiting } from '../transitions/fire-tick.ts'
import { pruneTicks } from '../transitions/prune-ticks.ts'
import { putBack } from '../transitions/put-back-tick.ts'
import type { Pass, Sweep, Upkeep } from './loop.ts'

const BATCH = 100
/** Ticks of one schedule in one look; the others fire with the next. */
const IN_A_ROW = 20
const PAGE = 500
/** How often all schedules are looked through, beside when the clock was seen to go back. */
const MEND_MS = 60_000

export const fireSchedules = (calendar: Calendar): Sweep => {
  /** The store’s clock at the last look; another server may have looked since, by another clock. */
  let seen = Number.POSITIVE_INFINITY
  let mendAt = Number.NEGATIVE_INFINITY

  /** Goes through the schedules after the clock went back: none may stay at a tick of a time that did not come. */
  const mend = async (upkeep: Upkeep): Promise<number> => {
    let acted = 0
    for (let after = ''; ;) {
      const { rows, now } = await upkeep.read((tx) => aheadSchedules(tx, after, PAGE))
      for (const row of rows) {
        const done = await attempt(upkeep, row.name, async () => {
          const next = calendar.next(row.cron, row.zone, now)
          return next !== null && row.next_at !== null && next < row.next_at
            ? upkeep.store.run((tx) => putBack(tx, row, next))
            : 0
        })
        acted += done ?? 0
      }
      const last = rows.at(-1)
      if (rows.length < PAGE || !last) return acted
      after = last.id
    }
  }

  /** Fires the ticks of one schedule that are due, one transaction each. */
  const inARow = async (upkeep: Upkeep, row: ScheduleRow, now: number) => {
    const ticks = ticksOf(calendar, row)
    let at = row.next_at
    let fired = 0
    while (at !== null && at <= now && fired < IN_A_ROW) {
      const from = { ...row, next_at: at }
      const due = at
      const done = await attempt(upkeep, row.name, async () => {
        const plan = planTick(due, row.missed, now, upkeep.settings.missedAfterMs, ticks)
        const { moved } = await upkeep.act((tx, context) => fireTick(tx, from, plan, context))
        return { moved, next: plan.next }
      })
      if (!done?.moved) return { fired, failed: true, more: false }
      fired += 1
      at = done.next
    }
    return { fired, failed: false, more: at !== null && at <= now }
  }

  return {
    name: 'fire-schedules',
    intervalMs: 1_000,
    async pass(upkeep): Promise<Pass> {
      let examined = 0
      let acted = 0
      let skipped = 0
      let more = false
      let page = await upkeep.read((tx) => dueSchedules(tx, BATCH))
      const mono = upkeep.ports.time.mono()
      if (page.now < seen || mono >= mendAt) {
        mendAt = mono + MEND_MS
        acted += await mend(upkeep)
        page = await upkeep.read((tx) => dueSchedules(tx, BATCH))
      }
      seen = page.now
      for (;;) {
        const { due, now } = page
        examined += due.length
        await upkeep.learn(due)
        for (const row of due) {
          const done = await inARow(upkeep, row, now)
          acted += done.fired
          if (done.failed) skipped += 1
          more ||= done.more
        }
        const last = due.at(-1)
        if (due.length < BATCH || !last) break
        page = await upkeep.read((tx) => dueSchedules(tx, BATCH, last))
      }
      for (let after = ''; ;) {
        const waiting = await upkeep.read((tx) => waitingSchedules(tx, BATCH, after))
        examined += waiting.length
        await upkeep.learn(waiting)
        for (const { schedule } of waiting) {
          const done = await attempt(upkeep, schedule, () =>
            upkeep.act((tx, context) => startWaiting(tx, schedule, context)),
          )
          if (done?.moved) acted += 1
          else if (done === null || done.busy) skipped += 1
        }
        const last = waiting.at(-1)
        if (waiting.length < BATCH || !last) break
        after = last.schedule
      }
      const { at, now } = await upkeep.read(nextTick)
      const againMs = more ? 0 : at === null ? null : Math.max(1, at - now)
      return { examined, acted, skipped, ...(againMs === null ? {} : { againMs }) }
    },
  }
}

/** What comes of it, or null where it failed: a zone that this machine does not know, a row that somebody holds. */
const attempt = async <T>(
  upkeep: Upkeep,
  schedule: string,
  work: () => Promise<T>,
): Promise<T | null> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Fault && error.code === 'store_busy'))
      upkeep.ports.log.warn('schedule.failed', { schedule, error })
    return null
  }
}

/** Old ticks are of use to nobody. */
export const forgetOldTicks: Sweep = {
  name: 'prune-ticks',
  intervalMs: 60_000,
  async pass(upkeep) {
    const removed = await upkeep.store.run((tx) => pruneTicks(tx, upkeep.settings.retentionMs))
    return { examined: removed, acted: removed }
  },
}
