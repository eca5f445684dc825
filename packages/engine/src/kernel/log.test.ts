import { expect, test } from 'vitest'
import { jsonLog } from './log.ts'

const ring: Record<string, unknown> = {}
ring['self'] = ring

test.each<[string, object]>([
  ['that turns back on itself', { fact: ring }],
  ['in an error that cannot be carried', { fact: Object.assign(new Error('x'), { code: ring }) }],
  [
    'that cannot be read',
    {
      get fact(): never {
        throw new Error('inner')
      },
    },
  ],
])('RUN-31 a fact %s takes nothing from its line, and fails nobody', (_what, facts) => {
  const lines: string[] = []
  const log = jsonLog(
    (line) => lines.push(line),
    () => 0,
  )
  log.info('event', Object.defineProperties({ run: 'r' }, Object.getOwnPropertyDescriptors(facts)))
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      at: '1970-01-01T00:00:00.000Z',
      level: 'info',
      event: 'event',
      run: 'r',
      fact: '(cannot be shown)',
    },
  ])
})

test('RUN-31 RAIL-15 a fact takes nothing from what its line says of itself, and is kept beside it', () => {
  const lines: string[] = []
  const log = jsonLog(
    (line) => lines.push(line),
    () => 0,
  )
  log.warn('mine', { at: 'then', level: 'none', event: 'theirs', run: 'r' })
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    at: '1970-01-01T00:00:00.000Z',
    level: 'warn',
    event: 'mine',
    fact_at: 'then',
    fact_level: 'none',
    fact_event: 'theirs',
    run: 'r',
  })
})
