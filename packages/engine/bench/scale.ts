// What must not grow with what lies about: history, lists, limits, owners, executors.
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import type { AnyWorkflow } from '../src/executor/authoring/context.ts'
import { workflow } from '../src/executor/authoring/workflow.ts'
import type { ExecutorPort } from '../src/model/work.ts'
import { PROTOCOL_VERSION } from '../src/model/work.ts'
import type { Opened } from '../src/orchestrator/open.ts'
import { runCounts, runList } from '../src/queries/run-list.ts'
import type { RunFilter } from '../src/store/tables/run-lists.ts'
import { NO_FILTER } from '../src/store/tables/run-lists.ts'
import { drainedBy, executorOn, openIn, ports, registerOn, signal, startAll } from './engine.ts'
import type { Figures } from './figures.ts'
import { median, percentile, stopwatch } from './figures.ts'
import { grow } from './grow.ts'

const SLOTS = 200
const DRAINS = 5
const DRAIN = 5_000
const CLAIM = 10

const never = (): Promise<never> => new Promise(() => undefined)
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const noop = workflow('noop', async (ctx) => ctx.step('s', () => 1))

/** One drain of `count` runs that are started first, per second. */
const drain = async (opened: Opened, flow: AnyWorkflow, count: number): Promise<number> => {
  await startAll(opened, flow.name, count)
  const elapsed = stopwatch()
  await drainedBy(opened, [flow], count, SLOTS)
  return (count / elapsed()) * 1_000
}

const drains = async (opened: Opened): Promise<number> => {
  const rates: number[] = []
  for (let i = 0; i < DRAINS; i++) rates.push(await drain(opened, noop, DRAIN))
  return median(rates)
}

/** How long each of some 500 claims of 10 runs takes, by a session that only claims. */
const claims = async (opened: Opened): Promise<readonly number[]> => {
  await startAll(opened, 'noop', CLAIM * 500)
  const session = ports.ids.next('ses')
  const registered = await opened.embedded.register({
    protocol: PROTOCOL_VERSION,
    session,
    build: 'bench',
    host: 'bench',
    pid: process.pid,
    queues: ['default'],
    labels: [],
    capacity: CLAIM * 500,
    definitions: [noop.definition],
  })
  if (!registered.ok) throw new Error(registered.message)
  const took: number[] = []
  for (let claim = 1; claim <= 500; claim++) {
    const elapsed = stopwatch()
    const answer = await opened.embedded.claim({
      session,
      claim,
      most: CLAIM,
      except: [],
      waitMs: 0,
    })
    took.push(elapsed())
    if (!answer.ok) throw new Error(answer.message)
    if (answer.runs.length !== CLAIM)
      throw new Error(`claim ${claim} gave ${answer.runs.length} runs instead of ${CLAIM}`)
  }
  await opened.embedded.close({ session, reason: 'measured' })
  await drainedBy(opened, [noop], CLAIM * 500, SLOTS)
  return took
}

/** P7: drains and claims on an empty store, then with `ended` ended runs, with blocked runs at the head, with a transaction that stays open. */
const history = async (place: string, ended: number): Promise<Figures> => {
  let opened = await openIn(place)
  await registerOn(opened, [noop])
  await drain(opened, noop, DRAIN)
  const empty = await drains(opened)
  const emptyClaim = percentile(await claims(opened), 0.99)
  await opened.close()
  await grow(place, ended)
  opened = await openIn(place)
  await registerOn(opened, [noop])
  await drain(opened, noop, DRAIN)
  const grown = await drains(opened)
  const claim = percentile(await claims(opened), 0.99)
  const beside = place.startsWith('postgres:')
    ? { open: (await besideOpen(place, () => drains(opened))) / empty }
    : {}
  const blocked = await behindBlocked(opened)
  await opened.close()
  return {
    empty,
    grown: grown / empty,
    blocked: blocked / empty,
    ...beside,
    emptyClaim,
    claim,
  }
}

/** The work beside a transaction that has looked at the tables and is not ended. */
const besideOpen = async <T>(url: string, work: () => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('begin isolation level repeatable read')
    await client.query('select count(*) from sessions')
    await client.query('select pg_current_xact_id()')
    return await work()
  } finally {
    await client.end()
  }
}

