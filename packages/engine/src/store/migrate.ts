// Numbered, forward-only migrations with checksums. A newer schema than this program knows, a changed migration and a
// database of somebody else's are refused with a sentence and left as they were.
import { readdirSync, readFileSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { ClientBase } from 'pg'
import { checksum } from '../kernel/digest.ts'
import { Defect, Fault } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { postgresText, sqliteText } from './dialect.ts'
import { keep } from './keep.ts'
import type { Migration, PlannedMigration } from './migration-plan.ts'
import { planOf, statementsOf } from './migration-plan.ts'

/** The migrations that this program carries, in order. */
export const migrations = (
  folder: URL = new URL('../../migrations/', import.meta.url),
): Migration[] =>
  readdirSync(folder)
    .filter((name) => /^\d{4}_.*\.sql$/.test(name))
    .sort()
    .map((name) => ({
      number: Number(name.slice(0, 4)),
      name,
      text: readFileSync(new URL(name, folder), 'utf8'),
    }))

export interface Migrated {
  readonly applied: readonly string[]
  readonly version: number
}

interface Applied {
  readonly number: number
  readonly name: string
  readonly checksum: string
}

const RECORD =
  'create table if not exists migrations (number int primary key, name text not null, checksum text not null, applied_at bigint not null)'

const RECORDED = ['number', 'name', 'checksum', 'applied_at']

/** What stands in a database: its tables, and the columns of the one that is called as our record is. */
interface Found {
  readonly tables: readonly string[]
  readonly recorded: readonly string[]
}

/** A database that has tables, and not ours, is somebody else's; so is one whose `migrations` are not our record. */
const refuseForeign = ({ tables, recorded }: Found): void => {
  if (tables.length > 0 && !RECORDED.every((column) => recorded.includes(column)))
    throw new Fault(
      'not_a_database',
      `the database has tables (${tables.slice(0, 3).join(', ')}) but is not Leasehold’s; name another one`,
      { retryable: false },
    )
}

/** What is still to be applied, after a look at what was. */
const pending = (done: readonly Applied[], list: readonly Migration[]): Migration[] => {
  const known = new Map(list.map((each) => [each.number, each]))
  for (const row of done) {
    const mine = known.get(row.number)
    if (!mine)
      throw new Fault(
        'schema_newer',
        `the schema is at migration ${row.name}, which this program does not know; upgrade the program`,
        { retryable: false },
      )
    if (checksum(mine.text) !== row.checksum)
      throw new Fault(
        'schema_changed',
        `migration ${row.name} was applied with another text; use the build that applied it`,
        { retryable: false },
      )
  }
  const numbers = new Set(done.map(({ number }) => number))
  const newest = Math.max(0, ...numbers)
  const hole = list.find(({ number }) => number < newest && !numbers.has(number))
  if (hole)
    throw new Fault(
      'schema_changed',
      `the record of migrations has later ones than ${hole.name}, and not that one; somebody has changed the table migrations: put its row back, or restore a backup`,
      { retryable: false },
    )
  return list.filter(({ number }) => !numbers.has(number))
}

/** What the migrations before it have made is not what stands there. */
const otherwise = (name: string, cause: unknown): Fault =>
  new Fault(
    'schema_changed',
    `migration ${name} cannot be applied: ${messageOf(cause)}; the database is not as the migrations that it records have left it: restore a backup, or mend it by hand. Nothing of ${name} was kept`,
    { retryable: false, cause },
  )

const migrated = (applied: readonly Migration[], list: readonly Migration[]): Migrated => ({
  applied: applied.map(({ name }) => name),
  version: Math.max(0, ...list.map((each) => each.number)),
})

/** Two that came from two hands under one number: which of them a database has could not be told. */
const mustDiffer = (list: readonly Migration[]): void => {
  for (const [i, { number, name }] of list.entries())
    if (list[i - 1]?.number === number)
      throw new Defect(
        `${list[i - 1]?.name} and ${name} have one number; give the later one the next`,
      )
}

export interface MigrateOptions {
  /** Sees each statement after it has run: for tests that let the process die there. */
  readonly after?: (statement: string) => void | Promise<void>
  /** How long a statement waits for a table that somebody uses, in ms. Default 5,000. PostgreSQL only. */
  readonly lockMs?: number
}

export const migrateSqlite = (
  db: Database.Database,
  now: number,
  list: readonly Migration[] = migrations(),
  { after }: Pick<MigrateOptions, 'after'> = {},
): Migrated => {
  mustDiffer(list)
  refuseForeign(foundIn(db))
  db.exec(RECORD)
  const left = pendingSqlite(db, list)
  for (const each of left) {
    const apply = db.transaction(() => {
      for (const statement of statementsOf(sqliteText(each.text))) {
        db.exec(statement)
        void after?.(statement)
      }
      keep(
        db.prepare(
          'insert into migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)',
        ),
      ).run(each.number, each.name, checksum(each.text), now)
      void after?.('insert into migrations')
    })
    try {
      apply.immediate()
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'SQLITE_ERROR') throw error
      throw otherwise(each.name, error)
    }
  }
  return migrated(left, list)
}

const foundIn = (db: Database.Database): Found => {
  const names = (text: string): string[] => keep(db.prepare(text)).pluck().all() as string[]
  return {
    tables: names(`select name from sqlite_master where type = 'table'`),
    recorded: names(`select name from pragma_table_info('migrations')`),
  }
}

