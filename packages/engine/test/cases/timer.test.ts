import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Context } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import type { Bench } from '../support/cases.ts'
import { definitionOnly, openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const DAY = 86_400_000
const succeeded = async (run: string): Promise<boolean> =>
  (await bench.get(run)).status === 'succeeded'

describe('timers', () => {
  it.each(['a step', 'the run'])(
    'B061 L6 a retry of %s that was recorded is made on time by whoever opens the store next',
    async (what) => {
      const folder = mkdtempSync(path.join(tmpdir(), 'retry-'))
      try {
        let bodies = 0
        const retry = { maxAttempts: 5, base: '10m' as const }
        const body = (): string => {
          bodies += 1
          if (bodies === 1) throw new Error('once')
          return 'done'
        }
        const w = workflow(
          {
            name: 'w',
            ...(what === 'the run'
              ? { retry, stepRetry: { maxAttempts: 1 } }
              : { stepRetry: retry }),
          },
          (ctx) => ctx.step('s', body),
        )
        const clock = virtualClock(Date.UTC(2026, 0, 1))
        bench = await openBench({ file: path.join(folder, 'db'), clock })
        const first = await bench.process([w], { embedded: true })
        const run = await bench.start(w)
        await bench.until(async () => (await bench.get(run)).status === 'waiting', 5_000)
        const { readyAt } = await bench.get(run)
        expect(readyAt! - bench.now()).toBeGreaterThan(2_000)
        first.kill()
        await bench.close()
        // a minute later another process opens the file: no timer of the first is left
        clock.moveTo(clock.time.now() + 60_000)
        bench = await openBench({ file: path.join(folder, 'db'), clock, seed: 8 })
        await bench.process([w], { embedded: true })
        await bench.advance(readyAt! - bench.now() - 1)
        expect(bodies).toBe(1)
        expect(await bench.until(() => succeeded(run), 5_000)).toBeLessThanOrEqual(1_000)
        expect(bodies).toBe(2)
      } finally {
        rmSync(folder, { recursive: true })
      }
    },
  )

  it('B062 S12 a delayed run is leased by nobody before its instant, and by one at it', async () => {
    const w = workflow('w', (ctx) => ctx.now())
    bench = await openBench()
    for (let i = 0; i < 3; i++) await bench.process([w], { claimWaitMs: 500 })
    const before = bench.now()
    const run = await bench.start(w, null, { delayMs: 20_000 })
    await bench.advance(19_999)
    expect(await bench.get(run)).toMatchObject({ status: 'waiting', waitOn: 'slot', attempt: 0 })
    expect(await bench.until(() => succeeded(run), 5_000)).toBeLessThanOrEqual(1_001)
    expect(bench.count('select leased_at from attempts')).toBeGreaterThanOrEqual(before + 20_000)
    await bench.advance(20_000)
    expect(await bench.attempts(run)).toMatchObject([{ attempt: 1, end: 'completed' }])
  })

  const long: Record<
    string,
    { readonly ms: number; readonly wait: (ctx: Context) => Promise<unknown> }
  > = {
    'a sleep of 40 days': { ms: 40 * DAY, wait: (ctx) => ctx.sleep('t', '40d') },
    'a sleep until next year': {
      ms: 364 * DAY,
      wait: (ctx) => ctx.sleepUntil('t', new Date(Date.UTC(2027, 0, 1))),
    },
    'a signal with a year’s time-out': {
      ms: 365 * DAY,
      wait: (ctx) => ctx.signal('t', { timeout: '365d' }),
    },
    'an approval with 60 days': {
      ms: 60 * DAY,
      wait: (ctx) => ctx.approval('t', { prompt: '?', deadline: '60d' }),
    },
    'a retry after 30 days': {
      ms: 15 * DAY,
      wait: (ctx) =>
        ctx.step(
          't',
          ({ tryNumber }) => {
            if (tryNumber === 1) throw new Error('once')
          },
          { retry: { base: '30d', max: '30d' } },
        ),
    },
  }
  it.each(Object.keys(long))(
    'B063 RUN-29 %s ends not early, and costs nothing on the way',
    async (what) => {
      const { ms, wait } = long[what]!
      const w = workflow('w', async (ctx) => {
        await wait(ctx)
        return 'over'
      })
      bench = await openBench({ manual: true, settings: { leaseMs: 40 * DAY, renewMs: 10 * DAY } })
      await bench.process([w], { embedded: true, claimWaitMs: DAY })
      const run = await bench.start(w)
      await bench.settle()
      const { readyAt } = await bench.get(run)
      expect(readyAt! - bench.now()).toBeGreaterThanOrEqual(ms)
      const rev = bench.count('select rev from runs')
      const end = readyAt!
      for (let at = bench.now() + DAY; at < end; at += DAY) {
        bench.clock.moveTo(at)
        await bench.pass('wake-due')
        expect((await bench.get(run)).status).toBe('waiting')
      }
      bench.clock.moveTo(end - 1)
      await bench.pass('wake-due')
      expect((await bench.get(run)).status).toBe('waiting')
      expect(bench.count('select rev from runs')).toBe(rev)
      bench.clock.moveTo(end)
      await bench.pass('wake-due')
      expect((await bench.get(run)).output).toBe('over')
      expect((await bench.attempts(run)).length).toBe(2)
    },
  )

  it('B063 a delay beyond 2³¹ ms, given at the start or as a limit, is kept', async () => {
    const w = definitionOnly('w')
    bench = await openBench({ manual: true })
    const hand = await bench.hand([w], { embedded: true })
    const run = await bench.start(w, null, { delayMs: 2 ** 31 + 1 })
    const limited = await bench.start(w, null, { startByMs: 2 ** 31 + 1, totalLimitMs: 2 ** 32 })
    bench.clock.moveTo(bench.now() + 2 ** 31)
    await bench.pass()
    expect(await bench.get(run)).toMatchObject({ status: 'waiting' })
    expect(['queued', 'waiting']).toContain((await bench.get(limited)).status)
    await hand.renew()
    bench.clock.moveTo(bench.now() + 1)
    await bench.pass()
    expect(await bench.get(run)).toMatchObject({ status: 'queued' })
    expect(await bench.get(limited)).toMatchObject({ status: 'failed', reason: 'not_started' })
  })

  const doors: Record<string, (ctx: Context, bad: number) => Promise<unknown>> = {
    sleep: (ctx, bad) => ctx.sleep('t', bad),
    'signal timeout': (ctx, bad) => ctx.signal('t', { timeout: bad }),
    'approval deadline': (ctx, bad) => ctx.approval('t', { prompt: '?', deadline: bad }),
    'step timeout': (ctx, bad) => ctx.step('t', () => 1, { timeout: bad }),
  }
  it.each(
    Object.keys(doors).flatMap((door) =>
      [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 1e18].map(
        (bad) => [door, bad] as const,
      ),
    ),
  )('B063 RUN-29 %s of %d is refused by name', async (door, bad) => {
    const w = workflow('w', (ctx) => doors[door]!(ctx, bad))
    bench = await openBench()
    await bench.process([w], { embedded: true })
    const run = await bench.start(w)
    await bench.until(async () => (await bench.get(run)).status === 'failed', 5_000)
    expect((await bench.get(run)).error).toMatchObject({
      code: 'invalid_duration',
      message: expect.stringContaining(String(bad)),
    })
    expect(bench.count('select count(*) from waits')).toBe(0)
  })

  it.each(['delayMs', 'startByMs', 'totalLimitMs', 'attemptLimitMs', 'startAt'] as const)(
    'B063 RUN-29 a start with a bad %s is refused by name',
    async (what) => {
      const w = definitionOnly('w')
      bench = await openBench()
      await bench.hand([w], { embedded: true })
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, -1, 1e18])
        await expect(bench.start(w, null, { [what]: bad })).rejects.toThrow(
          new RegExp(`invalid_request: ${what}`),
        )
      expect(bench.count('select count(*) from runs')).toBe(0)
    },
  )

  it.each([new Date(Number.NaN), Number.NaN, Number.POSITIVE_INFINITY, 1e18])(
    'B063 a sleep until %s is refused by name',
    async (bad) => {
      const w = workflow('w', (ctx) => ctx.sleepUntil('t', bad))
      bench = await openBench()
      await bench.process([w], { embedded: true })
      const run = await bench.start(w)
      await bench.until(async () => (await bench.get(run)).status === 'failed', 5_000)
      expect((await bench.get(run)).error).toMatchObject({ code: 'invalid_duration' })
    },
  )

  it('B065 RUN-30 a time-out is no value, and a null that came is one, also in a later wait for the same signal', async () => {
    const w = workflow('w', async (ctx) => {
      const first = await ctx.signal('done', { as: 'first', timeout: '1s' })
      const second = await ctx.signal('done', { as: 'second', timeout: '1s' })
      const third = await ctx.signal('done', { as: 'third', timeout: '1h' })
      const fourth = await ctx.signal('done', { as: 'fourth' })
      return [first, second, third, fourth]
    })
    bench = await openBench()
    await bench.process([w], { embedded: true })
    const run = await bench.start(w)
    await bench.advance(10_000)
    await bench.engine.signal({ run, id: 'a', name: 'done', payload: 'null', by: null })
    await bench.advance(1_000)
    await bench.engine.signal({ run, id: 'b', name: 'done', payload: null, by: null })
    await bench.until(() => succeeded(run), 5_000)
    expect((await bench.get(run)).output).toEqual([
      { ok: false, timedOut: true },
      { ok: false, timedOut: true },
      { ok: true, value: null },
      null,
    ])
  })

  it.each([-1, 0, 1])(
    'B065 S12 a signal %d ms from the time-out: it or the time-out, never both, never neither',
    async (off) => {
      const w = workflow('w', async (ctx) => [
        await ctx.signal('done', { timeout: 10_000 }),
        await ctx.signal('done', { as: 'again', timeout: 10_000 }),
      ])
      bench = await openBench({ manual: true })
      await bench.process([w], { embedded: true })
      const run = await bench.start(w)
      await bench.settle()
      const { readyAt } = await bench.get(run)
      bench.clock.moveTo(readyAt! + off)
      if (off > 0) await bench.pass('wake-due')
      await bench.engine.signal({ run, id: 'a', name: 'done', payload: '1', by: null })
      await bench.settle()
      bench.clock.moveTo(bench.now() + 60_000)
      await bench.pass('wake-due')
      await bench.pass('wake-due')
      const { output } = await bench.get(run)
      expect(output).toEqual(
        off > 0
          ? [
              { ok: false, timedOut: true },
              { ok: true, value: 1 },
            ]
          : [
              { ok: true, value: 1 },
              { ok: false, timedOut: true },
            ],
      )
    },
  )
})
