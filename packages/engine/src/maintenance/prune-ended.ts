// Removes what is past its retention, in small batches, with a cursor that goes round.
import type { PruneCursor } from '../transitions/prune.ts'
import { prune } from '../transitions/prune.ts'
import type { Sweep } from './loop.ts'

export const pruneEnded = (): Sweep => {
  let cursor: PruneCursor | null = null
  return {
    name: 'prune-ended',
    intervalMs: 60_000,
    async pass(upkeep) {
      let examined = 0
      let acted = 0
      for (let i = 0; i < 50; i++) {
        const from: PruneCursor | null = cursor
        const pass = await upkeep.store.run((tx) => prune(tx, from, upkeep))
        examined += pass.examined
        acted += pass.removed
        cursor = pass.cursor
        if (cursor === null) break
      }
      return { examined, acted }
    },
  }
}
