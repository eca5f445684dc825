// What the simulator found in the engine, each as the shortest story that shows it.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { defaults } from '../../src/model/settings.ts'
import { settle } from '../../src/model/settle.ts'
import type { ChildStart } from '../../src/model/work.ts'
import { endLapsed } from '../../src/transitions/end-session.ts'
import { aRun, NOW } from '../support/run.ts'
import type { TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const both = { definitions: [definition('w'), definition('kid')] }

const kid = (id: string, awaited: boolean): ChildStart => ({
  id,
  workflow: 'kid',
  input: 'null',
  awaited,
  onParentEnd: awaited ? 'cancel' : 'detach',
})

test('RUN-12 a write without an entry does not reset the count of losses', async () => {
  // given a run that was lost once, when its next attempt records a wait and no entry
  const first = await t.session()
  const id = await t.start('w')
  only(await first.claim())
  await t.kill(first)
  const second = await t.session()
  await second.write(only(await second.claim()), {
    waits: [{ key: 'nap', kind: 'time', dueInMs: 5 }],
  })

  // then the loss still counts
  expect(t.run(id)).toMatchObject({ status: 'running', losses: 1 })
})

test('S4 a failed attempt is charged though a pause takes effect with it', () => {
  const run = aRun('running', { pauseRequestedAt: NOW, failures: 0 })
  const { run: after } = settle(
    run,
    { kind: 'fail', reason: 'error', note: 'boom', retryInMs: 100 },
    NOW,
    defaults,
  )
  expect(after).toMatchObject({ status: 'paused', failures: 1 })
})

test('S8 a parent is not told of the end of a run that goes on as another', async () => {
  // given a parent that waits for a child, when the child continues as another run and the sweep looks
  const session = await t.session(both)
  const id = await t.start('w')
  const parent = only(await session.claim())
  await session.write(parent, {
    waits: [{ key: 'kid', kind: 'child', child: kid('run_kid', true) }],
    end: { kind: 'suspend', keys: ['kid'] },
  })
  await session.end(only(await session.claim()), {
    kind: 'continue',
    input: null,
    runId: 'run_next',
  })
  await t.pass('reconcile-families')
  await t.pass('apply-orders')

  // then the parent waits on; and when the last run of the series ends, it is told, though that order was lost
  expect(t.run(id)).toMatchObject({ status: 'waiting', wait_on: 'child' })
  await session.complete(only(await session.claim()), 7)
  t.sql('delete from orders returning id')
  await t.pass('reconcile-families')
  await t.pass('apply-orders')
  expect(t.run(id)).toMatchObject({ status: 'queued' })
})

test('RUN-30 a signal that is sent again after its run was continued is a duplicate', async () => {
  const session = await t.session()
  const id = await t.start('w')
  const command = { run: id, id: 'sig_1', name: 'go', payload: '1', by: null }
  const run = only(await session.claim())
  await session.write(run, { waits: [{ key: 'go', kind: 'signal', name: 'go' }] })
  await t.engine.signal(command)
  await session.write(run, { entries: [entry(1, 'go', { kind: 'signal' })] })
  await session.end(run, { kind: 'continue', input: null, runId: 'run_next' })

  // when the sender, who never got the answer, sends it again, then the successor does not receive it
  expect(await t.engine.signal(command)).toMatchObject({ ok: true, duplicate: true })
  expect(t.sql('select id from signals')).toHaveLength(1)
})

test('RUN-34 a continued run’s child does not take the place of one that its successor starts', async () => {
  const session = await t.session(both)
  await t.start('w')
  const run = only(await session.claim())
  await session.write(run, {
    entries: [entry(1, 'kid', { kind: 'spawn' })],
    spawns: [{ ...kid('run_kid1', false), as: 'kid' }],
    end: { kind: 'continue', input: null, runId: 'run_next' },
  })

  // when the successor starts a child under the same key, then there are two
  const next = (await session.claim()).find((each) => each.run === 'run_next')
  const answer = await session.write(next ?? run, {
    entries: [entry(1, 'kid', { kind: 'spawn' })],
    spawns: [{ ...kid('run_kid2', false), as: 'kid' }],
  })
  expect(answer).toMatchObject({ ok: true })
  expect(t.sql(`select id from runs where workflow = 'kid' and parent = 'run_next'`)).toHaveLength(
    2,
  )
})

test('RUN-28 a late copy of a write opens no wait again, and of a suspend parks no run', async () => {
  // given a run that has received what it waited for, and works on
  const session = await t.session()
  const id = await t.start('w')
  const run = only(await session.claim())
  const recorded = { waits: [{ key: 'go', kind: 'signal' as const, name: 'go' }] }
  const suspended = { ...recorded, end: { kind: 'suspend' as const, keys: ['go'] } }
  await t.engine.signal({ run: id, id: 'sig_1', name: 'go', payload: '1', by: null })
  await session.write(run, suspended)
  await session.write(run, { entries: [entry(1, 'go', { kind: 'signal' })] })

  // when copies of its earlier writes come late, then nothing is waited for and the run goes on
  expect(await session.write(run, recorded)).toMatchObject({ ok: true, ended: null })
  expect(await session.write(run, suspended)).toMatchObject({ ok: true, ended: null })
  expect(t.sql('select state from waits')).toEqual([{ state: 'taken' }])
  expect(t.run(id)).toMatchObject({ status: 'running' })
})

test('RUN-07 an attempt that others have ended is not told that its new entries are stored', async () => {
  const session = await t.session()
  const id = await t.start('w')
  const run = only(await session.claim())
  await t.engine.takeFrom(id, 'op', 'test')

  const answer = await session.write(run, {
    entries: [entry(1)],
    end: { kind: 'hand_back', reason: 'shutdown' },
  })
  expect(answer).toMatchObject({ ok: false, code: 'stale_attempt' })
})

test('RUN-15 an end orders the end of the children that its own write starts', async () => {
  const session = await t.session(both)
  await t.start('w')
  const run = only(await session.claim())
  await session.write(run, {
    entries: [entry(1, 'kid', { kind: 'spawn' })],
    spawns: [{ ...kid('run_kid', false), as: 'kid', onParentEnd: 'cancel' }],
    end: { kind: 'complete', output: null },
  })
  expect(t.sql('select id from orders')).toEqual([{ id: 'cancel:run_kid' }])
})

test('S14 a clock that jumps after the sweep has looked at it ends no session', async () => {
  // given a session whose lease lasts, when the clock jumps between the look and the transaction
  const session = await t.session()
  const looked = t.clock.time.now()
  t.later(3_600_000)

  // then what had not lapsed at the look is not ended
  expect(await t.engine.store.run((tx) => endLapsed(tx, looked))).toMatchObject({
    ended: [],
  })
  expect(await session.renew()).toMatchObject({ ok: true })
})

test('S14 a clock that jumps back after the sweep has looked at it, and ahead once a session has renewed, ends no session', async () => {
  // given a session that renewed by a clock that was hours behind the look, when the sweep's transaction begins by one far ahead
  const session = await t.session()
  const looked = t.clock.time.now() + 7_200_000
  t.later(10_800_000)
  const lapsed = (at: number) =>
    t.engine.store.run(function* (tx) {
      return (yield* endLapsed(tx, at, undefined, at + 2_000)).ended.map(({ id }) => id)
    })

  // then nobody is ended, since that clock says more than can have gone by since the look
  expect(await lapsed(looked)).toEqual([])
  // nor where it has not come as far again as it was at the look (found by seed 61203, world 1312)
  const ahead = t.clock.time.now() + 4_000_000
  expect(await t.engine.store.run((tx) => endLapsed(tx, ahead))).toMatchObject({ ended: [] })
  // and by a look that it agrees with, who has lapsed is
  expect(await lapsed(t.clock.time.now())).toEqual([session.id])
})
