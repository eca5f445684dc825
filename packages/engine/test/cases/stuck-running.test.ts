import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { explain } from '../../src/queries/explain.ts'
import { endOnEvidence } from '../../src/transitions/end-session.ts'
import type { Bench } from '../support/cases.ts'
import {
  complete,
  definitionOnly,
  entry,
  gate,
  LEASE_MS,
  openBench,
  SWEEP_MS,
} from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const TAKEN_BACK_MS = LEASE_MS + SWEEP_MS + 1_000
const w = definitionOnly('w')

describe('runs that stay running with nobody behind them', () => {
  it('B001 L1 the runs of a killed executor go on elsewhere, and what it held counts against no limit', async () => {
    const hang = gate<string>()
    let dead = true
    const limited = workflow({ name: 'limited', limits: [{ key: 'all', value: 3 }] }, (ctx) =>
      ctx.step<string>('s', () => (dead ? hang.opened : 'done')),
    )
    bench = await openBench()
    const first = await bench.process([limited], { slots: { default: 2 } })
    const [r1, r2] = [await bench.start(limited), await bench.start(limited)]
    await bench.until(() => first.executor.status().jobs.length === 2, 5_000)
    first.kill()
    dead = false
    await bench.process([limited])
    const r3 = await bench.start(limited)
    const ended = async () =>
      (await Promise.all([r1, r2, r3].map((run) => bench.get(run)))).every(
        ({ status }) => status === 'succeeded',
      )
    expect(
      await bench.until(async () => (await bench.get(r3)).status === 'succeeded', TAKEN_BACK_MS),
    ).toBeLessThan(1_500)
    expect(await bench.until(ended, TAKEN_BACK_MS)).toBeLessThanOrEqual(TAKEN_BACK_MS)
    for (const run of [r1, r2]) {
      expect((await bench.get(run)).attempt).toBe(2)
      expect(await bench.attempts(run)).toMatchObject([
        { attempt: 1, end: 'expired' },
        { attempt: 2, end: 'completed' },
      ])
    }
    expect(bench.used('all')).toBe(0)
  })

  it('B001 L5 such a run can be canceled before any sweep has found it', async () => {
    bench = await openBench()
    const hand = await bench.hand([w])
    const run = await bench.start(w)
    await hand.claim()
    // its process is dead: nobody renews, nobody answers
    expect(await bench.engine.cancel({ run, by: 'ana', reason: 'dead' })).toMatchObject({
      ok: true,
      status: 'canceling',
    })
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'canceled', TAKEN_BACK_MS),
    ).toBeLessThanOrEqual(TAKEN_BACK_MS)
    expect(await bench.get(run)).toMatchObject({
      reason: 'canceled',
      note: 'canceled by ana: dead',
    })
  })

  it('B003 RUN-11 a run whose holder has no row is taken back in one sweep', async () => {
    bench = await openBench({ manual: true })
    const hand = await bench.hand([w])
    const run = await bench.start(w)
    await hand.claim()
    bench.db.prepare('delete from sessions where id = ?').run(hand.id)
    await bench.pass('reap-sessions')
    expect(await bench.get(run)).toMatchObject({ status: 'queued', attempt: 1 })
    expect(await bench.attempts(run)).toMatchObject([{ attempt: 1, session: hand.id, end: 'lost' }])
    expect(
      bench.count(
        'select count(*) from runs r where r.session is not null and not exists (select 1 from sessions s where s.id = r.session)',
      ),
    ).toBe(0)
  })

  it('B004 a step that was about to begin when its process died begins in the next attempt', async () => {
    let bodies = 0
    const s = workflow('s', (ctx) => ctx.step('s1', () => ++bodies))
    bench = await openBench()
    const first = await bench.process([s])
    // the claim is committed, its answer reaches a process that is killed in that moment
    first.around = async (name, call) => {
      const answer = await call()
      if (name === 'claim' && bench.count("select count(*) from runs where status = 'running'") > 0)
        first.kill()
      return answer
    }
    const run = await bench.start(s)
    await bench.until(async () => (await bench.get(run)).status === 'running', 5_000)
    await bench.process([s])
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', TAKEN_BACK_MS)
    expect(bodies).toBe(1)
    expect(await bench.get(run)).toMatchObject({ attempt: 2, output: 1 })
  })

  it.each(['approval', 'signal', 'child', 'time'] as const)(
    'B004 a run that waits on %s, with no executor by design, is not taken back',
    async (on) => {
      const slow = definitionOnly('slow')
      const waits = workflow('waits', async (ctx) => {
        if (on === 'approval') await ctx.approval('a', { prompt: '?', deadline: '7d' })
        if (on === 'signal') await ctx.signal('a')
        if (on === 'child') await ctx.run(slow, null)
        if (on === 'time') await ctx.sleep('a', '7d')
      })
      bench = await openBench()
      await bench.hand([slow], { embedded: true })
      const first = await bench.process([waits])
      const run = await bench.start(waits)
      await bench.until(async () => (await bench.get(run)).status === 'waiting', 5_000)
      first.kill()
      const before = await bench.get(run)
      expect(before).toMatchObject({ waitOn: on })
      await bench.advance(10 * TAKEN_BACK_MS)
      expect(await bench.get(run)).toEqual(before)
      expect(await bench.attempts(run)).toMatchObject([{ end: 'suspended' }])
    },
  )

  it('B006 a run whose holder is gone is claimed anew, and one whose holder lives is claimed by nobody', async () => {
    bench = await openBench()
    const first = await bench.hand([w])
    const second = await bench.hand([w])
    const run = await bench.start(w)
    await first.claim()
    for (let i = 0; i < 10; i++) {
      await bench.advance(500)
      await first.renew()
      await second.renew()
      expect(await second.claim()).toEqual([])
    }
    // now it falls silent; the other one asks again and again
    const began = bench.now()
    for (;;) {
      await bench.advance(250)
      await second.renew()
      const [held] = await second.claim()
      if (held) {
        expect(held).toMatchObject({ run, attempt: 2 })
        break
      }
      expect(bench.now() - began).toBeLessThan(TAKEN_BACK_MS)
    }
  })

  it('B006 RUN-29 when no wake-up ever arrives, a due run is claimed within a second all the same', async () => {
    bench = await openBench()
    bench.engine.hub.onLane = () => () => undefined
    bench.engine.onWanted(() => undefined)
    const quick = workflow('quick', () => 'done')
    await bench.process([quick], { embedded: true, claimWaitMs: 1_000 })
    const run = await bench.start(quick)
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 5_000),
    ).toBeLessThanOrEqual(1_100)
  })

  it('B007 evidence of an exit ends the attempt at once, frees its slot, and does nothing twice', async () => {
    const one = definitionOnly('one', { limits: [{ key: 'one', value: 1 }] })
    bench = await openBench({ settings: { leaseMs: 3_600_000, renewMs: 600_000 } })
    const first = await bench.hand([one])
    const second = await bench.hand([one])
    const run = await bench.start(one)
    const [held] = await first.claim()
    await first.write(held!, { entries: [entry(1, 'a', 1)] })
    expect(
      await bench.engine.store.run((tx) =>
        endOnEvidence(tx, first.id, 'the machine says that it exited'),
      ),
    ).toMatchObject({ ended: true })
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'queued', 5_000),
    ).toBeLessThanOrEqual(SWEEP_MS)
    expect(await bench.attempts(run)).toMatchObject([{ attempt: 1, end: 'lost' }])
    const [again] = await second.claim()
    expect(again).toMatchObject({ run, attempt: 2, journal: [{ key: 'a' }] })
    const before = bench.dump()
    expect(
      await bench.engine.store.run((tx) => endOnEvidence(tx, first.id, 'said again')),
    ).toMatchObject({ ended: false })
    await bench.pass('reap-sessions')
    expect(bench.dump()).toBe(before)
    await second.end(again!, complete('done'))
    expect(bench.used('one')).toBe(0)
  })

  it('B008 L11 a run cannot be put to sleep on something that only it could bring about', async () => {
    bench = await openBench()
    const hand = await bench.hand([w])
    const run = await bench.start(w)
    const [held] = await hand.claim()
    await hand.write(held!, { waits: [{ key: 'real', kind: 'signal', name: 'real' }] })
    expect(await hand.end(held!, { kind: 'suspend', keys: ['s1'] })).toMatchObject({
      ok: true,
      ended: 'paused',
    })
    expect(await bench.get(run)).toMatchObject({
      status: 'paused',
      reason: 'nondeterminism',
      note: expect.stringContaining('real'),
    })
  })

  it.each([[[]], [['s1']], [['real', 's1']]])(
    'B008 a suspend at %j is parked in the open, with what is wrong',
    async (keys) => {
      bench = await openBench()
      const hand = await bench.hand([w])
      const run = await bench.start(w)
      const [held] = await hand.claim()
      if (keys.includes('real'))
        await hand.write(held!, { waits: [{ key: 'real', kind: 'signal', name: 'real' }] })
      await hand.end(held!, { kind: 'suspend', keys })
      expect(await bench.get(run)).toMatchObject({
        status: 'paused',
        reason: 'nondeterminism',
        note: expect.any(String),
      })
    },
  )
})

