// Many engines that write the same runs at once: nobody waits for each other in a ring, and what the database refuses for
// the sake of another is done again without anybody hearing of it.
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import type { LeaseholdError } from '../../src/entry/index.ts'
import { embedded, workflow } from '../../src/entry/index.ts'
import { postgresUrl } from '../support/postgres.ts'

const given = postgresUrl() ?? ''
let made = 0

interface Own {
  readonly url: string
  query(text: string): Promise<readonly Record<string, unknown>[]>
}

/** A database of its own: the server counts deadlocks by database, and other tests provoke some. */
const ownDatabase = async (): Promise<Own> => {
  const name = `conflicts_${process.pid}_${++made}`
  const server = new pg.Client({ connectionString: given })
  await server.connect()
  await server.query(
    `create database ${name} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`,
  )
  const url = new URL(given)
  url.pathname = `/${name}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  onTestFinished(async () => {
    await client.end()
    await server.query(`drop database ${name} with (force)`)
    await server.end()
  })
  return { url: url.href, query: async (text) => (await client.query(text)).rows }
}

const leaf = workflow('leaf', async (ctx, input: { n: number }) => ctx.step('one', () => input.n))
const family = workflow(
  { name: 'family', limits: [{ key: 'of:{who}', value: 3 }] },
  async (ctx, input: { n: number; who: number }) => {
    await ctx.step('before', () => 1)
    const { a, b } = await ctx.all('both', {
      a: (branch) => branch.run(leaf, { n: input.n }),
      b: (branch) => branch.run(leaf, { n: input.n + 1 }),
    })
    await ctx.sleep('a moment', 1)
    return [a, b]
  },
)
const waits = workflow('waits', async (ctx) => ctx.signal('go'))

it('B095 B097 three engines claim, checkpoint, complete, admit, cancel, signal and sweep the same runs, and none waits in a ring', async () => {
  const own = await ownDatabase()
  const workflows = [leaf, family, waits]
  const options = { database: own.url, connections: 4, workflows, slots: { default: 20 } }
  const engines = await Promise.all([embedded(options), embedded(options), embedded(options)])
  const of = (i: number) => engines[i % 3] as (typeof engines)[number]
  const all = Array.from({ length: 60 }, (_each, i) => i)
  const families = await Promise.all(all.map((n) => of(n).start(family, { n, who: n % 4 })))
  const waiting = await Promise.all(all.map((n) => of(n).start(waits, null)))
  const orders = await Promise.allSettled([
    // half of the families are canceled by two engines at once, in opposite orders
    ...families.filter((_run, i) => i % 2 === 0).map(({ id }) => of(0).cancel(id)),
    ...families
      .filter((_run, i) => i % 2 === 0)
      .reverse()
      .map(({ id }) => of(1).cancel(id)),
    ...waiting.map(({ id }, i) => of(i + 1).signal(id, 'go', i)),
  ])
  const refused = orders.filter((order) => order.status === 'rejected')
  // of two who cancel the second may find it ended
  expect(new Set(refused.map(({ reason }) => (reason as LeaseholdError).code))).toEqual(
    new Set(refused.length > 0 ? ['already_ended'] : []),
  )
  const ended = await Promise.all(families.map(({ id }, i) => of(i + 2).result(id)))
  expect(ended.filter(({ status }) => status === 'failed')).toEqual([])
  for (const [i, { status }] of ended.entries()) if (i % 2 === 1) expect(status).toBe('succeeded')
  const signaled = await Promise.all(waiting.map(({ id }, i) => of(i).result(id)))
  expect(signaled).toMatchObject(all.map((n) => ({ status: 'succeeded', output: n })))
  await Promise.all(engines.map((engine) => engine.close()))
  // whoever has hung up has told the server what it counted
  expect(
    await own.query(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    ),
  ).toEqual([{ deadlocks: 0 }])
})

it('B098 where the database refuses every fifth write for another’s sake, and every seventh as a deadlock, all goes on', async () => {
  const own = await ownDatabase()
  const workflows = [leaf, family]
  const options = {
    database: own.url,
    connections: 4,
    workflows,
    slots: { default: 20 },
  }
  const engines = await Promise.all([embedded(options), embedded(options)])
  await own.query(`
    create sequence writes;
    create function refuse() returns trigger language plpgsql as $$
      declare n bigint := nextval('writes');
      begin
        if n % 5 = 0 then raise exception 'could not serialize access' using errcode = '40001'; end if;
        if n % 7 = 0 then raise exception 'deadlock detected' using errcode = '40P01'; end if;
        return null;
      end $$;
    create trigger refuse after insert or update on runs for each statement execute function refuse()`)
  const of = (i: number) => engines[i % 2] as (typeof engines)[number]
  const all = Array.from({ length: 60 }, (_each, i) => i)
  const families = await Promise.all(all.map((n) => of(n).start(family, { n, who: n % 4 })))
  const ended = await Promise.all(families.map(({ id }, i) => of(i + 1).result(id)))
  expect(ended).toMatchObject(all.map((n) => ({ status: 'succeeded', output: [n, n + 1] })))
  const [refused] = await own.query(`select last_value::int as n from writes`)
  expect(Number(refused?.['n'])).toBeGreaterThan(100)
  await own.query('drop trigger refuse on runs')
  await Promise.all(engines.map((engine) => engine.close()))
})
