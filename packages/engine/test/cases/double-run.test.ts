import { afterEach, describe, expect, it } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { StepArgument } from '../../src/executor/authoring/context.ts'
import { runOf, lockRuns } from '../../src/store/move/run-row.ts'
import { writeRuns } from '../../src/store/move/whole-runs.ts'
import { ask } from '../../src/store/sql.ts'
import { park } from '../../src/transitions/park.ts'
import { wake } from '../../src/transitions/wake.ts'
import type { Bench } from '../support/cases.ts'
import { complete, definitionOnly, gate, LEASE_MS, openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

describe('runs that are driven twice', () => {
  it('B016 RUN-08 an executor that was frozen past its lease loses the run, and its late result with it', async () => {
    const slow = gate<string>()
    const steps: StepArgument[] = []
    const w = workflow('w', (ctx) =>
      ctx.step('s', (step) => {
        steps.push(step)
        return steps.length === 1 ? slow.opened : 'B'
      }),
    )
    bench = await openBench()
    const first = await bench.process([w], { slots: { default: 1 } })
    const run = await bench.start(w)
    await bench.until(() => steps.length === 1, 5_000)
    const reasons: unknown[] = []
    steps[0]!.signal.addEventListener('abort', () => reasons.push(steps[0]!.signal.reason))
    // frozen: nothing leaves, nothing arrives
    first.cut = true
    await bench.process([w])
    await bench.until(async () => (await bench.get(run)).status === 'succeeded', 3 * LEASE_MS)
    expect(await bench.get(run)).toMatchObject({ output: 'B', attempt: 2 })
    first.cut = false
    const appended = bench.count('select count(*) from streams')
    steps[0]!.append('out', 'late')
    steps[0]!.progress(1, 1)
    slow.open('A')
    await bench.advance(2 * LEASE_MS)
    expect(await bench.get(run)).toMatchObject({ status: 'succeeded', output: 'B', attempt: 2 })
    expect(bench.count('select count(*) from streams')).toBe(appended)
    expect((await bench.journal(run)).map(({ output }) => output)).toEqual(['"B"'])
    expect(reasons).toMatchObject([{ reason: 'lease_lost' }])
  })

  it('B016 S14 it has stopped by itself before anybody else can have claimed the run', async () => {
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          ),
      ),
    )
    bench = await openBench()
    const first = await bench.process([w])
    const run = await bench.start(w)
    await bench.until(() => first.executor.status().jobs.length === 1, 5_000)
    first.cut = true
    await bench.until(() => first.executor.status().jobs.length === 0, LEASE_MS)
    // its jobs are gone and the lease has not lapsed yet
    expect(await bench.get(run)).toMatchObject({ status: 'running', attempt: 1 })
    expect(bench.count('select count(*) from sessions where ended_at is not null')).toBe(0)
  })

  it('B016 trust in a lease is counted from when it was asked for, not from when the answer came', async () => {
    const w = workflow('w', (ctx) => ctx.step('s', () => new Promise(() => undefined)))
    bench = await openBench()
    const open = gate()
    let held = false
    const port = bench.opened.remote
    const executor = makeExecutor({
      ports: { ...bench.ports, timers: bench.clock.timers() },
      workflows: [w],
      port: {
        ...port,
        async register(request) {
          const answer = await port.register(request)
          held = true
          await open.opened
          return answer
        },
        renew: () => Promise.reject(new Error('the network is cut')),
      },
    })
    const started = executor.start()
    await bench.until(() => held, 1_000)
    const asked = bench.now()
    await bench.advance(0.75 * LEASE_MS)
    open.open()
    await started
    await bench.until(() => executor.status().fenced, LEASE_MS)
    expect(bench.now() - asked).toBeLessThanOrEqual(LEASE_MS)
    void executor.stop()
    await bench.advance(60_000)
  })

  it('B019 S2 an old picture of a run, however it gets to a writer, changes nothing', async () => {
    const w = definitionOnly('w')
    bench = await openBench({ manual: true })
    const hand = await bench.hand([w])
    const run = await bench.start(w)
    const queued = await bench.engine.read(function* () {
      return (yield* ask(lockRuns([run])))[0].map(runOf)
    })
    const [held] = await hand.claim()
    const running = await bench.engine.read(function* () {
      return (yield* ask(lockRuns([run])))[0].map(runOf)
    })
    await hand.end(held!, complete('done'))
    const before = bench.dump()
    for (const [stale] of [queued, running]) {
      const written = await bench.engine.store.run(function* () {
        return (yield* ask(writeRuns([{ ...stale!, rev: stale!.rev + 1 }])))[0]
      })
      expect(written).toEqual([])
    }
    await bench.engine.act((tx) => park(tx, held!.run, 'nobody', 500))
    await bench.engine.act((tx) => wake(tx))
    await bench.pass()
    expect(await hand.claim()).toEqual([])
    // a claim that finds nothing counts, and the place in line that the first one took is kept
    const same = (dump: string): string =>
      dump.replace(/"claim_no":\d+/g, '').replace(/"tag":\d+,"created_at"/g, '')
    expect(same(bench.dump())).toBe(same(before))
  })

  it('B020 many runs with many branches begin each step once while nothing fails', async () => {
    const counts = new Map<string, number>()
    const w = workflow('w', async (ctx, n: number) => {
      const items = Array.from({ length: 40 }, (_, i) => i)
      const out = await ctx.map('items', items, (each, item) =>
        each.step('s', () => {
          const key = `${n}/${item}`
          counts.set(key, (counts.get(key) ?? 0) + 1)
          return item
        }),
      )
      return out.reduce((sum, each) => sum + each, 0)
    })
    bench = await openBench({ settings: { leaseMs: 60_000, renewMs: 20_000 } })
    // answers come late, by up to two seconds, and not in order
    for (const executor of [
      await bench.process([w], { slots: { default: 5 } }),
      await bench.process([w], { slots: { default: 5 } }),
    ])
      executor.around = async (name, call) => {
        const answer = await call()
        if (name !== 'claim') await sleepFor(bench.ports.random.next() * 2_000)
        return answer
      }
    const runs = []
    for (let n = 0; n < 50; n++) runs.push(await bench.start(w, n))
    await bench.until(
      () => bench.count("select count(*) from runs where status = 'succeeded'") === 50,
      10 * 60_000,
    )
    expect(bench.count("select count(*) from steps where kind = 'step'")).toBe(2_000)
    expect(bench.count('select count(*) from attempts')).toBe(50)
    expect(counts.size).toBe(2_000)
    expect([...counts.values()].every((count) => count === 1)).toBe(true)
    for (const run of runs) expect((await bench.get(run)).output).toBe(780)
  })
})

const sleepFor = (ms: number): Promise<void> =>
  new Promise((resolve) => bench.clock.timers().after(ms, resolve))