const pendingSqlite = (db: Database.Database, list: readonly Migration[]): Migration[] =>
  pending(
    keep(db.prepare('select number, name, checksum from migrations')).all() as Applied[],
    list,
  )

/** What `migrateSqlite` would do. It changes nothing. */
export const planSqlite = (
  db: Database.Database,
  list: readonly Migration[] = migrations(),
): PlannedMigration[] => {
  const found = foundIn(db)
  refuseForeign(found)
  return planOf(list, found.tables.length > 0 ? pendingSqlite(db, list) : list, sqliteText)
}

const foundOn = async (client: ClientBase): Promise<Found> => {
  const names = async (text: string): Promise<string[]> =>
    (await client.query<{ name: string }>(text)).rows.map(({ name }) => name)
  return {
    tables: await names(
      `select tablename as name from pg_tables where schemaname = current_schema()`,
    ),
    recorded: await names(
      `select column_name as name from information_schema.columns where table_schema = current_schema() and table_name = 'migrations'`,
    ),
  }
}

/** What `migrateSqlite` would do to a file that is not there yet. */
export const planNewSqlite = (): PlannedMigration[] => {
  const list = migrations()
  return planOf(list, list, sqliteText)
}

/** What `migratePostgres` would do. It changes nothing and locks nothing. */
export const planPostgres = async (
  client: ClientBase,
  list: readonly Migration[] = migrations(),
): Promise<PlannedMigration[]> => {
  const found = await foundOn(client)
  refuseForeign(found)
  const { rows } =
    found.tables.length > 0
      ? await client.query<Applied>('select number, name, checksum from migrations')
      : { rows: [] }
  return planOf(list, pending(rows, list), postgresText)
}

/**
 * As `migrateSqlite`. Programs that start at once wait for one another on the table of migrations; each migration is one
 * transaction, so that one that was cut off is begun anew. A table that somebody uses for longer than `lockMs` is not waited
 * for, since everybody else would stand in line behind us: the fault says who it is.
 */
export const migratePostgres = async (
  client: ClientBase,
  list: readonly Migration[] = migrations(),
  { after, lockMs = LOCK_MS }: MigrateOptions = {},
): Promise<Migrated> => {
  mustDiffer(list)
  refuseForeign(await foundOn(client))
  const applied: Migration[] = []
  let met = 0
  for (;;) {
    let at = { name: 'the first migration', statement: 'the table of migrations' }
    await client.query('begin')
    try {
      await client.query(`set local lock_timeout = ${TURN_MS}`)
      await client.query(RECORD)
      await client.query('lock table migrations in exclusive mode')
      const { rows } = await client.query<Applied>('select number, name, checksum from migrations')
      const [next] = pending(rows, list)
      if (next) {
        await client.query(`set local lock_timeout = ${Math.max(1, Math.floor(lockMs))}`)
        for (const statement of statementsOf(postgresText(next.text))) {
          at = { name: next.name, statement }
          await client.query(statement)
          await after?.(statement)
        }
        await client.query(
          `insert into migrations (number, name, checksum, applied_at) values ($1, $2, $3, ${postgresText('{now}')})`,
          [next.number, next.name, checksum(next.text)],
        )
        await after?.('insert into migrations')
      }
      await client.query('commit')
      if (!next) return migrated(applied, list)
      applied.push(next)
    } catch (error) {
      await client.query('rollback')
      if ((error as { code?: string }).code === '55P03') throw await blocked(client, at, error)
      met += 1
      const code = (error as { code?: string }).code ?? ''
      if (met <= 20 && AGAIN.includes(code)) continue
      throw code.startsWith('42') ? otherwise(at.name, error) : error
    }
  }
}

/**
 * Of two that create the table at once one is refused by the catalog; the next time it is there. A migration of several tables
 * and those who use them may take them in another order, and either is picked to give way (40P01).
 */
const AGAIN = ['23505', '42P07', '42710', '40P01']
const LOCK_MS = 5_000
/** How long we wait for another program that migrates. */
const TURN_MS = 60_000

/** Who was in the way, as far as can still be seen. */
const blocked = async (
  client: ClientBase,
  { name, statement }: { readonly name: string; readonly statement: string },
  cause: unknown,
): Promise<Fault> => {
  const { rows } = await client.query<{ pid: number; who: string; state: string; table: string }>(
    `select a.pid, coalesce(nullif(a.application_name, ''), a.usename, 'somebody') as who, coalesce(a.state, 'at work') as state, min(c.relname) as table
       from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace join pg_stat_activity a on a.pid = l.pid
      where n.nspname = current_schema() and l.granted and a.pid <> pg_backend_pid()
      group by a.pid, a.application_name, a.usename, a.state, a.xact_start order by a.xact_start limit 3`,
  )
  const seen =
    rows.length === 0
      ? 'it has ended meanwhile'
      : rows
          .map(({ pid, who, state, table }) => `process ${pid} (${who}, ${state}, on ${table})`)
          .join('; ')
  return new Fault(
    'store_busy',
    `${name} waited too long for a table that another transaction uses, at “${statement.replace(/\s+/g, ' ').slice(0, 80)}”: ${seen}. ` +
      'It was rolled back whole. End that transaction, or migrate when it has ended; databaseMigrationLockMs is how long it waits',
    { cause },
  )
}
