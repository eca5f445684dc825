import { expect, it } from 'vitest'
import type { Log } from './log.ts'
import { noLog } from './log.ts'
import { seldom } from './seldom.ts'

it('OPS-05 a line that repeats is said at once, then once a minute with how often it was kept back, each kind for itself', () => {
  const lines: unknown[] = []
  const log: Log = {
    ...noLog,
    error: (_event, facts) => void lines.push(facts),
    debug: () => void lines.push('debug'),
  }
  let now = 0
  const say = seldom(log, { mono: () => now })
  say('defect', 'a', { n: 1 })
  say('defect', 'a', { n: 2 })
  say('defect', 'b', { n: 3 })
  now = 59_999
  say('defect', 'a', { n: 4 })
  now = 60_000
  say('defect', 'a', { n: 5 })
  now = 200_000
  say('defect', 'a', { n: 6 })
  expect(lines).toEqual([{ n: 1 }, 'debug', { n: 3 }, 'debug', { n: 5, repeated: 2 }, { n: 6 }])
})
