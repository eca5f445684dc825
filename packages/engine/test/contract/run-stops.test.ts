import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimedRun } from '../../src/model/work.ts'
import { pauseLine, resumeLine } from '../../src/transitions/pause-line.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const limits = (): Promise<void> => t.pass('enforce-limits')
const held = async (
  command: Parameters<TestStore['start']>[1] = {},
): Promise<{ a: Session; run: ClaimedRun; id: string }> => {
  const a = await t.session({ definitions: [definition('w'), definition('c')] })
  const id = await t.start('w', command)
  return { a, run: only(await a.claim(1)), id }
}
const endOf = (id: string) => only(t.sql('select * from attempts where run = ?', id))

describe('RUN-13 limits of time', () => {
  it('RUN-13 the total limit ends a run that nobody holds at once', async () => {
    await t.session()
    const id = await t.start('w', { totalLimitMs: 5_000 })
    t.later(4_999)
    await limits()
    expect(t.run(id)['status']).toBe('queued')
    t.later(1)
    await limits()
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'time_limit' })
    expect(JSON.parse(String(t.run(id)['error']))).toMatchObject({ code: 'time_limit' })
  })

  it('RUN-13 one that nobody has claimed for ten minutes is a notice, once, and nothing becomes of it', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const claimed = await t.start('w')
    expect((await a.claim(10)).map(({ run }) => run).sort()).toEqual([id, claimed].sort())
    await a.closeSession()
    const never = await t.start('w')
    const limited = await t.start('w', { startByMs: 3_600_000 })
    const delayed = await t.start('w', { delayMs: 300_000 })
    const before = t.sql('select * from runs order by id')
    t.later(599_999)
    await t.pass('notice-overdue')
    expect(t.sql('select * from notices')).toEqual([])
    t.later(1)
    await t.pass('notice-overdue')
    await t.pass('notice-overdue')
    expect(only(t.sql('select * from notices'))).toMatchObject({
      run: never,
      kind: 'start_overdue',
      at: t.clock.time.now(),
      sentence: `nobody has claimed ${never} (w) for 10 min: it is queued`,
    })
    expect(t.sql('select * from runs order by id')).toEqual(before)
    expect(t.run(limited)['status']).toBe('queued')
    // a delayed start is overdue ten minutes after its instant
    t.later(300_000)
    await t.pass('wake-due', 'notice-overdue')
    expect(t.sql('select run from notices order by at')).toEqual([{ run: never }, { run: delayed }])
  })

  it('RUN-13 such notices come by pages: thousands that are overdue hold nothing up, and all are told of', async () => {
    await t.session()
    for (let i = 0; i < 12; i++) await Promise.all(Array.from({ length: 100 }, () => t.start('w')))
    t.later(600_000)
    const loop = t.opened.loops.all.find(({ name }) => name === 'notice-overdue')
    const told: number[] = []
    for (let i = 0; i < 4; i++) told.push((await loop?.once())?.acted ?? 0)
    expect(told[0]).toBe(500)
    expect(told.reduce((sum, each) => sum + each, 0)).toBe(1_200)
  })

  it('RUN-13 a held run has ten seconds more, then its attempt is revoked whatever its body does', async () => {
    const { a, run, id } = await held({ totalLimitMs: 5_000 })
    t.later(14_999)
    await limits()
    expect(t.run(id)['status']).toBe('running')
    t.later(1)
    await limits()
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'time_limit' })
    expect(endOf(id)).toMatchObject({ end: 'revoked', reason: 'time_limit' })
    expect(await a.complete(run)).toMatchObject({ code: 'stale_attempt' })
  })

  it('RUN-13 limits are independent of leases: renewing does not put them off', async () => {
    const { a, id } = await held({ attemptLimitMs: 20_000 })
    for (let i = 0; i < 3; i++) {
      t.later(10_000)
      await a.renew()
      await limits()
    }
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'attempt_deadline' })
    expect(endOf(id)['end']).toBe('revoked')
  })

  it('RUN-13 the attempt’s limit begins anew with each attempt', async () => {
    const { a, run, id } = await held({ attemptLimitMs: 20_000 })
    t.later(15_000)
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    only(await a.claim(1))
    t.later(20_000)
    await limits()
    expect(t.run(id)).toMatchObject({ status: 'running' })
    t.later(10_000)
    await limits()
    expect(t.run(id)['status']).toBe('failed')
  })

  it('RUN-13 the attempt’s limit leaves the run a try where its workflow has one', async () => {
    const a = await t.session({ definitions: [definition('w', { retry: { maxAttempts: 2 } })] })
    const id = await t.start('w', { attemptLimitMs: 1_000 })
    only(await a.claim(1))
    t.later(11_000)
    await limits()
    expect(t.run(id)).toMatchObject({ status: 'waiting', reason: 'retry', failures: 1 })
    t.later(1_000)
    await t.pass('wake-due', 'poll-lanes')
    only(await a.claim(1))
    t.later(11_000)
    await limits()
    expect(t.run(id)).toMatchObject({ status: 'failed', failures: 2 })
  })

  it('RUN-13 a step past its limit with an unsettled body: one write records the failed try and raises the fence', async () => {
    const { a, run, id } = await held()
    await a.write(run, {
      waits: [{ key: 'slow', kind: 'retry', tries: 1, error: '{"message":"late"}', dueInMs: 500 }],
      end: { kind: 'revoke', reason: 'step_limit', note: 'had not settled' },
    })
    expect(endOf(id)).toMatchObject({ end: 'revoked', reason: 'step_limit' })
    const next = only(await a.claim(1))
    expect(next).toMatchObject({ attempt: 2, waits: [{ key: 'slow', kind: 'retry', tries: 1 }] })
    expect(t.run(id)).toMatchObject({ losses: 0, failures: 0 })
  })

  it('RUN-13 startBy: a run not claimed by then ends not_started; one that was claimed does not', async () => {
    const { a, run, id: started } = await held({ startByMs: 1_000 })
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    const never = await t.start('w', { startByMs: 1_000 })
    t.later(999)
    await limits()
    expect(t.run(never)['status']).toBe('queued')
    t.later(1)
    await limits()
    expect(t.run(never)).toMatchObject({ status: 'failed', reason: 'not_started' })
    expect(t.run(started)['status']).toBe('queued')
  })

  it('RUN-13 a waiting run and a paused one meet the limit too', async () => {
    const { a, run, id } = await held({ totalLimitMs: 5_000 })
    await a.write(run, {
      waits: [{ key: 'go', kind: 'signal', name: 'go' }],
      end: { kind: 'suspend', keys: ['go'] },
    })
    const paused = await t.start('w', { totalLimitMs: 5_000 })
    await t.engine.pause(paused, 'ana', null)
    t.later(5_000)
    await limits()
    expect([t.run(id)['reason'], t.run(paused)['reason']]).toEqual(['time_limit', 'time_limit'])
    expect(only(t.sql('select state from waits'))).toEqual({ state: 'closed' })
  })
})

