import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import type { Definition } from '../../src/model/definition.ts'
import { applyOrder } from '../../src/transitions/apply-orders.ts'
import { insertOrders } from '../../src/store/tables/orders.ts'
import { ask } from '../../src/store/sql.ts'
import { gate } from '../support/executor.ts'
import { settled } from '../support/ports.ts'
import type { TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const count = (): number => Number(only(t.sql('select count(*) as n from runs'))['n'])

describe('RUN-22 instants and durations', () => {
  it.each(['delayMs', 'startAt', 'startByMs', 'totalLimitMs', 'attemptLimitMs'])(
    'RUN-22 %s is whole milliseconds: a part of one is refused, since no store could keep it',
    async (what) => {
      await t.session()
      expect(await t.startAnswer('w', { [what]: 1.5 })).toMatchObject({
        ok: false,
        code: 'invalid_request',
      })
    },
  )
})

describe('RUN-22 a delay of nothing', () => {
  beforeEach(async () => void (await t.session()))

  it.each(['delayMs', 'startAt', 'startByMs', 'totalLimitMs', 'attemptLimitMs'])(
    'RUN-22 RAIL-09 %s of 0 is stored, and costs the others of its batch nothing',
    async (what) => {
      const answers = await t.engine.startMany(
        [{ [what]: 0 }, {}].map((more, i) => ({
          command: { id: `run_${i}`, workflow: 'w', input: null, ...more },
        })),
      )
      expect(answers).toMatchObject([{ ok: true }, { ok: true }])
      expect(count()).toBe(2)
    },
  )

  it('RUN-22 a delay of 0 is none: the run is queued', async () => {
    await t.startAnswer('w', { id: 'run_1', delayMs: 0 })
    expect(only(t.sql("select status, ready_at, wait_on from runs where id = 'run_1'"))).toEqual({
      status: 'queued',
      ready_at: null,
      wait_on: null,
    })
  })
})

describe('RUN-18 keys and command ids', () => {
  beforeEach(async () => void (await t.session()))

  it('RUN-18 the same key and equal input is the same run, whatever the order of its members', async () => {
    const first = await t.startAnswer('w', { key: 'k', owner: 'o', input: '{"a":1,"b":[2]}' })
    const again = await t.startAnswer('w', { key: 'k', owner: 'o', input: '{ "b": [2], "a": 1 }' })
    expect(first).toMatchObject({ ok: true, started: true })
    expect(again).toEqual({ ...first, started: false })
    expect(count()).toBe(1)
  })

  it('RUN-18 the same key and another input is refused and names the run', async () => {
    const id = await t.start('w', { key: 'k', input: '1' })
    expect(await t.startAnswer('w', { key: 'k', input: '2' })).toMatchObject({
      ok: false,
      code: 'key_reused',
      detail: { run: id, status: 'queued' },
    })
    expect(await t.startAnswer('w', { key: 'k', input: '"1"' })).toMatchObject({ ok: false })
    expect(count()).toBe(1)
  })

  it('RUN-18 a key is of its owner and workflow', async () => {
    await t.session({ definitions: [definition('v')] })
    const starts = [
      await t.start('w', { key: 'k' }),
      await t.start('v', { key: 'k' }),
      await t.start('w', { key: 'k', owner: 'a' }),
      await t.start('w', { key: 'k', owner: 'b' }),
    ]
    expect(new Set(starts).size).toBe(4)
  })

  it('RUN-18 a key lasts as long as the run is kept, also after its end', async () => {
    const a = await t.session()
    const id = await t.start('w', { key: 'k' })
    await a.complete(only(await a.claim()), 'x')
    expect(await t.startAnswer('w', { key: 'k' })).toMatchObject({
      id,
      started: false,
      status: 'succeeded',
    })
  })

  it('RUN-18 two starts of one key in one flush make one run', async () => {
    const answers = await Promise.all([1, 2, 3].map(() => t.startAnswer('w', { key: 'k' })))
    const ids = new Set(answers.map((answer) => (answer.ok ? answer.id : answer.code)))
    expect(ids.size).toBe(1)
    expect(answers.filter((answer) => answer.ok && answer.started)).toHaveLength(1)
    expect(count()).toBe(1)
  })

  it('RUN-18 a repeat after an unknown outcome, by its run id or command id, answers that run', async () => {
    const first = await t.startAnswer('w', { id: 'run_mine', command: 'cmd_1', input: '7' })
    expect(await t.startAnswer('w', { id: 'run_mine', input: '7' })).toEqual({
      ...first,
      started: false,
    })
    expect(await t.startAnswer('w', { id: 'run_other', command: 'cmd_1', input: '7' })).toEqual({
      ...first,
      started: false,
    })
    expect(await t.startAnswer('w', { command: 'cmd_1', input: '8' })).toMatchObject({ ok: false })
    expect(count()).toBe(1)
  })

  it('RUN-18 a repeat is answered also where the limit is full and rejects', async () => {
    await t.session({
      definitions: [definition('one', { limits: [{ key: 'k:{id}', value: 1, policy: 'reject' }] })],
    })
    const command = { id: 'run_only', key: 'key', input: '{"id":"a"}' }
    const first = await t.startAnswer('one', command)
    expect(first).toMatchObject({ ok: true, started: true })
    expect(await t.startAnswer('one', command)).toEqual({ ...first, started: false })
    expect(await t.startAnswer('one', { key: 'key', input: '{"id":"a"}' })).toEqual({
      ...first,
      started: false,
    })
    expect(await t.startAnswer('one', { key: 'key2', input: '{"id":"a"}' })).toMatchObject({
      code: 'limit_full',
    })
  })

  it('RUN-18 the owner is never null: none is the empty text, which has no limit', async () => {
    const id = await t.start('w')
    expect(t.run(id)).toMatchObject({ owner: '', limit_owner: null, limit_modes: '' })
    const owned = await t.start('w', { owner: 'ana' })
    expect(t.run(owned)).toMatchObject({ owner: 'ana', limit_owner: 'owner:ana' })
  })
})

describe('RUN-22 what is set at the start', () => {
  beforeEach(async () => void (await t.session()))

  it('RUN-22 delay, priority, queue, labels and owner are kept on the run', async () => {
    const id = await t.start('w', {
      delayMs: 5_000,
      priority: -100,
      queue: 'slow',
      labels: ['b', 'a', 'b'],
      owner: 'ana',
    })
    expect(t.run(id)).toMatchObject({
      status: 'waiting',
      wait_on: 'slot',
      reason: 'delayed',
      ready_at: t.clock.time.now() + 5_000,
      priority: -100,
      queue: 'slow',
      labels: '["a","b"]',
      owner: 'ana',
    })
  })

  it('RUN-22 in one call ten thousand start, each guarded: the bad ones are reported, the others start', async () => {
    const items = Array.from({ length: 10_000 }, (_, i) => ({
      command: {
        id: `run_${String(i).padStart(5, '0')}`,
        workflow: i === 17 ? 'nobody' : 'w',
        input: i === 4_000 ? '{not json' : 'null',
        ...(i === 5_000 ? { priority: 1_000 } : {}),
        ...(i === 6_000 ? { delayMs: Number.NaN } : {}),
        ...(i === 7_000 ? { queue: 'a\u0000b' } : {}),
      },
    }))
    const answers = await t.engine.startMany(items)
    const bad = answers.flatMap((answer, i) => (answer.ok ? [] : [[i, answer.code]]))
    expect(bad).toEqual([
      [17, 'unknown_workflow'],
      [4_000, 'invalid_request'],
      [5_000, 'invalid_request'],
      [6_000, 'invalid_request'],
      [7_000, 'invalid_request'],
    ])
    expect(count()).toBe(9_995)
  })

  it('RUN-31 an input over the limit is refused with its size before anything is written', async () => {
    expect(
      await t.startAnswer('w', { input: JSON.stringify('x'.repeat(1024 ** 2)) }),
    ).toMatchObject({
      code: 'payload_too_large',
      detail: { bytes: 1024 ** 2 + 2, limit: 1024 ** 2 },
    })
    expect(count()).toBe(0)
  })

  it('RUN-22 what cannot be kept is refused by name', async () => {
    const wrong = [
      { priority: 1.5 },
      { priority: 101 },
      { owner: 'x'.repeat(201) },
      { labels: ['a\n'] },
      { key: '' },
      { delayMs: -1 },
      { startAt: Number.POSITIVE_INFINITY },
      { totalLimitMs: Number.NaN },
      { attemptLimitMs: -5 },
      { startByMs: Number.POSITIVE_INFINITY },
    ]
    for (const command of wrong)
      expect(await t.startAnswer('w', command)).toMatchObject({
        ok: false,
        code: 'invalid_request',
      })
    expect(count()).toBe(0)
  })
})

describe('RUN-19 one transaction', () => {
  it('RUN-19 the queued row is the dispatch: a waiting claim hears of it, and there is no other record', async () => {
    const a = await t.session()
    expect(await a.claim(1)).toEqual([])
    const waiting = a.claim(1, { waitMs: 60_000 })
    const id = await t.start('w')
    expect((await waiting).map(({ run }) => run)).toEqual([id])
    expect(t.sql('select * from orders')).toEqual([])
    expect(t.sql('select * from receipts')).toEqual([])
  })
})

describe('RUN-20 starting again', () => {
  const again = (run: string, more = {}) =>
    t.engine.retry({ run, id: `${run}_2`, from: null, version: null, by: 'ana', ...more })
  const ended = async () => {
    const a = await t.session()
    const id = await t.start('w', { key: 'k', input: '{"n":1}', owner: 'ana', priority: 3 })
    const run = only(await a.claim())
    await a.write(run, {
      entries: [entry(1, 'a', { output: '"A"' }), entry(2, 'b'), entry(3, 'c')],
      end: { kind: 'fail', reason: 'error', note: 'x', error: '{}' },
    })
    return { a, id }
  }

  it('RUN-20 an active run is refused with its holder, since when and why', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.claim()
    expect(await again(id)).toMatchObject({
      ok: false,
      code: 'already_active',
      detail: { status: 'running', holder: a.id, since: t.clock.time.now() },
    })
    expect(count()).toBe(1)
  })

  it('RUN-20 a terminal run becomes a new one, linked, without its key, from the beginning', async () => {
    const { a, id } = await ended()
    expect(await again(id)).toMatchObject({ ok: true, run: `${id}_2`, retryOf: id })
    expect(t.run(`${id}_2`)).toMatchObject({
      retry_of: id,
      key: null,
      status: 'queued',
      input: '{"n":1}',
      owner: 'ana',
      priority: 3,
      entries: 0,
    })
    expect(only(await a.claim())).toMatchObject({ run: `${id}_2`, attempt: 1, journal: [] })
  })

  it('RUN-20 from a named step: the entries before it are copied', async () => {
    const { a, id } = await ended()
    await again(id, { from: 'c' })
    expect(only(await a.claim())).toMatchObject({
      entries: 2,
      journal: [
        { n: 1, key: 'a', output: '"A"' },
        { n: 2, key: 'b' },
      ],
    })
    expect(t.run(`${id}_2`)['journal_bytes']).toBe(
      t.sql(
        "select sum(length(coalesce(output, '')) + length(coalesce(error, ''))) as n from steps where run = ?",
        `${id}_2`,
      )[0]?.['n'],
    )
    expect(await again(id, { id: 'run_x', from: 'zz' })).toMatchObject({
      ok: false,
      code: 'not_found',
    })
  })

  it('RUN-20 keeps the time limits that the run was given, and takes those of its version where it was given none', async () => {
    const more = { totalLimitMs: 70_000, attemptLimitMs: 5_000 }
    const a = await t.session({
      definitions: [definition('w', more), definition('w', { ...more, version: '2' })],
    })
    const id = await t.start('w', { totalLimitMs: 90_000, version: '1' })
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    t.later(1_000)
    await again(id)
    await again(id, { id: 'run_v2', version: '2' })
    const limits = (run: string) => {
      const { deadline, created_at, attempt_limit_ms } = t.run(run)
      return [Number(deadline) - Number(created_at), attempt_limit_ms]
    }
    expect(limits(`${id}_2`)).toEqual([90_000, 5_000])
    expect(limits('run_v2')).toEqual([90_000, 5_000])
    expect(a.id).toBeDefined()
  })

  it('RUN-20 a repeat is answered with the run that it made', async () => {
    const { id } = await ended()
    await again(id)
    expect(await again(id)).toMatchObject({ ok: true, run: `${id}_2`, started: false })
    expect(count()).toBe(2)
  })
})

