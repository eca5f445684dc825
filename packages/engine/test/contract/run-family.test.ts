import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ChildStart, ClaimedRun } from '../../src/model/work.ts'
import { notices as noticesPage } from '../../src/queries/notices.ts'
import { runDetail, runResult } from '../../src/queries/run-detail.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
beforeEach(async () => {
  t = await openStore()
  a = await t.session({ definitions: [definition('w'), definition('c')] })
})
afterEach(() => t.close())

const child = (id: string, more: Partial<ChildStart> = {}): ChildStart => ({
  id,
  workflow: 'c',
  input: null,
  awaited: true,
  onParentEnd: 'cancel',
  ...more,
})
const claim = async (run: string): Promise<ClaimedRun> => {
  await t.pass('poll-lanes')
  const claimed = await a.claim(10)
  const found = claimed.find((each) => each.run === run)
  if (!found) throw new Error(`${run} was not claimed; ${claimed.map((each) => each.run).join()}`)
  for (const other of claimed)
    if (other !== found) await a.end(other, { kind: 'hand_back', reason: 'shutdown' })
  return found
}
/** A parent that stands at its child. */
const standing = async (more: Partial<ChildStart> = {}, suspend = true): Promise<string> => {
  const id = await t.start('w', { owner: more.owner ?? null })
  const run = await claim(id)
  const answer = await a.write(run, {
    waits: [{ key: 'kid', kind: 'child', child: child('run_kid', more) }],
    ...(suspend ? { end: { kind: 'suspend', keys: ['kid'] } } : {}),
  })
  expect(answer).toMatchObject({ ok: true })
  return id
}
const wait = () => only(t.sql(`select * from waits where key = 'kid'`))

