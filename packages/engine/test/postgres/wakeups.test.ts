// Several processes on one database: what one commits the others act on at once where notifications come through, and
// within the poll where they do not.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { inspect } from '../../src/testing/inspect.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import { migrations } from '../../src/store/migrate.ts'
import type { Notifications } from '../../src/store/notifications.ts'
import { openNotifications } from '../../src/store/notifications.ts'
import type { TestSchema } from '../support/postgres.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'
import type { Proxy } from '../support/proxy.ts'
import { openProxy } from '../support/proxy.ts'

const url = postgresUrl() ?? ''
const ports = systemPorts(noLog)
let schema: TestSchema
const ends: (() => Promise<unknown>)[] = []

beforeEach(() => {
  schema = testSchema(url)
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  schema.free()
})

const through = async (): Promise<Proxy & { readonly url: string }> => {
  const proxy = await openProxy(Number(new URL(url).port))
  ends.push(() => proxy.close())
  const by = new URL(url)
  by.port = String(proxy.port)
  return Object.assign(proxy, { url: by.href })
}

const listener = (
  self: string,
  at = url,
): { readonly notifications: Notifications; readonly heard: string[]; gaps: number } => {
  const made = {
    heard: [] as string[],
    gaps: 0,
    notifications: undefined as unknown as Notifications,
  }
  made.notifications = openNotifications({
    url: at,
    channel: schema.schema,
    self,
    timers: ports.timers,
    log: noLog,
    hear: (text) => void made.heard.push(text),
    gap: () => void (made.gaps += 1),
  })
  ends.push(() => made.notifications.close())
  return made
}

const until = (what: () => unknown) => expect.poll(what, { timeout: 30_000, interval: 10 })

