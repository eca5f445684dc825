// What has no limit to compare with: holding many runs, long runs, recovery, memory over time, start-up.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { workflow } from '../src/executor/authoring/workflow.ts'
import type { ExecutorPort } from '../src/model/work.ts'
import { counting, executorOn, openIn, registerOn, signal, startAll } from './engine.ts'
import type { Figures } from './figures.ts'
import { median, percentile, stopwatch } from './figures.ts'

const self = fileURLToPath(import.meta.url)
const never = (): Promise<never> => new Promise(() => undefined)
const settled = (): number => {
  for (let i = 0; i < 3; i++) globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** P9: one executor with a lease holds `count` runs whose bodies wait on I/O, for three renewals. */
const holding = async (dir: string, count: number): Promise<Figures> => {
  const opened = await openIn(dir)
  const all = signal()
  let held = 0
  const flow = workflow('holds', async (ctx) =>
    ctx.step('io', () => {
      held += 1
      if (held === count) all.give()
      return never()
    }),
  )
  await registerOn(opened, [flow])
  await startAll(opened, 'holds', count)
  const sent: number[] = []
  const port: ExecutorPort = {
    ...opened.remote,
    renew(request) {
      sent.push(performance.now())
      return opened.remote.renew(request)
    },
  }
  const before = settled()
  const executor = executorOn(port, [flow], { slots: { default: count }, drainMs: 0 })
  await executor.start()
  await all.came
  const bytes = settled() - before
  while (sent.length < 3) await pause(100)
  const gaps = sent.slice(1).map((at, i) => at - (sent[i] ?? 0))
  return { kB: bytes / count / 1_000, worst: Math.max(...gaps), renewals: sent.length }
}

/** P11: a run of `count` steps, the cost of one near its beginning and near its end, and its resumption elsewhere. */
const longRun = async (dir: string, count: number): Promise<Figures> => {
  const opened = await openIn(dir)
  const at: number[] = []
  let resumed: (() => void) | null = null
  const whole = signal()
  const again = signal()
  const flow = workflow('long', async (ctx) => {
    for (let i = 0; i < count - 1; i++)
      await ctx.step(`s${i}`, () => {
        at.push(performance.now())
        return i
      })
    await ctx.step('last', () => {
      if (resumed) resumed()
      else whole.give()
      return never()
    })
  })
  const first = executorOn(opened.embedded, [flow], { drainMs: 0, abortGraceMs: 0 })
  await first.start()
  await startAll(opened, 'long', 1)
  await whole.came
  await first.stop()
  resumed = again.give
  const elapsed = stopwatch()
  const second = executorOn(opened.embedded, [flow], { drainMs: 0, abortGraceMs: 0 })
  await second.start()
  await again.came
  const resume = elapsed()
  const cost = (from: number, to: number): number =>
    median(at.slice(from + 1, to).map((each, i) => each - (at[from + i] ?? 0)))
  const early = cost(10, 510)
  return { early, ratio: cost(count - 510, count - 10) / early, resume }
}

/** P12: a process that holds 50 runs is killed; from the kill, and from the open, to all of them driven again. */
const recovery = async (dir: string, times: number): Promise<Figures> => {
  const kills: number[] = []
  const opens: number[] = []
  for (let i = 0; i < times; i++) {
    const folder = path.join(dir, String(i))
    const held = await child(folder)
    held.kill()
    await held.ended
    const elapsed = stopwatch()
    const next = await child(folder)
    kills.push(elapsed())
    opens.push(next.ms)
    next.kill()
    await next.ended
  }
  return { kill: median(kills), worst: Math.max(...kills), open: median(opens) }
}

const HELD = 50

const child = async (
  folder: string,
): Promise<{ ms: number; kill: () => void; ended: Promise<void> }> => {
  const process_ = spawn(process.execPath, [self, 'ours', 'hold', String(HELD), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = signal()
  process_.on('exit', () => ended.give())
  const said = await new Promise<string>((resolve, reject) => {
    process_.stdout.on('data', (data: Buffer) => resolve(data.toString()))
    process_.on('exit', () => reject(new Error('the child ended before it held its runs')))
  })
  return { ms: Number(said), kill: () => void process_.kill('SIGKILL'), ended: ended.came }
}

/** The child of P12: holds `count` runs, those of an earlier process or new ones, and says how long that took. */
const hold = async (dir: string, count: number): Promise<Figures> => {
  const elapsed = stopwatch()
  const fresh = !existsSync(path.join(dir, 'engine.db'))
  mkdirSync(dir, { recursive: true })
  const opened = await openIn(dir)
  const all = signal()
  let held = 0
  const flow = workflow('holds', async (ctx) =>
    ctx.step('io', () => {
      held += 1
      if (held === count) all.give()
      return never()
    }),
  )
  const executor = executorOn(opened.embedded, [flow], { slots: { default: count } })
  await executor.start()
  if (fresh) await startAll(opened, 'holds', count)
  await all.came
  process.stdout.write(String(elapsed()))
  setInterval(() => undefined, 1_000)
  return never()
}

/** P14: heap after collection over `count` short runs, in quarters. */
const churn = async (dir: string, count: number): Promise<Figures> => {
  const opened = await openIn(dir)
  const flow = workflow('noop', async (ctx) => ctx.step('s', () => 1))
  let ended = 0
  let enough = signal()
  let next = 0
  const port = counting(opened.embedded, () => {
    ended += 1
    if (ended === next) enough.give()
  })
  const executor = executorOn(port, [flow], { slots: { default: 200 } })
  await executor.start()
  await pause(1_000)
  settled()
  const idle = process.memoryUsage().rss
  const heaps: number[] = []
  for (let quarter = 0; quarter < 4; quarter++) {
    for (let part = 0; part < 10; part++) {
      next = ended + Math.floor(count / 40)
      enough = signal()
      await startAll(opened, 'noop', Math.floor(count / 40))
      await enough.came
    }
    heaps.push(settled())
  }
  const [, , third = 0, last = 0] = heaps
  await executor.stop()
  await opened.close()
  return { growth: (last - third) / 1e6, idle: idle / 1e6 }
}

/** P15: the built command: `--help`, and `dev` on a new file until its address answers. */
const startUp = async (dir: string, times: number): Promise<Figures> => {
  const main = fileURLToPath(new URL('../cli/main.js', import.meta.url))
  if (!existsSync(main)) throw new Error('the command is not built; run `npm run build` first')
  const module = path.join(dir, 'flow.mjs')
  const entry = new URL('../entry/index.js', import.meta.url).href
  writeFileSync(
    module,
    `import { workflow } from '${entry}'\nexport const hello = workflow('hello', async () => 'hello')\n`,
  )
  const helps: number[] = []
  const serves: number[] = []
  for (let i = 0; i < times; i++) {
    const elapsed = stopwatch()
    const help = spawn(process.execPath, [main, '--help'], { stdio: 'ignore' })
    await new Promise((resolve) => help.on('exit', resolve))
    helps.push(elapsed())
  }
  for (let i = 0; i < times; i++) {
    const elapsed = stopwatch()
    const file = path.join(dir, `dev${i}.db`)
    const dev = spawn(process.execPath, [main, 'dev', module, '--file', file, '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const url = await new Promise<string>((resolve, reject) => {
      let said = ''
      dev.stdout.on('data', (data: Buffer) => {
        said += data.toString()
        const found = /http:\/\/[\w.:]+/.exec(said)
        if (found) resolve(found[0])
      })
      dev.on('exit', () => reject(new Error('dev ended before it served')))
    })
    await fetch(`${url}/v1/runs`)
    serves.push(elapsed())
    dev.kill('SIGKILL')
    await new Promise((resolve) => dev.on('exit', resolve))
  }
  return { help: median(helps), serve: median(serves), p90: percentile(serves, 0.9) }
}

export const longs: Readonly<Record<string, (dir: string, n: number) => Promise<Figures>>> = {
  P9: holding,
  P11: longRun,
  P12: recovery,
  P14: churn,
  P15: startUp,
  hold,
}