describe('RUN-14 cancel', () => {
  it('RUN-14 of a run that nobody holds is immediate, in each of its statuses', async () => {
    const { a, run, id: waiting } = await held()
    await a.write(run, {
      waits: [{ key: 'go', kind: 'signal', name: 'go' }],
      end: { kind: 'suspend', keys: ['go'] },
    })
    const queued = await t.start('w')
    const delayed = await t.start('w', { delayMs: 9_000 })
    const paused = await t.start('w')
    await t.engine.pause(paused, 'bob', null)
    for (const id of [waiting, queued, delayed, paused]) {
      const answer = await t.engine.cancel({ run: id, by: 'ana', reason: 'enough' })
      expect(answer).toEqual({ ok: true, run: id, status: 'canceled' })
      expect(t.run(id)).toMatchObject({
        status: 'canceled',
        cancel_by: 'ana',
        note: 'canceled by ana: enough',
        output: null,
        error: null,
      })
    }
    t.later(60_000)
    await t.settle()
    expect(t.sql(`select count(*) as n from runs where status <> 'canceled'`)).toEqual([{ n: 0 }])
  })

  it('RUN-14 of a held run is told by push, by the next checkpoint and by the next renewal', async () => {
    const { a, run, id } = await held()
    const pushed: unknown[] = []
    t.port.listen(a.id, (told) => pushed.push(told))
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    expect(t.run(id)).toMatchObject({ status: 'canceling', session: a.id })
    expect(pushed).toEqual([{ run: id, attempt: 1, directive: 'cancel', note: 'canceled by ana' }])
    expect(await a.checkpoint(run, 'x')).toMatchObject({ directive: 'cancel' })
    expect(await a.renew()).toMatchObject({ told: [{ run: id, directive: 'cancel' }] })
    await a.end(run, { kind: 'hand_back', reason: 'canceled' })
    expect(t.run(id)['status']).toBe('canceled')
  })

  it('RUN-14 a holder that ignores it is revoked when the grace is over', async () => {
    const { id } = await held()
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    t.later(29_999)
    await limits()
    expect(t.run(id)['status']).toBe('canceling')
    t.later(1)
    await limits()
    expect(t.run(id)['status']).toBe('canceled')
    expect(endOf(id)).toMatchObject({ end: 'revoked', reason: 'cancel_grace' })
  })

  it('RUN-14 ends when the session of the holder ends', async () => {
    const { a, id } = await held()
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await t.kill(a)
    expect(t.run(id)['status']).toBe('canceled')
    expect(endOf(id)['end']).toBe('lost')
    const other = await held()
    await t.engine.cancel({ run: other.id, by: 'ana', reason: null })
    await other.a.closeSession()
    expect(t.run(other.id)['status']).toBe('canceled')
  })

  it('RUN-14 completion that commits first wins', async () => {
    const { a, run, id } = await held()
    await a.complete(run, 'done')
    expect(await t.engine.cancel({ run: id, by: 'ana', reason: null })).toMatchObject({
      ok: false,
      code: 'already_ended',
      detail: { status: 'succeeded' },
    })
    expect(t.run(id)['output']).toBe('"done"')
  })

  it('RUN-14 a result that comes after the order is not stored', async () => {
    const { a, run, id } = await held()
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    expect(await a.complete(run, 'late')).toMatchObject({ ok: true, ended: 'canceled' })
    expect(t.run(id)).toMatchObject({ status: 'canceled', output: null })
  })

  const racers: [string, (a: Session, run: ClaimedRun) => Promise<unknown>][] = [
    [
      'a suspend',
      (a, run) =>
        a.write(run, {
          waits: [{ key: 'n', kind: 'time', dueInMs: 1 }],
          end: { kind: 'suspend', keys: ['n'] },
        }),
    ],
    [
      'a retry',
      (a, run) =>
        a.end(run, { kind: 'fail', reason: 'error', note: 'x', error: '{}', retryInMs: 10 }),
    ],
    ['a hand-back', (a, run) => a.end(run, { kind: 'hand_back', reason: 'shutdown' })],
    [
      'a pause',
      (a, run) =>
        t.engine
          .pause(run.run, 'bob', null)
          .then(() => a.end(run, { kind: 'hand_back', reason: 'pause' })),
    ],
    ['a reap', (a) => t.kill(a)],
    ['a take-back', (_a, run) => t.engine.takeFrom(run.run, 'op', 'x')],
    ['a continuation', (a, run) => a.end(run, { kind: 'continue', input: null, runId: 'run_zzz' })],
    ['a changed context', (a, run) => a.end(run, { kind: 'stale', note: 'x' })],
  ]
  for (const [name, race] of racers)
    it(`RUN-14 a cancel is never lost to ${name}`, async () => {
      const { a, run, id } = await held()
      await t.engine.cancel({ run: id, by: 'ana', reason: null })
      await race(a, run)
      expect(t.run(id)['status']).toBe('canceled')
      expect(t.sql('select count(*) as n from runs')).toEqual([{ n: 1 }])
    })

  it('RUN-14 a second cancel changes nothing', async () => {
    const { id } = await held()
    await t.engine.cancel({ run: id, by: 'ana', reason: 'one' })
    const before = t.run(id)
    t.later(5)
    expect(await t.engine.cancel({ run: id, by: 'bob', reason: 'two' })).toMatchObject({ ok: true })
    expect(t.run(id)).toEqual(before)
  })
})

