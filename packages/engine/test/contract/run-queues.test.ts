// What an autoscaler goes by: what waits in a queue, for how long, and which slots are free.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { queueNamed, queues } from '../../src/queries/queues.ts'
import { pauseLine, resumeLine } from '../../src/transitions/pause-line.ts'
import type { TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

const MINUTE = 60_000
let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const queue = (name = 'default') => t.engine.read((tx) => queueNamed(tx, name))
const both = { definitions: [definition('w'), definition('gpu', { queue: 'gpu' })] }

test('OPS-05 a queue says how many runs wait, since when, how many are held, and which slots are free', async () => {
  const session = await t.session(both)
  expect(await queue()).toMatchObject({
    waiting: 0,
    oldestWaitMs: 0,
    held: 0,
    wanted: 0,
    executors: 1,
    capacity: 10,
    free: 10,
  })
  for (let i = 0; i < 3; i++) await t.start('w')
  await t.start('gpu')
  t.later(MINUTE)
  await t.start('w')
  expect(await queue()).toMatchObject({ waiting: 4, oldestWaitMs: MINUTE, held: 0, wanted: 4 })
  const claimed = await session.claim(4)
  const held = claimed.filter(({ workflow }) => workflow === 'w').length
  expect(await queue()).toMatchObject({
    waiting: 4 - held,
    held,
    wanted: 4,
    free: 10 - claimed.length,
  })
  // both queues share the slots of the one executor
  const all = await t.engine.read(queues)
  expect(all.queues.map((each) => [each.queue, each.wanted, each.free])).toEqual([
    ['default', 4, 10 - claimed.length],
    ['gpu', 1, 10 - claimed.length],
  ])
})

test('OPS-05 a run that was woken or handed back waits since then, and not since it was started', async () => {
  const session = await t.session()
  await t.start('w', { id: 'run_a' })
  await t.start('w', { id: 'run_b' })
  const [a, b] = await session.claim()
  if (!a || !b) throw new Error('two runs were not claimed')
  await session.write(a, {
    waits: [{ key: 'go', kind: 'signal', name: 'go' }],
    end: { kind: 'suspend', keys: ['go'] },
  })
  t.later(10 * MINUTE)
  await session.end(b, { kind: 'hand_back', reason: 'shutdown' })
  t.later(MINUTE)
  expect(await queue()).toMatchObject({ waiting: 1, oldestWaitMs: MINUTE })
  expect(only(await session.claim()).run).toBe('run_b')
  await t.engine.signal({ run: 'run_a', id: 's', name: 'go', payload: null, by: null })
  t.later(2 * MINUTE)
  expect(await queue()).toMatchObject({ waiting: 1, oldestWaitMs: 2 * MINUTE, held: 1 })
})

test('OPS-05 what nobody serves is wanted also after it was set aside, so that executors come from none', async () => {
  const session = await t.session()
  await session.closeSession()
  await t.start('w')
  for (let i = 0; i < 60 && t.sql(`select id from runs where status = 'queued'`).length > 0; i++) {
    t.later(MINUTE)
    await t.settle('park-unserved')
  }
  expect(only(t.sql('select status, reason from runs'))).toEqual({
    status: 'waiting',
    reason: 'no_executor',
  })
  expect(await queue()).toMatchObject({ depth: 0, waiting: 1, wanted: 1, executors: 0, free: 0 })
})

test('OPS-05 what is paused wants no executor; one that drains, or keeps a slot under a marker, has no room to give', async () => {
  const session = await t.session()
  const other = await t.session()
  await t.start('w')
  const line = { name: 'default', by: 'ann', why: null, until: null, forMs: null }
  await t.engine.act((tx) => pauseLine(tx, { kind: 'queue', ...line }))
  expect(await queue()).toMatchObject({ depth: 1, waiting: 0, wanted: 0 })
  await t.engine.act((tx) => resumeLine(tx, 'queue', 'default'))
  await t.engine.act((tx) => pauseLine(tx, { kind: 'workflow', ...line, name: 'w' }))
  expect(await queue()).toMatchObject({ depth: 1, waiting: 0, oldestWaitMs: 0 })
  await t.engine.act((tx) => resumeLine(tx, 'workflow', 'w'))
  await other.renew({ draining: true })
  expect(await queue()).toMatchObject({ waiting: 1, executors: 1, capacity: 10, free: 10 })
  const set = (status: object) =>
    t.sql(
      `update sessions set status = ? where id = ? returning id`,
      JSON.stringify(status),
      session.id,
    )
  set({ markers: [{ kind: 'deaf', run: 'run_1', note: 'x' }] })
  expect(await queue()).toMatchObject({ free: 9 })
  set({ unreleased: [{ kind: 'taken', run: 'run_1', note: 'x' }] })
  expect(await queue()).toMatchObject({ executors: 1, capacity: 10, free: 0 })
})

test('OPS-05 of a queue that nobody has used nothing waits', async () => {
  expect(await queue('nothing yet')).toMatchObject({
    queue: 'nothing yet',
    waiting: 0,
    wanted: 0,
    free: 0,
    lanes: [],
  })
})