describe('RAIL-07 hand-off', () => {
  it("RAIL-07 a parent's wait and its child commit in one transaction, and a repeat makes no second child", async () => {
    const id = await t.start('w')
    const run = await claim(id)
    const write = { waits: [{ key: 'kid', kind: 'child' as const, child: child('run_kid') }] }
    await a.write(run, write)
    await a.write(run, {
      ...write,
      waits: [{ key: 'kid', kind: 'child', child: child('run_kid2') }],
    })
    expect(
      t.sql(
        'select id, parent, parent_key, depth, root, awaited from runs where parent is not null',
      ),
    ).toEqual([{ id: 'run_kid', parent: id, parent_key: 'kid', depth: 1, root: id, awaited: 1 }])
    expect(wait()).toMatchObject({ name: 'run_kid', state: 'open' })
  })

  const ends: [string, (run: ClaimedRun) => Promise<unknown>, object][] = [
    ['succeeds', (run) => a.complete(run, { x: 1 }), { status: 'succeeded', output: { x: 1 } }],
    [
      'fails',
      (run) =>
        a.end(run, { kind: 'fail', reason: 'error', note: 'boom', error: '{"message":"boom"}' }),
      { status: 'failed', reason: 'error', error: { message: 'boom' } },
    ],
    [
      'is canceled',
      async (run) => {
        await t.engine.cancel({ run: run.run, by: 'ana', reason: null })
        await a.end(run, { kind: 'hand_back', reason: 'canceled' })
      },
      { status: 'canceled' },
    ],
    [
      'meets its limit',
      async (run) => {
        t.sql('update runs set deadline = 1 where id = ? returning id', run.run)
        await t.pass('enforce-limits')
      },
      { status: 'failed', reason: 'time_limit' },
    ],
  ]
  for (const [name, finish, outcome] of ends)
    it(`RAIL-07 a child that ${name} satisfies its parent's wait, once, with that outcome`, async () => {
      const parent = await standing()
      await finish(await claim('run_kid'))
      expect(t.run(parent)).toMatchObject({ status: 'waiting', wait_on: 'child' })
      await t.settle('apply-orders')
      expect(t.run(parent)['status']).toBe('queued')
      expect(wait()['state']).toBe('satisfied')
      expect(JSON.parse(String(wait()['result']))).toMatchObject({ run: 'run_kid', ...outcome })
      expect(only(t.sql('select kind, run, recipient, outcome from receipts'))).toEqual({
        kind: 'parent_told',
        run: 'run_kid',
        recipient: parent,
        outcome: 'told',
      })
      const after = t.run(parent)
      await t.settle()
      expect({ ...t.run(parent) }).toEqual(after)
    })

  it('RAIL-07 a child that merely waits never resumes its parent', async () => {
    const parent = await standing()
    const kid = await claim('run_kid')
    await a.write(kid, {
      waits: [{ key: 'n', kind: 'time', dueInMs: 5_000 }],
      end: { kind: 'suspend', keys: ['n'] },
    })
    await t.settle()
    expect(t.run(parent)).toMatchObject({ status: 'waiting', wait_on: 'child' })
  })

  it('RAIL-07 a parent that is held is told, and need not be claimed anew', async () => {
    const parent = await standing({}, false)
    const told: unknown[] = []
    t.port.listen(a.id, (each) => told.push(each))
    await a.complete(only(await a.claim(1)), 1)
    await t.settle('apply-orders')
    expect(told).toMatchObject([{ run: parent, directive: 'waits' }])
    expect(t.run(parent)['status']).toBe('running')
    expect(wait()['state']).toBe('satisfied')
  })

  it('RAIL-07 a reconciler heals a parent whose child is already terminal', async () => {
    const parent = await standing()
    await a.complete(await claim('run_kid'), 'late')
    t.sql('delete from orders returning id')
    await t.settle('apply-orders')
    expect(t.run(parent)['status']).toBe('waiting')
    await t.settle('reconcile-families', 'apply-orders')
    expect(t.run(parent)['status']).toBe('queued')
    expect(JSON.parse(String(wait()['result']))).toMatchObject({ output: 'late' })
  })

  it('RAIL-07 a reconciler ends a child that outlived the parent it was bound to', async () => {
    const parent = await standing()
    await t.engine.cancel({ run: parent, by: 'ana', reason: null })
    t.sql('delete from orders returning id')
    await t.settle('apply-orders')
    expect(t.run('run_kid')['status']).toBe('queued')
    await t.settle('reconcile-families', 'apply-orders')
    expect(t.run('run_kid')['status']).toBe('canceled')
  })

  it('RAIL-07 depth and fan-out are limited with a clear error, and nothing of the write is stored', async () => {
    await t.close()
    t = await openStore({ settings: { depthMax: 1, childrenMax: 2 } })
    a = await t.session({ definitions: [definition('w'), definition('c')] })
    const id = await t.start('w')
    const run = await claim(id)
    const kids = (n: number) =>
      Array.from({ length: n }, (_, i) => ({
        key: `kid${i}`,
        kind: 'child' as const,
        child: child(`run_kid${i}`),
      }))
    expect(await a.write(run, { entries: [entry(1)], waits: kids(3) })).toMatchObject({
      ok: false,
      code: 'fan_out_limit',
    })
    expect(t.run(id)).toMatchObject({ entries: 0, children: 0 })
    expect(await a.write(run, { entries: [entry(1)], waits: kids(2) })).toMatchObject({ ok: true })
    const kid = (await a.claim(1))[0] as ClaimedRun
    expect(
      await a.write(kid, { waits: [{ key: 'x', kind: 'child', child: child('run_deep') }] }),
    ).toMatchObject({ ok: false, code: 'depth_limit' })
    expect(t.sql(`select id from runs where id = 'run_deep'`)).toEqual([])
  })

  it('RAIL-07 a child whose key belongs to another run is refused by name: no parent waits for what never was', async () => {
    const other = await t.start('c', { key: 'taken' })
    const id = await t.start('w')
    const run = await claim(id)
    const answer = await a.write(run, {
      waits: [{ key: 'kid', kind: 'child', child: child('run_kid', { key: 'taken' }) }],
      end: { kind: 'suspend', keys: ['kid'] },
    })
    expect(answer).toMatchObject({ ok: false, code: 'key_reused' })
    expect(t.run(id)).toMatchObject({ status: 'running', waits: 0 })
    expect(t.sql('select * from waits')).toEqual([])
    expect(other).not.toBe('')
  })

  it('S8 a tree of runs ends with its root', async () => {
    const parent = await standing()
    const kid = await claim('run_kid')
    await a.write(kid, {
      waits: [{ key: 'kid', kind: 'child', child: child('run_grandkid') }],
      end: { kind: 'suspend', keys: ['kid'] },
    })
    const grandkid = await claim('run_grandkid')
    await t.engine.cancel({ run: parent, by: 'ana', reason: null })
    await t.settle()
    expect(t.run('run_kid')['status']).toBe('canceled')
    expect(t.run('run_grandkid')['status']).toBe('canceling')
    await a.end(grandkid, { kind: 'hand_back', reason: 'canceled' })
    expect(t.run('run_grandkid')['status']).toBe('canceled')
  })
})

