// Runs in lanes that no live session serves wait openly (`no_executor`) instead of standing in a queue, and come back when
// one does. A lane is given a grace, since executors restart.
import { servedLanes } from '../queries/lines.ts'
import { park, unpark } from '../transitions/park.ts'
import type { Sweep } from './loop.ts'

export const parkUnserved = (sweepMs: number): Sweep => {
  const unservedSince = new Map<string, number>()
  return {
    name: 'park-unserved',
    intervalMs: sweepMs,
    async pass(upkeep) {
      const now = upkeep.ports.time.mono()
      const lanes = await upkeep.read(servedLanes)
      let acted = 0
      for (const { lane, served, queued, parked, note } of lanes) {
        if (served) {
          unservedSince.delete(lane)
          if (parked) acted += (await upkeep.act((tx) => unpark(tx, lane, 500))).count
          continue
        }
        const since = unservedSince.get(lane) ?? now
        unservedSince.set(lane, since)
        if (queued && now - since >= 2 * sweepMs)
          acted += (await upkeep.act((tx) => park(tx, lane, note, 500))).count
      }
      return { examined: lanes.length, acted }
    },
  }
}
