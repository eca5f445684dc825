// Fires the ticks of schedules when they are due, and starts those that wait once the runs before them have ended. Any replica
// may do it at any time: who moves the schedule on fires the tick. A schedule that cannot be fired keeps no other from it.
import { Fault } from '../kernel/errors.ts'
import type { Calendar } from '../model/schedule.ts'
import { planTick, ticksOf } from '../model/schedule.ts'
import { aheadSchedules, dueSchedules } from '../queries/schedules.ts'
import { fireTick, startWaiting } from '../transitions/fire-tick.ts'
import { pruneTicks } from '../transitions/prune-ticks.ts'
import { putBack } from '../transitions/put-back-tick.ts'
import type { Pass, Sweep, Upkeep } from './loop.ts'

const BATCH = 100
/** Ticks of one schedule in one look; the others fire with the next. */
const IN_A_ROW = 20
const PAGE = 500

export const fireSchedules = (calendar: Calendar): Sweep => {
  /** The store's clock at the last look; what it says of the first is not known, so that one looks for all. */
  let seen = Number.POSITIVE_INFINITY

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

  return {
    name: 'fire-schedules',
    intervalMs: 1_000,
    async pass(upkeep): Promise<Pass> {
      const { missedAfterMs } = upkeep.settings
      let acted = 0
      let skipped = 0
      let { now, due, waiting } = await upkeep.read((tx) => dueSchedules(tx, BATCH))
      if (now < seen) {
        acted += await mend(upkeep)
        ;({ now, due, waiting } = await upkeep.read((tx) => dueSchedules(tx, BATCH)))
      }
      seen = now
      await upkeep.learn([...due, ...waiting])
      let more = due.length === BATCH
      for (let row of due) {
        const ticks = ticksOf(calendar, row)
        for (let i = 0; row.next_at !== null && row.next_at <= now; i++) {
          if (i === IN_A_ROW) {
            more = true
            break
          }
          const from = row
          const done = await attempt(upkeep, row.name, () => {
            const plan = planTick(from.next_at as number, from.missed, now, missedAfterMs, ticks)
            return upkeep
              .act((tx, context) => fireTick(tx, from, plan, context))
              .then(({ moved }) => ({ moved, next: plan.next }))
          })
          if (!done?.moved) {
            skipped += 1
            break
          }
          acted += 1
          row = { ...row, next_at: done.next }
        }
      }
      for (const { schedule } of waiting) {
        const done = await attempt(upkeep, schedule, () =>
          upkeep.act((tx, context) => startWaiting(tx, schedule, context)),
        )
        if (done?.moved) acted += 1
        else if (done === null || done.busy) skipped += 1
      }
      const { nearest } = await upkeep.read((tx) => dueSchedules(tx, 1))
      const againMs = more ? 0 : nearest === null ? null : Math.max(1, nearest - now)
      return {
        examined: due.length + waiting.length,
        acted,
        skipped,
        ...(againMs === null ? {} : { againMs }),
      }
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
