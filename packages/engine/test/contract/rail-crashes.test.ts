import { afterEach, describe, expect, it } from 'vitest'
import type { ChildStart, ClaimedRun, WaitRecord } from '../../src/model/work.ts'
import { admit } from '../../src/transitions/admit.ts'
import { applyOrder, dueOrders, tellParents } from '../../src/transitions/apply-orders.ts'
import { endLapsed, takeBack } from '../../src/transitions/end-session.ts'
import { enforceLimits } from '../../src/transitions/enforce-limits.ts'
import { park, unpark } from '../../src/transitions/park.ts'
import { prune } from '../../src/transitions/prune.ts'
import { reconcile } from '../../src/transitions/reconcile.ts'
import { wake } from '../../src/transitions/wake.ts'
import { broken, Crash, cutter, dump } from '../support/crash.ts'
import type { Row, Session, TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
afterEach(() => t.close())

const kid = (id: string): ChildStart => ({
  id,
  workflow: 'l',
  input: '{"k":"a"}',
  awaited: true,
  onParentEnd: 'cancel',
})
const every: WaitRecord[] = [
  { key: 'go', kind: 'signal', name: 'go' },
  { key: 'nap', kind: 'time', dueInMs: 1_000 },
  {
    key: 'ask',
    kind: 'approval',
    dueInMs: 60_000,
    approval: { prompt: '?', data: null, deciders: [] },
  },
  { key: 'kid', kind: 'child', child: kid('run_kid') },
]
const keys = every.map(({ key }) => key)

interface Stage {
  readonly a: Session
  readonly run: ClaimedRun
}
/** A held run with a bit of everything, and others beside it. */
const stage = async (): Promise<Stage> => {
  t = await openStore({ settings: { ownerLimit: 2 } })
  const a = await t.session({
    definitions: [
      definition('w', { onEnd: 'h', retry: { maxAttempts: 2 } }),
      definition('l', { limits: [{ key: 'k:{k}', value: 1 }] }),
      definition('h'),
    ],
  })
  await t.start('w', { id: 'run_1', owner: 'ana', input: '{"n":1}', key: 'key' })
  const run = only(await a.claim(1))
  await a.write(run, {
    entries: [entry(1, 'a'), entry(2, 'b')],
    waits: every,
    state: '{"s":1}',
    stream: [{ stream: 'log', seq: 1, data: '1' }],
  })
  await t.start('l', { id: 'run_l1', input: '{"k":"a"}', owner: 'ana' })
  await t.start('l', { id: 'run_l2', input: '{"k":"a"}', owner: 'ana' })
  await t.start('l', { id: 'run_l3', input: '{"k":"b"}', owner: 'ana' })
  return { a, run: { ...run, entries: 2 } }
}

type Act = (s: Stage) => Promise<unknown>
interface Case {
  readonly before?: Act
  readonly act: Act
  /** What doing it again comes to: nothing more, a refusal that changes nothing, or the same once more. */
  readonly again: 'nothing' | 'refusal' | 'once more'
  /** Transactions of the act. Default 1. */
  readonly commits?: number
}
let fresh: ClaimedRun
const claimNew = async ({ a }: Stage): Promise<void> => {
  await t.start('w', { id: 'run_new' })
  fresh = only(await a.claim(1))
}
const act: Record<string, Case> = {
  'a start': {
    act: () => t.start('w', { id: 'run_new', owner: 'bob', key: 'other' }),
    again: 'nothing',
  },
  'a start into a limit': {
    act: () => t.start('l', { id: 'run_new', input: '{"k":"a"}', owner: 'bob' }),
    again: 'nothing',
  },
  'a claim': {
    before: async ({ a }) => {
      await t.start('w', { id: 'run_new' })
      await a.claim(0)
    },
    act: ({ a }) => a.claimAnswer(5, { claim: 9 }),
    again: 'nothing',
  },
  'a checkpoint with waits, children and a signal taken': {
    act: ({ a, run }) =>
      a.write(run, {
        entries: [entry(3, 'c'), entry(4, 'sp', { kind: 'spawn' })],
        spawns: [{ as: 'sp', ...kid('run_sp') }],
        waits: [{ key: 'more', kind: 'signal', name: 'more' }],
        state: '{"s":2}',
        progress: '{}',
        stream: [{ stream: 'log', seq: 2, data: '2' }],
      }),
    again: 'nothing',
  },
  // the first finds that its run has more to settle than a plain one
  'a completion': {
    act: ({ a, run }) =>
      a.write(run, { entries: [entry(3, 'c')], end: { kind: 'complete', output: '"out"' } }),
    again: 'nothing',
    commits: 2,
  },
  'a plain checkpoint': {
    before: claimNew,
    act: ({ a }) => a.checkpoint(fresh, 'p', 'q'),
    again: 'nothing',
  },
  'a plain completion': {
    before: claimNew,
    act: ({ a }) =>
      a.write(fresh, { entries: [entry(1, 'p')], end: { kind: 'complete', output: '"out"' } }),
    again: 'nothing',
  },
  'a failure with a handler': {
    act: ({ a, run }) =>
      a.end(run, { kind: 'fail', reason: 'error', note: 'boom', error: '{"message":"boom"}' }),
    again: 'nothing',
  },
  'a failure with a retry': {
    act: ({ a, run }) =>
      a.end(run, { kind: 'fail', reason: 'error', note: 'x', error: '{}', retryInMs: 100 }),
    again: 'nothing',
  },
  'a suspend': { act: ({ a, run }) => a.end(run, { kind: 'suspend', keys }), again: 'nothing' },
  'a hand-off to the next run of a series': {
    before: ({ a, run }) =>
      a.write(run, { closes: keys, entries: [entry(3, 'r', { kind: 'race' })] }),
    act: ({ a, run }) => a.end(run, { kind: 'continue', input: '2', runId: 'run_zz' }),
    again: 'nothing',
  },
  'a hand-back to the end of the line': {
    act: ({ a, run }) => a.end(run, { kind: 'hand_back', reason: 'chain', toEnd: true }),
    again: 'nothing',
  },
  'a parked run': {
    act: ({ a, run }) => a.end(run, { kind: 'park', reason: 'nondeterminism', note: 'x' }),
    again: 'nothing',
  },
  'a cancel of a held run': {
    act: () => t.engine.cancel({ run: 'run_1', by: 'ana', reason: 'x' }),
    again: 'nothing',
  },
  'a cancel of a run that nobody holds': {
    before: ({ a, run }) => a.end(run, { kind: 'suspend', keys }),
    act: () => t.engine.cancel({ run: 'run_1', by: 'ana', reason: 'x' }),
    again: 'refusal',
  },
  'an expiry': {
    before: async () => t.later(31_000),
    act: async () => {
      await t.engine.store.run((tx) => endLapsed(tx, tx.now))
      await t.engine.act((tx, context) => takeBack(tx, 100, context))
    },
    again: 'nothing',
  },
  'an expiry of a canceling run': {
    before: async () => {
      await t.engine.cancel({ run: 'run_1', by: 'ana', reason: null })
      t.later(31_000)
      await t.engine.store.run((tx) => endLapsed(tx, tx.now))
    },
    act: () => t.engine.act((tx, context) => takeBack(tx, 100, context)),
    again: 'nothing',
  },
  'a limit of time': {
    before: async () => {
      t.sql('update runs set deadline = 1 returning id')
    },
    act: () => t.engine.act((tx, context) => enforceLimits(tx, 100, context)),
    again: 'nothing',
  },
  'a closed session': { act: ({ a }) => a.closeSession(), again: 'nothing' },
  'a signal': {
    before: ({ a, run }) => a.end(run, { kind: 'suspend', keys }),
    act: () => t.engine.signal({ run: 'run_1', id: 's1', name: 'go', payload: '1', by: null }),
    again: 'nothing',
  },
  'a decision': {
    before: ({ a, run }) => a.end(run, { kind: 'suspend', keys }),
    act: () =>
      t.engine.decide({
        approval: 'run_1:ask',
        decision: 'approved',
        by: 'ana',
        reason: null,
        payload: null,
      }),
    again: 'refusal',
  },
  'a timer': {
    before: async ({ a, run }) => {
      await a.end(run, { kind: 'suspend', keys })
      t.later(1_000)
    },
    act: () => t.engine.act((tx) => wake(tx)),
    again: 'nothing',
  },
  'a pause': { act: () => t.engine.pause('run_1', 'ana', null), again: 'nothing' },
  'a resume': {
    before: async ({ a, run }) => {
      await a.end(run, { kind: 'suspend', keys })
      await t.engine.pause('run_1', 'ana', null)
      t.later(1_000)
    },
    act: () => t.engine.resume('run_1', 'ana'),
    again: 'refusal',
  },
  'an admission': {
    before: () => t.engine.cancel({ run: 'run_l1', by: 'x', reason: null }),
    act: () =>
      t.engine.act((tx) =>
        admit(
          tx,
          new Map([
            ['k:a', 9],
            ['k:b', 9],
            ['owner:ana', 9],
          ]),
        ),
      ),
    again: 'nothing',
  },
  'a child’s end that reaches its parent': {
    before: async ({ a, run }) => {
      await a.end(run, { kind: 'suspend', keys })
      await t.engine.cancel({ run: 'run_kid', by: 'x', reason: null })
    },
    act: async () => {
      const orders = await t.engine.read((tx) => dueOrders(tx, 10))
      const told = orders.filter(({ kind }) => kind === 'child_ended')
      await t.engine.act((tx) => tellParents(tx, told))
    },
    again: 'nothing',
  },
  'the end of a child that a parent’s end ordered': {
    before: ({ a, run }) => a.complete(run),
    act: async () => {
      const orders = await t.engine.read((tx) => dueOrders(tx, 10))
      const order = orders.find(({ id }) => id === 'cancel:run_kid')
      if (order) await t.engine.act((tx, context) => applyOrder(tx, order, context))
    },
    again: 'nothing',
  },
  'a pass of the reconciler': {
    before: async ({ a, run }) => {
      await a.complete(run)
      t.sql('delete from orders returning id')
    },
    act: () => t.engine.act((tx) => reconcile(tx, 10)),
    again: 'nothing',
  },
  'a retry from a step': {
    before: ({ a, run }) => a.complete(run),
    act: () => t.engine.retry({ run: 'run_1', id: 'run_2', from: 'b', version: null, by: 'ana' }),
    again: 'nothing',
  },
  'parking what nobody serves': {
    before: () => t.start('h', { id: 'run_h' }),
    act: () => t.engine.act((tx) => park(tx, String(t.run('run_h')['lane']), 'nobody', 10)),
    again: 'nothing',
  },
  'taking it back in line': {
    before: async () => {
      await t.start('h', { id: 'run_h' })
      await t.engine.act((tx) => park(tx, String(t.run('run_h')['lane']), 'nobody', 10))
    },
    act: () => t.engine.act((tx) => unpark(tx, String(t.run('run_h')['lane']), 10)),
    again: 'nothing',
  },
  'a move to another version': {
    before: async ({ a, run }) => {
      await t.session({ definitions: [definition('w', { version: '2' })] })
      await a.end(run, { kind: 'suspend', keys })
    },
    act: () => t.engine.reversion('run_1', '2', 'op'),
    again: 'once more',
  },
  'an operator that takes it back': {
    act: () => t.engine.takeFrom('run_1', 'op', 'x'),
    again: 'refusal',
  },
  retention: {
    before: async ({ a, run }) => {
      await a.complete(run)
      for (const id of ['run_kid', 'run_l1', 'run_l2', 'run_l3'])
        await t.engine.cancel({ run: id, by: 'x', reason: null })
      await t.settle('apply-orders')
      t.later(31 * 86_400_000)
    },
    act: () => t.engine.store.run((tx) => prune(tx, null, t.engine)),
    again: 'nothing',
  },
}

/** Without what a repeat may raise: a run's position in its stream, and an owner's place in line. */
const bare = (all: Record<string, Row[]>): unknown => ({
  ...all,
  runs: all['runs']?.map((row) => ({ ...row, rev: 0 })),
  limits: all['limits']?.map((row) => ({ ...row, tag: 0 })),
})

describe('RAIL-01 a process that dies at a statement leaves nothing half done', () => {
  for (const [name, { before, act: go, again, commits = 1 }] of Object.entries(act)) {
    it(`RAIL-01 ${name}: dying at any statement, nothing of it is there; done again, all of it is`, async () => {
      const s = await stage()
      await before?.(s)
      const cut = cutter(t.engine.store)
      let points = 0
      for (let n = 1; ; n++) {
        const untouched = dump(t)
        cut.at(n)
        const outcome = await go(s).then(
          (answer) => ({ answer }),
          (error: unknown) => ({ error }),
        )
        cut.off()
        if ('answer' in outcome) {
          expect(outcome.answer).not.toMatchObject({ ok: false })
          expect(dump(t)).not.toEqual(untouched)
          break
        }
        if (!(outcome.error instanceof Crash)) throw outcome.error
        points += 1
        // what an earlier transaction of the same act committed may stand; nothing of this one
        expect(await broken(t)).toEqual([])
        if (name !== 'an expiry') expect(dump(t)).toEqual(untouched)
      }
      expect(points).toBeGreaterThan(1)
      expect(await broken(t)).toEqual([])
    })

    it(`RAIL-01 ${name}: dying after the commit, all of it is there, and doing it again comes to ${again}`, async () => {
      const s = await stage()
      await before?.(s)
      const cut = cutter(t.engine.store)
      cut.afterCommit(commits)
      await expect(go(s)).rejects.toThrow(Crash)
      cut.off()
      expect(await broken(t)).toEqual([])
      if (name === 'an expiry') return void (await go(s))
      const done = dump(t)
      const repeat = await go(s)
      if (again === 'refusal') expect(repeat).toMatchObject({ ok: false })
      if (again !== 'once more') expect(bare(dump(t))).toEqual(bare(done))
    })
  }
})

describe('RAIL-03 what follows an end', () => {
  it('RAIL-03 the result is stored first; the parent is woken by an order with a receipt, replayed after a crash between', async () => {
    const s = await stage()
    await s.a.end(s.run, { kind: 'suspend', keys })
    await t.engine.cancel({ run: 'run_l1', by: 'x', reason: null })
    await t.settle('admit-waiting')
    const claimed = (await s.a.claim(9)).find(({ run }) => run === 'run_kid')
    if (!claimed) throw new Error(`run_kid is ${t.run('run_kid')['status']}`)
    await s.a.complete(claimed, 'child')
    expect(t.run('run_kid')).toMatchObject({ status: 'succeeded', output: '"child"' })
    const cut = cutter(t.engine.store)
    for (let n = 1; n < 8; n++) {
      cut.at(n)
      await t.pass('apply-orders')
      cut.off()
      expect(t.run('run_kid')['status']).toBe('succeeded')
    }
    t.later(60_000)
    await t.settle('apply-orders', 'reconcile-families')
    expect(only(t.sql(`select state from waits where key = 'kid'`))).toEqual({ state: 'satisfied' })
    expect(
      t.sql(`select outcome from receipts where kind = 'parent_told' and recipient = 'run_1'`),
    ).toEqual([{ outcome: 'told' }])
    expect(t.sql('select * from orders')).toEqual([])
  })

  it('RAIL-04 an effect that can never be done gets a receipt that says so', async () => {
    const s = await stage()
    await s.a.end(s.run, { kind: 'suspend', keys })
    await t.engine.cancel({ run: 'run_1', by: 'ana', reason: null })
    await t.engine.cancel({ run: 'run_kid', by: 'ana', reason: null })
    await t.settle('apply-orders')
    expect(t.sql(`select outcome from receipts where kind = 'parent_told'`)).toEqual([
      { outcome: 'no_open_wait' },
    ])
    expect(t.sql('select * from orders')).toEqual([])
  })

  it('RAIL-04 of two passes over the same orders exactly one acts', async () => {
    const s = await stage()
    await s.a.end(s.run, { kind: 'suspend', keys })
    await t.engine.cancel({ run: 'run_kid', by: 'ana', reason: null })
    const told = (await t.engine.read((tx) => dueOrders(tx, 10))).filter(
      ({ kind }) => kind === 'child_ended',
    )
    const both = await Promise.all([
      t.engine.act((tx) => tellParents(tx, told)),
      t.engine.act((tx) => tellParents(tx, told)),
    ])
    expect(both.map(({ applied }) => applied).sort((x, y) => x - y)).toEqual([0, 1])
    expect(t.run('run_1')['status']).toBe('queued')
  })
})

describe('RAIL-09 batches', () => {
  it('RAIL-09 one bad item is reported and the others of its flush are applied', async () => {
    const s = await stage()
    await t.engine.cancel({ run: 'run_l1', by: 'x', reason: null })
    await t.settle('admit-waiting')
    for (let i = 0; i < 4; i++) await t.start('h', { id: `run_h${i}` })
    const runs = (await s.a.claim(20)).filter(({ run }) => run.startsWith('run_h'))
    const [h0, h1, h2, h3] = runs as [ClaimedRun, ClaimedRun, ClaimedRun, ClaimedRun]
    await s.a.checkpoint(h1, 'same')
    const answers = await Promise.all([
      s.a.complete(h0, 0),
      s.a.write({ ...h1, entries: 1 }, { entries: [entry(2, 'same')] }),
      s.a.complete({ ...h2, attempt: 7 }, 2),
      s.a.complete(h3, 3),
    ])
    expect(answers.map((answer) => (answer.ok ? answer.ended : answer.code))).toEqual([
      'succeeded',
      'invalid_request',
      'stale_attempt',
      'succeeded',
    ])
    expect(t.run('run_h3')['output']).toBe('3')
    expect(t.run('run_h1')).toMatchObject({ status: 'running', entries: 1 })
  })

  it('RAIL-09 items of one run apply in their order, as one write would', async () => {
    const s = await stage()
    const answers = await Promise.all([
      s.a.write(s.run, { entries: [entry(3, 'c')] }),
      s.a.write({ ...s.run, entries: 3 }, { entries: [entry(4, 'd')] }),
      s.a.write({ ...s.run, entries: 4 }, { end: { kind: 'complete', output: '1' } }),
    ])
    expect(answers.map((answer) => answer.ok && answer.ended)).toEqual([null, null, 'succeeded'])
    expect(
      t.sql(`select n, key from steps where run = 'run_1' order by n`).map((row) => row['key']),
    ).toEqual(['a', 'b', 'c', 'd'])
  })

  it('RAIL-09 an unknown outcome is answered to all, and resolved by repeating', async () => {
    const s = await stage()
    const cut = cutter(t.engine.store)
    cut.afterCommit(1)
    const both = await Promise.allSettled([
      s.a.checkpoint(s.run, 'c'),
      s.a.complete({ ...s.run, entries: 3 }, 1),
    ])
    cut.off()
    expect(both.map(({ status }) => status)).toContain('rejected')
    await s.a.checkpoint(s.run, 'c')
    expect(await s.a.complete({ ...s.run, entries: 3 }, 1)).toMatchObject({ ended: 'succeeded' })
    expect(t.sql(`select count(*) as n from steps where run = 'run_1'`)).toEqual([{ n: 3 }])
  })

  it('RAIL-09 a hundred runs end in one transaction', async () => {
    const s = await stage()
    await t.engine.startMany(
      Array.from({ length: 100 }, (_, i) => ({
        command: { id: `run_h${i}`, workflow: 'h', input: null },
      })),
    )
    const runs = (await s.a.claim(100)).filter(({ run }) => run.startsWith('run_h'))
    const trips = t.engine.store.roundTrips
    const answers = await Promise.all(runs.map((run) => s.a.complete(run, 1)))
    expect(answers.every((answer) => answer.ok)).toBe(true)
    expect(t.engine.store.roundTrips - trips).toBeLessThanOrEqual(3)
  })
})

describe('RAIL-08 repeats by people and clients', () => {
  it('RAIL-08 hot calls repeat by their own keys: a start by its id, a signal by its sender’s', async () => {
    await stage()
    const first = await t.startAnswer('h', { id: 'run_x' })
    expect(await t.startAnswer('h', { id: 'run_x' })).toEqual({ ...first, started: false })
    const send = () => t.engine.signal({ run: 'run_1', id: 's', name: 'n', payload: '1', by: null })
    expect(await send()).toMatchObject({ duplicate: false })
    expect(await send()).toMatchObject({ duplicate: true })
    expect(t.sql('select * from commands')).toEqual([])
  })
})