/** Drains while 5,000 runs of the same workflow and a higher priority wait for one slot that is held. */
const behindBlocked = async (opened: Opened): Promise<number> => {
  const held = signal()
  const flow = workflow(
    { name: 'gated', limits: [{ key: 'gate:{gate}', value: 1 }] },
    async (ctx, input: { gate?: string; hold?: boolean }) => {
      if (input.hold === true) {
        held.give()
        await never()
      }
      return ctx.step('s', () => 1)
    },
  )
  const holder = executorOn(opened.embedded, [flow], { drainMs: 0, abortGraceMs: 0 })
  await holder.start()
  await startAll(opened, 'gated', 1, () => ({ input: '{"gate":"shut","hold":true}' }))
  await held.came
  await startAll(opened, 'gated', 5_000, () => ({ input: '{"gate":"shut"}', priority: 50 }))
  const rate = await drains(opened)
  await holder.stop()
  return rate
}

/** P8: pages, counts and searches, each a hundred times, among `count` ended runs, one in twenty of them failed. */
const lists = async (place: string, count: number): Promise<Figures> => {
  let opened = await openIn(place)
  await registerOn(opened, [noop])
  await drain(opened, noop, 1_000)
  await opened.close()
  const failed = `k % 20 = 0`
  await grow(place, count, {
    status: `case when ${failed} then 'failed' else 'succeeded' end`,
    reason: `case when ${failed} then 'error' end`,
    note: `case when ${failed} then 'card ' || ((g * 7 + k) % 997) || ' was refused' end`,
    owner: `'owner-' || (k % 100)`,
    workflow: `case when k % 10 = 0 then 'rare' else c.workflow end`,
  })
  opened = await openIn(place)
  const engine = opened.engine
  const took = async (work: (i: number) => Promise<unknown>): Promise<number> => {
    const times: number[] = []
    for (let i = 0; i < 100; i++) {
      const elapsed = stopwatch()
      await work(i)
      times.push(elapsed())
    }
    return percentile(times, 0.95)
  }
  const list = async (filter: Partial<RunFilter>, cursor: string | null = null): Promise<void> => {
    const { runs } = await engine.read((tx) => runList(tx, { ...NO_FILTER, ...filter }, cursor, 50))
    if (runs.length === 0) throw new Error(`nothing was found for ${JSON.stringify(filter)}`)
  }
  const deep = (i: number): string => `run_0${(i * 5_000).toString(16).padStart(15, '0')}`
  const figures = {
    page: await took((i) => list({}, deep(i + 1))),
    workflow: await took((i) => list({ workflow: 'rare' }, i % 2 === 0 ? null : deep(i + 1))),
    owner: await took((i) => list({ owner: `owner-${i}` })),
    failed: await took((i) => list({ statuses: ['failed'], workflow: 'rare' }, deep(i + 1))),
    text: await took((i) => list({ statuses: ['failed'], text: `card ${i * 7} ` })),
    counts: await took(() => engine.read(runCounts)),
  }
  await opened.close()
  return figures
}

/** A workflow that counts how many of its bodies run at once for each key. */
const counted = (name: string, value: number): { flow: AnyWorkflow; over: () => number } => {
  const now = new Map<string, number>()
  let over = 0
  const flow = workflow(
    { name, limits: [{ key: `${name}:{who}`, value }] },
    async (ctx, { who = '' }: { who?: string }) => {
      const many = (now.get(who) ?? 0) + 1
      now.set(who, many)
      over = Math.max(over, many - value)
      await ctx.step('s', () => 1)
      now.set(who, (now.get(who) ?? 0) - 1)
      return null
    },
  )
  return { flow, over: () => over }
}

/** P10: (a) a hundred owners at limit 10; (b) the rest beside one run in a hundred that shares a key at limit 1. */
const limited = async (place: string, count: number): Promise<Figures> => {
  const opened = await openIn(place)
  const hundred = counted('hundred', 10)
  const one = counted('one', 1)
  await registerOn(opened, [noop, hundred.flow, one.flow])
  await drain(opened, noop, count)
  const free = await drain(opened, noop, count)
  await startAll(opened, 'hundred', count, (i) => ({ input: JSON.stringify({ who: i % 100 }) }))
  let elapsed = stopwatch()
  await drainedBy(opened, [hundred.flow], count, SLOTS)
  const owners = (count / elapsed()) * 1_000
  const few = Math.ceil(count / 100)
  await startAll(opened, 'one', few, () => ({ input: '{"who":"all"}' }))
  await startAll(opened, 'noop', count - few)
  elapsed = stopwatch()
  const beside = executorOn(opened.embedded, [one.flow], { slots: { default: SLOTS } })
  await beside.start()
  await drainedBy(opened, [noop], count - few, SLOTS)
  const rest = ((count - few) / elapsed()) * 1_000
  await beside.stop()
  await opened.close()
  return {
    free,
    owners: owners / free,
    rest: rest / free,
    over: Math.max(hundred.over(), one.over()),
  }
}