describe('RUN-34 series', () => {
  const goOn = (run: ClaimedRun, runId: string, input: unknown = null) =>
    a.end(run, { kind: 'continue', input: JSON.stringify(input), runId })

  it('RUN-34 ends the run continued and starts its successor in one transaction, with what it keeps', async () => {
    const id = await t.start('w', {
      owner: 'ana',
      priority: 4,
      queue: 'default',
      labels: [],
      key: 'k',
      input: '1',
    })
    const run = await claim(id)
    await a.write(run, { state: '{"page":1}' })
    expect(await goOn(run, 'run_zz2', 2)).toMatchObject({ ok: true, ended: 'succeeded' })
    expect(t.run(id)).toMatchObject({ status: 'succeeded', reason: 'continued', output: null })
    expect(t.run('run_zz2')).toMatchObject({
      status: 'queued',
      series: id,
      root: id,
      input: '2',
      owner: 'ana',
      priority: 4,
      state: '{"page":1}',
      entries: 0,
      attempt: 0,
    })
  })

  it('RUN-34 a repeat of the continuation starts no second successor', async () => {
    const run = await claim(await t.start('w'))
    await goOn(run, 'run_zz2')
    expect(await goOn(run, 'run_zz2')).toMatchObject({ ok: true, ended: 'succeeded' })
    expect(t.sql('select count(*) as n from runs')).toEqual([{ n: 2 }])
  })

  it('RUN-34 it takes the current version', async () => {
    const run = await claim(await t.start('w'))
    await t.session({ definitions: [definition('w', { version: '2' })] })
    await goOn(run, 'run_zz2')
    expect(t.run('run_zz2')['version']).toBe('2')
  })

  it('RUN-34 a repeat of the key answers the newest run, and compares the first input', async () => {
    const id = await t.start('w', { key: 'k', input: '1' })
    await goOn(await claim(id), 'run_zz2', 2)
    await goOn(await claim('run_zz2'), 'run_zz3', 3)
    expect(await t.startAnswer('w', { key: 'k', input: '1' })).toMatchObject({
      ok: true,
      id: 'run_zz3',
      started: false,
    })
    expect(await t.startAnswer('w', { key: 'k', input: '3' })).toMatchObject({ code: 'key_reused' })
  })

  it('RUN-34 signals, cancels and pauses of any of them reach the newest; unread signals go on', async () => {
    const id = await t.start('w')
    const run = await claim(id)
    await t.engine.signal({ run: id, id: 's1', name: 'go', payload: '1', by: null })
    await goOn(run, 'run_zz2')
    await t.engine.signal({ run: id, id: 's2', name: 'go', payload: '2', by: null })
    const next = await claim('run_zz2')
    const answer = await a.write(next, {
      waits: [
        { key: 'x', kind: 'signal', name: 'go' },
        { key: 'y', kind: 'signal', name: 'go' },
      ],
    })
    expect(answer).toMatchObject({
      satisfied: [
        { key: 'x', result: '1' },
        { key: 'y', result: '2' },
      ],
    })
    await t.engine.pause(id, 'ana', null)
    expect(t.run('run_zz2')['pause_requested_at']).not.toBeNull()
    expect(await t.engine.cancel({ run: id, by: 'ana', reason: null })).toMatchObject({
      run: 'run_zz2',
      status: 'canceling',
    })
  })

  it('RUN-34 a successor keeps the time limits that the first was given, counted anew', async () => {
    const id = await t.start('w', { totalLimitMs: 90_000, attemptLimitMs: 7_000 })
    t.later(2_000)
    await goOn(await claim(id), 'run_zz2')
    const { deadline, created_at, attempt_limit_ms } = t.run('run_zz2')
    expect([Number(deadline) - Number(created_at), attempt_limit_ms]).toEqual([90_000, 7_000])
  })

  it('RUN-34 a hand-back and a change of version on any of them reach the newest', async () => {
    const id = await t.start('w')
    await goOn(await claim(id), 'run_zz2')
    await goOn(await claim('run_zz2'), 'run_zz3')
    await claim('run_zz3')
    expect(await t.engine.reversion(id, '1', 'ana')).toMatchObject({
      code: 'held',
      detail: { run: 'run_zz3' },
    })
    expect(await t.engine.takeFrom(id, 'ana', 'stuck')).toMatchObject({ ok: true, run: 'run_zz3' })
    expect(await t.engine.takeFrom('run_zz2', 'ana', 'stuck')).toMatchObject({
      code: 'not_held',
      detail: { run: 'run_zz3' },
    })
    await t.session({ definitions: [definition('w', { version: '2' })] })
    expect(await t.engine.reversion(id, '2', 'ana')).toMatchObject({ ok: true, run: 'run_zz3' })
    expect(t.run('run_zz3')['version']).toBe('2')
    expect(t.run(id)['version']).toBe('1')
  })

  it('RUN-34 RUN-20 none of a series is started again while its newest run is active', async () => {
    const id = await t.start('w')
    await goOn(await claim(id), 'run_zz2')
    const again = { run: id, id: 'run_again', from: null, version: null, by: 'ana' }
    expect(await t.engine.retry(again)).toMatchObject({
      code: 'already_active',
      message: expect.stringContaining(`${id} goes on as run_zz2`),
      detail: { run: 'run_zz2', status: 'queued' },
    })
    expect(t.sql('select count(*) as n from runs')).toEqual([{ n: 2 }])
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    expect(await t.engine.retry(again)).toMatchObject({ ok: true, retryOf: id })
  })

  it('RUN-34 a sender’s id removes duplicates over the whole series', async () => {
    const id = await t.start('w')
    const run = await claim(id)
    await t.engine.signal({ run: id, id: 's1', name: 'go', payload: '1', by: null })
    await a.write(run, { waits: [{ key: 'x', kind: 'signal', name: 'go' }] })
    await a.write(run, { entries: [entry(1, 'x', { kind: 'signal' })] })
    await goOn(run, 'run_zz2')
    expect(
      await t.engine.signal({ run: id, id: 's1', name: 'go', payload: '1', by: null }),
    ).toMatchObject({ ok: true, duplicate: true })
    expect(t.sql(`select * from signals where run = 'run_zz2'`)).toEqual([])
  })

  it('RUN-34 a pause that was asked stays on the series', async () => {
    const id = await t.start('w')
    const run = await claim(id)
    await t.engine.pause(id, 'ana', null)
    await goOn(run, 'run_zz2')
    expect(t.run('run_zz2')).toMatchObject({ status: 'paused' })
    await t.engine.resume(id, 'ana')
    expect(t.run('run_zz2')).toMatchObject({ status: 'queued' })
  })

  it('RUN-34 the parent wakes at the end of the series, with its outcome, and not before', async () => {
    const parent = await standing()
    await goOn(await claim('run_kid'), 'run_zz2')
    await t.settle()
    t.later(60_000)
    await t.settle()
    expect(t.run(parent)).toMatchObject({ status: 'waiting', wait_on: 'child' })
    expect(wait()['state']).toBe('open')
    await a.complete(await claim('run_zz2'), 'at last')
    await t.settle()
    expect(JSON.parse(String(wait()['result']))).toMatchObject({
      status: 'succeeded',
      output: 'at last',
    })
    expect(t.run(parent)['status']).toBe('queued')
  })

  it('RUN-34 a parent that was never told of the end of a series is healed too', async () => {
    const parent = await standing()
    await goOn(await claim('run_kid'), 'run_zz2')
    await a.complete(await claim('run_zz2'), 'at last')
    t.sql('delete from orders returning id')
    await t.settle('reconcile-families', 'apply-orders')
    expect(JSON.parse(String(wait()['result']))).toMatchObject({ output: 'at last' })
    expect(t.run(parent)['status']).toBe('queued')
  })

  it('RUN-34 children belong to the series: they live on, and end with it', async () => {
    const id = await standing({}, false)
    await goOn(held(id), 'run_zz2')
    await t.settle()
    expect(t.run('run_kid')).toMatchObject({ status: 'queued', parent: 'run_zz2' })
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await t.settle()
    expect(t.run('run_kid')['status']).toBe('canceled')
  })

  it('RUN-34 the successor inherits the slots, also at limit 1, unless its keys differ', async () => {
    const limits = [{ key: 'k:{id}', value: 1 }]
    a = await t.session({ definitions: [definition('l', { limits })] })
    const first = await t.start('l', { input: '{"id":"a"}' })
    const second = await t.start('l', { input: '{"id":"a"}' })
    await goOn(await claim(first), 'run_zz2', { id: 'a' })
    expect(t.run('run_zz2')).toMatchObject({ status: 'queued', limit_a: 'k:a' })
    await t.settle('admit-waiting')
    expect(t.run(second)['status']).toBe('waiting')
    await goOn(await claim('run_zz2'), 'run_zz3', { id: 'b' })
    expect(t.run('run_zz3')).toMatchObject({ status: 'waiting', wait_on: 'slot', limit_a: 'k:b' })
    await t.settle('admit-waiting')
    expect([t.run('run_zz3')['status'], t.run(second)['status']]).toEqual(['queued', 'queued'])
    await t.start('l', { input: '{"id":"b"}' })
    await t.settle('admit-waiting')
    expect(
      t.sql(`select count(*) as n from runs where limit_a = 'k:b' and slot_state = 3`),
    ).toEqual([{ n: 1 }])
  })

  const held = (id: string): ClaimedRun => {
    const row = t.run(id)
    return {
      run: id,
      workflow: 'w',
      version: '1',
      owner: '',
      attempt: Number(row['attempt']),
      leasedAt: 0,
      seed: 'run_1',
      firstAt: 0,
      deadline: null,
      attemptDeadline: null,
      failures: 0,
      input: null,
      entries: Number(row['entries']),
      journal: [],
      waits: [],
    }
  }
})

