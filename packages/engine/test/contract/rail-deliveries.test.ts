// What becomes of a notice on its way to a sink: written with its cause, sent at least once under one name, and settled once.
import { afterEach, describe, expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import type { Message, Sent, Sink } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import { deliveryWarnings, sinks } from '../../src/queries/deliveries.ts'
import type { Claimed, Recorded, Result } from '../../src/transitions/deliver.ts'
import { claimDeliveries, recordDeliveries } from '../../src/transitions/deliver.ts'
import { endLapsed, endOnEvidence, takeOverFile } from '../../src/transitions/end-session.ts'
import { removeSinks } from '../../src/transitions/keep-sinks.ts'
import { settleDelivery } from '../../src/transitions/settle-delivery.ts'
import { settleOrder } from '../../src/transitions/settle-order.ts'
import type { Store } from '../../src/store/store.ts'
import { Crash, cutter, dump } from '../support/crash.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

let t: TestStore
afterEach(() => t.close())

interface Fake extends Sink {
  readonly got: Message[]
  answer: (message: Message, signal: AbortSignal) => Promise<Sent>
}
const taken: Sent = { ok: true, note: 'taken' }
const refused: Sent = { ok: false, why: 'it answered 500' }
const fake = (name = 'ops', more: Partial<Sink> = {}): Fake => {
  const sink: Fake = {
    name,
    type: 'fake',
    kinds: noticeKinds,
    got: [],
    answer: () => Promise.resolve(taken),
    send(message, signal) {
      sink.got.push(message)
      return sink.answer(message, signal)
    },
    ...more,
  }
  return sink
}
const deliveries = () =>
  t.sql('select id, run, kind, sink, state, refusals, lapses from deliveries order by seq, id')
const fail = async (session: Session, id: string): Promise<void> => {
  await t.start('w', { id })
  const run = only(await session.claim(1))
  await session.end(run, { kind: 'fail', reason: 'error', note: 'boom', error: '{}' })
}

describe('RAIL-02 the relay', () => {
  it('RAIL-01 RAIL-05 a failure is told of with one row for each sink, sent, and receipted once', async () => {
    const ops = fake()
    t = await openStore({ sinks: [ops, fake('mail', { kinds: ['attempt_lost'] })] })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    expect(deliveries()).toMatchObject([{ run: 'run_1', kind: 'run_failed', state: 'due' }])
    await t.settle('relay')
    expect(ops.got).toMatchObject([
      { kind: 'run_failed', run: 'run_1', workflow: 'w', data: { reason: 'error', note: 'boom' } },
    ])
    expect(only(deliveries())).toMatchObject({ state: 'delivered', refusals: 0 })
    expect(t.sql('select kind, recipient, outcome from receipts')).toEqual([
      {
        kind: 'notice.run_failed',
        recipient: `${ops.got[0]?.id}_ops`,
        outcome: 'delivered: taken',
      },
    ])
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
  })

  it('RAIL-02 what a sink refuses is tried again ever later, and is dead after so many refusals', async () => {
    const ops = fake()
    ops.answer = () => Promise.resolve(refused)
    t = await openStore({
      sinks: [ops],
      settings: { deliveryRefusalsMax: 3, deliveryBackoffMs: 1_000 },
    })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
    t.later(700)
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
    t.later(600)
    await t.settle('relay')
    expect(ops.got).toHaveLength(2)
    t.later(2_500)
    await t.settle('relay')
    expect(ops.got).toHaveLength(3)
    expect(new Set(ops.got.map(({ id }) => id)).size).toBe(1)
    expect(only(deliveries())).toMatchObject({ state: 'dead', refusals: 3, lapses: 0 })
    expect(t.sql('select * from receipts')).toEqual([])
  })

  it('RAIL-02 those of one run go in their order; one that is refused holds up those behind it, one that is dead does not', async () => {
    const ops = fake()
    const down = new Set(['attempt_lost'])
    ops.answer = ({ kind }) => Promise.resolve(down.has(kind) ? refused : taken)
    t = await openStore({
      sinks: [ops],
      settings: { deliveryRefusalsMax: 2, deliveryBackoffMs: 1_000, lossesMax: 1 },
    })
    await t.pass('relay')
    const session = await t.session()
    await t.start('w', { id: 'run_1' })
    only(await session.claim(1))
    await t.kill(session)
    await t.settle('relay')
    // another run, and the loss of its executor, are not held up
    expect(ops.got.map(({ kind, run }) => [kind, run])).toEqual([
      ['executor_lost', session.id],
      ['attempt_lost', 'run_1'],
    ])
    t.later(1_500)
    for (let i = 0; i < 2; i++) await t.pass('relay')
    expect(ops.got.map(({ kind }) => kind).slice(2)).toEqual(['attempt_lost', 'run_failed'])
    expect(deliveries().map(({ kind, state }) => [kind, state])).toEqual(
      expect.arrayContaining([
        ['attempt_lost', 'dead'],
        ['run_failed', 'delivered'],
      ]),
    )
  })

  it('RAIL-02 B078 a claim that lapses is counted apart and sent once more under the same name; what comes late counts for nothing', async () => {
    const lines: string[] = []
    const ops = fake()
    t = await openStore({
      sinks: [ops],
      log: { ...noLog, warn: (event) => void lines.push(event) },
      settings: { deliveryLeaseMs: 10_000, deliveryTimeoutMs: 5_000 },
    })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    const other = await claimed('other')
    // the other server has died, or stands still: until its claim lapses nobody else sends
    await t.settle('relay')
    expect(ops.got).toEqual([])
    t.later(10_001)
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
    expect(ops.got[0]).toMatchObject({ id: other.message.id, again: true })
    expect(only(deliveries())).toMatchObject({ state: 'delivered', lapses: 1, refusals: 0 })
    expect(lines).toContain('delivery.claimed_again')
    // it wakes up, and what it has to say is refused by its claim
    const late = await recorded([
      { ...other, came: { how: 'refused', why: 'x', forGood: true, afterMs: 0 } },
    ])
    expect(late.lost).toEqual([other.id])
    expect(only(deliveries())).toMatchObject({ state: 'delivered', refusals: 0 })
    expect(t.sql('select * from receipts')).toHaveLength(1)
  })

  it('RAIL-04 of two servers that record the same claim exactly one wins, and a repeat is known', async () => {
    t = await openStore({ sinks: [fake()] })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    const one = await claimed('one')
    const results: Result[] = [{ ...one, came: { how: 'delivered', note: 'taken' } }]
    const both = await Promise.all([recorded(results), recorded(results)])
    expect(both.map(({ delivered }) => delivered).sort((x, y) => x - y)).toEqual([0, 1])
    expect(both.flatMap(({ lost }) => lost)).toEqual([])
    expect(t.sql('select * from receipts')).toHaveLength(1)
  })

  it('B079 RAIL-04 receipts are per recipient: one whose transport fails once is sent to again, and nobody else is', async () => {
    const [a, b, c] = [fake('a'), fake('b'), fake('c')]
    let fails = 1
    b.answer = () => (fails-- > 0 ? Promise.reject(new Error('no route')) : Promise.resolve(taken))
    t = await openStore({ sinks: [a, b, c] })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    await t.settle('relay')
    t.later(10_000)
    await t.settle('relay')
    expect([a, b, c].map(({ got }) => got.length)).toEqual([1, 2, 1])
    expect(deliveries().map(({ sink, state, refusals }) => [sink, state, refusals])).toEqual([
      ['a', 'delivered', 0],
      ['b', 'delivered', 1],
      ['c', 'delivered', 0],
    ])
  })

  it('RAIL-02 a batch is no larger than can be sent before it lapses, and its tail is let go when the store is slow', async () => {
    const ops = fake()
    t = await openStore({
      sinks: [ops],
      settings: { deliveryLeaseMs: 10_000, deliveryTimeoutMs: 4_000 },
    })
    await t.pass('relay')
    const session = await t.session()
    for (let i = 0; i < 12; i++) await fail(session, `run_${i}`)
    let under = 0
    let most = 0
    ops.answer = async () => {
      most = Math.max(most, ++under)
      await Promise.resolve()
      under -= 1
      return taken
    }
    // two rounds of four would fit, if each transaction did not take as long
    const store = t.engine.store as { run: Store['run'] }
    const { run } = store
    store.run = (transaction, manner, behind) => {
      t.later(3_500)
      return run(transaction, manner, behind)
    }
    await t.pass('relay')
    store.run = run
    const states = deliveries().map(({ state }) => state)
    expect({ most, sent: ops.got.length }).toEqual({ most: 4, sent: 4 })
    expect(states.filter((state) => state === 'due')).toHaveLength(8)
    expect(deliveries().every(({ lapses }) => lapses === 0)).toBe(true)
    await t.settle('relay')
    expect(deliveries().every(({ state }) => state === 'delivered')).toBe(true)
    expect(ops.got).toHaveLength(12)
  })

  it('RAIL-04 a sink that no server has had for long was removed: what is open gets a receipt that says so', async () => {
    const settings = { sinkGoneMs: 60_000 }
    t = await openStore({ settings, sinks: [fake('kept')] })
    await t.pass('relay')
    t.sql(
      `insert into sinks (name, kind, type, seen_at) select 'gone', kind, type, seen_at from sinks returning name`,
    )
    await fail(await t.session(), 'run_1')
    await t.settle('relay')
    // who has not been up for as long cannot know
    expect(deliveries().map(({ sink, state }) => [sink, state])).toEqual([
      ['gone', 'due'],
      ['kept', 'delivered'],
    ])
    t.later(70_000)
    await t.pass('relay')
    expect(t.sql('select distinct name from sinks')).toEqual([{ name: 'kept' }])
    expect(deliveries().map(({ sink, state }) => [sink, state])).toEqual([
      ['gone', 'void'],
      ['kept', 'delivered'],
    ])
    expect(t.sql(`select outcome from receipts where recipient like '%_gone'`)).toEqual([
      { outcome: 'sink_removed' },
    ])
  })

  it('RAIL-04 what its sink is not for, and a notice whose cause is gone, get a receipt that says so', async () => {
    const ops = fake()
    ops.answer = () => Promise.resolve({ ok: false, why: 'no issue', never: true })
    t = await openStore({ sinks: [ops], settings: { orderFailuresMax: 1 } })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    await t.settle('relay')
    expect(only(deliveries())).toMatchObject({ state: 'void', refusals: 0 })
    for (let i = 0; i < 2; i++) {
      t.sql(
        `insert into orders (id, kind, run, payload, created_at) values ('bad', 'start', 'run_9', '{', 0) returning id`,
      )
      await t.pass('apply-orders')
      await t.engine.act((tx) => settleOrder(tx, 'bad', 'drop', 'ana'))
      t.later(1)
    }
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
    expect(t.sql(`select outcome from receipts where kind like 'notice.%' order by at`)).toEqual([
      { outcome: 'void: no issue' },
      { outcome: 'notice_gone' },
      { outcome: 'notice_gone' },
    ])
  })

  it('RAIL-02 an operator has a dead one tried anew or drops it, with a receipt that says by whom; settled ones are pruned', async () => {
    const ops = fake()
    ops.answer = () => Promise.resolve({ ok: false, why: 'it answered 410', forGood: true })
    t = await openStore({ sinks: [ops] })
    await t.pass('relay')
    const session = await t.session()
    await fail(session, 'run_1')
    await fail(session, 'run_2')
    await t.settle('relay')
    const [first, second] = deliveries().map(({ id }) => String(id))
    const settle = (id: string | undefined, what: 'retry' | 'drop') =>
      t.engine.act((tx) => settleDelivery(tx, id ?? '', what, 'ana'))
    expect(deliveries().map(({ state }) => state)).toEqual(['dead', 'dead'])
    expect((await settle(first, 'drop')).answer).toMatchObject({ ok: true, done: 'dropped' })
    ops.answer = () => Promise.resolve(taken)
    expect((await settle(second, 'retry')).answer).toMatchObject({ ok: true, done: 'retried' })
    await t.settle('relay')
    expect(t.sql('select outcome from receipts order by outcome')).toEqual([
      { outcome: 'delivered: taken' },
      { outcome: 'dropped by ana' },
    ])
    expect((await settle(first, 'retry')).answer).toMatchObject({ code: 'delivery_state' })
    expect((await settle('no', 'drop')).answer).toMatchObject({ code: 'not_found' })
    t.later(31 * 86_400_000)
    await t.pass('prune-ended')
    expect(deliveries()).toEqual([])
  })

  it('RAIL-02 RAIL-17 age is a figure with an alarm, and each pass is recorded, also one that did nothing', async () => {
    const ops = fake()
    ops.answer = () => Promise.resolve(refused)
    t = await openStore({ sinks: [ops], settings: { deliveryLateMs: 60_000 } })
    await t.pass('relay')
    const read = () => t.engine.read((tx) => sinks(tx, t.engine.settings))
    const warnings = () => t.engine.read((tx) => deliveryWarnings(tx, t.engine.settings))
    expect(only((await read()).sinks)).toMatchObject({ name: 'ops', open: 0, late: false })
    expect(t.sql(`select examined, acted from sweeps where name = 'relay'`)).toEqual([
      { examined: 0, acted: 0 },
    ])
    await fail(await t.session(), 'run_1')
    await t.pass('relay')
    expect(t.sql(`select examined, acted, skipped from sweeps where name = 'relay'`)).toEqual([
      { examined: 1, acted: 0, skipped: 1 },
    ])
    expect(await warnings()).toEqual([])
    t.later(61_000)
    expect(only((await read()).sinks)).toMatchObject({ open: 1, ageMs: 61_000, late: true })
    expect(await warnings()).toEqual([
      'the sink ops is late: its oldest open delivery is 1 min 1 s old, of 1',
    ])
  })

  it('RAIL-02 a server that starts on a file has proof that nobody sends any more: claims are free at once', async () => {
    t = await openStore({ sinks: [fake()] })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    await claimed('gone')
    await t.engine.store.run((tx) => takeOverFile(tx, 'next', 'the lock was free'))
    await t.settle('relay')
    expect(only(deliveries())).toMatchObject({ state: 'delivered', lapses: 1 })
  })
})

/** Another server claims what is due, and is not heard of for now. */
const claimed = async (holder: string): Promise<Claimed> =>
  only(
    (await t.engine.store.run((tx) => claimDeliveries(tx, 'ops', holder, t.engine.settings)))
      .claimed,
  )
const recorded = (results: readonly Result[]): Promise<Recorded> =>
  t.engine.store.run((tx) => recordDeliveries(tx, results, t.engine.settings))

describe('RAIL-05 notices', () => {
  const kinds = () =>
    t.sql('select kind, run, occurrence, sentence from notices order by at, kind, occurrence')

  it('RAIL-05 a lost attempt, an expired one and a lost executor are told of, each time', async () => {
    t = await openStore()
    for (let i = 1; i <= 2; i++) {
      const session = await t.session({ id: `ses_${i}` })
      await t.start('w', { id: 'run_1' })
      only(await session.claim(1))
      await t.kill(session)
      t.later(1)
    }
    const third = await t.session({ id: 'ses_3' })
    only(await third.claim(1))
    t.later(31_000)
    await t.engine.store.run((tx) => endLapsed(tx, tx.now))
    await t.pass('reap-sessions')
    expect(kinds()).toMatchObject([
      { kind: 'attempt_lost', run: 'run_1', occurrence: '1' },
      {
        kind: 'executor_lost',
        run: 'ses_1',
        sentence: expect.stringContaining('the test killed it') as string,
      },
      { kind: 'attempt_lost', run: 'run_1', occurrence: '2' },
      { kind: 'executor_lost', run: 'ses_2' },
      {
        kind: 'attempt_lost',
        run: 'run_1',
        occurrence: '3',
        sentence: expect.stringContaining('expired') as string,
      },
      { kind: 'executor_lost', run: 'ses_3' },
    ])
  })

  it('RAIL-05 a failure is told of, but not that of a child whose parent waits for it, nor of a handler as a failure', async () => {
    t = await openStore()
    const session = await t.session({ definitions: [definition('w'), definition('c')] })
    await t.start('w', { id: 'run_1' })
    const parent = only(await session.claim(1))
    await session.write(parent, {
      waits: [
        {
          key: 'kid',
          kind: 'child',
          child: {
            id: 'run_kid',
            workflow: 'c',
            input: 'null',
            awaited: true,
            onParentEnd: 'cancel',
          },
        },
      ],
      end: { kind: 'suspend', keys: ['kid'] },
    })
    const kid = only(await session.claim(1))
    await session.end(kid, { kind: 'fail', reason: 'error', note: 'boom', error: '{}' })
    expect(kinds()).toEqual([])
    await t.settle('apply-orders')
    const again = only(await session.claim(1))
    await session.end(again, {
      kind: 'fail',
      reason: 'error',
      note: 'its child failed',
      error: '{}',
    })
    expect(kinds()).toMatchObject([{ kind: 'run_failed', run: 'run_1', occurrence: '' }])
  })

  it('RAIL-05 a run that is set aside is stuck: it departs from its journal, makes no progress, or nobody serves it any more', async () => {
    t = await openStore({ settings: { handBacksMax: 1 } })
    const session = await t.session()
    for (const id of ['run_1', 'run_2', 'run_3']) await t.start('w', { id })
    const [first, second, third] = await session.claim(3)
    if (!first || !second || !third) throw new Error('three runs were not claimed')
    await session.end(first, { kind: 'park', reason: 'nondeterminism', note: 'it departs' })
    await session.end(second, { kind: 'hand_back', reason: 'unknown_here' })
    await session.end(third, { kind: 'hand_back', reason: 'shutdown' })
    await t.start('w', { id: 'run_4' })
    await session.closeSession()
    t.later(600_000)
    await t.pass('park-unserved')
    t.later(600_000)
    await t.pass('park-unserved')
    expect(
      t.sql(`select run from notices where kind = 'run_stuck' order by run`).map(({ run }) => run),
    ).toEqual(['run_1', 'run_2', 'run_3'])
  })

  it('RAIL-05 an approval is told of as it is asked, and once more before it lapses', async () => {
    t = await openStore({ settings: { approvalLapsingMs: 10_000 } })
    const session = await t.session()
    await t.start('w', { id: 'run_1' })
    const run = only(await session.claim(1))
    const approval = { prompt: 'ship it?', data: null, deciders: [] }
    await session.write(run, {
      waits: [
        { key: 'long', kind: 'approval', dueInMs: 60_000, approval },
        { key: 'short', kind: 'approval', dueInMs: 2_000, approval },
      ],
    })
    const lapsing = () =>
      t
        .sql(
          `select occurrence from notices where kind = 'approval_lapsing' order by at, occurrence`,
        )
        .map(({ occurrence }) => occurrence)
    expect(kinds()).toMatchObject([
      { kind: 'approval_asked', occurrence: 'long' },
      { kind: 'approval_asked', occurrence: 'short' },
    ])
    await t.pass('notice-lapsing')
    expect(lapsing()).toEqual([])
    t.later(1_000)
    await t.pass('notice-lapsing')
    expect(lapsing()).toEqual(['short'])
    t.later(49_500)
    await t.settle('notice-lapsing')
    expect(lapsing()).toEqual(['short', 'long'])
  })
})

describe('RAIL-01 RAIL-04 a relay that dies at any statement', () => {
  /** Each with what it begins from, and what it comes to when it is done in the end. */
  const acts: Record<string, { before?: () => Promise<unknown>; act: () => Promise<unknown> }> = {
    'a failure that is told of': {
      before: async () => {
        await t.start('w', { id: 'run_2' })
        run = only(await session.claim(1))
      },
      act: () => session.end(run, { kind: 'fail', reason: 'error', note: 'boom', error: '{}' }),
    },
    'a claim': { act: () => claimed('one') },
    'a record of a delivery': {
      before: async () => (held = await claimed('one')),
      act: () => recorded([{ ...held, came: { how: 'delivered', note: 'taken' } }]),
    },
    'a record of a refusal': {
      before: async () => (held = await claimed('one')),
      act: () =>
        recorded([{ ...held, came: { how: 'refused', why: 'x', forGood: false, afterMs: 5 } }]),
    },
    'a record of the last refusal': {
      before: async () => (held = await claimed('one')),
      act: () =>
        recorded([{ ...held, came: { how: 'refused', why: 'x', forGood: true, afterMs: 5 } }]),
    },
    'a record of what is not for its sink': {
      before: async () => (held = await claimed('one')),
      act: () => recorded([{ ...held, came: { how: 'void', note: 'x' } }]),
    },
    'a shed': {
      before: async () => (held = await claimed('one')),
      act: () => recorded([{ ...held, came: { how: 'cut' } }]),
    },
    'a claim of a notice that is gone': {
      before: async () => void t.sql('delete from notices returning run'),
      act: () => t.engine.store.run((tx) => claimDeliveries(tx, 'ops', 'one', t.engine.settings)),
    },
    'a removal of a sink': {
      before: async () => t.later(10_000),
      act: () => t.engine.store.run((tx) => removeSinks(tx, 1)),
    },
    'a drop': {
      act: () =>
        t.engine.act((tx) => settleDelivery(tx, String(only(deliveries())['id']), 'drop', 'ana')),
    },
    'a death that is told of': {
      before: async () => {
        await t.start('w', { id: 'run_3' })
        await session.claim(1)
      },
      act: () => t.engine.store.run((tx) => endOnEvidence(tx, session.id, 'it was seen')),
    },
  }
  let session: Session
  let held: Claimed
  let run: ClaimedRun

  it.each(Object.entries(acts))(
    'RAIL-01 %s: dying at any statement, nothing of it is there; done again, all of it is, with its receipt',
    async (_name, { before, act }) => {
      t = await openStore({ sinks: [fake()] })
      await t.pass('relay')
      session = await t.session()
      await fail(session, 'run_1')
      await before?.()
      const cut = cutter(t.engine.store)
      let points = 0
      for (let n = 1; ; n++) {
        const untouched = dump(t)
        cut.at(n)
        const done = await act().then(
          () => true,
          (error: unknown) => {
            if (error instanceof Crash) return false
            throw error
          },
        )
        cut.off()
        if (done) {
          expect(dump(t)).not.toEqual(untouched)
          break
        }
        points += 1
        expect(dump(t)).toEqual(untouched)
      }
      expect(points).toBeGreaterThan(0)
      // a notice and its deliveries, a last state and its receipt: both or neither
      expect(
        t.sql(
          `select d.id from deliveries d where (d.state in ('delivered', 'dropped', 'void')) <> (exists (select 1 from receipts c where c.recipient = d.id))`,
        ),
      ).toEqual([])
      expect(
        t.sql(
          `select n.run from notices n where not exists (select 1 from deliveries d where d.run = n.run and d.kind = n.kind and d.occurrence = n.occurrence)`,
        ),
      ).toEqual([])
      // and it goes on from there, to its end
      t.later(100_000)
      await t.settle('relay')
      expect(
        t.sql(`select count(*) as n from receipts c group by c.recipient having count(*) > 1`),
      ).toEqual([])
    },
  )
})