describe('RUN-15 however a run ends', () => {
  const child = (name: string, onParentEnd: 'cancel' | 'detach', awaited = true) => ({
    id: `run_${name}`,
    workflow: 'c',
    input: null,
    awaited,
    onParentEnd,
  })
  const family = async () => {
    const made = await held()
    await made.a.write(made.run, {
      entries: [entry(1, 'spawned', { kind: 'spawn' }), entry(2, 'free', { kind: 'spawn' })],
      spawns: [
        { as: 'spawned', ...child('spawned', 'cancel', false) },
        { as: 'free', ...child('free', 'detach', false) },
      ],
      waits: [
        {
          key: 'ask',
          kind: 'approval',
          dueInMs: 60_000,
          approval: { prompt: '?', data: null, deciders: [] },
        },
        { key: 'nap', kind: 'time', dueInMs: 60_000 },
        { key: 'kid', kind: 'child', child: child('kid', 'cancel') },
      ],
    })
    return made
  }
  const endings: [string, string, (a: Session, run: ClaimedRun) => Promise<unknown>][] = [
    [
      'a failure',
      'failed',
      (a, run) => a.end(run, { kind: 'fail', reason: 'error', note: 'x', error: '{}' }),
    ],
    ['a result', 'succeeded', (a, run) => a.complete(run)],
    [
      'a cancel',
      'canceled',
      async (a, run) => {
        await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
        await t.engine.cancel({ run: run.run, by: 'ana', reason: null })
      },
    ],
    ['a changed context', 'failed', (a, run) => a.end(run, { kind: 'stale', note: 'x' })],
    [
      'losses',
      'failed',
      async (a, run) => {
        t.sql('update runs set losses = 4 where id = ? returning id', run.run)
        await t.kill(a)
      },
    ],
    [
      'the time limit',
      'failed',
      async (_a, run) => {
        t.sql('update runs set deadline = 1 where id = ? returning id', run.run)
        await limits()
      },
    ],
  ]
  for (const [name, status, finish] of endings)
    it(`RUN-15 by ${name}: the same transaction closes its approvals, timers and waits and orders its children’s end`, async () => {
      const { a, run, id } = await family()
      await finish(a, run)
      expect(t.run(id)['status']).toBe(status)
      expect(t.sql('select distinct state from waits where run = ?', id)).toEqual([
        { state: 'closed' },
      ])
      expect(only(t.sql('select * from approvals'))).toMatchObject({ state: 'canceled' })
      expect(t.sql(`select run from orders where kind = 'cancel' order by run`)).toEqual([
        { run: 'run_kid' },
        { run: 'run_spawned' },
      ])
      await t.settle()
      expect(['run_kid', 'run_spawned', 'run_free'].map((each) => t.run(each)['status'])).toEqual([
        'canceled',
        'canceled',
        'queued',
      ])
      expect(t.sql('select * from orders')).toEqual([])
    })
})

