import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AttemptWrite, ClaimedRun, WaitRecord } from '../../src/model/work.ts'
import type { Session, TestStore } from '../support/store.ts'
import { entry, only, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
beforeEach(async () => {
  t = await openStore()
  a = await t.session({ embedded: true })
})
afterEach(() => t.close())

const started = async (): Promise<ClaimedRun> => {
  const id = await t.start('w')
  await t.pass('poll-lanes')
  const found = (await a.claim(1))[0]
  if (found?.run !== id) throw new Error(`claimed ${found?.run}, not ${id}`)
  return found
}
const suspended = async (...waits: WaitRecord[]): Promise<ClaimedRun> => {
  const run = await started()
  const keys = waits.map(({ key }) => key)
  expect(await a.write(run, { waits, end: { kind: 'suspend', keys } })).toMatchObject({
    ok: true,
    ended: 'waiting',
  })
  return run
}
const go = (key: string, more: Partial<WaitRecord> = {}): WaitRecord => ({
  key,
  kind: 'signal',
  name: 'go',
  ...more,
})
const nap = (ms: number, key = 'nap'): WaitRecord => ({ key, kind: 'time', dueInMs: ms })
const send = (run: string, id: string, payload: unknown = id, name = 'go') =>
  t.engine.signal({ run, id, name, payload: JSON.stringify(payload), by: null })
const states = (run: string) =>
  Object.fromEntries(
    t
      .sql('select key, state from waits where run = ?', run)
      .map((row) => [row['key'], row['state']]),
  )
const next = async (): Promise<ClaimedRun> => {
  await t.pass('poll-lanes')
  return only(await a.claim(1))
}

describe('RUN-28 waits', () => {
  it('RUN-28 hold no executor: a suspended run has no holder and the session goes on', async () => {
    const run = await suspended(nap(60_000))
    expect(t.run(run.run)).toMatchObject({ status: 'waiting', session: null, wait_on: 'time' })
    await t.start('w')
    expect(await a.claim(1)).toHaveLength(1)
  })

  it('RUN-28 a wait is recorded when it is reached, while the run stays running, and resolves in the same attempt', async () => {
    const run = await started()
    expect(await a.write(run, { waits: [go('x')] })).toMatchObject({ ended: null, satisfied: [] })
    const told: unknown[] = []
    t.port.listen(a.id, (each) => told.push(each))
    await send(run.run, 's1')
    expect(told).toMatchObject([{ run: run.run, attempt: 1, directive: 'waits' }])
    expect(t.run(run.run)['status']).toBe('running')
    expect(await a.write(run, { look: true })).toMatchObject({
      satisfied: [{ key: 'x', state: 'satisfied', result: '"s1"' }],
    })
  })

  it('RUN-28 the suspend reads its waits again under the lock and answers satisfied with their keys', async () => {
    const run = await started()
    await a.write(run, { waits: [go('x'), nap(10)] })
    t.later(10)
    expect(await a.end(run, { kind: 'suspend', keys: ['x', 'nap'] })).toMatchObject({
      ended: null,
      satisfied: [{ key: 'nap', state: 'lapsed' }],
    })
    expect(t.run(run.run)).toMatchObject({ status: 'running', session: a.id })
  })

  it('RUN-28 a signal between the record and the suspend is not missed', async () => {
    const run = await started()
    await a.write(run, { waits: [go('x')] })
    await send(run.run, 's1')
    expect(await a.end(run, { kind: 'suspend', keys: ['x'] })).toMatchObject({
      ended: null,
      satisfied: [{ key: 'x' }],
    })
  })

  it('RUN-28 an open wait at which no branch stands parks the run, and says which', async () => {
    const run = await started()
    await a.write(run, { waits: [go('x'), go('y')] })
    await a.end(run, { kind: 'suspend', keys: ['x'] })
    expect(t.run(run.run)).toMatchObject({ status: 'paused', reason: 'nondeterminism' })
    expect(t.run(run.run)['note']).toContain('y (signal)')
  })

  it('RUN-28 a wake that finds nothing due is harmless', async () => {
    const run = await suspended(nap(60_000))
    const before = t.run(run.run)
    await t.pass('wake-due', 'poll-lanes', 'admit-waiting')
    expect(t.run(run.run)).toEqual(before)
  })

  it('L3 a wake-up that nobody told of is made good by the poll', async () => {
    const b = await t.session()
    expect(await b.claim(1)).toEqual([])
    t.sql(
      `insert into runs (id, workflow, version, queue, lane, tag, rank, input_hash, status, created_at, root, series)
       values ('run_x', 'w', '1', 'default', '["default","w","1"]', 1, 1, 'h', 'queued', 1, 'run_x', 'run_x') returning id`,
    )
    expect(await b.claim(1)).toEqual([])
    await t.pass('poll-lanes')
    expect((await b.claim(1)).map(({ run }) => run)).toEqual(['run_x'])
  })

  it('RUN-28 race and any close their losers in the transaction that records the winner', async () => {
    const run = await started()
    await a.write(run, { waits: [go('race/a'), nap(5, 'race/b')] })
    await a.write(run, {
      entries: [entry(1, 'race', { kind: 'race' })],
      closes: ['race/a', 'race/b'],
    })
    expect(states(run.run)).toEqual({ 'race/a': 'closed', 'race/b': 'closed' })
    expect(await a.end({ ...run, entries: 1 }, { kind: 'complete', output: null })).toMatchObject({
      ok: true,
    })
  })
})

describe('RUN-29 timers', () => {
  const wake = (): Promise<void> => t.pass('wake-due')

  it('RUN-29 fire at their instant by the store’s clock, never before, at most once', async () => {
    const run = await suspended(nap(1_000))
    expect(t.run(run.run)['ready_at']).toBe(t.clock.time.now() + 1_000)
    t.later(999)
    await wake()
    expect(t.run(run.run)['status']).toBe('waiting')
    t.later(1)
    await wake()
    expect(t.run(run.run)).toMatchObject({ status: 'queued', ready_at: null })
    const claimed = await next()
    expect(claimed.waits).toMatchObject([{ key: 'nap', state: 'lapsed' }])
    await a.write(claimed, { entries: [entry(1, 'nap', { kind: 'time' })] })
    expect(states(run.run)).toEqual({ nap: 'taken' })
    await a.end({ ...claimed, entries: 1 }, { kind: 'hand_back', reason: 'shutdown' })
    t.later(20_000)
    await t.settle()
    expect((await next()).waits).toEqual([])
  })

  it('RUN-29 never for a canceled run', async () => {
    const run = await suspended(nap(1_000))
    await t.engine.cancel({ run: run.run, by: 'ana', reason: null })
    const before = t.run(run.run)
    t.later(2_000)
    await t.settle()
    expect(t.run(run.run)).toEqual(before)
    expect(states(run.run)).toEqual({ nap: 'closed' })
  })

  it('RUN-29 ready_at is the earliest instant at which one of its waits is due', async () => {
    const run = await suspended(go('x', { dueInMs: 5_000 }), nap(2_000))
    expect(t.run(run.run)).toMatchObject({
      wait_on: 'signal',
      ready_at: t.clock.time.now() + 2_000,
    })
  })

  it('RUN-29 a delay of a month and more is kept', async () => {
    const ms = 40 * 86_400_000
    const run = await suspended(nap(ms))
    t.later(ms - 1)
    await wake()
    expect(t.run(run.run)['status']).toBe('waiting')
    t.later(1)
    await wake()
    expect(t.run(run.run)['status']).toBe('queued')
  })

  it('RUN-29 a delayed start waits for a slot, not in what claims look at, until its instant', async () => {
    const id = await t.start('w', { delayMs: 1_000 })
    expect(t.run(id)).toMatchObject({ status: 'waiting', wait_on: 'slot', reason: 'delayed' })
    await t.settle('admit-waiting')
    expect(await a.claim(1)).toEqual([])
    t.later(1_000)
    await wake()
    expect((await a.claim(1)).map(({ run }) => run)).toEqual([id])
  })

  it('RUN-29 thousands that are due at once all fire', async () => {
    await t.engine.startMany(
      Array.from({ length: 2_500 }, (_, i) => ({
        command: { id: `run_${i}`, workflow: 'w', input: null, delayMs: 5 },
      })),
    )
    t.later(5)
    await wake()
    expect(t.sql('select status, count(*) as n from runs group by status')).toEqual([
      { status: 'queued', n: 2_500 },
    ])
  })
})

describe('RUN-30 signals', () => {
  it('RUN-30 first in, first out per name, to the earliest recorded wait', async () => {
    const run = await started()
    for (const id of ['s1', 's2', 's3']) await send(run.run, id)
    await send(run.run, 'o1', 'other', 'other')
    expect(await a.write(run, { waits: [go('x'), go('y')] })).toMatchObject({
      satisfied: [
        { key: 'x', result: '"s1"' },
        { key: 'y', result: '"s2"' },
      ],
    })
  })

  it('RUN-30 one that arrives before its wait is kept, across attempts', async () => {
    const run = await started()
    await send(run.run, 's1')
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    const again = await next()
    expect(
      await a.write(again, { waits: [go('x')], end: { kind: 'suspend', keys: ['x'] } }),
    ).toMatchObject({ ended: null, satisfied: [{ key: 'x', result: '"s1"' }] })
  })

  it('RUN-30 makes a waiting run due at once', async () => {
    const run = await suspended(go('x'))
    await send(run.run, 's1')
    expect((await a.claim(1)).map(({ run: id, waits }) => [id, waits[0]?.state])).toEqual([
      [run.run, 'satisfied'],
    ])
  })

  it('RUN-30 one of another name is kept and wakes nobody', async () => {
    const run = await suspended(go('x'))
    await send(run.run, 's1', 1, 'other')
    expect(t.run(run.run)['status']).toBe('waiting')
    expect(only(t.sql('select * from signals'))).toMatchObject({ name: 'other', taken_by: null })
  })

  it('RUN-30 the sender’s id removes duplicates, also after it was read', async () => {
    const run = await started()
    expect(await send(run.run, 's1', 'one')).toMatchObject({ duplicate: false })
    expect(await send(run.run, 's1', 'two')).toMatchObject({ ok: true, duplicate: true })
    await a.write(run, { waits: [go('x')] })
    await a.write(run, { entries: [entry(1, 'x', { kind: 'signal' })] })
    expect(await send(run.run, 's1', 'three')).toMatchObject({ duplicate: true })
    expect(t.sql('select payload from signals')).toEqual([{ payload: '"one"' }])
  })

  it('RUN-30 at most so many, and so many bytes, unread a run; read ones make room', async () => {
    await t.close()
    t = await openStore({ settings: { signalsMax: 3, signalsMaxBytes: 20 } })
    a = await t.session({ embedded: true })
    const run = await started()
    expect(await send(run.run, 'big', 'x'.repeat(19))).toMatchObject({ code: 'signals_full' })
    for (const id of ['s1', 's2', 's3']) expect(await send(run.run, id)).toMatchObject({ ok: true })
    expect(await send(run.run, 's4')).toMatchObject({ ok: false, code: 'signals_full' })
    expect(t.sql('select count(*) as n from signals')).toEqual([{ n: 3 }])
    await a.write(run, { waits: [go('x')] })
    await a.write(run, { entries: [entry(1, 'x', { kind: 'signal' })] })
    expect(await send(run.run, 's4')).toMatchObject({ ok: true })
  })

  it('RUN-30 to a terminal run it is refused with its status', async () => {
    const run = await started()
    await a.complete(run)
    expect(await send(run.run, 's1')).toMatchObject({
      ok: false,
      code: 'already_ended',
      detail: { status: 'succeeded' },
    })
    expect(await send('run_none', 's1')).toMatchObject({ code: 'not_found' })
  })

  it('RUN-30 consumption and the entry commit together: a lost attempt receives it again', async () => {
    const run = await suspended(go('x'))
    await send(run.run, 's1')
    only(await a.claim(1))
    await t.kill(a)
    a = await t.session({ embedded: true })
    const again = await next()
    expect(again.waits).toMatchObject([{ key: 'x', state: 'satisfied', result: '"s1"' }])
    await a.write(again, { entries: [entry(1, 'x', { kind: 'signal' })] })
    expect(only(t.sql('select * from signals'))['read_at']).not.toBeNull()
  })

  it('RUN-30 a null payload is a value, never a time-out', async () => {
    const run = await suspended(go('x', { dueInMs: 1_000 }))
    await send(run.run, 's1', null)
    t.later(2_000)
    await t.settle()
    expect((await next()).waits).toMatchObject([{ state: 'satisfied', result: 'null' }])
  })

  it('S12 the time-out and the signal exclude each other, whichever comes first', async () => {
    const late = await suspended(go('x', { dueInMs: 1_000 }))
    t.later(1_000)
    await t.pass('wake-due')
    await send(late.run, 's1')
    const claimed = await next()
    expect(claimed.waits).toMatchObject([{ key: 'x', state: 'lapsed', result: null }])
    expect(only(t.sql('select taken_by from signals'))['taken_by']).toBeNull()
  })

  it('RUN-30 a signal that a race’s loser had taken goes to the next wait', async () => {
    const run = await started()
    await send(run.run, 's1')
    await a.write(run, { waits: [go('race/a')] })
    expect(
      await a.write(run, {
        entries: [entry(1, 'race', { kind: 'race' })],
        closes: ['race/a'],
        waits: [go('later')],
      }),
    ).toMatchObject({ satisfied: [{ key: 'later', result: '"s1"' }] })
  })

  it('RUN-30 a payload over its limit is refused by size', async () => {
    const run = await started()
    expect(await send(run.run, 's1', 'x'.repeat(1024 ** 2))).toMatchObject({
      code: 'payload_too_large',
    })
  })
})

describe('DAG-11 approvals', () => {
  const ask = (more: Partial<WaitRecord> = {}, deciders: string[] = []): WaitRecord => ({
    key: 'ship',
    kind: 'approval',
    dueInMs: 10_000,
    approval: { prompt: 'ship it?', data: '{"v":1}', deciders },
    ...more,
  })
  const decide = (
    run: string,
    decision: 'approved' | 'denied',
    by = 'ana',
    payload: unknown = null,
  ) =>
    t.engine.decide({
      approval: `${run}:ship`,
      decision,
      by,
      reason: 'because',
      payload: payload === null ? null : JSON.stringify(payload),
    })
  const approval = () => only(t.sql('select * from approvals'))

  it('DAG-11 is made of run and key, with prompt, data, deciders and deadline', async () => {
    const run = await suspended(ask({}, ['ana']))
    expect(t.run(run.run)['wait_on']).toBe('approval')
    expect(approval()).toMatchObject({
      id: `${run.run}:ship`,
      prompt: 'ship it?',
      data: '{"v":1}',
      deciders: '["ana"]',
      deadline: t.clock.time.now() + 10_000,
      state: 'open',
    })
  })

  it('DAG-11 has a day where no deadline is given', async () => {
    const run = await started()
    await a.write(run, {
      waits: [
        { key: 'ship', kind: 'approval', approval: { prompt: '?', data: null, deciders: [] } },
      ],
    })
    expect(approval()['deadline']).toBe(t.clock.time.now() + 86_400_000)
    t.later(86_400_000)
    await a.end(run, { kind: 'suspend', keys: ['ship'] })
    await t.settle()
    expect(approval()['state']).toBe('lapsed')
  })

  it('DAG-11 decision, its wait’s satisfaction and the run’s becoming due commit together', async () => {
    const run = await suspended(ask())
    const trips: number[] = []
    expect(await decide(run.run, 'approved', 'ana', { ok: 1 })).toMatchObject({
      ok: true,
      decision: 'approved',
      by: 'ana',
    })
    trips.push(t.engine.store.roundTrips)
    expect(approval()).toMatchObject({ state: 'approved', decided_by: 'ana' })
    expect(t.run(run.run)['status']).toBe('queued')
    const [wait] = (await next()).waits
    expect(JSON.parse(String(wait?.result))).toEqual({
      decision: 'approved',
      by: 'ana',
      reason: 'because',
      at: t.clock.time.now(),
      payload: { ok: 1 },
    })
  })

  it('S10 of two decisions the first stands, and the second is told of it', async () => {
    const run = await suspended(ask())
    const both = await Promise.all([
      decide(run.run, 'denied', 'bob'),
      decide(run.run, 'approved', 'ana'),
    ])
    // where transactions go on beside each other, either may be the first
    const [won, lost] = [both.find(({ ok }) => ok), both.find(({ ok }) => !ok)]
    expect(won).toMatchObject({ ok: true })
    const { decision, by } = won as { decision: string; by: string }
    expect([
      ['denied', 'bob'],
      ['approved', 'ana'],
    ]).toContainEqual([decision, by])
    expect(lost).toMatchObject({
      code: 'already_decided',
      detail: { decision, by, reason: 'because' },
    })
    expect(approval()['state']).toBe(decision)
  })

  it('DAG-11 one at or after the deadline writes the lapse and is refused', async () => {
    const run = await suspended(ask())
    t.later(10_000)
    expect(await decide(run.run, 'approved')).toMatchObject({ ok: false, code: 'approval_lapsed' })
    expect(approval()).toMatchObject({ state: 'lapsed', decided_by: null })
    expect(t.run(run.run)['status']).toBe('queued')
    expect((await next()).waits).toMatchObject([{ key: 'ship', state: 'lapsed', result: null }])
    expect(await decide(run.run, 'approved')).toMatchObject({ code: 'approval_lapsed' })
  })

  it('DAG-11 one moment before the deadline counts', async () => {
    const run = await suspended(ask())
    t.later(9_999)
    expect(await decide(run.run, 'approved')).toMatchObject({ ok: true })
  })

  it('DAG-11 the deadline passes by itself too', async () => {
    const run = await suspended(ask())
    t.later(10_000)
    await t.pass('wake-due')
    expect(approval()['state']).toBe('lapsed')
    expect(await decide(run.run, 'approved')).toMatchObject({ code: 'approval_lapsed' })
  })

  it('DAG-11 only those who are allowed may decide', async () => {
    const run = await suspended(ask({}, ['ana', 'bob']))
    expect(await decide(run.run, 'approved', 'eve')).toMatchObject({
      ok: false,
      code: 'not_allowed',
      detail: { deciders: ['ana', 'bob'] },
    })
    expect(approval()['state']).toBe('open')
    expect(await decide(run.run, 'approved', 'bob')).toMatchObject({ ok: true })
  })

  it('DAG-11 one that the run no longer asks is canceled, and a decision on it refused', async () => {
    const run = await suspended(ask())
    await t.engine.cancel({ run: run.run, by: 'ana', reason: null })
    expect(approval()['state']).toBe('canceled')
    expect(await decide(run.run, 'approved')).toMatchObject({
      code: 'already_decided',
      detail: { decision: 'canceled' },
    })
    expect(
      await t.engine.decide({
        approval: 'run_x:y',
        decision: 'denied',
        by: 'a',
        reason: null,
        payload: null,
      }),
    ).toMatchObject({ code: 'not_found' })
  })

  it('DAG-12 several in one run each stand on their own', async () => {
    const run = await suspended(ask(), ask({ key: 'tag' }))
    await t.engine.decide({
      approval: `${run.run}:tag`,
      decision: 'denied',
      by: 'a',
      reason: null,
      payload: null,
    })
    expect(states(run.run)).toEqual({ ship: 'open', tag: 'satisfied' })
  })
})

describe('RUN-31 values in the store', () => {
  const hostile = [
    '\u0000',
    '\ud800',
    '\udc00\ud800',
    'a\u0000b',
    '\u2028',
    '😀',
    '"\\\'',
    '{now} $1 ?1',
    '',
  ]

  it('RUN-31 NUL, lone surrogates and all the rest round-trip through entries, signals, states and outputs', async () => {
    const text = JSON.stringify({ hostile, ['__proto__']: 1, constructor: { x: hostile } })
    const id = await t.start('w', { input: text })
    const run = only(await a.claim(1))
    expect(run.input).toBe(text)
    const write: Partial<AttemptWrite> = {
      entries: [entry(1, 'a', { output: text }), entry(2, 'b', { output: null, error: text })],
      waits: [go('x'), { ...nap(1, 'r'), kind: 'retry', tries: 1, error: text }],
      state: text,
    }
    await a.write(run, write)
    await t.engine.signal({ run: id, id: 's1', name: 'go', payload: text, by: null })
    await a.end({ ...run, entries: 2 }, { kind: 'hand_back', reason: 'shutdown' })
    const again = only(await a.claim(1))
    expect(again.journal.map(({ output, error }) => output ?? error)).toEqual([text, text])
    expect(again.waits.find(({ key }) => key === 'x')?.result).toBe(text)
    expect(again.waits.find(({ key }) => key === 'r')?.error).toBe(text)
    await a.end(again, { kind: 'complete', output: text })
    expect(t.run(id)).toMatchObject({ output: text, state: text })
  })

  it('RUN-31 prompts, notes and signal names of any text do no harm', async () => {
    for (const text of ['{now} $1', "'); drop table runs; --", 'ä😀', '__proto__']) {
      const run = await started()
      await a.write(run, {
        waits: [
          { key: 'p', kind: 'approval', approval: { prompt: text, data: null, deciders: [text] } },
          { key: 's', kind: 'signal', name: text },
        ],
      })
      await t.engine.signal({ run: run.run, id: 'x', name: text, payload: '1', by: text })
      expect(states(run.run)).toMatchObject({ s: 'satisfied' })
      expect(only(t.sql('select prompt from approvals where run = ?', run.run))['prompt']).toBe(
        text,
      )
      await a.end(run, { kind: 'fail', reason: 'error', note: text, error: '{}' })
      expect(t.run(run.run)['note']).toBe(text)
    }
  })

  it('RUN-31 NUL cannot name a signal, and is shown as a replacement in a sentence', async () => {
    const run = await started()
    expect(await send(run.run, 's1', 1, 'a\u0000b')).toMatchObject({ code: 'invalid_request' })
    expect(await send(run.run, 'a\u0000b')).toMatchObject({ code: 'invalid_request' })
    expect(await a.write(run, { waits: [go('x', { name: 'a\u0000b' })] })).toMatchObject({
      code: 'invalid_request',
    })
    await a.end(run, { kind: 'fail', reason: 'error', note: 'a\u0000b', error: '{}' })
    expect(t.run(run.run)).toMatchObject({ status: 'failed', note: 'a\ufffdb' })
  })

  it('RUN-31 S9 a payload over the limit is refused whoever sends it, and its run goes on', async () => {
    await t.close()
    t = await openStore({ settings: { payloadMaxBytes: 20 } })
    a = await t.session()
    const fits = JSON.stringify('ä'.repeat(9))
    const over = JSON.stringify('ä'.repeat(10))
    const approval = { prompt: '?', data: over, deciders: [] }
    const writes: Partial<AttemptWrite>[] = [
      { entries: [entry(1, 'a', { output: fits }), entry(2, 'b', { output: over })] },
      { entries: [entry(1, 'a', { output: over })], end: { kind: 'complete', output: null } },
      { end: { kind: 'complete', output: over } },
      { waits: [{ key: 'ok', kind: 'approval', approval }] },
      {
        waits: [
          { key: 'ok', kind: 'approval', approval: { prompt: over, data: null, deciders: [] } },
        ],
      },
      {
        waits: [
          {
            key: 'ok',
            kind: 'approval',
            approval: { prompt: '?', data: null, deciders: ['ä'.repeat(8), 'anyon'] },
          },
        ],
      },
      { stream: [{ stream: 'log', seq: 1, data: over }] },
      { state: over },
      { progress: over },
    ]
    const run = await started()
    const before = t.run(run.run)
    for (const write of writes)
      expect(await a.write(run, write)).toMatchObject({
        ok: false,
        code: 'payload_too_large',
        message: expect.stringMatching(/has 22 bytes; the limit is 20/) as string,
        detail: { run: run.run, bytes: 22, limit: 20 },
      })
    expect(t.run(run.run)).toEqual(before)
    expect(
      await a.write(run, {
        entries: [entry(1, 'a', { output: fits })],
        end: { kind: 'complete', output: fits },
      }),
    ).toMatchObject({ ok: true, ended: 'succeeded' })
  })

  it('RUN-31 the journal’s limits are settings, refused clearly', async () => {
    await t.close()
    t = await openStore({ settings: { entriesMax: 2, journalMaxBytes: 100 } })
    a = await t.session({ embedded: true })
    const run = await started()
    expect(
      await a.write(run, { entries: [entry(1, 'a', { output: JSON.stringify('x'.repeat(200)) })] }),
    ).toMatchObject({ ok: false, code: 'payload_too_large' })
    await a.checkpoint(run, 'a', 'b')
    expect(await a.checkpoint({ ...run, entries: 2 }, 'c')).toMatchObject({
      ok: false,
      code: 'payload_too_large',
      message: expect.stringContaining('continueAs') as string,
    })
    expect(t.run(run.run)['entries']).toBe(2)
  })
})
