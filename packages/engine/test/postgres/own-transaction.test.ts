// What is asked of the engine inside a user's own transaction happens with its commit and only then, whatever library the
// transaction was begun with.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import type { OwnTransaction } from '../../src/orchestrator/user-transaction.ts'
import { inTransaction } from '../../src/orchestrator/user-transaction.ts'
import { inspect } from '../../src/testing/inspect.ts'
import type { TestSchema } from '../support/postgres.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'

const url = postgresUrl() ?? ''
const ports = systemPorts(noLog)
const hello = workflow('hello', (_ctx, input: { name: string }) => `Hello ${input.name}`)
const asks = workflow('asks', async (ctx) => ctx.signal('go'))
let schema: TestSchema
const ends: (() => Promise<unknown>)[] = []

beforeEach(() => {
  schema = testSchema(url)
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  schema.psql.query('drop table if exists mine')
  schema.free()
})

const open = async (): Promise<Opened> => {
  const opened = await openOnPostgres({ url, ports, schema: schema.schema, connections: 4 })
  ends.push(() => opened.close())
  return opened
}
const work = async (opened: Opened): Promise<void> => {
  const executor = makeExecutor({ port: opened.embedded, ports, workflows: [hello, asks] })
  await executor.start()
  ends.push(() => executor.stop())
}
const clientOf = async (): Promise<pg.Client> => {
  const client = new pg.Client({
    connectionString: url,
    options: `-c search_path=${schema.schema}`,
  })
  await client.connect()
  ends.push(() => client.end())
  return client
}
const until = (what: () => unknown) => expect.poll(what, { timeout: 30_000, interval: 10 })
const orders = (): number => Number(schema.psql.query('select count(*) as n from orders')[0]?.['n'])
const statusOf = (opened: Opened, id: string): Promise<string> =>
  inspect.run(opened.engine, id).then(
    ({ status }) => status,
    () => 'missing',
  )

/** Begins a transaction, inserts a row of the user's own and asks `ask` of the engine; `keep` false rolls it back. */
type Library = (ask: (verbs: OwnTransaction) => Promise<string>, keep: boolean) => Promise<string>
const turnedBack = new Error('changed my mind')

const viaPg: Library = async (ask, keep) => {
  const client = await clientOf()
  await client.query('begin')
  await client.query('insert into mine values ($1)', ['a'])
  const id = await ask(inTransaction(client, { schema: schema.schema }))
  await client.query(keep ? 'commit' : 'rollback')
  return id
}

const viaDrizzle: Library = async (ask, keep) => {
  const db = drizzle({ client: await clientOf() })
  let id = ''
  await db
    .transaction(async (tx) => {
      await tx.execute(sql`insert into mine values (${'a'})`)
      const verbs = inTransaction(
        (text, values) =>
          tx.execute(
            sql.join(
              text
                .split(/\$\d+/)
                .flatMap((part, i) =>
                  i < values.length ? [sql.raw(part), sql`${values[i]}`] : [sql.raw(part)],
                ),
            ),
          ),
        { schema: schema.schema },
      )
      id = await ask(verbs)
      if (!keep) throw turnedBack
    })
    .catch((error: unknown) => {
      if (error !== turnedBack) throw error
    })
  return id
}

const viaKysely: Library = async (ask, keep) => {
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    options: `-c search_path=${schema.schema}`,
  })
  const db = new Kysely<{ mine: { id: string } }>({ dialect: new PostgresDialect({ pool }) })
  let id = ''
  try {
    await db.transaction().execute(async (tx) => {
      await tx.insertInto('mine').values({ id: 'a' }).execute()
      const verbs = inTransaction(
        (text, values) => tx.executeQuery(CompiledQuery.raw(text, [...values])),
        { schema: schema.schema },
      )
      id = await ask(verbs)
      if (!keep) throw turnedBack
    })
  } catch (error) {
    if (error !== turnedBack) throw error
  } finally {
    await db.destroy()
  }
  return id
}

describe.each([
  ['pg', viaPg],
  ['Drizzle', viaDrizzle],
  ['Kysely', viaKysely],
])('a transaction of %s', (name, via) => {
  it(`RUN-21 ${name}: a start happens with the commit of the user’s rows, and not without it`, async () => {
    const opened = await open()
    await work(opened)
    schema.psql.query('create table mine (id text)')
    const ask = (verbs: OwnTransaction) => verbs.start(hello, { name: 'Ada’s "$1"' }, { key: 'k' })
    const never = await via(ask, false)
    expect([orders(), schema.psql.query('select * from mine')]).toEqual([0, []])
    const id = await via(ask, true)
    expect(schema.psql.query('select * from mine')).toEqual([{ id: 'a' }])
    await until(() => statusOf(opened, id)).toBe('succeeded')
    expect(await statusOf(opened, never)).toBe('missing')
    expect(orders()).toBe(0)
  })
})

