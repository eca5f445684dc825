// Ours, through the pieces that users get: an engine on a file with disk syncs, `start`, and an executor in the process.
// The clock of a drain runs from the first body to the last acknowledged completion.
import { workflow } from '../src/executor/authoring/workflow.ts'
import type { AnyWorkflow } from '../src/executor/authoring/context.ts'
import { ask } from '../src/store/sql.ts'
import { payloadsOf } from '../src/store/tables/runs.ts'
import { drainedBy, executorOn, openIn, ports, registerOn, signal, startAll } from './engine.ts'
import type { Figures } from './figures.ts'
import { percentile, stopwatch } from './figures.ts'

const SLOTS = 200

const noop = workflow('noop', async (ctx) => ctx.step('s', () => 1))

const start = async (dir: string, count: number, callers: number): Promise<Figures> => {
  const opened = await openIn(dir)
  await registerOn(opened, [noop])
  const caller = async (starts: number): Promise<void> => {
    for (let i = 0; i < starts; i++) {
      const answer = await opened.engine.start({
        command: { id: ports.ids.next('run'), workflow: 'noop', input: '{"n":1}' },
      })
      if (!answer.ok) throw new Error(answer.message)
    }
  }
  await caller(200)
  const elapsed = stopwatch()
  await Promise.all(Array.from({ length: callers }, () => caller(count / callers)))
  const rate = (count / elapsed()) * 1000
  await opened.close()
  return { rate }
}

const startBulk = async (dir: string, count: number): Promise<Figures> => {
  const opened = await openIn(dir)
  await registerOn(opened, [noop])
  const elapsed = stopwatch()
  await startAll(opened, 'noop', count)
  const rate = (count / elapsed()) * 1000
  await opened.close()
  return { rate }
}

/** Runs `count` runs of a workflow whose bodies call `body`, and answers how long they took. */
const drained = async (
  dir: string,
  make: (body: () => number) => AnyWorkflow,
  count: number,
): Promise<number> => {
  const opened = await openIn(dir)
  let first = 0
  const flow = make(() => {
    if (first === 0) first = performance.now()
    return 1
  })
  await registerOn(opened, [flow])
  await startAll(opened, flow.name, count)
  const ended = await drainedBy(opened, [flow], count, SLOTS)
  await opened.close()
  return ended - first
}

const drain = async (dir: string, count: number): Promise<Figures> => {
  const took = await drained(
    dir,
    (body) => workflow('noop', async (ctx) => ctx.step('s', body)),
    count,
  )
  return { rate: (count / took) * 1000 }
}

const stepwise = async (dir: string, runs: number, steps: number): Promise<Figures> => {
  const took = await drained(
    dir,
    (body) =>
      workflow('steps', async (ctx) => {
        for (let i = 0; i < steps; i++) await ctx.step(`s${i}`, body)
      }),
    runs,
  )
  return { rate: ((runs * steps) / took) * 1000 }
}

/** Idle, one run at a time: from the start's call to the body, and to the result at the caller. */
const idle = async (dir: string, count: number): Promise<Figures> => {
  const opened = await openIn(dir)
  const { engine } = opened
  let begun = 0
  const flow = workflow('noop', async (ctx) =>
    ctx.step('s', () => {
      begun = performance.now()
      return 1
    }),
  )
  const executor = executorOn(opened.embedded, [flow])
  await executor.start()
  const bodies: number[] = []
  const results: number[] = []
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    const id = ports.ids.next('run')
    const result = signal()
    const stop = engine.hub.onChanged(id, () => {
      void engine
        .read(function* () {
          return (yield* ask(payloadsOf([id])))[0][0]
        })
        .then((row) => row?.status === 'succeeded' && result.give())
    })
    const from = performance.now()
    await engine.start({ command: { id, workflow: 'noop', input: '{"n":1}' } })
    await result.came
    results.push(performance.now() - from)
    bodies.push(begun - from)
    stop()
  }
  await executor.stop()
  await opened.close()
  return {
    p50: percentile(bodies, 0.5),
    p99: percentile(bodies, 0.99),
    result: percentile(results, 0.5),
  }
}

export const ours: Readonly<Record<string, (dir: string, n: number) => Promise<Figures>>> = {
  P1: (dir, n) => start(dir, n, 20),
  P2: startBulk,
  P3: drain,
  P6: drain,
  P4: (dir, n) => stepwise(dir, n / 20, 20),
  P4b: (dir, n) => stepwise(dir, 1, n),
  P5: idle,
}
