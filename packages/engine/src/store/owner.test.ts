// Who has a file, by whatever name: a lock that is another's, one that would be none, and files that are refused untouched.
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { migrateSqlite, planSqlite } from './migrate.ts'
import { look, own, takeFile } from './owner.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'leasehold-own-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})
const at = (...names: string[]): string => path.join(folder, ...names)
const refusal = (code: string, said: string): unknown =>
  expect.objectContaining({ code, message: expect.stringContaining(said) as string })
const made = (name: string, ...statements: string[]): string => {
  const db = new Database(at(name))
  for (const each of statements) db.exec(each)
  db.close()
  return at(name)
}
const ours = (name: string, ...statements: string[]): string => {
  const db = new Database(at(name))
  migrateSqlite(db, 1)
  for (const each of statements) db.exec(each)
  db.close()
  return at(name)
}

test('RUN-11 a file in a folder that cannot be written is refused by name, and not as owned by somebody', () => {
  const file = at('missing', 'work.db')
  expect(() => own(file, 'me')).toThrow(
    refusal('store_unavailable', `${file}.owner cannot be opened`),
  )
})

test('OPS-08 RUN-11 a file has one owner, by whichever links it is named, also before it is there', () => {
  mkdirSync(at('real'))
  symlinkSync(at('real'), at('folder'))
  symlinkSync(path.join('real', 'work.db'), at('link.db'))
  const names = [at('link.db'), at('folder', 'work.db'), at('real', 'work.db')]
  for (const first of names) {
    const ownership = own(first, 'process 1')
    for (const second of names)
      expect(() => own(second, 'process 2'), second).toThrow(
        refusal('owned_elsewhere', `${second} is owned by process 1`),
      )
    ownership.release()
  }
  made(path.join('real', 'work.db'), 'create table one (id int)')
  const ownership = own(at('link.db'), 'process 1')
  expect(() => own(at('real', 'work.db'), 'process 2')).toThrow(refusal('owned_elsewhere', '1'))
  ownership.release()
})

test('OPS-08 a file with two names is refused under each, and nothing is left beside it', () => {
  const file = ours('work.db')
  linkSync(file, at('other.db'))
  for (const name of [file, at('other.db')])
    expect(() => takeFile(name, 'me')).toThrow(refusal('store_unavailable', '2 names (hard links)'))
  expect(readdirSync(folder).toSorted()).toEqual(['other.db', 'work.db'])
})

test('RUN-11 a lock that could not be written is no lock, and is refused', () => {
  const file = ours('work.db')
  writeFileSync(`${file}.owner`, '')
  chmodSync(folder, 0o755)
  chmodSync(`${file}.owner`, 0o444)
  // no mode keeps root from writing
  const root = process.geteuid?.() === 0
  if (root) process.seteuid?.(65_534)
  try {
    expect(() => own(file, 'me')).toThrow(
      refusal('store_unavailable', `${file}.owner cannot be written`),
    )
  } finally {
    if (root) process.seteuid?.(0)
  }
})

test.each(['.owner', '.owner.txt'])(
  'RUN-11 a folder in the place of %s is said, and names no owner; nothing stays locked',
  (end) => {
    const file = ours('work.db')
    mkdirSync(`${file}${end}`)
    expect(() => own(file, 'me')).toThrow(
      refusal('store_unavailable', `${file}${end} cannot be opened`),
    )
    rmSync(`${file}${end}`, { recursive: true })
    own(file, 'me').release()
  },
)

test('RUN-11 a lock that holds something else is damaged, and not owned by somebody', () => {
  const file = ours('work.db')
  writeFileSync(`${file}.owner`, 'not a database, though long enough. '.repeat(10))
  expect(() => own(file, 'me')).toThrow(
    refusal('store_damaged', `the lock ${file}.owner is damaged`),
  )
})

test('OPS-06 a name that cannot be one of a file is refused, and makes none', () => {
  for (const name of [at('work.db\0.txt'), '', folder])
    expect(() => takeFile(name, 'me')).toThrow(refusal('store_unavailable', 'cannot be the file'))
  expect(readdirSync(folder)).toEqual([])
})

test.each([
  ['of somebody else', 'not_a_database', () => made('f.db', 'create table customers (id int)')],
  [
    'with migrations of its own',
    'not_a_database',
    () => made('f.db', 'create table migrations (id int, done text)', 'create table x (id int)'),
  ],
  [
    'of a newer program',
    'schema_newer',
    () => ours('f.db', `insert into migrations values (99, '0099_later.sql', 'x', 1)`),
  ],
  [
    'that is no database',
    'not_a_database',
    () => {
      writeFileSync(at('f.db'), 'not a database, though long enough. '.repeat(10))
      return at('f.db')
    },
  ],
  [
    'that is damaged',
    'store_damaged',
    () => {
      const bytes = readFileSync(ours('f.db'))
      writeFileSync(at('f.db'), bytes.fill(0xaa, 100, 4_096))
      return at('f.db')
    },
  ],
])('RAIL-18 a file %s is refused, and left as it was, with nothing beside it', (_, code, make) => {
  const file = make()
  const before = readFileSync(file)
  expect(() => takeFile(file, 'me')).toThrow(refusal(code, ''))
  expect(() => look(file, (db) => planSqlite(db))).toThrow(refusal(code, ''))
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(readdirSync(folder)).toEqual(['f.db'])
})

test('RAIL-18 a plan changes nothing, and is made also while somebody owns the file', () => {
  const file = ours('work.db')
  const ownership = own(file, 'me')
  const before = readFileSync(file)
  expect(look(file, (db) => planSqlite(db))).toEqual([])
  expect(readFileSync(file).equals(before)).toBe(true)
  ownership.release()
})

test('OPS-08 a file of ours whose beginning was overwritten is damaged, and not one to be named anew', () => {
  const file = ours('f.db')
  own(file, 'me').release()
  writeFileSync(file, 'not a database, though long enough. '.repeat(10))
  expect(() => takeFile(file, 'me')).toThrow(refusal('store_damaged', 'put a backup in its place'))
  // through another name of it too
  symlinkSync(file, at('link.db'))
  expect(() => takeFile(at('link.db'), 'me')).toThrow(
    refusal('store_damaged', 'put a backup in its place'),
  )
})
