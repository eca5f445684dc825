// Migrations on a database that others use: what they lock is what their plan says, they wait for nobody for long, and one that
// is cut off at any statement is begun anew.
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { postgresText } from '../../src/store/dialect.ts'
import { migratePostgres, migrations, planPostgres } from '../../src/store/migrate.ts'
import type { Migration } from '../../src/store/migration-plan.ts'
import { statementsOf } from '../../src/store/migration-plan.ts'
import { openPostgres, preparePostgres } from '../../src/store/postgres.ts'
import { postgresUrl } from '../support/postgres.ts'

const url = postgresUrl() ?? ''
let schema: string
let made = 0
const clients: pg.Client[] = []
const client = async (): Promise<pg.Client> => {
  const each = new pg.Client({
    connectionString: url,
    options: `-c search_path=${schema}`,
    application_name: 'a console',
  })
  each.on('error', () => undefined)
  await each.connect()
  clients.push(each)
  return each
}
beforeEach(async () => {
  schema = `migrated_${process.pid}_${++made}`
  await (await client()).query(`create schema ${schema}`)
})
afterEach(async () => {
  for (const each of clients.splice(0)) await each.end().catch(() => undefined)
  const last = await client()
  await last.query(`drop schema ${schema} cascade`)
  await last.end()
  clients.pop()
})

const all = migrations()
/** What the tables, columns, indexes and checks of the schema are. */
const shape = async (one: pg.Client): Promise<unknown> => {
  const columns = await one.query(
    `select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns where table_schema = $1 order by 1, 2`,
    [schema],
  )
  const indexes = await one.query(
    `select replace(indexdef, $1, '') as text from pg_indexes where schemaname = $1 order by 1`,
    [schema],
  )
  const checks = await one.query(
    `select c.conrelid::regclass::text as name, pg_get_constraintdef(c.oid) as text from pg_constraint c join pg_namespace n on n.oid = c.connamespace where n.nspname = $1 order by 1, 2`,
    [schema],
  )
  return { columns: columns.rows, indexes: indexes.rows, checks: checks.rows }
}
it('RAIL-18 what the plan says of the locks of each statement is what PostgreSQL takes', async () => {
  const one = await client()
  const plan = await planPostgres(one)
  expect(plan.map(({ name }) => name)).toEqual(all.map(({ name }) => name))
  expect(await numbersIfAny()).toBeNull()
  for (const [i, migration] of all.entries()) {
    await migratePostgres(one, all.slice(0, i))
    const planned = plan[i]?.statements ?? []
    expect(planned).toHaveLength(statementsOf(migration.text).length)
    const { rows: before } = await one.query<{ oid: number; name: string }>(
      `select c.oid, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r'`,
      [schema],
    )
    await one.query('begin')
    const taken = new Map<string, Set<string>>()
    for (const [at, text] of statementsOf(postgresText(migration.text)).entries()) {
      await one.query(text)
      const { rows } = await one.query<{ name: string; mode: string }>(
        `select c.relname as name, l.mode from pg_locks l join pg_class c on c.oid = l.relation
          where l.pid = pg_backend_pid() and c.oid = any($1::oid[])`,
        [before.map(({ oid }) => oid)],
      )
      // of the new ones the plan names the strongest; what only reads keeps nobody waiting
      const fresh = rows.filter(
        ({ name, mode }) =>
          taken.get(name)?.has(mode) !== true &&
          !['AccessShareLock', 'RowShareLock'].includes(mode),
      )
      for (const { name, mode } of fresh) taken.set(name, (taken.get(name) ?? new Set()).add(mode))
      const lock = planned[at]?.lock ?? null
      const said = lock === null ? [] : [`${lock.table} ${lock.level}`]
      const found = fresh.map(({ name, mode }) => `${name} ${WORDS[mode] ?? mode}`)
      for (const each of found) expect(said, text).toContain(each)
      if (lock !== null)
        expect([...(taken.get(lock.table) ?? [])].map((mode) => WORDS[mode])).toContain(lock.level)
    }
    await one.query('rollback')
  }
})
const WORDS: Record<string, string> = {
  RowExclusiveLock: 'ROW EXCLUSIVE',
  ShareLock: 'SHARE',
  AccessExclusiveLock: 'ACCESS EXCLUSIVE',
}
const numbersIfAny = async (): Promise<unknown> =>
  (await (await client()).query(`select to_regclass('migrations') as found`)).rows[0].found

