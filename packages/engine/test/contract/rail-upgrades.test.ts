// Every version of the schema that there has been, with rows of every table and status, becomes the newest with all that it held,
// and an engine goes on with it. `test/support/schemas` holds for each version what it added, written when it was the newest.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mintIds } from '../../src/kernel/ids.ts'
import { noLog } from '../../src/kernel/log.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
import { audit } from '../../src/queries/audit.ts'
import { migratePostgres, migrateSqlite, migrations } from '../../src/store/migrate.ts'
import { sqliteText } from '../../src/store/dialect.ts'
import type { Migration } from '../../src/store/migration-plan.ts'
import { planOf, statementsOf } from '../../src/store/migration-plan.ts'
import { inspect } from '../../src/testing/inspect.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import { GROWING } from '../support/hot-path.ts'
import { postgresUrl } from '../support/postgres.ts'
import { NOW } from '../support/run.ts'
import { definition, registration } from '../support/store.ts'

const url = postgresUrl()
const all = migrations()
const folder = new URL('../support/schemas/', import.meta.url)
const added = (name: string): string =>
  readFileSync(new URL(name.replace(/^(\d{4}).*/, '$1.sql'), folder), 'utf8')

type Row = Record<string, string | number | null>
/** A database that knows nothing of the engine. */
interface Bare {
  migrate(list: readonly Migration[]): Promise<unknown>
  run(text: string): Promise<Row[]>
  tables(): Promise<string[]>
  open(): Promise<Opened>
  /** A store that a connection is open to is given up. */
  leave(): Promise<void>
  end(): Promise<void>
}

let bare: Bare
let made = 0
const ports = () => {
  const clock = virtualClock(NOW + 10_000)
  const random = seededRandom(1)
  const ids = mintIds(clock.time, random)
  return { time: clock.time, timers: clock.timers(), random, ids, log: noLog }
}
const onSqlite = (): Bare => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'leasehold-upgrade-'))
  const file = path.join(dir, 'engine.db')
  const db = new Database(file)
  return {
    migrate: async (list) => migrateSqlite(db, 1, list),
    async run(text) {
      const statement = db.prepare(text)
      if (statement.reader) return statement.all() as Row[]
      statement.run()
      return []
    },
    tables: async () =>
      db
        .prepare(
          `select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name`,
        )
        .pluck()
        .all() as string[],
    open: () => openOnSqlite({ file, ports: ports(), manualLoops: true }),
    leave: async () => void db.close(),
    end: async () => rmSync(dir, { recursive: true, force: true }),
  }
}
const onPostgres = async (given: string): Promise<Bare> => {
  const schema = `upgraded_${process.pid}_${++made}`
  const client = new pg.Client({
    connectionString: given,
    options: `-c search_path=${schema}`,
  })
  await client.connect()
  await client.query(`create schema ${schema}`)
  return {
    migrate: (list) => migratePostgres(client, list),
    run: async (text) => (await client.query<Row>(text)).rows,
    tables: async () =>
      (
        await client.query<{ name: string }>(
          `select tablename as name from pg_tables where schemaname = $1 order by 1`,
          [schema],
        )
      ).rows.map(({ name }) => name),
    open: () =>
      openOnPostgres({ url: given, schema, ports: ports(), clockOfPorts: true, manualLoops: true }),
    leave: async () => undefined,
    async end() {
      await client.query(`drop schema ${schema} cascade`)
      await client.end()
    },
  }
}
beforeEach(async () => {
  bare = url === null ? onSqlite() : await onPostgres(url)
})
afterEach(() => bare.end())

/** All rows of all tables, as texts. */
const held = async (): Promise<Map<string, Row[]>> => {
  const tables = (await bare.tables()).filter((name) => name !== 'migrations')
  const found = new Map<string, Row[]>()
  for (const name of tables) {
    const rows = await bare.run(`select * from ${name}`)
    found.set(name, rows)
  }
  return found
}
const texts = (rows: readonly Row[], columns: readonly string[]): string[] =>
  rows
    .map((row) =>
      columns.map((name) => `${name}=${row[name] === null ? 'null' : String(row[name])}`).join(' '),
    )
    .sort()
const versionWithRows = async (count: number): Promise<void> => {
  for (let i = 1; i <= count; i++) {
    await bare.migrate(all.slice(0, i))
    for (const text of statementsOf(added(all[i - 1]?.name ?? ''))) await bare.run(text)
  }
}

it('RAIL-18 what each version of the schema added is held by rows in the tests', () => {
  for (const { name } of all) {
    const file = name.replace(/^(\d{4}).*/, '$1.sql')
    expect(existsSync(new URL(file, folder)), `test/support/schemas/${file} is missing`).toBe(true)
  }
  expect(readdirSync(folder)).toHaveLength(all.length)
})

it('B120 RAIL-18 a migration builds one index at most on a table that grows with history, since nobody writes to it meanwhile', () => {
  const built = planOf(all, all, sqliteText).map(({ name, statements }) => ({
    name,
    on: statements.flatMap(({ lock }) =>
      lock?.level === 'SHARE' && GROWING.includes(lock.table) ? [lock.table] : [],
    ),
  }))
  expect(built.filter(({ on }) => on.length > 1)).toEqual([])
  expect(built.filter(({ on }) => on.length === 1).length).toBeGreaterThan(3)
})

describe('RAIL-18 S19 upgrades', () => {
  it.each(all.map(({ name }, i) => [name, i + 1] as const))(
    'RAIL-18 the schema as it was after %s becomes the newest with every row, and is gone on with',
    async (_name, count) => {
      await versionWithRows(count)
      const before = await held()
      expect(before.get('runs')?.length).toBeGreaterThan(40)
      await bare.migrate(all)
      const after = await held()
      for (const [table, rows] of before) {
        const columns = Object.keys(rows[0] ?? {})
        expect(texts(after.get(table) ?? [], columns), table).toEqual(texts(rows, columns))
      }
      await bare.leave()
      const opened = await bare.open()
      try {
        const { engine, remote } = opened
        const findings = await engine.read((tx) => audit(tx, engine.settings))
        expect(findings.filter(({ figure }) => figure > 0)).toEqual([])
        await remote.register(
          registration('ses_new', {
            capacity: 100,
            definitions: [definition('q', { version: '2' })],
          }),
        )
        for (const loop of opened.loops.all) await loop.once()
        const claimed = await remote.claim({
          session: 'ses_new',
          claim: 1,
          most: 100,
          except: [],
          waitMs: 0,
        })
        expect(claimed).toMatchObject({ ok: true, runs: [{ run: 'run_q', attempt: 1 }] })
        expect(
          await remote.write('ses_new', {
            run: 'run_q',
            attempt: 1,
            entries: [],
            end: { kind: 'complete', output: '1' },
          }),
        ).toMatchObject({ ok: true })
        expect((await inspect.run(engine, 'run_q')).status).toBe('succeeded')
      } finally {
        await opened.close()
      }
    },
  )

  it('RAIL-18 the newest schema is migrated again without a change', async () => {
    await versionWithRows(all.length)
    const before = await held()
    expect(await bare.migrate(all)).toMatchObject({ applied: [] })
    expect(await held()).toEqual(before)
  })
})
