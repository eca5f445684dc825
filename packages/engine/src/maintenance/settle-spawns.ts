// Settles executors that were started and of which their spawner says nothing, as when it has died; and forgets those of long ago.
import { pruneSpawns, settleSilent } from '../transitions/settle-spawn.ts'
import type { Sweep } from './loop.ts'

const BATCH = 500
/** A process gives up by itself when its time to register is over; it may be at it for as long as a request takes. */
const GRACE_MS = 30_000

export const settleSpawns = (sweepMs: number): Sweep => ({
  name: 'settle-spawns',
  intervalMs: sweepMs,
  async pass(upkeep) {
    const acted = await upkeep.store.run((tx) => settleSilent(tx, GRACE_MS, BATCH))
    const gone = await upkeep.store.run((tx) => pruneSpawns(tx, upkeep.settings.retentionMs, BATCH))
    return { examined: acted + gone, acted: acted + gone }
  },
})