describe('RUN-21 orders of a user’s transaction', () => {
  beforeEach(async () => void (await t.session()))
  const order = (id: string, kind: 'start' | 'signal' | 'cancel', run: string, payload: object) =>
    t.engine.store.run(function* () {
      yield* ask(insertOrders([{ id, kind, run, payload: JSON.stringify(payload) }]))
    })

  it('RUN-21 are applied by ordinary transitions once, each with a receipt', async () => {
    await order('run_tx', 'start', 'run_tx', { id: 'run_tx', workflow: 'w', input: '1' })
    expect(count()).toBe(0)
    await t.settle()
    expect(t.run('run_tx')).toMatchObject({ status: 'queued', input: '1' })
    await order('sig_tx', 'signal', 'run_tx', { name: 'go', payload: '2' })
    await t.settle()
    expect(only(t.sql('select * from signals'))).toMatchObject({ id: 'sig_tx', payload: '2' })
    await order('can_tx', 'cancel', 'run_tx', { by: 'tx', reason: null })
    await t.settle()
    expect(t.run('run_tx')['status']).toBe('canceled')
    expect(t.sql('select kind, outcome from receipts order by at, kind')).toEqual([
      { kind: 'cancel', outcome: 'canceled' },
      { kind: 'signal', outcome: 'sent' },
      { kind: 'start', outcome: 'started' },
    ])
    expect(t.sql('select * from orders')).toEqual([])
  })

  it('RUN-21 a key that an equal input has taken makes the id an alias', async () => {
    const id = await t.start('w', { key: 'k', input: '1' })
    await order('run_tx', 'start', 'run_tx', { id: 'run_tx', workflow: 'w', input: '1', key: 'k' })
    await t.settle()
    expect(count()).toBe(1)
    expect(only(t.sql('select run, recipient, outcome from receipts'))).toEqual({
      run: 'run_tx',
      recipient: id,
      outcome: 'alias',
    })
  })

  it('RUN-21 one that is refused when it is applied is a notice: nobody waits for its answer', async () => {
    await t.start('w', { key: 'k', input: '1' })
    await order('run_tx', 'start', 'run_tx', { id: 'run_tx', workflow: 'w', input: '2', key: 'k' })
    await t.settle()
    expect(only(t.sql('select run, kind, sentence from notices'))).toMatchObject({
      run: 'run_tx',
      kind: 'start_refused',
      sentence: expect.stringMatching(/the key k belongs to run_.*another input/) as string,
    })
    expect(count()).toBe(1)
  })

  it('RAIL-04 of two that apply the same order exactly one does', async () => {
    const made = {
      id: 'run_tx',
      kind: 'start',
      run: 'run_tx',
      payload: '{"id":"run_tx","workflow":"w","input":"1"}',
      created_at: 0,
      not_before: 0,
      tries: 0,
      failures: 0,
      error: null,
    } as const
    await order('run_tx', 'start', 'run_tx', { id: 'run_tx', workflow: 'w', input: '1' })
    const apply = () => t.engine.act((tx, context) => applyOrder(tx, made, context))
    const both = await Promise.all([apply(), apply()])
    expect(both.filter(({ applied }) => applied)).toHaveLength(1)
    expect(count()).toBe(1)
  })
})

