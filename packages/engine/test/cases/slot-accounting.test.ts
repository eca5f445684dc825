import { afterEach, describe, expect, it } from 'vitest'
import type { Workflow } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Bench } from '../support/cases.ts'
import {
  complete,
  definitionOnly,
  failed,
  gate,
  LEASE_MS,
  openBench,
  SWEEP_MS,
} from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const one = (mode: 'whole_run' | 'while_held' = 'while_held') =>
  definitionOnly('one', { limits: [{ key: 'one', value: 1, mode }] })

describe('slots', () => {
  it.each(['update on runs', 'insert on attempts'])(
    'B027 a transaction that breaks at its %s leaves neither half',
    async (statement) => {
      const w = one()
      bench = await openBench({ manual: true })
      const hand = await bench.hand([w])
      const run = await bench.start(w)
      const queued = bench.dump()
      if (statement === 'update on runs') {
        const mend = bench.fail(statement)
        await expect(hand.claim()).rejects.toThrow()
        expect(bench.dump()).toBe(queued)
        mend()
      }
      const [held] = await hand.claim()
      expect(held).toMatchObject({ run, attempt: 1 })
      const running = bench.dump()
      const mend = bench.fail(statement)
      await expect(hand.end(held!, complete('done'))).rejects.toThrow()
      expect(bench.dump()).toBe(running)
      expect(bench.used('one')).toBe(1)
      mend()
      expect(await hand.end(held!, complete('done'))).toMatchObject({
        ok: true,
        ended: 'succeeded',
      })
      expect(bench.used('one')).toBe(0)
    },
  )

  it('B027 S5 at every statement of a claim and a completion that breaks, what is held equals what is counted', async () => {
    const w = one()
    bench = await openBench({ manual: true })
    const hand = await bench.hand([w])
    const tables = ['runs', 'attempts', 'steps', 'sessions', 'orders', 'events', 'waits', 'limits']
    for (const table of tables)
      for (const verb of ['insert', 'update']) {
        const mend = bench.fail(`${verb} on ${table}`)
        const run = await bench.start(w).catch(() => null)
        const [held] = await hand.claim().catch(() => [])
        if (held) await hand.end(held, complete('x')).catch(() => undefined)
        expect(bench.used('one')).toBe(
          bench.count("select count(*) from runs where status in ('queued', 'running')"),
        )
        mend()
        for (;;) {
          await bench.pass('admit-waiting')
          const again =
            held && (await bench.get(held.run)).status === 'running'
              ? held
              : (await hand.claim())[0]
          if (!again) break
          await hand.end(again, complete('x'))
        }
        if (run !== null)
          expect((await bench.get(run)).status, `${verb} on ${table}`).toBe('succeeded')
        expect(bench.used('one')).toBe(0)
      }
  })

  it.each(['while_held', 'whole_run'] as const)(
    'B029 a run put off by a delay comes back after a restart with no new start, its slot (%s) as the table says',
    async (mode) => {
      const w = one(mode)
      bench = await openBench()
      const hand = await bench.hand([w], { embedded: true })
      const run = await bench.start(w)
      const other = await bench.start(w)
      const [held] = await hand.claim()
      await hand.write(held!, { waits: [{ key: 't', kind: 'time', dueInMs: 60_000 }] })
      // what is only in memory is lost
      bench.engine.onWanted(() => undefined)
      await hand.end(held!, { kind: 'suspend', keys: ['t'] })
      expect(bench.used('one')).toBe(mode === 'whole_run' ? 1 : 0)
      await bench.advance(5_000)
      expect((await bench.get(other)).status).toBe(mode === 'whole_run' ? 'waiting' : 'queued')
      if (mode === 'while_held') {
        const [second] = await hand.claim()
        await hand.end(second!, complete('done'))
      }
      await bench.advance(61_000)
      const [again] = await hand.claim()
      expect(again).toMatchObject({ run, attempt: 2 })
    },
  )

  it('B030 runs that end before they have ever begun leave the line as if they had not been in it', async () => {
    const w = one()
    bench = await openBench()
    const hand = await bench.hand([w], { embedded: true })
    const r1 = await bench.start(w)
    const r2 = await bench.start(w)
    const r3 = await bench.start(w, null, { startByMs: 3_000 })
    const [held] = await hand.claim()
    expect(held).toMatchObject({ run: r1 })
    expect(await bench.engine.cancel({ run: r2, by: 'ana', reason: null })).toMatchObject({
      status: 'canceled',
    })
    await bench.advance(5_000)
    expect(await bench.get(r3)).toMatchObject({ status: 'failed', reason: 'not_started' })
    expect(bench.used('one')).toBe(1)
    await hand.end(held!, complete('done'))
    const r4 = await bench.start(w)
    expect((await bench.get(r4)).status).toBe('queued')
    expect(bench.used('one')).toBe(1)
  })

  it('SLOT-03 SLOT-04 on a file of its own a slot is handed on in the commit that frees it: no crash comes between', async () => {
    const w = one()
    bench = await openBench()
    const hand = await bench.hand([w], { embedded: true })
    await bench.start(w)
    const next = await bench.start(w)
    const [held] = await hand.claim()
    // what is only in memory is lost
    bench.engine.onWanted(() => undefined, true)
    await hand.end(held!, complete('done'))
    expect((await bench.get(next)).status).toBe('queued')
    expect(bench.used('one')).toBe(1)
  })

  it('B030 a run canceled while it is queued with its slot gives it to the next at once', async () => {
    const w = one()
    bench = await openBench()
    await bench.hand([w], { embedded: true })
    const r1 = await bench.start(w)
    const r2 = await bench.start(w)
    expect((await bench.get(r2)).status).toBe('waiting')
    await bench.engine.cancel({ run: r1, by: 'ana', reason: null })
    expect(
      await bench.until(async () => (await bench.get(r2)).status === 'queued', 5_000),
    ).toBeLessThanOrEqual(10)
  })

  it('B032 L3 a waiter that comes just as the holder goes is admitted with no further event, also when every wake-up is lost', async () => {
    const w = one()
    for (const lost of [false, true]) {
      bench = await openBench()
      if (lost) bench.engine.onWanted(() => undefined)
      const hand = await bench.hand([w], { embedded: true })
      await bench.start(w)
      const [held] = await hand.claim()
      // the two in one turn of the event loop, in both orders of arrival
      const [r2] = await Promise.all([bench.start(w), hand.end(held!, complete('done'))])
      expect(
        await bench.until(async () => (await bench.get(r2)).status === 'queued', 5_000),
      ).toBeLessThanOrEqual(lost ? 1_000 : 10)
      const [second] = await hand.claim()
      const [, r3] = await Promise.all([hand.end(second!, complete('done')), bench.start(w)])
      expect(
        await bench.until(async () => (await bench.get(r3)).status === 'queued', 5_000),
      ).toBeLessThanOrEqual(lost ? 1_000 : 10)
      if (!lost) await bench.close()
    }
  })

  it('B033 waits that are over before the run has let go of its slot leave no slot behind, a hundred times', async () => {
    const w = workflow({ name: 'w', limits: [{ key: 'one', value: 1 }] }, async (ctx) => {
      const [a, b] = await Promise.all([ctx.signal('a'), ctx.step('s', () => 1)])
      await ctx.sleep('none', 0)
      return [a, b]
    })
    bench = await openBench()
    await bench.process([w], { embedded: true })
    for (let i = 0; i < 100; i++) {
      const run = await bench.start(w)
      // sent before the claim, while the step runs, or when the run has suspended
      if (i % 3 > 0)
        for (let turn = 0; turn < i % 30; turn++)
          await new Promise((resolve) => setImmediate(resolve))
      await bench.engine.signal({ run, id: `sig_${i}`, name: 'a', payload: 'null', by: null })
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 5_000)
      expect(bench.used('one')).toBe(0)
    }
    const last = await bench.start(w)
    expect(['queued', 'running']).toContain((await bench.get(last)).status)
  })

  it('B034 a holder that dies before it has renewed once frees its slot, and starts that were turned away are taken again', async () => {
    const w = definitionOnly('tick', { limits: [{ key: 'tick', value: 1, policy: 'reject' }] })
    bench = await openBench()
    const hand = await bench.hand([w])
    await bench.start(w)
    await hand.claim()
    await expect(bench.start(w)).rejects.toThrow(/limit_full/)
    await bench.advance(LEASE_MS + SWEEP_MS + 100)
    // it is due again, and holds its slot again as a queued run: the next executor drives it
    const next = await bench.hand([w])
    const [again] = await next.claim()
    expect(again).toMatchObject({ attempt: 2 })
    await next.end(again!, complete('done'))
    expect(bench.used('tick')).toBe(0)
    await expect(bench.start(w)).resolves.toMatch(/^run_/)
  })

  it.each([
    ['one child', 1],
    ['a chain of five', 5],
  ])('B035 SLOT-04 a parent waits for %s at a limit of one for its owner', async (_what, depth) => {
    let seen = 0
    const chain: Workflow<number, number> = workflow('chain', async (ctx, left) => {
      await ctx.step('look', () => {
        seen = Math.max(seen, bench.used('owner:ana'))
      })
      return left === 0 ? 0 : 1 + (await ctx.run(chain, left - 1))
    })
    bench = await openBench({ settings: { ownerLimit: 1 } })
    await bench.process([chain], { embedded: true })
    const run = await bench.start(chain, depth, { owner: 'ana' })
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 60_000)
    expect((await bench.get(run)).output).toBe(depth)
    expect(seen).toBe(1)
    expect(bench.used('owner:ana')).toBe(0)
  })

  it('B035 while the parent waits, only the child counts', async () => {
    const open = gate()
    const child = workflow('child', (ctx) => ctx.step('s', () => open.opened))
    const parent = workflow('parent', (ctx) => ctx.run(child, null))
    bench = await openBench({ settings: { ownerLimit: 1 } })
    await bench.process([child, parent], { embedded: true })
    const run = await bench.start(parent, null, { owner: 'ana' })
    await bench.until(
      () =>
        bench.count("select count(*) from runs where workflow = 'child' and status = 'running'") ===
        1,
      60_000,
    )
    expect(bench.count("select sum(slot_state > 0) from runs where workflow = 'parent'")).toBe(0)
    expect(bench.used('owner:ana')).toBe(1)
    open.open()
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 60_000)
  })

  it('B035 S5 a limit that only children have ever met is in force for them too', async () => {
    const child = workflow({ name: 'child', limits: [{ key: 'customer:{id}', value: 1 }] }, (ctx) =>
      ctx.step('s', () => peak()),
    )
    let most = 0
    const peak = (): void => {
      most = Math.max(
        most,
        bench.count("select count(*) from runs where workflow = 'child' and slot_state in (2, 3)"),
      )
    }
    const parent = workflow('parent', async (ctx) => {
      await ctx.map('all', [1, 2, 3, 4, 5], (each) => each.run(child, { id: 7 }))
    })
    bench = await openBench()
    await bench.process([child, parent], { embedded: true })
    const run = await bench.start(parent)
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 120_000)
    expect(most).toBe(1)
  })

  it('B035 S5 what is started at the end of a run waits for its slots like any other', async () => {
    const after = definitionOnly('after', { limits: [{ key: 'after', value: 1 }] })
    const w = definitionOnly('w', { onEnd: 'after' })
    bench = await openBench()
    const hand = await bench.hand([w, after], { embedded: true })
    for (let i = 0; i < 3; i++) await bench.start(w)
    for (const held of await hand.claim()) await hand.end(held, failed('no'))
    await bench.advance(2_000)
    expect(bench.used('after')).toBe(1)
    const first = await hand.claim()
    expect(first).toHaveLength(1)
    for (let i = 0, held = first; i < 3; i++, held = await hand.claim()) {
      expect(held).toHaveLength(1)
      await hand.end(held[0]!, complete('done'))
      await bench.advance(1_000)
    }
    expect(
      bench.count("select count(*) from runs where workflow = 'after' and status = 'succeeded'"),
    ).toBe(3)
  })
})