describe('RUN-33 onEnd', () => {
  const withHandler = async (more = {}) => {
    a = await t.session({
      definitions: [definition('w', { onEnd: 'h' }), definition('h', { onEnd: 'h', ...more })],
    })
  }

  it('RUN-33 starts the handler in the transaction that ends the run other than by success', async () => {
    await withHandler()
    const id = await t.start('w', { input: '{"n":1}', owner: 'ana' })
    await a.end(await claim(id), {
      kind: 'fail',
      reason: 'error',
      note: 'boom',
      error: '{"message":"boom"}',
    })
    const handler = t.run(`${id}_end`)
    expect(handler).toMatchObject({
      workflow: 'h',
      status: 'queued',
      on_end_of: id,
      on_end: null,
      owner: 'ana',
      limit_owner: null,
    })
    expect(JSON.parse(String(handler['input']))).toMatchObject({
      run: id,
      workflow: 'w',
      outcome: 'failed',
      reason: 'error',
      error: { message: 'boom' },
      input: { n: 1 },
    })
  })

  it('RUN-33 after a cancel, a limit and losses too, and never after success or by its own failure', async () => {
    await withHandler()
    const canceled = await t.start('w')
    await t.engine.cancel({ run: canceled, by: 'ana', reason: null })
    const late = await t.start('w', { totalLimitMs: 1 })
    t.later(1)
    await t.pass('enforce-limits')
    const good = await t.start('w')
    await a.complete(await claim(good))
    expect(
      t.sql('select on_end_of from runs where on_end_of is not null order by on_end_of'),
    ).toEqual([canceled, late].sort().map((on_end_of) => ({ on_end_of })))
    await a.end(await claim(`${late}_end`), {
      kind: 'fail',
      reason: 'error',
      note: 'x',
      error: '{}',
    })
    expect(t.sql(`select id from runs where on_end_of = ?`, `${late}_end`)).toEqual([])
  })

  it('RUN-33 applies at the end of a series', async () => {
    await withHandler()
    const id = await t.start('w')
    await a.end(await claim(id), { kind: 'continue', input: null, runId: 'run_zz2' })
    expect(t.sql('select id from runs where on_end_of is not null')).toEqual([])
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    expect(only(t.sql('select on_end_of from runs where on_end_of is not null'))).toEqual({
      on_end_of: 'run_zz2',
    })
  })

  it('RUN-34 the newest of a series is the one that no other continues, whatever their ids say', async () => {
    const id = await t.start('w', { key: 'k', input: '1' })
    await a.end(await claim(id), { kind: 'continue', input: '2', runId: 'run_zz9' })
    // its executor’s clock is behind that of the one before
    await a.end(await claim('run_zz9'), { kind: 'continue', input: '3', runId: 'run_00' })
    expect(await t.startAnswer('w', { key: 'k', input: '1' })).toMatchObject({ id: 'run_00' })
    await a.complete(await claim('run_00'), 'last')
    expect(await t.engine.read((tx) => runResult(tx, id))).toMatchObject({
      run: 'run_00',
      ended: true,
      output: 'last',
    })
  })

  it('RUN-33 a handler that cannot be started is a notice, and the run ends all the same', async () => {
    a = await t.session({
      definitions: [
        definition('w', { onEnd: 'nobody' }),
        definition('v', { onEnd: 'h' }),
        definition('h', { limits: [{ key: 'of:{input.input.customer}', value: 1 }] }),
      ],
    })
    const unknown = await t.start('w')
    const unreadable = await t.start('v', { input: '{}' })
    for (const id of [unknown, unreadable])
      await t.engine.cancel({ run: id, by: 'ana', reason: null })
    for (const id of [unknown, unreadable]) expect(t.run(id)['status']).toBe('canceled')
    const { notices } = await t.engine.read((tx) => noticesPage(tx, null, 10))
    expect(notices).toHaveLength(2)
    expect(notices.find(({ run }) => run === unknown)).toMatchObject({
      kind: 'on_end_not_started',
      at: t.clock.time.now(),
      sentence: expect.stringMatching(
        /nobody.*was not started: no executor has registered/,
      ) as string,
      data: { workflow: 'nobody', code: 'unknown_workflow' },
    })
    expect(notices.find(({ run }) => run === unreadable)).toMatchObject({
      sentence: expect.stringContaining('cannot be read from the input') as string,
    })
    expect((await t.engine.read((tx) => runDetail(tx, unknown)))?.notices).toMatchObject([
      { kind: 'on_end_not_started' },
    ])
  })

  it('RUN-33 a handler whose id somebody has given to a run of theirs is a notice, and that run is left alone', async () => {
    await withHandler()
    await t.start('h', { id: 'x_end', input: '"theirs"' })
    await t.start('w', { id: 'x' })
    await t.engine.cancel({ run: 'x', by: 'ana', reason: null })
    expect(t.run('x')['status']).toBe('canceled')
    expect(t.run('x_end')).toMatchObject({ input: '"theirs"', on_end_of: null })
    expect((await t.engine.read((tx) => noticesPage(tx, null, 10))).notices).toMatchObject([
      {
        run: 'x',
        kind: 'on_end_not_started',
        sentence: expect.stringMatching(/its id x_end belongs to another run/) as string,
        data: { workflow: 'h', code: 'key_reused' },
      },
    ])
  })

  it('RUN-33 the failure of a handler is a notice, and its success is none', async () => {
    await withHandler()
    const ids = [await t.start('w'), await t.start('w')]
    for (const id of ids) await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await a.end(await claim(`${ids[0]}_end`), {
      kind: 'fail',
      reason: 'error',
      note: 'the mail server said no',
      error: '{}',
    })
    await a.complete(await claim(`${ids[1]}_end`))
    expect((await t.engine.read((tx) => noticesPage(tx, null, 10))).notices).toMatchObject([
      {
        run: `${ids[0]}_end`,
        kind: 'on_end_failed',
        sentence: expect.stringMatching(
          /at the end of .* failed: the mail server said no/,
        ) as string,
        data: { of: ids[0] },
      },
    ])
  })

  it('SLOT-03 a handler with limits of its own lines up for them', async () => {
    await withHandler({ limits: [{ key: 'mail', value: 1 }] })
    for (let i = 0; i < 3; i++) {
      const id = await t.start('w')
      await t.engine.cancel({ run: id, by: 'ana', reason: null })
    }
    expect(t.sql(`select distinct status, wait_on from runs where workflow = 'h'`)).toEqual([
      { status: 'waiting', wait_on: 'slot' },
    ])
    await t.settle('admit-waiting')
    expect(
      t.sql(`select count(*) as n from runs where workflow = 'h' and status = 'queued'`),
    ).toEqual([{ n: 1 }])
  })
})