describe('a transaction of the user’s own', () => {
  beforeEach(async () => {
    const first = await open()
    await work(first)
    schema.psql.query('create table mine (id text)')
  })

  it('RUN-21 signals and cancels, each once and in the same commit', async () => {
    const opened = await open()
    const waiting = await opened.engine.start({
      command: { id: ports.ids.next('run'), workflow: 'asks', input: 'null' },
    })
    const doomed = await opened.engine.start({
      command: { id: ports.ids.next('run'), workflow: 'asks', input: 'null' },
    })
    if (!waiting.ok || !doomed.ok) throw new Error('not started')
    await viaPg(async (verbs) => {
      await verbs.signal(waiting.id, 'go', { at: 1 })
      await verbs.cancel(doomed.id, 'no longer wanted')
      return ''
    }, true)
    await until(() => statusOf(opened, waiting.id)).toBe('succeeded')
    await until(() => statusOf(opened, doomed.id)).toBe('canceled')
    expect(
      schema.psql.query('select output from runs where id = ?', [waiting.id])[0]?.['output'],
    ).toBe('{"at":1}')
  })

  it('RUN-21 what one transaction starts it can signal and cancel as well: that comes after the start', async () => {
    const opened = await open()
    let doomed = ''
    const told = await viaPg(async (verbs) => {
      const id = await verbs.start(asks, null)
      await verbs.signal(id, 'go', 'first')
      doomed = await verbs.start(asks, null)
      await verbs.cancel(doomed, 'changed my mind')
      return id
    }, true)
    await until(() => statusOf(opened, told)).toBe('succeeded')
    await until(() => statusOf(opened, doomed)).toBe('canceled')
    expect(orders()).toBe(0)
  })

  it('EX-04 RUN-20 RUN-21 a retry starts with the commit, after a run that another transaction holds is let go, and not without it', async () => {
    const opened = await open()
    const first = await viaPg((verbs) => verbs.start(hello, { name: 'Ada' }), true)
    await until(() => statusOf(opened, first)).toBe('succeeded')
    const never = await viaPg((verbs) => verbs.retry(first), false)
    const blocker = await clientOf()
    await blocker.query('begin')
    await blocker.query('select id from runs where id = $1 for update', [first])
    const again = await viaPg((verbs) => verbs.retry(first), true)
    expect(orders()).toBe(1)
    await blocker.query('rollback')
    await until(() => statusOf(opened, again)).toBe('succeeded')
    expect(schema.psql.query('select retry_of from runs where id = ?', [again])).toEqual([
      { retry_of: first },
    ])
    expect(await statusOf(opened, never)).toBe('missing')
    expect(orders()).toBe(0)
  })

  it('RUN-21 it locks nothing: a run that another transaction holds is asked of all the same', async () => {
    const opened = await open()
    const started = await opened.engine.start({
      command: { id: ports.ids.next('run'), workflow: 'asks', input: 'null' },
    })
    if (!started.ok) throw new Error('not started')
    const holder = await clientOf()
    await holder.query('begin')
    await holder.query('select id from runs where id = $1 for update', [started.id])
    await viaPg(async (verbs) => {
      await verbs.cancel(started.id)
      return ''
    }, true)
    await holder.query('rollback')
    await until(() => statusOf(opened, started.id)).toBe('canceled')
  })

  it('RUN-21 RUN-18 a key that equal input has taken makes the id an alias, another input a notice', async () => {
    const opened = await open()
    const first = await viaPg((verbs) => verbs.start(hello, { name: 'a' }, { key: 'k' }), true)
    await until(() => statusOf(opened, first)).toBe('succeeded')
    const alias = await viaPg((verbs) => verbs.start(hello, { name: 'a' }, { key: 'k' }), true)
    const refused = await viaPg((verbs) => verbs.start(hello, { name: 'b' }, { key: 'k' }), true)
    await until(() =>
      schema.psql.query('select run, kind from notices where kind = ?', ['start_refused']),
    ).toEqual([{ run: refused, kind: 'start_refused' }])
    await until(() =>
      schema.psql.query('select recipient, outcome from receipts where run = ?', [alias]),
    ).toEqual([{ recipient: first, outcome: 'alias' }])
  })

  it('RUN-21 a workflow that another server has registered meanwhile is known when the order is applied', async () => {
    const later = workflow('later', () => 'done')
    // this one has looked at the definitions before, and applies by hand what the others were not told of
    const stale = await openOnPostgres({
      url,
      ports,
      schema: schema.schema,
      connections: 4,
      manualLoops: true,
    })
    ends.push(() => stale.close())
    for (const end of ends.splice(0, ends.length - 1).reverse()) await end()
    const fresh = await openOnPostgres({ url, ports, schema: schema.schema, manualLoops: true })
    ends.push(() => fresh.close())
    const executor = makeExecutor({ port: fresh.embedded, ports, workflows: [later] })
    await executor.start()
    const id = await viaPg((verbs) => verbs.start(later, null), true)
    for (const loop of stale.loops.all) if (loop.name === 'apply-orders') await loop.once()
    expect(await statusOf(stale, id)).not.toBe('missing')
    await executor.stop()
  })

  it('RUN-21 what runs no statement is refused with a sentence', () => {
    expect(() => inTransaction({} as never)).toThrow('a client of pg')
  })
})
