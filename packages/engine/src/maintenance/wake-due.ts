// Makes due what is due: runs whose instant has come. Bounded batches until none is left.
import { wake } from '../transitions/wake.ts'
import type { Sweep } from './loop.ts'

export const wakeDue: Sweep = {
  name: 'wake-due',
  intervalMs: 1_000,
  async pass(upkeep) {
    let sum = 0
    for (;;) {
      const { count } = await upkeep.act((tx) => wake(tx))
      sum += count
      if (count < 1_000) return { examined: sum, acted: sum }
    }
  },
}
