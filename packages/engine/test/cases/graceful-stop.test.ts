import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { sleep } from '../../src/kernel/timers.ts'
import type { Bench } from '../support/cases.ts'
import { gate, LEASE_MS, openBench, SWEEP_MS } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const HOURS = { settings: { leaseMs: 4 * 3_600_000, renewMs: 3_600_000 } }

/** A body that takes so long, and heeds its signal or does not. */
const lasting = (ms: number, heeds: boolean, bodies: number[]) =>
  workflow({ name: 'lasting', stepRetry: { maxAttempts: 1 } }, (ctx) =>
    ctx.step('s1', async ({ signal, tryNumber }) => {
      bodies.push(tryNumber)
      const slept = await sleep(bench.clock.timers(), ms, heeds ? signal : undefined)
      if (slept === 'aborted') throw new Error('stopped')
      return `by body ${bodies.length}`
    }),
  )

describe('stopping an executor', () => {
  it('B009 L2 hands back what does not end within the grace, however long the lease, and charges no try', async () => {
    bench = await openBench(HOURS)
    const bodies: number[] = []
    const w = lasting(60_000, true, bodies)
    const first = await bench.process([w], { drainMs: 3_000, abortGraceMs: 500 })
    const run = await bench.start(w)
    await bench.until(() => bodies.length === 1, 5_000)
    const began = bench.now()
    let stopped = false
    void first.executor.stop().then(() => (stopped = true))
    await bench.process([w])
    await bench.until(() => bodies.length === 2, 5_000)
    expect(bench.now() - began).toBeLessThanOrEqual(3_000 + 500 + 2_000)
    expect(stopped).toBe(true)
    // the step has one try in all: it is still its first
    expect(bodies).toEqual([1, 1])
    expect(await bench.attempts(run)).toMatchObject([
      { attempt: 1, end: 'handed_back', reason: 'shutdown' },
    ])
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 70_000)
    expect(bench.count('select failures + losses + hand_backs from runs where id = ?', run)).toBe(0)
  })

  it('B010 lets a short step end, keeps its result, and is done when it is done', async () => {
    bench = await openBench(HOURS)
    const bodies: number[] = []
    const w = lasting(3_000, true, bodies)
    const first = await bench.process([w], { drainMs: 10_000 })
    const run = await bench.start(w)
    await bench.until(() => bodies.length === 1, 5_000)
    let stopped = false
    void first.executor.stop().then(() => (stopped = true))
    const took = await bench.until(() => stopped, 20_000)
    expect(took).toBeGreaterThanOrEqual(2_500)
    expect(took).toBeLessThanOrEqual(3_250)
    const view = await bench.get(run)
    expect(view).toMatchObject({ status: 'succeeded', output: 'by body 1', attempt: 1 })
    expect(bench.count('select failures from runs where id = ?', run)).toBe(0)
  })

  it('B010 a stop between two steps hands the run back instead of beginning the second', async () => {
    bench = await openBench(HOURS)
    const open = gate()
    const begun: string[] = []
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', async () => {
        begun.push('a')
        await open.opened
      })
      return ctx.step('b', () => begun.push('b'))
    })
    const first = await bench.process([w], { drainMs: 10_000 })
    const run = await bench.start(w)
    await bench.until(() => begun.length === 1, 5_000)
    let stopped = false
    void first.executor.stop().then(() => (stopped = true))
    await bench.settle()
    open.open()
    expect(await bench.until(() => stopped, 20_000)).toBeLessThanOrEqual(1_000)
    expect(begun).toEqual(['a'])
    expect(await bench.get(run)).toMatchObject({ status: 'queued' })
    expect((await bench.journal(run)).map(({ key }) => key)).toEqual(['a'])
    await bench.process([w])
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 5_000)
    expect(begun).toEqual(['a', 'b'])
  })

  it('B011 keeps its own deadline against a body that ignores its signal, whose late result is refused', async () => {
    bench = await openBench(HOURS)
    const bodies: number[] = []
    const w = lasting(60_000, false, bodies)
    const first = await bench.process([w], { drainMs: 1_000, abortGraceMs: 1_000 })
    const run = await bench.start(w)
    await bench.until(() => bodies.length === 1, 5_000)
    let stopped = false
    void first.executor.stop().then(() => (stopped = true))
    expect(await bench.until(() => stopped, 10_000)).toBeLessThanOrEqual(2_250)
    expect(await bench.attempts(run)).toMatchObject([{ attempt: 1, end: 'handed_back' }])
    await bench.process([w])
    await bench.until(() => bodies.length === 2, 5_000)
    expect((await bench.get(run)).attempt).toBe(2)
    // the first body ends a little before the second
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 70_000)
    expect(await bench.get(run)).toMatchObject({ output: 'by body 2', attempt: 2 })
    expect((await bench.journal(run)).length).toBe(1)
  })

  it('B011 keeps its deadline when the engine does not answer at all', async () => {
    bench = await openBench(HOURS)
    const bodies: number[] = []
    const w = lasting(60_000, true, bodies)
    const first = await bench.process([w], { drainMs: 1_000, abortGraceMs: 1_000 })
    await bench.start(w)
    await bench.until(() => bodies.length === 1, 5_000)
    first.around = () => new Promise(() => undefined)
    let stopped = false
    void first.executor.stop().then(() => (stopped = true))
    expect(await bench.until(() => stopped, 10_000)).toBeLessThanOrEqual(
      1_000 + 1_000 + 2_000 + 250,
    )
    first.kill()
  })

  it('B011 EX-01 a second stop gets the promise of the first', async () => {
    bench = await openBench(HOURS)
    const first = await bench.process([lasting(1, true, [])])
    expect(first.executor.stop()).toBe(first.executor.stop())
    await expect(first.executor.start()).rejects.toMatchObject({ code: 'draining' })
  })

  it('B013 RUN-09 a claim whose answer was lost on the way is handed back at the stop, though its executor never heard of it', async () => {
    bench = await openBench(HOURS)
    const quick = workflow('quick', () => 'done')
    const first = await bench.process([quick], { drainMs: 1_000 })
    first.around = async (name, call) => {
      const answer = await call()
      const lost =
        name === 'claim' && bench.count("select count(*) from runs where status = 'running'") > 0
      return lost ? new Promise(() => undefined) : answer
    }
    const lost = await bench.start(quick)
    await bench.until(async () => (await bench.get(lost)).status === 'running', 60_000)
    await bench.advance(10_000)
    expect(first.executor.status().jobs).toEqual([])
    expect(await bench.get(lost)).toMatchObject({ status: 'running', attempt: 1 })
    let stopped = false
    void first.executor.stop().then(() => (stopped = true))
    expect(await bench.until(() => stopped, 10_000)).toBeLessThanOrEqual(1_250)
    expect(await bench.get(lost)).toMatchObject({ status: 'queued', attempt: 1 })
    await bench.process([quick])
    await bench.until(async () => (await bench.get(lost)).status === 'succeeded', 2_000)
  })

  it('B013 RUN-10 one that lives on asks for the lost claim again and drives what it took', async () => {
    bench = await openBench()
    const quick = workflow('quick', () => 'done')
    const first = await bench.process([quick], { claimWaitMs: 1_000 })
    let lose = 3
    first.around = async (name, call) => {
      const answer = await call()
      if (
        name === 'claim' &&
        lose > 0 &&
        bench.count("select count(*) from runs where status = 'running'") > 0
      ) {
        lose -= 1
        throw new Error('the answer was lost')
      }
      return answer
    }
    const run = await bench.start(quick)
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 10_000)
    expect(lose).toBe(0)
    expect(await bench.get(run)).toMatchObject({ attempt: 1 })
  })

  it('B013 one that dies with it loses the run at the end of its lease, not at that of any step', async () => {
    bench = await openBench()
    const quick = workflow({ name: 'quick', attemptLimit: '10h' }, () => 'done')
    const first = await bench.process([quick], { claimWaitMs: 1_000 })
    first.around = async (name, call) => {
      const answer = await call()
      if (name === 'claim' && bench.count("select count(*) from runs where status = 'running'") > 0)
        first.kill()
      return answer
    }
    const run = await bench.start(quick)
    await bench.until(async () => (await bench.get(run)).status === 'running', 5_000)
    await bench.process([quick])
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 20_000),
    ).toBeLessThanOrEqual(LEASE_MS + SWEEP_MS + 1_000)
  })
})