describe('RUN-16 pause', () => {
  const go = { key: 'go', kind: 'signal', name: 'go' } as const
  const nap = { key: 'nap', kind: 'time', dueInMs: 1_000 } as const

  it('RUN-16 of a held run takes effect at the next end of its attempt, and is told at once', async () => {
    const { a, run, id } = await held()
    const pushed: unknown[] = []
    t.port.listen(a.id, (told) => pushed.push(told))
    await t.engine.pause(id, 'ana', 'look first')
    expect(t.run(id)).toMatchObject({ status: 'running', pause_by: 'ana' })
    expect(pushed).toMatchObject([{ run: id, directive: 'pause' }])
    expect(await a.checkpoint(run, 'x')).toMatchObject({ directive: 'pause' })
    await a.end(run, { kind: 'hand_back', reason: 'pause' })
    expect(t.run(id)).toMatchObject({ status: 'paused', wait_on: null })
    await t.settle()
    expect(await a.claim(1)).toEqual([])
  })

  it('RUN-16 survives suspend, hand-back, reap and a failed try', async () => {
    const endings: ((a: Session, run: ClaimedRun) => Promise<unknown>)[] = [
      (a, run) => a.write(run, { waits: [go], end: { kind: 'suspend', keys: ['go'] } }),
      (a, run) => a.end(run, { kind: 'hand_back', reason: 'marker' }),
      (a) => t.kill(a),
      (a, run) =>
        a.end(run, { kind: 'fail', reason: 'error', note: 'x', error: '{}', retryInMs: 9 }),
      (a, run) => a.end(run, { kind: 'fail', reason: 'error', note: 'x', error: '{}' }),
    ]
    for (const end of endings) {
      const { a, run, id } = await held()
      await t.engine.pause(id, 'ana', null)
      await end(a, run)
      expect(t.run(id)).toMatchObject({ status: 'paused' })
    }
  })

  it('RUN-16 while paused, signals, decisions and timers are recorded and nothing is made claimable', async () => {
    const { a, run, id } = await held()
    const ask = {
      key: 'ask',
      kind: 'approval',
      dueInMs: 60_000,
      approval: { prompt: '?', data: null, deciders: [] },
    } as const
    await a.write(run, {
      waits: [go, nap, ask],
      end: { kind: 'suspend', keys: ['go', 'nap', 'ask'] },
    })
    await t.engine.pause(id, 'ana', null)
    expect(t.run(id)).toMatchObject({ status: 'paused', wait_on: 'signal' })
    expect(
      await t.engine.signal({ run: id, id: 's', name: 'go', payload: '1', by: null }),
    ).toMatchObject({ ok: true })
    expect(
      await t.engine.decide({
        approval: `${id}:ask`,
        decision: 'approved',
        by: 'bob',
        reason: null,
        payload: null,
      }),
    ).toMatchObject({ ok: true })
    t.later(2_000)
    await t.settle()
    expect(t.run(id)).toMatchObject({ status: 'paused' })
    expect(t.sql('select key, state from waits order by seq')).toEqual([
      { key: 'go', state: 'satisfied' },
      { key: 'nap', state: 'open' },
      { key: 'ask', state: 'satisfied' },
    ])
    expect(await t.engine.resume(id, 'ana')).toMatchObject({ ok: true, status: 'queued' })
    expect(only(await a.claim(1)).waits.map(({ key, state }) => [key, state])).toEqual([
      ['go', 'satisfied'],
      ['nap', 'lapsed'],
      ['ask', 'satisfied'],
    ])
  })

  it('RUN-16 resumes to waiting on the same when none of its waits is satisfied', async () => {
    const { a, run, id } = await held()
    await a.write(run, { waits: [nap], end: { kind: 'suspend', keys: ['nap'] } })
    const readyAt = t.run(id)['ready_at']
    await t.engine.pause(id, 'ana', null)
    t.later(999)
    expect(await t.engine.resume(id, 'ana')).toMatchObject({ status: 'waiting' })
    expect(t.run(id)).toMatchObject({
      wait_on: 'time',
      ready_at: readyAt,
      pause_requested_at: null,
    })
    t.later(1)
    await t.pass('wake-due')
    expect(t.run(id)['status']).toBe('queued')
  })

  it('RUN-16 a timer that came due while it was paused makes it due when it is resumed', async () => {
    const { a, run, id } = await held()
    await a.write(run, { waits: [nap], end: { kind: 'suspend', keys: ['nap'] } })
    await t.engine.pause(id, 'ana', null)
    t.later(5_000)
    expect(await t.engine.resume(id, 'ana')).toMatchObject({ status: 'queued' })
    expect(only(await a.claim(1)).waits).toMatchObject([{ key: 'nap', state: 'lapsed' }])
  })

  it('RUN-16 a run that was due is due again; a delayed start keeps its delay', async () => {
    await t.session()
    const due = await t.start('w')
    const delayed = await t.start('w', { delayMs: 60_000 })
    for (const id of [due, delayed]) await t.engine.pause(id, 'ana', null)
    const readyAt = t.run(delayed)['ready_at']
    expect(await t.engine.resume(due, 'ana')).toMatchObject({ status: 'queued' })
    expect(await t.engine.resume(delayed, 'ana')).toMatchObject({ status: 'waiting' })
    expect(t.run(delayed)).toMatchObject({ wait_on: 'slot', ready_at: readyAt, reason: 'delayed' })
  })

  it('RUN-16 a pause that had not taken effect is taken back', async () => {
    const { a, run, id } = await held()
    await t.engine.pause(id, 'ana', null)
    expect(await t.engine.resume(id, 'ana')).toMatchObject({ ok: true, status: 'running' })
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    expect(t.run(id)['status']).toBe('queued')
    expect(await t.engine.resume(id, 'ana')).toMatchObject({ ok: false, code: 'not_paused' })
  })

  it('RUN-16 a queue or a workflow can be paused too: claims skip it, until then or until it is resumed', async () => {
    const a = await t.session({
      definitions: [definition('w'), definition('v', { queue: 'slow' })],
    })
    const w = await t.start('w')
    const v = await t.start('v')
    const line = { by: 'ana', why: 'deploy', until: null, forMs: null }
    await t.engine.act((tx) => pauseLine(tx, { ...line, kind: 'queue', name: 'slow' }))
    await t.engine.act((tx) =>
      pauseLine(tx, { ...line, kind: 'workflow', name: 'w', forMs: 1_000 }),
    )
    expect(await a.claim()).toEqual([])
    t.later(1_000)
    await t.pass('poll-lanes')
    expect((await a.claim()).map(({ run }) => run)).toEqual([w])
    await t.engine.act((tx) => resumeLine(tx, 'queue', 'slow'))
    expect((await a.claim()).map(({ run }) => run)).toEqual([v])
  })
})