describe('dispatches that nobody hears of', () => {
  it('B074 RUN-10 a claim that was answered and whose executor died with it is made anew, as another attempt', async () => {
    bench = await openBench()
    const first = await bench.hand([w])
    const run = await bench.start(w)
    expect((await first.claim()).map((each) => each.run)).toEqual([run])
    // it dies before it has begun anything; the same key of the same claim never comes again
    const second = await bench.hand([w])
    let claimed: Awaited<ReturnType<typeof second.claim>> = []
    await bench.until(async () => {
      await second.renew()
      claimed = await second.claim()
      return claimed.length > 0
    }, TAKEN_BACK_MS)
    expect(claimed).toMatchObject([{ run, attempt: 2 }])
    expect(await first.end(claimed[0] as never, complete())).toMatchObject({
      ok: false,
      code: 'stale_attempt',
    })
    expect(await second.end(claimed[0] as never, complete('ok'))).toMatchObject({ ok: true })
  })

  it('B123 RUN-32 a run on a version that nobody serves says so within a minute, and an operator moves it', async () => {
    const v1 = definitionOnly('w', { version: '1' })
    const v2 = definitionOnly('w', { version: '2' })
    bench = await openBench()
    const old = await bench.hand([v1])
    const run = await bench.start(v1)
    await old.close()
    const next = await bench.hand([v2])
    const why = async () =>
      (await bench.engine.read((tx) => explain(tx, run, bench.engine.settings)))?.sentence
    await bench.until(async () => {
      await next.renew()
      expect(await next.claim()).toEqual([])
      return (await bench.get(run)).reason === 'no_executor'
    }, 60_000)
    expect(await why()).toContain('no live executor serves w in version 1')
    expect(await bench.engine.reversion(run, '2', 'ana')).toMatchObject({ ok: true })
    await bench.until(async () => {
      await next.renew()
      return (await next.claim()).some((each) => each.run === run)
    }, 2_000)
  })

  it('B125 RUN-05 an executor without a workflow never gets its runs, and none is spent on it', async () => {
    const other = definitionOnly('other')
    bench = await openBench()
    const old = await bench.hand([w])
    const both = await bench.hand([w, other])
    const run = await bench.start(other)
    for (let i = 0; i < 5; i++) {
      await bench.advance(SWEEP_MS)
      for (const each of [old, both]) await each.renew()
      expect(await old.claim()).toEqual([])
    }
    expect(await both.claim()).toMatchObject([{ run, attempt: 1, failures: 0 }])
  })
})
