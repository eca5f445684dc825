// Tells of starts that are overdue, a few pages of active runs in each pass, with a cursor that goes round.
import { noticeOverdue } from '../transitions/notice-overdue.ts'
import type { Sweep } from './loop.ts'

const PAGES = 5

export const noticeOverdueStarts = (sweepMs: number): Sweep => {
  let cursor = ''
  return {
    name: 'notice-overdue',
    intervalMs: sweepMs,
    async pass(upkeep) {
      let examined = 0
      let acted = 0
      for (let i = 0; i < PAGES; i++) {
        const from = cursor
        const pass = await upkeep.act((tx, { settings }) => noticeOverdue(tx, from, settings))
        examined += pass.examined
        acted += pass.acted
        cursor = pass.cursor
        if (cursor === '') break
      }
      return { examined, acted }
    },
  }
}
