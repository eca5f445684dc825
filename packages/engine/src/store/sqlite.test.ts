// What joins a commit: undone alone where it fails, and with all of it where the whole does. And what waits while another
// program holds a lock on the file: transactions, and nothing else.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, expect, test } from 'vitest'
import { virtualClock } from '../testing/clock.ts'
import type { SqliteStore } from './sqlite.ts'
import { openSqlite } from './sqlite.ts'
import type { Steps } from './sql.ts'
import { ask, finish, sql, statement } from './sql.ts'
import { inUserTransaction } from './user-transaction.ts'

const put = sql<never>('test.put', 'insert into things (id) values ($1)')
const all = sql<{ id: string }>('test.all', 'select id from things')
const clock = virtualClock(1_000)
let store: SqliteStore
const cleanUp: (() => void)[] = []
afterEach(async () => {
  await store.close()
  for (const clean of cleanUp.splice(0)) clean()
})

const open = (file = ':memory:'): void => {
  store = openSqlite(file, { time: clock.time, timers: clock.timers() })
  store.db.exec('create table things (id text primary key)')
}
/** On a file that somebody else has open too: their connection. */
const openBeside = (): Database.Database => {
  const folder = mkdtempSync(path.join(tmpdir(), 'leasehold-'))
  const file = path.join(folder, 'store.db')
  open(file)
  const other = new Database(file)
  cleanUp.push(() => {
    other.close()
    rmSync(folder, { recursive: true })
  })
  return other
}
const later = async (ms: number): Promise<void> => {
  const end = clock.time.mono() + ms
  while (clock.time.mono() < end) {
    clock.moveTo(Math.min(end, clock.next() ?? end))
    await new Promise((resolve) => setImmediate(resolve))
  }
}
/** What became of it so far. */
const watched = <T>(promise: Promise<T>): { came: unknown } => {
  const watch: { came: unknown } = { came: 'nothing' }
  promise.then(
    (answer) => (watch.came = answer),
    (error: unknown) => (watch.came = (error as { code?: unknown }).code),
  )
  return watch
}
function* puttingNothing(): Steps<string> {
  yield* ask(statement(all))
  return 'read'
}
const things = (): unknown[] => store.db.prepare('select id from things order by id').pluck().all()
function* putting(...ids: string[]): Steps<void> {
  for (const id of ids) yield* ask(statement(put, id))
}
function* puttingAtOnce(id: string): Steps<string> {
  yield* finish(statement(put, id))
  return `put ${id}`
}

test('RAIL-01 what comes behind a transaction is in its commit, and hears its answer', async () => {
  open()
  const answers: string[] = []
  const run = store.run(
    () => puttingAtOnce('a'),
    undefined,
    (answer) => {
      answers.push(answer)
      return () => putting('b', 'c')
    },
  )
  expect(await run).toBe('put a')
  expect([answers, things()]).toEqual([['put a'], ['a', 'b', 'c']])
})

test('RAIL-01 what fails behind a transaction is undone alone, all of it', async () => {
  open()
  const run = store.run(
    () => puttingAtOnce('a'),
    undefined,
    () => () => putting('b', 'a'),
  )
  expect(await run).toBe('put a')
  expect(things()).toEqual(['a'])
  await store.run(() => puttingAtOnce('c'))
  expect(things()).toEqual(['a', 'c'])
})

test('RAIL-01 nothing comes behind a transaction that fails', async () => {
  open()
  await store.run(() => puttingAtOnce('a'))
  let asked = 0
  const run = store.run(
    () => puttingAtOnce('a'),
    undefined,
    () => {
      asked += 1
      return () => putting('b')
    },
  )
  await expect(run).rejects.toThrow()
  expect([asked, things()]).toEqual([0, ['a']])
})

test('OPS-08 a transaction that meets the lock of another program leaves the event loop to others, and is done once that lets go', async () => {
  const other = openBeside()
  other.exec('begin immediate')
  const run = watched(store.run(() => puttingAtOnce('a')))
  // SQLite itself would wait in the event loop
  expect(store.db.pragma('busy_timeout', { simple: true })).toBe(0)
  await later(1_900)
  expect([run.came, things()]).toEqual(['nothing', []])
  expect(await store.read(() => puttingNothing())).toBe('read')
  other.exec('rollback')
  await later(100)
  expect([run.came, things()]).toEqual(['put a', ['a']])
})

test('OPS-08 a lock that stays is told of after two seconds, then at once to each that comes, until a write goes through', async () => {
  const other = openBeside()
  other.exec('begin immediate')
  const run = watched(store.run(() => puttingAtOnce('a')))
  await later(2_100)
  expect(run.came).toBe('store_unavailable')
  await expect(store.run(() => puttingAtOnce('b'))).rejects.toThrow(
    /another program holds a lock on the database file.*the engine goes on by itself/,
  )
  other.exec('rollback')
  expect(await store.run(() => puttingAtOnce('c'))).toBe('put c')
  other.exec('begin immediate')
  const next = watched(store.run(() => puttingAtOnce('d')))
  await later(100)
  expect([next.came, things()]).toEqual(['nothing', ['c']])
})

test('OPS-08 what waits for the lock of another program ends when the store is closed', async () => {
  const other = openBeside()
  other.exec('begin immediate')
  const run = watched(store.run(() => puttingAtOnce('a')))
  await later(100)
  await store.close()
  await later(100)
  expect(run.came).toBe('store_unavailable')
})

test('RUN-21 a user’s own transaction that cannot have the file is refused as what the store is, and the store waits on without it', async () => {
  const other = openBeside()
  store.db.exec('create table orders (id, kind, run, payload, created_at)')
  await store.run(() => puttingAtOnce('a'))
  other.exec('begin immediate')
  expect(() => inUserTransaction(store.db, 0, () => 'done')).toThrow(/another program holds a lock/)
  expect(store.db.pragma('busy_timeout', { simple: true })).toBe(0)
})
