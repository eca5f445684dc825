// What joins a commit: undone alone where it fails, and with all of it where the whole does.
import { afterEach, expect, test } from 'vitest'
import { virtualClock } from '../testing/clock.ts'
import type { SqliteStore } from './sqlite.ts'
import { openSqlite } from './sqlite.ts'
import type { Steps } from './sql.ts'
import { ask, finish, sql, statement } from './sql.ts'

const put = sql<never>('test.put', 'insert into things (id) values ($1)')
let store: SqliteStore
afterEach(() => store.close())

const open = (): void => {
  store = openSqlite(':memory:', virtualClock(1_000).time)
  store.db.exec('create table things (id text primary key)')
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
