// Several servers on one database: each sweep is made by one of them at a time, and goes on when that one is lost. What was asked
// for is done where it was, whosever turn it is.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { mintIds } from '../../src/kernel/ids.ts'
import { noLog } from '../../src/kernel/log.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import { systemTimers } from '../../src/kernel/timers.ts'
import { TURN_MS } from '../../src/maintenance/turns.ts'
import { defaults } from '../../src/model/settings.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import type { Loops } from '../../src/orchestrator/upkeep.ts'
import { startLoops } from '../../src/orchestrator/upkeep.ts'
import type { PostgresStore } from '../../src/store/postgres.ts'
import { openPostgres, preparePostgres } from '../../src/store/postgres.ts'
import type { VirtualClock } from '../../src/testing/clock.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import { NOW } from '../support/run.ts'
import type { TestSchema } from '../support/postgres.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'

const url = postgresUrl() ?? ''
let schema: TestSchema
let clock: VirtualClock
let servers: Server[]
beforeEach(() => {
  schema = testSchema(url)
  clock = virtualClock(NOW)
  servers = []
})
afterEach(async () => {
  for (const server of servers) {
    server.kill()
    await server.loops.stop().catch(() => undefined)
    await server.store.close()
  }
  schema.free()
})

interface Server {
  readonly name: string
  readonly store: PostgresStore
  readonly engine: Engine
  readonly loops: Loops
  /** Transactions under way. */
  busy: number
  /** Names of statements asked since this was emptied. */
  readonly asked: Set<string>
  /** The process is gone: nothing of it runs any more, and nothing was given back. */
  kill(): void
}

/** A server whose loops run by themselves, on timers that die with it. */
const open = async (name: string): Promise<Server> => {
  const random = seededRandom(1)
  const timers = clock.timers()
  const ports = { time: clock.time, timers, random, ids: mintIds(clock.time, random), log: noLog }
  const asked = new Set<string>()
  const store = openPostgres({
    url,
    schema: schema.schema,
    connections: 3,
    // the driver's own are real: they only end what hangs
    timers: systemTimers,
    random,
    log: noLog,
    time: clock.time,
    tap: (statements) => statements.forEach(({ sql }) => asked.add(sql.name)),
  })
  await preparePostgres(store)
  const engine = await openEngine({ store, ports, settings: defaults })
  const counted = <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
    (async (...args: A) => {
      server.busy += 1
      return work(...args).finally(() => (server.busy -= 1))
    }) as typeof work
  Object.assign(store, { run: counted(store.run), read: counted(store.read) })
  const server: Server = {
    name,
    store,
    engine,
    busy: 0,
    asked,
    kill: () => timers.kill(),
    loops: null as unknown as Loops,
  }
  Object.assign(server, { loops: startLoops(engine, name) })
  servers.push(server)
  await rest()
  return server
}
/** Until no transaction is under way and nothing wants to begin one. */
const rest = async (): Promise<void> => {
  for (let quiet = 0; quiet < 20;) {
    await new Promise((resolve) => systemTimers.soon(() => resolve(null)))
    const idle = clock.pending === 0 && servers.every(({ busy }) => busy === 0)
    quiet = idle ? quiet + 1 : 0
  }
}
const go = async (ms: number): Promise<void> => {
  for (let gone = 0; gone < ms; gone += 500) {
    clock.moveTo(clock.time.mono() + 500)
    await rest()
  }
}
const holders = (): unknown[] => [
  ...new Set(
    schema.psql.query('select holder from turns where until > 0').map((row) => row['holder']),
  ),
]
/** What only a sweep asks, each second, in its own turn. */
const sweeps = (server: Server): boolean => server.asked.has('orders.due')
const nobodySweeps = (): void => servers.forEach(({ asked }) => asked.clear())

it('RAIL-17 of two servers one looks, for every sweep there is', async () => {
  const a = await open('a')
  const b = await open('b')
  await go(2_000)
  nobodySweeps()
  await go(10 * TURN_MS)
  expect(holders()).toEqual(['a'])
  expect([a, b].map(sweeps)).toEqual([true, false])
  const late = schema.psql.query('select name, interval_ms, last_at from sweeps')
  expect(late.length).toBeGreaterThan(8)
  for (const row of late)
    expect(clock.time.now() - Number(row['last_at'])).toBeLessThan(3 * Number(row['interval_ms']))
})

it('RAIL-17 when the one that looks is lost another looks in its place, within the time of a turn', async () => {
  const a = await open('a')
  const b = await open('b')
  await go(3_000)
  nobodySweeps()
  a.kill()
  await go(TURN_MS / 2)
  expect(sweeps(b)).toBe(false)
  await go(TURN_MS / 2 + 2_000)
  expect(holders()).toEqual(['b'])
  expect([a, b].map(sweeps)).toEqual([false, true])
})

it('RAIL-17 one that stops in order gives its turns back, and is followed at once', async () => {
  const a = await open('a')
  const b = await open('b')
  await go(3_000)
  nobodySweeps()
  await a.loops.stop()
  await go(2_000)
  expect(holders()).toEqual(['b'])
  expect(sweeps(b)).toBe(true)
})

it('RAIL-17 one that stood still for longer than its turn does not go on with it', async () => {
  const a = await open('a')
  const b = await open('b')
  await go(3_000)
  // the store answers it nothing: it cannot put its turn off, and time goes by
  const { run } = a.store
  Object.assign(a.store, { run: () => Promise.reject(new Error('away')) })
  await go(TURN_MS + 2_000)
  nobodySweeps()
  Object.assign(a.store, { run })
  await go(5_000)
  expect(holders()).toEqual(['b'])
  expect([a, b].map(sweeps)).toEqual([false, true])
})

it('RAIL-17 a turn that a clock gave far into the future is taken all the same', async () => {
  await open('a')
  schema.psql.query(`update turns set holder = 'gone', until = ?`, [NOW + 10 * 3_600_000])
  await go(TURN_MS)
  expect(holders()).toEqual(['a'])
})

it('RAIL-17 what a server was asked for it does itself, whosever turn it is', async () => {
  await open('a')
  const b = await open('b')
  await go(3_000)
  nobodySweeps()
  b.engine.ordersCame()
  await go(500)
  expect(sweeps(b)).toBe(true)
  nobodySweeps()
  await go(5_000)
  expect(sweeps(b)).toBe(false)
})

it('RAIL-17 RUN-11 whoever takes the turn over has watched the database’s clock all along', async () => {
  const a = await open('a')
  const b = await open('b')
  const { loops } = b
  await go(defaults.leaseMs)
  schema.psql.query(
    `insert into sessions (id, process, host, pid, build, queues, labels, workflows, capacity, lease_ms, created_at, renewed_at, lease_until)
     values ('ses_1', 'p', 'h', 1, 'b', '[]', '[]', '[]', 1, ?, 0, 0, ?)`,
    [defaults.leaseMs, clock.time.now()],
  )
  a.kill()
  await go(TURN_MS + defaults.sweepMs + 2_000)
  expect(loops.all.length).toBeGreaterThan(8)
  expect(schema.psql.query('select state from sessions')).toEqual([{ state: 'ended' }])
})
