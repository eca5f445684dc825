// Numbered, forward-only migrations with checksums. A newer schema than this program knows, a changed migration and a
// database of somebody else's are refused with a sentence and left as they were.
import { readdirSync, readFileSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { checksum } from '../kernel/digest.ts'
import { Fault } from '../kernel/errors.ts'
import { sqliteText } from './dialect.ts'

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

export const migrateSqlite = (
  db: Database.Database,
  now: number,
  list: readonly Migration[] = migrations(),
): Migrated => {
  const tables = db
    .prepare(`select name from sqlite_master where type = 'table'`)
    .pluck()
    .all() as string[]
  if (tables.length > 0 && !tables.includes('migrations'))
    throw new Fault(
      'not_a_database',
      `the database has tables (${tables.slice(0, 3).join(', ')}) but is not Leasehold’s; name another file`,
      { retryable: false },
    )
  db.exec(
    'create table if not exists migrations (number int primary key, name text not null, checksum text not null, applied_at bigint not null)',
  )
  const done = new Map(
    (
      db.prepare('select number, name, checksum from migrations').all() as {
        number: number
        name: string
        checksum: string
      }[]
    ).map((row) => [row.number, row]),
  )
  const known = new Map(list.map((each) => [each.number, each]))
  for (const row of done.values()) {
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
  const applied: string[] = []
  for (const each of list) {
    if (done.has(each.number)) continue
    const apply = db.transaction(() => {
      db.exec(sqliteText(each.text))
      db.prepare(
        'insert into migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)',
      ).run(each.number, each.name, checksum(each.text), now)
    })
    apply.immediate()
    applied.push(each.name)
  }
  return { applied, version: Math.max(0, ...list.map((each) => each.number)) }
}