describe('RUN-23 definitions', () => {
  it('RUN-23 are stored when an executor registers, and which is current is stored, not inferred', async () => {
    const a = await t.session({ definitions: [definition('w', { input: { type: 'object' } })] })
    expect(only(t.sql('select * from definitions'))).toMatchObject({ workflow: 'w', version: '1' })
    const one = await t.start('w')
    await t.session({ definitions: [definition('w', { version: '2' })] })
    const two = await t.start('w')
    expect([t.run(one)['version'], t.run(two)['version']]).toEqual(['1', '2'])
    // an older executor that comes back does not make its version current again
    await t.session({ definitions: [definition('w', { version: '1' })] })
    expect(t.run(await t.start('w'))['version']).toBe('2')
    expect(t.run(await t.start('w', { version: '1' }))['version']).toBe('1')
    expect(await t.startAnswer('w', { version: '3' })).toMatchObject({
      code: 'unknown_workflow',
      message: expect.stringContaining('1, 2') as string,
    })
    expect(a.id).not.toBe('')
  })

  it('RUN-23 a version that is registered with another definition takes it, and says so with both values', async () => {
    const limits = (value: number) => [{ key: 'customer:{id}', value }]
    await t.close()
    const warned: unknown[] = []
    t = await openStore({
      log: {
        ...noLog,
        warn: (event, facts) => void (event === 'workflow.redefined' && warned.push(facts)),
      },
    })
    const session = (more: Partial<Definition>) =>
      t.session({ definitions: [definition('w', more), definition('other')] })
    await session({ limits: limits(1) })
    await session({ limits: limits(1) })
    expect(warned).toEqual([])
    const { id } = await session({ limits: limits(5), totalLimitMs: 60_000 })
    expect(warned).toEqual([
      {
        workflow: 'w',
        version: '1',
        session: id,
        changed: {
          limits: { was: limits(1), is: limits(5) },
          totalLimitMs: { was: null, is: 60_000 },
        },
        sentence: expect.stringMatching(
          /^w version 1 was registered with other limits, totalLimitMs than it had.*Raise the version/,
        ) as string,
      },
    ])
    expect(t.engine.catalog.definitions.get('["w","1"]')).toMatchObject({ limits: limits(5) })
  })

  it('RUN-23 one registration that names a version twice is refused, since which of the two holds is nobody’s to guess', async () => {
    const { answer } = await t.session({
      definitions: [definition('w'), definition('w', { totalLimitMs: 5 })],
    })
    expect(answer).toMatchObject({
      ok: false,
      code: 'duplicate_workflow',
      message: 'two workflows are named w in version 1; rename one',
    })
    expect(t.sql('select * from definitions')).toEqual([])
    expect(t.sql('select * from sessions')).toEqual([])
  })

  it('RUN-23 limits of the definition hold without users’ code: totalLimit, attemptLimit, startBy, queue, labels', async () => {
    await t.session({
      definitions: [
        definition('w', {
          queue: 'q',
          labels: ['gpu'],
          totalLimitMs: 9,
          attemptLimitMs: 8,
          startByMs: 7,
        }),
      ],
    })
    const now = t.clock.time.now()
    expect(t.run(await t.start('w', { labels: ['eu'] }))).toMatchObject({
      queue: 'q',
      labels: '["eu","gpu"]',
      deadline: now + 9,
      attempt_limit_ms: 8,
      start_by: now + 7,
    })
  })

  it('SLOT-01 more than two keys of its own are refused at registration', async () => {
    const limit = (key: string) => ({ key, value: 1 })
    const limits = [limit('a'), limit('b'), limit('c')]
    await expect(t.session({ definitions: [definition('w', { limits })] })).rejects.toMatchObject({
      code: 'too_many_limits',
    })
    expect(t.sql('select * from definitions')).toEqual([])
    expect(t.sql('select * from sessions')).toEqual([])
  })

  it('RAIL-11 another protocol is refused with a sentence that says what to upgrade', async () => {
    const answer = await t.session({ protocol: 0 })
    expect(answer.answer).toMatchObject({
      ok: false,
      code: 'incompatible_protocol',
      message: expect.stringContaining('upgrade the executor') as string,
    })
  })
})

