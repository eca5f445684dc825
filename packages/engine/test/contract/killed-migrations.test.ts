// A file whose migration was cut off: what a killed process leaves is opened by the next, which goes on to the newest schema.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { migrateStore, planMigrations } from '../../src/orchestrator/main.ts'
import { migrateSqlite, migrations } from '../../src/store/migrate.ts'
import { statementsOf } from '../../src/store/migration-plan.ts'

const all = migrations()
const folder = new URL('../support/schemas/', import.meta.url)
const added = (name: string): string =>
  readFileSync(new URL(name.replace(/^(\d{4}).*/, '$1.sql'), folder), 'utf8')

// a process that is killed leaves the files as they are at that moment, whatever it had in its memory
it('RAIL-18 S19 a process that is killed at any statement of any migration leaves a file of the version before it, with every row', async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'leasehold-killed-'))
  const file = path.join(dir, 'engine.db')
  let copies = 0
  const left: { readonly file: string; readonly version: number }[] = []
  const db = new Database(file)
  db.pragma('journal_mode = wal')
  const copy = (version: number): void => {
    const to = path.join(dir, `left_${++copies}.db`)
    for (const part of ['', '-wal', '-shm', '-journal'])
      if (existsSync(file + part)) copyFileSync(file + part, to + part)
    left.push({ file: to, version })
  }
  for (const [i, migration] of all.entries()) {
    migrateSqlite(db, 1, all.slice(0, i + 1), { after: () => copy(i) })
    copy(i + 1)
    for (const text of statementsOf(added(migration.name))) db.exec(text)
  }
  db.close()
  expect(left.length).toBeGreaterThan(70)
  for (const { file: found, version } of left) {
    const again = new Database(found)
    const numbers =
      version === 0 &&
      again
        .prepare(`select count(*) from sqlite_master where name = 'migrations'`)
        .pluck()
        .get() === 0
        ? []
        : again.prepare('select number from migrations order by number').pluck().all()
    expect(numbers).toEqual(all.slice(0, version).map(({ number }) => number))
    // nothing of the migration that was cut off is there, and the whole is reached from it
    expect(migrateSqlite(again, 1)).toMatchObject({
      applied: all.slice(version).map(({ name }) => name),
    })
    if (version > 0)
      expect(
        Number(again.prepare('select count(*) from runs').pluck().get()),
      ).toBeGreaterThanOrEqual(version > 1 ? 40 : 0)
    expect(again.pragma('integrity_check', { simple: true })).toBe('ok')
    again.close()
  }
  rmSync(dir, { recursive: true, force: true })
})

it('RAIL-18 the plan says what is to come, and makes and changes nothing', async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'leasehold-planned-'))
  const file = path.join(dir, 'engine.db')
  const names = async () => (await planMigrations({ file }, ports)).map(({ name }) => name)
  const ports = systemPorts(noLog)
  expect(await names()).toEqual(all.map(({ name }) => name))
  expect(existsSync(file)).toBe(false)
  const looked = <T>(look: (db: Database.Database) => T): T => {
    const db = new Database(file)
    const found = look(db)
    db.close()
    return found
  }
  const schema = () => looked((db) => db.prepare('select type, name, sql from sqlite_master').all())
  looked((db) => migrateSqlite(db, 1, all.slice(0, 2)))
  const before = schema()
  const planned = await planMigrations({ file }, ports)
  expect(planned.map(({ name }) => name)).toEqual(all.slice(2).map(({ name }) => name))
  expect(planned[0]?.statements[0]).toEqual({
    text: 'alter table orders add column failures int not null default 0',
    lock: { table: 'orders', level: 'ACCESS EXCLUSIVE', means: 'reads and writes wait' },
  })
  expect(schema()).toEqual(before)
  await migrateStore({ file }, ports)
  expect(await names()).toEqual([])
  rmSync(dir, { recursive: true, force: true })
})