const slow: Migration = {
  number: 9_000,
  name: '9000_more.sql',
  text: 'create table fresh (a int);\nalter table runs add column more int;\n',
}

it('RAIL-18 a migration does not stand behind a transaction that uses its table: it is rolled back whole, and says who that is', async () => {
  const one = await client()
  await migratePostgres(one)
  const before = await shape(one)
  const stranger = await client()
  await stranger.query('begin')
  await stranger.query('select * from runs')
  const { rows } = await stranger.query<{ pid: number }>('select pg_backend_pid() as pid')
  await expect(migratePostgres(one, [...all, slow], { lockMs: 50 })).rejects.toMatchObject({
    code: 'store_busy',
    retryable: true,
    message: expect.stringMatching(
      new RegExp(
        `^9000_more\\.sql waited too long .*alter table runs add column more int”: process ${rows[0]?.pid} \\(a console, idle in transaction, on runs\\)\\. It was rolled back whole\\. End that`,
      ),
    ),
  })
  expect(await shape(one)).toEqual(before)
  await stranger.query('rollback')
  expect(await migratePostgres(one, [...all, slow], { lockMs: 50 })).toMatchObject({
    applied: ['9000_more.sql'],
  })
})

it('RAIL-18 a server that opens a database waits for its migrations as long as its setting says', async () => {
  const { timers, random } = systemPorts(noLog)
  const stranger = await client()
  await stranger.query('begin')
  // of a version before the last, which changes what is in use
  await migratePostgres(await client(), all.slice(0, 1))
  await stranger.query('lock table orders in share mode')
  const store = openPostgres({
    url,
    schema,
    timers,
    random,
    log: noLog,
    connections: 1,
    migrationLockMs: 50,
  })
  await expect(preparePostgres(store)).rejects.toMatchObject({
    code: 'store_busy',
    message: expect.stringContaining('databaseMigrationLockMs'),
  })
  await stranger.query('rollback')
  expect((await preparePostgres(store)).version).toBe(all.at(-1)?.number)
  await store.close()
})

it('RAIL-18 a process that dies at any statement of any migration leaves the version before it, and the next goes on to the end', async () => {
  const one = await client()
  const whole: unknown[] = []
  for (const i of all.keys()) {
    await migratePostgres(one, all.slice(0, i + 1))
    whole.push(await shape(one))
  }
  await one.query(`drop schema ${schema} cascade`)
  await one.query(`create schema ${schema}`)
  let deaths = 0
  for (const [i, migration] of all.entries()) {
    // each life comes one statement further than the one before it
    for (let life = 1; life <= statementsOf(migration.text).length + 1; life++) {
      const dying = await client()
      let left = life
      const { stream } = (dying as unknown as { connection: { stream: { destroy(): void } } })
        .connection
      const migrated = migratePostgres(dying, all.slice(0, i + 1), {
        after() {
          left -= 1
          if (left === 0) stream.destroy()
        },
      })
      await expect(migrated).rejects.toThrow()
      clients.pop()
      deaths += 1
    }
    const { rows } = await one.query<{ found: unknown }>(
      `select to_regclass('migrations') as found`,
    )
    const done =
      rows[0]?.found === null
        ? []
        : (await one.query<{ number: number }>('select number from migrations order by number'))
            .rows
    expect(done).toEqual(all.slice(0, i).map(({ number }) => ({ number })))
    expect(await migratePostgres(one, all.slice(0, i + 1))).toMatchObject({
      applied: [migration.name],
    })
    expect(await shape(one)).toEqual(whole[i])
  }
  expect(deaths).toBeGreaterThan(70)
  expect(await migratePostgres(one)).toMatchObject({ applied: [] })
})

it('RAIL-18 two migrations of one number are refused before anything is touched', async () => {
  const twin = { ...slow, number: all.at(-1)?.number ?? 0 }
  await expect(migratePostgres(await client(), [...all, twin])).rejects.toThrow(/have one number/)
  expect(await numbersIfAny()).toBeNull()
})