describe('notifications', () => {
  it('RAIL-17 what one says the others hear, and itself it does not', async () => {
    const a = listener('a')
    const b = listener('b')
    await until(() => a.notifications.listening && b.notifications.listening).toBe(true)
    await until(() => a.notifications.alone || b.notifications.alone).toBe(false)
    a.notifications.say('a word, with spaces')
    await until(() => b.heard).toEqual(['a word, with spaces'])
    expect(a.heard).toEqual([])
  })

  it('B099 a listener that is ended by the server is replaced, again and again', async () => {
    const a = listener('a')
    const b = listener('b')
    for (let i = 1; i <= 3; i++) {
      await until(() => a.gaps >= i && b.gaps >= i && a.notifications.listening).toBe(true)
      schema.psql.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'leasehold-listener' and query like '%pg_notify%'`,
      )
    }
    await until(() => a.gaps > 3 && b.gaps > 3).toBe(true)
    a.notifications.say('still there')
    await until(() => b.heard).toEqual(['still there'])
  })

  it('B101 a listener whose connection is open and dead, or refused for a while, comes back', async () => {
    const proxy = await through()
    const a = listener('a', proxy.url)
    await until(() => a.gaps).toBe(1)
    proxy.mode = 'swallow'
    await until(() => a.notifications.listening).toBe(false)
    proxy.cut()
    proxy.mode = 'refuse'
    proxy.cut()
    proxy.mode = 'pass'
    await until(() => a.gaps).toBe(2)
    const other = listener('b')
    await until(() => other.notifications.listening).toBe(true)
    other.notifications.say('hello')
    await until(() => a.heard).toEqual(['hello'])
  })
})

const open = async (more: { url?: string; listenUrl?: string } = {}): Promise<Opened> => {
  const opened = await openOnPostgres({
    url,
    ports,
    schema: schema.schema,
    connections: 4,
    ...more,
  })
  ends.push(() => opened.close())
  return opened
}

const flow = workflow('greet', async (ctx) => ctx.step('s', () => 'hello'))

describe('several orchestrators', () => {
  it('RAIL-17 B099 what cannot be read on the channel is no wake-up, and ends nobody', async () => {
    const here = await open()
    const executor = makeExecutor({ port: here.embedded, ports, workflows: [flow] })
    await executor.start()
    ends.push(() => executor.stop())
    const lane = JSON.stringify(['default', 'greet', '1'])
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    for (const text of [
      'null',
      'not json',
      '{"lanes":5}',
      '[]',
      `{"lanes":[[${JSON.stringify(lane)},null,""]]}`,
    ])
      await client.query('select pg_notify($1, $2)', [
        `leasehold_${schema.schema}`,
        `somebody said ${text}`,
      ])
    await client.end()
    const id = ports.ids.next('run')
    await here.engine.start({ command: { id, workflow: 'greet', input: 'null' } })
    await until(async () => (await inspect.run(here.engine, id)).status).toBe('succeeded')
  })

  it('RAIL-17 RAIL-18 several that begin at once make the schema once', async () => {
    for (let round = 0; round < 3; round++) {
      const fresh = `fresh_${process.pid}_${round}`
      const opened = await Promise.all(
        Array.from({ length: 6 }, () =>
          openOnPostgres({ url, ports, schema: fresh, connections: 2, manualLoops: true }),
        ),
      )
      for (const each of opened) await each.close()
      schema.psql.query(`drop schema ${fresh} cascade`)
    }
  })

  it.each([
    ['a schema whose channel would be too long', { schema: 'a'.repeat(54) }],
    ['a schema that would have to be quoted', { schema: 'Mine' }],
    ['a place to listen that is no address', { listenUrl: 'postgres://[bad' }],
  ])('OPS-06 %s is refused before anything is opened', async (_what, more) => {
    await expect(openOnPostgres({ url, ports, ...more })).rejects.toMatchObject({
      code: 'invalid_config',
    })
  })

  it('RUN-11 a dead session whose row somebody has locked keeps no other from being ended', async () => {
    const here = await openOnPostgres({
      url,
      ports,
      schema: schema.schema,
      manualLoops: true,
      // nobody is ended before a whole lease was watched
      settings: { leaseMs: 500, renewMs: 200 },
    })
    ends.push(() => here.close())
    schema.psql.query(
      `insert into sessions (id, process, host, pid, build, queues, labels, workflows, capacity, lease_ms, created_at, renewed_at, lease_until)
       select 'ses_' || i, 'p', 'h', 1, 'b', '[]', '[]', '[]', 1, 1000, 1, 1, 2 from generate_series(1, 3) i`,
    )
    const client = new pg.Client({
      connectionString: url,
      options: `-c search_path=${schema.schema}`,
    })
    await client.connect()
    await client.query('begin')
    await client.query(`select id from sessions where id = 'ses_2' for update`)
    const live = () =>
      schema.psql.query(`select id from sessions where id like 'ses_%' and ended_at is null`)
    const reap = here.loops.all.find(({ name }) => name === 'reap-sessions')
    await until(async () => {
      await reap?.once()
      return live()
    }).toEqual([{ id: 'ses_2' }])
    await client.query('rollback')
    await client.end()
    await until(async () => {
      await reap?.once()
      return live()
    }).toEqual([])
  })

  it('RAIL-17 a run that one starts is driven by an executor of another, whose workflows it had never heard of', async () => {
    const here = await open()
    const there = await open()
    const executor = makeExecutor({ port: there.remote, ports, workflows: [flow] })
    await executor.start()
    ends.push(() => executor.stop())
    await until(() => here.engine.catalog.current.get('greet')).toBe('1')
    for (let i = 0; i < 3; i++) {
      const id = ports.ids.next('run')
      expect(
        await here.engine.start({ command: { id, workflow: 'greet', input: 'null' } }),
      ).toMatchObject({ ok: true })
      await until(async () => (await inspect.run(here.engine, id)).status).toBe('succeeded')
    }
  })

  it('RAIL-17 with every wake-up dropped the engine lives on polling', async () => {
    const dead = await through()
    dead.mode = 'swallow'
    const here = await open({ listenUrl: dead.url })
    const there = await open({ listenUrl: dead.url })
    const executor = makeExecutor({ port: there.remote, ports, workflows: [flow] })
    await executor.start()
    ends.push(() => executor.stop())
    await until(() => here.engine.catalog.current.get('greet')).toBe('1')
    const id = ports.ids.next('run')
    await here.engine.start({ command: { id, workflow: 'greet', input: 'null' } })
    await until(async () => (await inspect.run(here.engine, id)).status).toBe('succeeded')
  })

  it('RAIL-18 ten that open an empty database at once migrate it once', async () => {
    const empty = `${schema.schema}_fresh`
    schema.psql.query(`create schema ${empty}`)
    const all = await Promise.all(
      Array.from({ length: 10 }, () =>
        openOnPostgres({ url, ports, schema: empty, connections: 2, manualLoops: true }),
      ),
    )
    await Promise.all(all.map((each) => each.close()))
    const client = new pg.Client({ connectionString: url, options: `-c search_path=${empty}` })
    await client.connect()
    const { rows } = await client.query('select number from migrations order by number')
    await client.end()
    schema.psql.query(`drop schema ${empty} cascade`)
    expect(rows).toEqual(migrations().map(({ number }) => ({ number })))
  })
})

describe('an executor with the database in its own process', () => {
  it('RUN-06 has a lease, since nothing else would tell that its process is gone', async () => {
    const here = await open()
    const executor = makeExecutor({ port: here.embedded, ports, workflows: [flow] })
    await executor.start()
    ends.push(() => executor.stop())
    const rows = schema.psql.query(
      'select embedded, lease_until is not null as leased from sessions',
    )
    expect(rows).toEqual([{ embedded: 0, leased: 1 }])
  })
})
