import { afterEach, expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
afterEach(() => t.close())

it('OPS-05 a mistake of our own that repeats beside an embedded executor, or in a loop, is said at once and then once a minute', async () => {
  const lines: [string, unknown][] = []
  t = await openStore({
    log: { ...noLog, error: (event, facts) => void lines.push([event, facts]) },
  })
  const a = await t.session({ embedded: true })
  await t.start('w')
  const { db } = t.engine.store as SqliteStore
  db.exec('alter table waits rename to gone')
  const mistake = expect.objectContaining({
    message: expect.stringMatching(/no such table: .*waits/) as string,
  }) as unknown
  for (let i = 0; i < 3; i++) {
    await expect(a.claim()).rejects.toThrow(/no such table/)
    await t.pass('reconcile-families')
  }
  const both = (more: object) => [
    ['engine.defect', { call: 'claim', error: mistake, ...more }],
    ['sweep.defect', { sweep: 'reconcile-families', error: mistake, ...more }],
  ]
  expect(lines).toEqual(both({}))
  lines.length = 0
  t.later(60_000)
  await expect(a.claim()).rejects.toThrow(/no such table/)
  await t.pass('reconcile-families')
  expect(lines).toEqual(both({ repeated: 2 }))
  db.exec('alter table gone rename to waits')
})
