// Numbered, forward-only migrations with checksums. A newer schema than this program knows, a changed migration and a
// database of somebody else's are refused with a sentence and left as they were.
import { readdirSync, readFileSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { ClientBase } from 'pg'
import { checksum } from '../kernel/digest.ts'
import { Fault } from '../kernel/errors.ts'
import { postgresText, sqliteText } from './dialect.ts'
import { keep } from './keep.ts'

export interface Migration {
  readonly number: number
  readonly name: string
  readonly text: string
}

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

/** A database that has tables, and not ours, is somebody else's. */
const refuseForeign = (tables: readonly string[]): void => {
  if (tables.length > 0 && !tables.includes('migrations'))
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
  return list.filter(({ number }) => !numbers.has(number))
}

const migrated = (applied: readonly Migration[], list: readonly Migration[]): Migrated => ({
  applied: applied.map(({ name }) => name),
  version: Math.max(0, ...list.map((each) => each.number)),
})

export const migrateSqlite = (
  db: Database.Database,
  now: number,
  list: readonly Migration[] = migrations(),
): Migrated => {
  refuseForeign(
    keep(db.prepare(`select name from sqlite_master where type = 'table'`))
      .pluck()
      .all() as string[],
  )
  db.exec(RECORD)
  const left = pending(
    keep(db.prepare('select number, name, checksum from migrations')).all() as Applied[],
    list,
  )
  for (const each of left) {
    const apply = db.transaction(() => {
      db.exec(sqliteText(each.text))
      keep(
        db.prepare(
          'insert into migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)',
        ),
      ).run(each.number, each.name, checksum(each.text), now)
    })
    apply.immediate()
  }
  return migrated(left, list)
}

/**
 * As `migrateSqlite`. Programs that start at once wait for one another on the table of migrations; each migration is one
 * transaction, so that one that was cut off is begun anew.
 */
export const migratePostgres = async (
  client: ClientBase,
  list: readonly Migration[] = migrations(),
): Promise<Migrated> => {
  const { rows: tables } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = current_schema()`,
  )
  refuseForeign(tables.map(({ name }) => name))
  const applied: Migration[] = []
  let met = 0
  for (;;) {
    await client.query('begin')
    try {
      await client.query(RECORD)
      await client.query('lock table migrations in exclusive mode')
      const { rows } = await client.query<Applied>('select number, name, checksum from migrations')
      const [next] = pending(rows, list)
      if (next) {
        await client.query(postgresText(next.text))
        await client.query(
          `insert into migrations (number, name, checksum, applied_at) values ($1, $2, $3, ${postgresText('{now}')})`,
          [next.number, next.name, checksum(next.text)],
        )
      }
      await client.query('commit')
      if (!next) return migrated(applied, list)
      applied.push(next)
    } catch (error) {
      await client.query('rollback')
      // of two that create the table at once one is refused by the catalog; the next time it is there
      met += 1
      if (met > 20 || !TWICE.includes((error as { code?: string }).code ?? '')) throw error
    }
  }
}

const TWICE = ['23505', '42P07', '42710']
