// Deliveries are known for as long as their senders may bring them again, and not for ever.
import { pruneArrivals } from '../transitions/prune-arrivals.ts'
import type { Sweep } from './loop.ts'

const BATCH = 1_000
const BATCHES = 50

export const forgetOldArrivals: Sweep = {
  name: 'prune-arrivals',
  intervalMs: 60_000,
  async pass(upkeep) {
    let acted = 0
    for (let i = 0; i < BATCHES; i++) {
      const removed = await upkeep.store.run((tx) =>
        pruneArrivals(tx, upkeep.settings.arrivalsMs, BATCH),
      )
      acted += removed
      if (removed < BATCH) break
    }
    return { examined: acted, acted }
  },
}