describe('RUN-35 retention', () => {
  const day = 86_400_000
  const finished = async (command = {}): Promise<string> => {
    const id = await t.start('w', command)
    await a.complete(await claim(id))
    return id
  }
  const prune = (): Promise<void> => t.pass('prune-ended')
  const ids = (): unknown[] => t.sql('select id from runs order by id').map((row) => row['id'])

  it('RUN-35 a run goes with all its rows and its key when it is past its age, and not before', async () => {
    const id = await t.start('w', { key: 'k' })
    const run = await claim(id)
    await t.engine.signal({ run: id, id: 's1', name: 'go', payload: '1', by: null })
    await a.write(run, {
      entries: [entry(1)],
      waits: [
        {
          key: 'z',
          kind: 'approval',
          dueInMs: 9,
          approval: { prompt: '?', data: null, deciders: [] },
        },
      ],
      stream: [{ stream: 'log', seq: 1, data: '1' }],
    })
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await a.end({ ...run, entries: 1 }, { kind: 'hand_back', reason: 'canceled' })
    t.later(30 * day)
    await prune()
    expect(ids()).toEqual([id])
    t.later(1)
    await prune()
    expect(ids()).toEqual([])
    for (const table of [
      'steps',
      'attempts',
      'waits',
      'signals',
      'approvals',
      'events',
      'streams',
      'receipts',
      'notices',
    ])
      expect(t.sql(`select * from ${table}`)).toEqual([])
    expect(await t.startAnswer('w', { key: 'k', input: '7' })).toMatchObject({ started: true })
  })

  it('RUN-35 a family goes together: a root stays while a member is active or young', async () => {
    const parent = await standing({ onParentEnd: 'detach' })
    await t.engine.cancel({ run: parent, by: 'ana', reason: null })
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual(['run_kid', parent].sort())
    await a.complete(await claim('run_kid'))
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual([])
  })

  it('RUN-35 a series goes together, and not while a child of it lives', async () => {
    const id = await t.start('w')
    await a.end(await claim(id), { kind: 'continue', input: null, runId: 'run_zz2' })
    const next = await claim('run_zz2')
    await a.write(next, {
      entries: [entry(1, 'kid', { kind: 'spawn' })],
      spawns: [{ as: 'kid', ...child('run_kid', { awaited: false, onParentEnd: 'detach' }) }],
    })
    await a.complete({ ...next, entries: 1 })
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual(['run_kid', 'run_zz2', id].sort())
    await a.complete(await claim('run_kid'))
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual([])
  })

  it('RUN-35 an ended run stays while its handler needs it, also that of a child', async () => {
    a = await t.session({
      definitions: [definition('w'), definition('c', { onEnd: 'h' }), definition('h')],
    })
    const parent = await standing()
    await t.engine.cancel({ run: 'run_kid', by: 'ana', reason: null })
    await t.settle()
    await a.complete(await claim(parent))
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual(['run_kid', 'run_kid_end', parent].sort())
    await a.complete(await claim('run_kid_end'))
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual([])
  })

  it('RUN-35 a pass reads what is past its age, and none of the history that is not', async () => {
    for (let i = 0; i < 300; i++) await t.start('w')
    t.sql(`update runs set status = 'failed', ended_at = ? returning id`, t.clock.time.now())
    for (let i = 0; i < 3; i++) await t.start('w')
    t.sql(`update runs set status = 'failed', ended_at = 1 where status = 'queued' returning id`)
    const loop = t.opened.loops.all.find(({ name }) => name === 'prune-ended')
    expect(await loop?.once()).toMatchObject({ examined: 3, acted: 3 })
    expect(await loop?.once()).toMatchObject({ examined: 0, acted: 0 })
  })

  it('RUN-35 a family that is not past its age keeps none that ended later from being removed', async () => {
    const kept = await standing({ onParentEnd: 'detach' })
    await t.engine.cancel({ run: kept, by: 'ana', reason: null })
    t.later(1)
    for (let i = 0; i < 250; i++) await t.start('w')
    t.sql(
      `update runs set status = 'failed', ended_at = ? where workflow = 'w' and ended_at is null returning id`,
      t.clock.time.now(),
    )
    t.later(31 * day)
    await prune()
    expect(ids()).toEqual(['run_kid', kept].sort())
  })

  it('RUN-35 goes in small batches, round and round', async () => {
    for (let i = 0; i < 450; i++) await t.start('w')
    t.sql(`update runs set status = 'failed', ended_at = 1 returning id`)
    const young = await finished()
    await prune()
    expect(ids()).toEqual([young])
  })
})