describe('RUN-32 versions', () => {
  it('RUN-32 a run is pinned to the version on which it started', async () => {
    const a = await t.session({ definitions: [definition('w')] })
    const id = await t.start('w')
    await a.end(only(await a.claim()), { kind: 'hand_back', reason: 'shutdown' })
    const b = await t.session({ definitions: [definition('w', { version: '2' })] })
    expect(await b.claim()).toEqual([])
    expect(only(await a.claim())).toMatchObject({ run: id, version: '1' })
  })

  it('RUN-32 one that nobody serves waits openly, holds no slot, and comes back when somebody does', async () => {
    const a = await t.session({ definitions: [definition('w'), definition('v')] })
    const id = await t.start('w', { labels: ['gpu'], owner: 'ana' })
    t.later(5_000)
    await t.pass('park-unserved')
    expect(t.run(id)['status']).toBe('queued')
    t.later(10_000)
    await t.pass('park-unserved')
    expect(t.run(id)).toMatchObject({
      status: 'waiting',
      wait_on: 'slot',
      reason: 'no_executor',
      note: 'no live executor has the labels gpu',
      slot_state: 0,
    })
    await t.settle('admit-waiting')
    expect(t.run(id)['status']).toBe('waiting')
    const b = await t.session({ definitions: [definition('w')], labels: ['gpu'] })
    await t.settle('admit-waiting')
    expect((await b.claim()).map(({ run, attempt }) => [run, attempt])).toEqual([[id, 1]])
    expect(await a.claim()).toEqual([])
  })

  it('RUN-32 an operator moves unheld runs to another version', async () => {
    const a = await t.session({ definitions: [definition('w'), definition('w', { version: '2' })] })
    const id = await t.start('w', { version: '1' })
    const run = only(await a.claim())
    expect(await t.engine.reversion(id, '2', 'op')).toMatchObject({ ok: false, code: 'held' })
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    expect(await t.engine.reversion(id, '9', 'op')).toMatchObject({ code: 'unknown_workflow' })
    expect(await t.engine.reversion(id, '2', 'op')).toMatchObject({ ok: true })
    expect(only(await a.claim())).toMatchObject({ run: id, version: '2', attempt: 2 })
  })

  it('RUN-32 a look at what is registered that comes back late does not hide what another has shown', async () => {
    await t.session()
    const { store } = t.engine
    const read = store.read
    const late = gate()
    let looks = 0
    Object.assign(store, {
      async read(transaction: never) {
        const first = ++looks === 1
        const answer = await read(transaction)
        if (first) await late.opened
        return answer
      },
    })
    const early = t.engine.reload()
    // the first look has been taken before anything more is registered
    await settled(30)
    await t.session({ definitions: [definition('later')] })
    late.open()
    await early
    Object.assign(store, { read })
    expect(await t.startAnswer('later')).toMatchObject({ ok: true, started: true })
  })
})