/** P10c: one key alone at limit 1: a run begins when the one before has ended. */
const serial = async (place: string, count: number): Promise<Figures> => {
  const opened = await openIn(place)
  const one = counted('one', 1)
  await registerOn(opened, [one.flow])
  await startAll(opened, 'one', count, () => ({ input: '{"who":"all"}' }))
  const elapsed = stopwatch()
  await drainedBy(opened, [one.flow], count, SLOTS)
  const rate = (count / elapsed()) * 1_000
  await opened.close()
  if (one.over() > 0) throw new Error('more than one held the slot at once')
  return { rate }
}

/** P13: twenty equal owners; one floods; how long the runs of the others wait, and how evenly all are served. */
const fairness = async (place: string, flood: number): Promise<Figures> => {
  const opened = await openIn(place)
  const started = new Map<string, number>()
  const waits: number[] = []
  const served = new Map<string, number>()
  let counting = false
  const flow = workflow('shared', async (ctx, { who = '' }: { who?: string }) => {
    const from = started.get(ctx.info.run)
    if (from !== undefined) waits.push(performance.now() - from)
    if (counting) served.set(who, (served.get(who) ?? 0) + 1)
    await ctx.step('s', () => pause(10))
    return null
  })
  await registerOn(opened, [flow])
  const by = (owner: number) => ({
    owner: `o${owner}`,
    input: JSON.stringify({ who: `o${owner}` }),
  })
  await startAll(opened, 'shared', flood, () => by(0))
  const executor = executorOn(opened.embedded, [flow], { slots: { default: 20 } })
  await executor.start()
  for (let round = 0; round < 10; round++)
    for (let owner = 1; owner < 20; owner++) {
      const id = ports.ids.next('run')
      started.set(id, performance.now())
      const answer = await opened.engine.start({
        command: { id, workflow: 'shared', ...by(owner) },
      })
      if (!answer.ok) throw new Error(answer.message)
      await pause(5)
    }
  while (waits.length < 190) await pause(5)
  // all have more waiting than is looked at; the flood's own stands before them
  for (let owner = 19; owner > 0; owner--) await startAll(opened, 'shared', 200, () => by(owner))
  counting = true
  for (;;) {
    const total = [...served.values()].reduce((sum, each) => sum + each, 0)
    if (total >= 2_000) break
    await pause(5)
  }
  const shares = Array.from({ length: 20 }, (_each, owner) => served.get(`o${owner}`) ?? 0)
  const sum = shares.reduce((all, each) => all + each, 0)
  const squares = shares.reduce((all, each) => all + each * each, 0)
  await executor.stop()
  await opened.close()
  return {
    p50: median(waits),
    worst: Math.max(...waits),
    jain: sum ** 2 / (shares.length * squares),
  }
}

const HELD = 20

/** P16: `executors` executors, each holding 20 runs, on one server for ten minutes, or two where there are few. */
const crowd = async (place: string, executors: number): Promise<Figures> => {
  const opened = await openIn(place)
  const all = signal()
  let held = 0
  const flow = workflow('holds', async (ctx) =>
    ctx.step('io', () => {
      held += 1
      if (held === executors * HELD) all.give()
      return never()
    }),
  )
  await registerOn(opened, [flow])
  await startAll(opened, 'holds', executors * HELD)
  const answered = new Map<string, number>()
  let worst = 0
  let late = 0
  const port: ExecutorPort = {
    ...opened.remote,
    async renew(request) {
      const answer = await opened.remote.renew(request)
      const now = performance.now()
      const gap = now - (answered.get(request.session) ?? now)
      worst = Math.max(worst, gap)
      if (gap > opened.engine.settings.leaseMs) late += 1
      answered.set(request.session, now)
      return answer
    },
  }
  for (let i = 0; i < executors; i++)
    await executorOn(port, [flow], { slots: { default: HELD }, drainMs: 0 }).start()
  await all.came
  const before = serverCpuMs()
  const elapsed = stopwatch()
  await pause(executors >= 1_000 ? 600_000 : 120_000)
  return { worst, late, core: (serverCpuMs() - before) / elapsed() }
}

/** Processor time of all PostgreSQL processes of this machine so far, in milliseconds; clock ticks are hundredths of a second. */
const serverCpuMs = (): number => {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    let stat = ''
    try {
      stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    } catch {
      continue // it ended between the two looks
    }
    if (!stat.includes('(postgres)')) continue
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    for (const at of [11, 12]) ticks += Number(fields[at])
  }
  return ticks * 10
}

export const scales: Readonly<Record<string, (place: string, n: number) => Promise<Figures>>> = {
  P7: history,
  P8: lists,
  P10: limited,
  P10c: serial,
  P13: fairness,
  P16: crowd,
}
