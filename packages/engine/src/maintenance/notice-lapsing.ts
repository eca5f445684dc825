// Tells of approvals that are about to lapse.
import { noticeLapsing } from '../transitions/notice-lapsing.ts'
import type { Sweep } from './loop.ts'

export const noticeLapsingApprovals = (sweepMs: number): Sweep => ({
  name: 'notice-lapsing',
  intervalMs: sweepMs,
  async pass(upkeep) {
    let examined = 0
    let acted = 0
    for (;;) {
      const pass = await upkeep.act((tx, { settings }) => noticeLapsing(tx, settings))
      examined += pass.examined
      acted += pass.acted
      if (!pass.more) return { examined, acted }
    }
  },
})
