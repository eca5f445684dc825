// Enforces limits of time and the grace of cancels.
import { enforceLimits } from '../transitions/enforce-limits.ts'
import type { Sweep } from './loop.ts'

export const enforceTimeLimits = (sweepMs: number): Sweep => ({
  name: 'enforce-limits',
  intervalMs: Math.min(1_000, sweepMs),
  async pass(upkeep) {
    let examined = 0
    let acted = 0
    for (;;) {
      const pass = await upkeep.act((tx, context) => enforceLimits(tx, 200, context))
      examined += pass.examined
      acted += pass.acted
      if (pass.examined < 200 || pass.acted === 0) return { examined, acted }
    }
  },
})
