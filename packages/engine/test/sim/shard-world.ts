// A world of two databases as one store, from a seed: people who start, repeat, cancel and signal, an executor that drives what is
// there, and a network that takes one database away and loses answers. It comes to rest, and is looked at after each act.
import type Database from 'better-sqlite3'
import { makeExecutor } from '../../src/executor/executor.ts'
import { FatalError, Fault } from '../../src/kernel/errors.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import { sleep } from '../../src/kernel/timers.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
import { joinShards } from '../../src/orchestrator/shards/shards.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import { settled } from '../support/ports.ts'
import { takeable } from '../support/takeable.ts'
import type { Acknowledged, ShardRows } from './shard-rules.ts'
import { brokenAtEnd, brokenNow, LIMIT } from './shard-rules.ts'

export interface ShardVerdict {
  readonly rule: string | null
  readonly faults: number
  readonly runs: number
  /** By shard. */
  readonly completed: readonly number[]
  readonly end: number
}

const START = 1_700_000_000_000
const ACTS = 60
const COUNT = 2
const OWNERS = ['', 'ann', 'bob', 'cyd', 'dan', 'eve']

const child = workflow('child', (ctx, n: number) => ctx.step('one', () => n))
const parent = workflow('parent', async (ctx, n: number) => {
  await ctx.spawn(child, n, { as: 'aside' })
  const got = await ctx.run(child, n)
  await ctx.sleep('a moment', 500)
  return got
})
const fails = workflow({ name: 'fails', onEnd: 'after' }, (ctx) =>
  ctx.step('one', () => {
    throw new FatalError('no')
  }),
)
const after = workflow('after', () => Promise.resolve('seen to'))
const again = workflow('again', (ctx, left: number) =>
  left > 0 ? ctx.continueAs(left - 1) : Promise.resolve('done'),
)
const NAMES = ['child', 'parent', 'fails', 'again', 'limited', 'limited'] as const

export const playShards = async (seed: number): Promise<ShardVerdict> => {
  const clock = virtualClock(START)
  const chance = seededRandom(seed)
  const below = (n: number): number => Math.floor(chance.next() * n)
  const random = seededRandom(seed + 1)
  const ids = mintIds(clock.time, random)
  const portsOf = (): Ports => ({
    time: clock.time,
    timers: clock.timers(),
    random,
    ids,
    log: noLog,
  })
  const timers = clock.timers()
  const limited = workflow({ name: 'limited', limits: [{ key: 'all', value: LIMIT }] }, (ctx) =>
    ctx.step('one', () => sleep(timers, 3_000)),
  )
  const opened: Opened[] = []
  for (let number = 0; number < COUNT; number++)
    opened.push(
      await openOnSqlite({
        file: ':memory:',
        ports: portsOf(),
        synchronous: 'OFF',
        shard: { number, count: COUNT },
      }),
    )
  const seen = opened.map((each) => takeable(each))
  const shards = await joinShards(seen.map((each) => each.opened))
  let faults = 0
  let rough = true
  /** Some calls do not arrive, and of some the answer does not come. */
  const lossy = <T>(go: () => Promise<T>): Promise<T> => {
    const fate = rough ? below(25) : 25
    if (fate > 1) return go()
    faults += 1
    const lost = new Fault('store_unavailable', 'the network lost it')
    return fate === 0 ? Promise.reject(lost) : go().then(() => Promise.reject(lost))
  }
  const { port } = shards
  const through: ExecutorPort = {
    register: (request) => port.register(request),
    claim: (request, signal) => lossy(() => port.claim(request, signal)),
    journal: (session, run, from) => lossy(() => port.journal(session, run, from)),
    write: (session, write) => lossy(() => port.write(session, write)),
    renew: (request) => lossy(() => port.renew(request)),
    close: (request) => port.close(request),
    logs: (session, parts) => port.logs(session, parts),
    listen: (session, tell) => port.listen(session, tell),
  }
  const executor = makeExecutor({
    port: through,
    ports: portsOf(),
    workflows: [child, parent, fails, after, again, limited],
  })
  await executor.start()

  const rows = (): ShardRows[] =>
    opened.map(({ engine }) => {
      const { db } = engine.store as SqliteStore
      const all = <T>(text: string): T[] => (db as Database.Database).prepare(text).all() as T[]
      return {
        runs: all(
          'select id, workflow, owner, key, status, parent, retry_of, on_end_of, on_end, series from runs',
        ),
        notices: all('select run, kind from notices'),
      }
    })
  let rule: string | null = null
  const look = (): void => {
    rule ??= brokenNow(rows())
  }
  const pass = async (ms: number): Promise<void> => {
    const until = clock.time.mono() + ms
    for (;;) {
      await settled(12)
      const next = clock.next()
      if (next === null || next > until) break
      clock.moveTo(next)
    }
    clock.moveTo(until)
    await settled(12)
  }

  const started: Acknowledged[] = []
  const asked: Parameters<typeof shards.start>[0][] = []
  /** What was not acknowledged, or is asked for twice, is asked for again. */
  const begin = async (item: (typeof asked)[number]): Promise<void> => {
    try {
      const answer = await lossy(() => shards.start(item))
      const { owner = '', key = null } = item.command
      if (answer.ok) started.push({ id: answer.id, owner: owner ?? '', key })
      else if (answer.code !== 'key_reused') rule ??= `a start is refused: ${answer.message}`
    } catch (error) {
      if (!(error instanceof Fault)) throw error
    }
  }
  const quietly = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
    }
  }

  for (let act = 0; act < ACTS && rule === null; act++) {
    const known = started[below(Math.max(1, started.length))]
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const owner = OWNERS[below(OWNERS.length)] ?? ''
        const item = {
          command: {
            id: ids.next('run'),
            workflow: NAMES[below(NAMES.length)] ?? 'child',
            input: '2',
            ...(owner === '' ? {} : { owner }),
            ...(below(2) === 0 ? { key: `k${below(4)}` } : {}),
          },
        }
        asked.push(item)
        await begin(item)
        break
      }
      case 4: {
        const item = asked[below(Math.max(1, asked.length))]
        if (item) await begin(item)
        break
      }
      case 5:
        if (known) await quietly(() => shards.cancel({ run: known.id, by: 'ann', reason: null }))
        break
      case 6:
        if (known)
          await quietly(() =>
            shards.retry({
              run: known.id,
              id: ids.next('run'),
              from: null,
              version: null,
              by: 'ann',
            }),
          )
        break
      default: {
        const gone = below(COUNT + 1)
        faults += 1
        for (const [number, each] of seen.entries()) each.away(number === gone)
      }
    }
    look()
    await pass(below(3) === 0 ? below(40_000) : below(800))
    look()
  }
  rough = false
  for (const each of seen) each.away(false)
  for (const item of asked) await begin(item)
  for (let i = 0; i < 20 && rule === null && brokenAtEnd(rows(), started) !== null; i++)
    await pass(60_000)
  look()
  rule ??= brokenAtEnd(rows(), started)
  const end = rows()
  const stopping = executor.stop()
  await pass(60_000)
  await stopping
  for (const each of opened) {
    const closing = each.close()
    await pass(1_000)
    await closing
  }
  return {
    rule,
    faults,
    runs: end.flatMap(({ runs }) => runs).length,
    completed: end.map(({ runs }) => runs.filter(({ status }) => status === 'succeeded').length),
    end: clock.time.mono(),
  }
}
