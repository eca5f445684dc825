// What follows a commit, as figures: from a notice's cause to its sink, sends of the same notice while the notifier is killed over and
// over, and from a child's end to its parent's next step.
import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { workflow } from '../src/executor/authoring/workflow.ts'
import { systemOutgoing } from '../src/kernel/outgoing.ts'
import type { Message, Sink } from '../src/model/delivery.ts'
import { nothing } from '../src/model/follow.ts'
import type { Notice } from '../src/model/notice.ts'
import { noticeKinds } from '../src/model/notice.ts'
import type { Settings } from '../src/model/settings.ts'
import { openOnPostgres } from '../src/orchestrator/open-postgres.ts'
import type { Opened } from '../src/orchestrator/open.ts'
import { openOnSqlite } from '../src/orchestrator/open.ts'
import { makeSinks } from '../src/orchestrator/sinks/sinks.ts'
import { finish } from '../src/store/sql.ts'
import { tell } from '../src/store/tables/notices.ts'
import { keepSinks } from '../src/transitions/keep-sinks.ts'
import { executorOn, ports, signal } from './engine.ts'
import type { Figures } from './figures.ts'
import { median, percentile, stopwatch } from './figures.ts'

/** On PostgreSQL nothing but the lapse of its claims says that a notifier is gone; a file’s next owner knows it. */
const quickLapse = { deliveryLeaseMs: 4_000, deliveryTimeoutMs: 2_000 }
const KILL_MS = 2_000
const HOOK = { type: 'webhook', name: 'ops', kinds: noticeKinds } as const

const openWith = (
  place: string,
  sinks: readonly Sink[],
  settings: Partial<Settings> = {},
): Promise<Opened> =>
  place.startsWith('postgres:')
    ? openOnPostgres({ url: place, ports, sinks, settings })
    : openOnSqlite({ file: path.join(place, 'engine.db'), ports, sinks })

const noticeOf = (i: number): Notice => ({
  run: `run_${String(i).padStart(8, '0')}`,
  kind: 'run_failed',
  occurrence: '',
  sentence: 'it failed',
  data: { reason: 'error' },
})

/** Stores notices as their causes do, and does what follows. */
const cause = async ({ engine }: Opened, notices: readonly Notice[]): Promise<void> => {
  await engine.store.run(() => finish(...tell(notices)))
  engine.follow({ ...nothing(), deliveries: true })
}

/** One after another, each once the sink has the one before; then all at once. */
const relay = async (place: string, n: number): Promise<Figures> => {
  let hears: (message: Message) => void = () => undefined
  const sink: Sink = {
    name: 'ops',
    type: 'bench',
    kinds: noticeKinds,
    send(message) {
      hears(message)
      return Promise.resolve({ ok: true, note: 'heard' })
    },
  }
  const opened = await openWith(place, [sink])
  // the sink is told of by the first pass
  await pause(1_500)
  const waits: number[] = []
  const alone = Math.min(500, Math.ceil(n / 10))
  for (let i = 0; i < alone; i++) {
    const came = signal()
    hears = () => came.give()
    const elapsed = stopwatch()
    await cause(opened, [noticeOf(i)])
    await came.came
    waits.push(elapsed())
  }
  const all = signal()
  let left = n
  hears = () => {
    left -= 1
    if (left === 0) all.give()
  }
  const elapsed = stopwatch()
  for (let done = 0; done < n; done += 500)
    await cause(
      opened,
      Array.from({ length: Math.min(500, n - done) }, (_each, i) => noticeOf(alone + done + i)),
    )
  await all.came
  const rate = n / (elapsed() / 1_000)
  await opened.close()
  return { p50: median(waits), p99: percentile(waits, 0.99), rate }
}

/** `n` notices to a webhook, by a process that is killed every two seconds and started anew. */
const killed = async (place: string, n: number): Promise<Figures> => {
  const times = new Map<string, number>()
  const receiver = createServer((request, response) => {
    const id = String(request.headers['webhook-id'])
    request.resume().once('end', () => {
      times.set(id, (times.get(id) ?? 0) + 1)
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo

  const first = await openWith(place, [])
  const { store } = first.engine
  await store.run((tx) => keepSinks(tx, [unsent], true))
  for (let done = 0; done < n; done += 500)
    await store.run(() =>
      finish(
        ...tell(Array.from({ length: Math.min(500, n - done) }, (_each, i) => noticeOf(done + i))),
      ),
    )
  await first.close()

  let kills = 0
  const elapsed = stopwatch()
  while (times.size < n) {
    const notifier = fork(process.argv[1] ?? '', ['notifier', 'killed', String(port), place], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    await pause(KILL_MS)
    if (times.size < n) kills += 1
    await end(notifier)
  }
  const seconds = elapsed() / 1_000
  receiver.closeAllConnections()
  receiver.close()
  const sends = [...times.values()].reduce((sum, each) => sum + each, 0)
  return {
    again: ((sends - n) / n) * 100_000,
    over: [...times.values()].filter((each) => each > 1 + kills).length,
    most: Math.max(...times.values()),
    kills,
    rate: n / seconds,
  }
}

const end = async (child: ChildProcess): Promise<void> => {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  if (child.exitCode !== null || child.signalCode !== null)
    throw new Error(`the notifier ended by itself with ${child.exitCode}`)
  child.kill('SIGKILL')
  await gone
}

/** The sink as the store is told of it, where nobody sends yet. */
const unsent: Sink = { ...HOOK, send: () => Promise.reject(new Error('nobody sends here')) }

/** The notifier: a server’s engine with its sink, until it is killed. */
const notify = async (place: string, port: number): Promise<Figures> => {
  const sinks = await makeSinks(
    [
      {
        ...HOOK,
        url: `http://127.0.0.1:${port}`,
        secrets: ['secret'],
        allowPrivate: true,
      },
    ],
    ports,
    systemOutgoing(),
    quickLapse.deliveryTimeoutMs,
  )
  await openWith(place, sinks, quickLapse)
  return new Promise(() => undefined)
}

/** From the end of a child to the next step of its parent, `n` times with wake-ups and a tenth of that without. */
const family = async (place: string, n: number): Promise<Figures> => {
  const ended = new Map<string, number>()
  const waits: number[] = []
  const child = workflow('child', async (ctx, name: string) => {
    await ctx.step('work', () => ended.set(name, performance.now()).size)
  })
  const parent = workflow('parent', async (ctx, name: string) => {
    await ctx.run(child, name)
    await ctx.step('next', () => waits.push(performance.now() - (ended.get(name) ?? Number.NaN)))
  })
  const opened = await openWith(place, [])
  const executor = executorOn(opened.embedded, [parent, child])
  await executor.start()
  const measured = async (name: string, count: number): Promise<number[]> => {
    waits.length = 0
    for (let i = 0; i < count; i++) {
      const input = JSON.stringify(`${name} ${i}`)
      const id = ports.ids.next('run')
      await opened.engine.start({ command: { id, workflow: 'parent', input } })
      while (waits.length <= i) await pause(1)
    }
    return [...waits]
  }
  const on = await measured('on', n)
  // what follows a commit is not done: the loops find it by themselves
  opened.engine.follow = () => undefined
  const off = await measured('off', Math.ceil(n / 10))
  await executor.stop()
  await opened.close()
  return {
    on50: median(on),
    on99: percentile(on, 0.99),
    off50: median(off),
    off99: percentile(off, 0.99),
  }
}

export const railFigures = { relay, killed, family }
/** What runs in a process of its own, and is killed. */
export const notifiers: Readonly<Record<string, typeof notify>> = { killed: notify }
