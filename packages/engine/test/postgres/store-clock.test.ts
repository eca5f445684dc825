// A lease is counted by the database's clock, which is not the server's: somebody sets it, or another database takes over with
// a clock of its own. The server holds it against its own monotonic clock, and against no other: it ends a session late, and
// never early.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { mintIds } from '../../src/kernel/ids.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import { systemTimers } from '../../src/kernel/timers.ts'
import { defaults } from '../../src/model/settings.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { started } from '../../src/orchestrator/open.ts'
import { openPostgres, preparePostgres } from '../../src/store/postgres.ts'
import type { TestSchema } from '../support/postgres.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'
import { registration } from '../support/store.ts'

const url = postgresUrl() ?? ''
const HOUR = 3_600_000
const { leaseMs, sweepMs } = defaults
let schema: TestSchema
const ends: (() => Promise<unknown>)[] = []

/** Three clocks: the database's, and of the server one that somebody sets and one that nothing does. */
const clock = { database: 1_000_000_000_000, wall: 0, mono: 0, answerMs: 0 }
const go = (ms: number): void => {
  clock.database += ms
  clock.mono += ms
}
beforeEach(() => {
  schema = testSchema(url)
  // the server's own clock is far ahead: by it every lease has lapsed
  Object.assign(clock, {
    database: 1_000_000_000_000,
    wall: 1_000_000_000_000 + 5 * HOUR,
    mono: 0,
    answerMs: 0,
  })
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  schema.free()
})

const open = async (): Promise<Opened> => {
  const random = seededRandom(1)
  const time = { now: () => clock.wall, mono: () => clock.mono }
  const ports: Ports = {
    time,
    timers: systemTimers,
    random,
    ids: mintIds(time, random),
    log: noLog,
  }
  const store = openPostgres({
    url,
    schema: schema.schema,
    connections: 3,
    timers: systemTimers,
    random,
    log: noLog,
    time: {
      now() {
        const said = clock.database
        go(clock.answerMs)
        return said
      },
      mono: time.mono,
    },
  })
  await preparePostgres(store)
  const opened = started(await openEngine({ store, ports, settings: defaults }), 'self', {
    manual: true,
  })
  ends.push(() => opened.close())
  return opened
}
const register = (opened: Opened, session: string) =>
  opened.remote.register(registration(session, { definitions: [] }))
const renew = (opened: Opened, session: string) =>
  opened.remote.renew({ session, draining: false, status: null, letGo: [] })
const sweep = (opened: Opened) =>
  opened.loops.all.find(({ name }) => name === 'reap-sessions')?.once()
const state = (session: string): unknown =>
  schema.psql.query('select state from sessions where id = ?', [session])[0]?.['state']
/** Sweeps as often as they are, for so long. */
const sweeps = async (opened: Opened, ms: number): Promise<void> => {
  for (let gone = 0; gone < ms; gone += sweepMs) {
    go(sweepMs)
    await sweep(opened)
  }
}

it('RUN-11 S14 a database whose clock jumps forward ends nobody, and the dead one lease later', async () => {
  const opened = await open()
  await register(opened, 'ses_alive')
  await register(opened, 'ses_dead')
  await sweeps(opened, leaseMs)
  await renew(opened, 'ses_alive')
  clock.database += HOUR
  await sweep(opened)
  expect([state('ses_alive'), state('ses_dead')]).toEqual(['live', 'live'])
  for (let gone = 0; gone <= leaseMs; gone += sweepMs) {
    await renew(opened, 'ses_alive')
    await sweeps(opened, sweepMs)
  }
  expect([state('ses_alive'), state('ses_dead')]).toEqual(['live', 'ended'])
})

it('RUN-11 a database whose clock jumps backward keeps a dead session for one lease, and no longer', async () => {
  const opened = await open()
  await register(opened, 'ses_dead')
  clock.database -= HOUR
  await sweeps(opened, leaseMs + 2 * sweepMs)
  expect(state('ses_dead')).toBe('ended')
})

it('RUN-11 S14 a server that begins on a store of others ends nobody before it has watched a whole lease', async () => {
  const first = await open()
  await register(first, 'ses_1')
  // all servers were away for longer than a lease, or the clock was set meanwhile: nobody could renew
  go(leaseMs + 1)
  clock.database += HOUR
  const second = await open()
  await sweep(second)
  expect(state('ses_1')).toBe('live')
  await sweeps(second, leaseMs - sweepMs)
  expect(state('ses_1')).toBe('live')
  await sweeps(second, 2 * sweepMs)
  expect(state('ses_1')).toBe('ended')
})

it('RUN-11 S14 an answer of the database that was long under way proves no lapse', async () => {
  const opened = await open()
  await register(opened, 'ses_1')
  await sweeps(opened, leaseMs)
  go(1)
  clock.answerMs = 3_000
  await sweep(opened)
  clock.answerMs = 0
  expect(state('ses_1')).toBe('live')
  await sweeps(opened, leaseMs + sweepMs)
  expect(state('ses_1')).toBe('ended')
})

it('RUN-11 S14 a lease that is longer than what the server has watched is left', async () => {
  const opened = await open()
  await register(opened, 'ses_1')
  schema.psql.query('update sessions set lease_ms = ?, lease_until = 1', [2 * leaseMs])
  await sweeps(opened, leaseMs + sweepMs)
  expect(state('ses_1')).toBe('live')
  await sweeps(opened, leaseMs)
  expect(state('ses_1')).toBe('ended')
})
