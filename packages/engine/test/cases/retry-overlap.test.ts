import { afterEach, describe, expect, it } from 'vitest'
import type { StepArgument } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Bench } from '../support/cases.ts'
import { gate, openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

describe('tries that overlap', () => {
  it('B145 RUN-13 a body that ignores its limit is fenced before the next try begins, and adds nothing after it', async () => {
    const tries: StepArgument[] = []
    const late = gate<string>()
    const next = gate<string>()
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        (step) => {
          tries.push(step)
          step.append('out', `began ${tries.length}`)
          return tries.length === 1 ? late.opened : next.opened
        },
        { timeout: 1_000, retry: { base: 100 } },
      ),
    )
    bench = await openBench({ settings: { limitGraceMs: 5_000 } })
    const first = await bench.process([w], { embedded: true })
    const run = await bench.start(w)
    await bench.until(() => tries.length === 1, 5_000)
    await bench.advance(1_500)
    expect(tries[0]!.signal.aborted).toBe(true)
    // past its limit nothing of it is taken, though its attempt still holds the run
    tries[0]!.append('out', 'late 1')
    tries[0]!.progress(99, 99)
    await bench.advance(1_000)
    expect(tries).toHaveLength(1)
    // its own executor keeps the slot and takes the run no more: another drives it
    await bench.process([w], { embedded: true })
    await bench.until(() => tries.length === 2, 20_000)
    expect(tries.map(({ tryNumber }) => tryNumber)).toEqual([1, 2])
    // at most one claim that was under way when the body was given up has brought the run back to it
    const attempt = tries[1]!.fence.attempt
    expect(attempt).toBeGreaterThan(1)
    expect(
      (await bench.attempts(run)).filter(({ end }) => end === 'handed_back').length,
    ).toBeLessThanOrEqual(1)
    tries[0]!.append('out', 'late 2')
    late.open('A')
    await bench.advance(500)
    expect(await bench.get(run)).toMatchObject({ status: 'running', attempt })
    expect(await bench.journal(run)).toEqual([])
    next.open('B')
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 5_000)
    expect((await bench.get(run)).output).toBe('B')
    expect(bench.db.prepare('select data from streams order by seq').pluck().all()).toEqual([
      '"began 1"',
      '"began 2"',
    ])
    expect(first.executor.status().jobs).toEqual([])
    expect((await bench.attempts(run)).map(({ end }) => end)).toEqual(
      expect.arrayContaining(['revoked', 'completed']),
    )
  })

  it('B145 a body that settles soon after its limit is not the result, and its next try begins only then', async () => {
    const begun: number[] = []
    const settledAt: number[] = []
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        async ({ tryNumber }) => {
          begun.push(bench.now())
          if (tryNumber > 1) return 'B'
          await new Promise<void>((resolve) => bench.clock.timers().after(3_000, () => resolve()))
          settledAt.push(bench.now())
          return 'A'
        },
        { timeout: 1_000, retry: { base: 100 } },
      ),
    )
    bench = await openBench()
    await bench.process([w], { embedded: true })
    const run = await bench.start(w)
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 20_000)
    expect(await bench.get(run)).toMatchObject({ output: 'B', attempt: 1 })
    expect(begun[1]).toBeGreaterThanOrEqual(settledAt[0]!)
  })

  it('B145 what a failed try left running adds nothing to the one that follows', async () => {
    const tries: StepArgument[] = []
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        (step) => {
          tries.push(step)
          if (tries.length === 1) throw new Error('once')
          tries[0]!.append('out', 'leaked')
          step.append('out', 'mine')
          tries[0]!.progress(1, 1, 'leaked')
          return 'B'
        },
        { retry: { base: 100 } },
      ),
    )
    bench = await openBench()
    await bench.process([w], { embedded: true })
    const run = await bench.start(w)
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 20_000)
    expect(bench.db.prepare('select data from streams').pluck().all()).toEqual(['"mine"'])
    expect(bench.db.prepare('select progress from runs').pluck().get()).toBeNull()
  })
})