describe('RUN-34 children of a series that goes on and on', () => {
  it('RUN-34 RUN-10 a child that lives on keeps a key of one length, and each successor may use the same one', async () => {
    const s = await t.session({
      definitions: [definition('w'), definition('c', { queue: 'other' })],
      queues: ['default'],
    })
    const id = await t.start('w')
    let run = only(await s.claim(1))
    const spawn = (kid: string): Promise<unknown> =>
      s.write(run, {
        entries: [entry(run.entries + 1, 'c', { kind: 'spawn', output: `"${kid}"` })],
        spawns: [{ as: 'c', ...child(kid, { awaited: false, onParentEnd: 'detach' }) }],
      })
    expect(await spawn('run_kid')).toMatchObject({ ok: true })
    for (let i = 1; i <= 200; i++) {
      const runId = `run_a_successor_${String(i).padStart(9, '0')}`
      expect(await s.end(run, { kind: 'continue', input: null, runId }), `${i}`).toMatchObject({
        ok: true,
      })
      run = only(await s.claim(1))
      if (i === 100) expect(await spawn('run_kid2')).toMatchObject({ ok: true })
    }
    expect(t.run('run_kid')).toMatchObject({ parent: run.run, parent_key: `c%@${id}` })
    expect(t.run('run_kid2')).toMatchObject({
      parent: run.run,
      parent_key: 'c%@run_a_successor_000000100',
    })
  })
})
