import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Bench } from '../support/cases.ts'
import { definitionOnly, LEASE_MS, openBench, SWEEP_MS } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const MINUTES = 60_000
const HOURS = 60 * MINUTES

describe('clocks that are wrong', () => {
  it.each([-300_000, 300_000])(
    'B069 S14 an executor whose clock is %d ms off loses nothing and takes nothing early',
    async (skew) => {
      const w = workflow('w', async (ctx) => {
        await ctx.step(
          's',
          () =>
            new Promise<void>((resolve) =>
              bench.clock.timers().after(5 * LEASE_MS, () => resolve()),
            ),
        )
        await ctx.sleep('nap', '10s')
        return ctx.now()
      })
      bench = await openBench({ settings: { ownerLimit: 1_000 } })
      await bench.process([w], { skew, slots: { default: 200 } })
      await bench.process([w], { slots: { default: 200 } })
      const runs = []
      for (let i = 0; i < 200; i++) runs.push(await bench.start(w))
      await bench.until(
        () => bench.count("select count(*) from runs where status = 'succeeded'") === 200,
        60_000,
      )
      expect(
        bench.count(
          "select count(*) from attempts where \"end\" not in ('suspended', 'completed')",
        ),
      ).toBe(0)
      expect(bench.count('select count(*) from sessions where ended_at is not null')).toBe(0)
      // what a function calls now is the store's time, whatever its process thinks
      for (const run of runs) {
        const { output } = await bench.get(run)
        expect(Math.abs((output as number) - bench.now())).toBeLessThan(60_000)
      }
      expect(
        bench.count('select min(ended_at - leased_at) from attempts where attempt = 1'),
      ).toBeGreaterThanOrEqual(5 * LEASE_MS)
    },
  )

  it('B071 the store’s clock jumps ahead and back: timers, leases and retries are as if it had not', async () => {
    const w = workflow('w', async (ctx, minutes: number) => {
      await ctx.sleep('nap', minutes * 60_000)
      return 'over'
    })
    const busy = workflow('busy', (ctx) =>
      ctx.step(
        's',
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          ),
      ),
    )
    bench = await openBench()
    const alive = await bench.process([w, busy])
    const held = await bench.start(busy)
    const long = await bench.start(w, 20)
    const soon = await bench.start(w, 5)
    await bench.settle()
    const realStart = bench.clock.time.now()
    await bench.advance(60_000)
    bench.jump(10 * MINUTES)
    await bench.advance(60_000)
    // what was due within the jump has come, once; nobody was taken for dead
    expect((await bench.get(soon)).status).toBe('succeeded')
    expect((await bench.get(long)).status).toBe('waiting')
    expect(await bench.get(held)).toMatchObject({ status: 'running', attempt: 1 })
    bench.jump(-10 * MINUTES)
    await bench.advance(60_000)
    expect(await bench.get(held)).toMatchObject({ status: 'running', attempt: 1 })
    expect(alive.executor.status()).toMatchObject({ fenced: false })
    await bench.advance(19 * MINUTES - (bench.clock.time.now() - realStart))
    expect((await bench.get(long)).status).toBe('waiting')
    await bench.until(async () => (await bench.get(long)).status === 'succeeded', HOURS)
    expect(bench.clock.time.now() - realStart).toBeGreaterThanOrEqual(20 * MINUTES)
    expect(bench.clock.time.now() - realStart).toBeLessThanOrEqual(20 * MINUTES + 2_000)
    for (const run of [long, soon])
      expect(await bench.attempts(run)).toMatchObject([{ end: 'suspended' }, { end: 'completed' }])
  })

  it('B071 L1 a session that died while the clock was ahead is taken back soon after the clock is right again', async () => {
    const w = definitionOnly('w')
    bench = await openBench()
    const hand = await bench.hand([w])
    const run = await bench.start(w)
    await hand.claim()
    bench.jump(8 * HOURS)
    await hand.renew()
    await bench.advance(1_000)
    bench.jump(-8 * HOURS)
    // it is dead now: no renewal comes
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'queued', HOURS),
    ).toBeLessThanOrEqual(2 * LEASE_MS + 3 * SWEEP_MS)
  })

  it('B071 S14 a clock that jumps between the opening of a file and its first sweep ends no session', async () => {
    bench = await openBench()
    const hand = await bench.hand([definitionOnly('w')])
    bench.jump(2 * HOURS)
    await bench.advance(3 * SWEEP_MS)
    expect(bench.count('select count(*) from sessions where ended_at is not null')).toBe(0)
    await hand.renew()
    await bench.advance(LEASE_MS - SWEEP_MS)
    expect(bench.count('select count(*) from sessions where ended_at is not null')).toBe(0)
    // it goes on as one that is judged: what renews no more is ended
    await bench.until(
      () => bench.count('select count(*) from sessions where ended_at is not null') === 1,
      3 * LEASE_MS,
    )
  })

  it('B071 orders that were put off while the clock was ahead are applied soon after it is right again', async () => {
    const child = workflow('child', () => 'done')
    const parent = workflow('parent', (ctx) => ctx.run(child, null))
    bench = await openBench()
    await bench.process([child, parent], { embedded: true })
    bench.jump(8 * HOURS)
    const mend = bench.fail('insert on receipts')
    const run = await bench.start(parent)
    await bench.until(
      () => bench.count('select count(*) from orders where tries > 0') === 1,
      10_000,
    )
    mend()
    bench.jump(-8 * HOURS)
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', HOURS),
    ).toBeLessThanOrEqual(120_000)
  })

  it('B071 a small step back, as of a time server, ends no session and no run', async () => {
    const busy = workflow('busy', (ctx) => ctx.step('s', () => new Promise(() => undefined)))
    bench = await openBench()
    const first = await bench.process([busy])
    const run = await bench.start(busy)
    for (let i = 0; i < 50; i++) {
      bench.jump(i % 2 === 0 ? -1_500 : 1_400)
      await bench.advance(700)
    }
    expect(await bench.get(run)).toMatchObject({ status: 'running', attempt: 1 })
    expect(bench.count('select count(*) from sessions where ended_at is not null')).toBe(0)
    first.kill()
  })
})
