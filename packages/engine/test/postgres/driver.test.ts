// What the PostgreSQL driver promises to transactions, whatever the server and the way to it do.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemPorts } from '../../src/kernel/ports.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { PostgresOptions, PostgresStore } from '../../src/store/postgres.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import type { Steps, UniqueViolation } from '../../src/store/sql.ts'
import { ask, finish, rows, sql, statement } from '../../src/store/sql.ts'
import type { TestSchema } from '../support/postgres.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'

const one = sql<{ n: number }>('test.one', 'select 1 as n')
const put = sql<never>('test.put', 'insert into things (id, n) values ($1, $2)')
const raise = sql<{ n: number }>(
  'test.raise',
  'update things set n = n + 1 where id = $1 returning n',
)
const lock = sql<{ id: string }>('test.lock', 'select t.id from things t where t.id = $1 {lock t}')
const count = sql<{ n: number }>('test.count', 'select count(*) as n from things')
const self = sql<{ n: number }>('test.self', 'select pg_backend_pid() as n')
const nap = sql<{ n: number }>('test.nap', 'select 1 as n from pg_sleep($1::float8)')
const kinds = sql<Record<string, unknown>>(
  'test.kinds',
  `select 7::bigint as big, 7::int as small, 1.5::double precision as half, sum(x.a) as sum, true as yes, null as none, max(x.b) as text from {rows $1 as x: a int, b text}`,
)

const given = postgresUrl() ?? ''
let schema: TestSchema
const stores: PostgresStore[] = []

const open = (more: Partial<PostgresOptions> = {}): PostgresStore => {
  const { timers, random } = systemPorts()
  const store = openPostgres({
    url: given,
    schema: schema.schema,
    timers,
    random,
    log: noLog,
    ...more,
  })
  stores.push(store)
  return store
}

beforeEach(() => {
  schema = testSchema(given)
  schema.psql.query('create table if not exists things (id text primary key, n int not null)')
  schema.psql.query('delete from things')
})
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
  schema.psql.query('drop table things')
  schema.free()
})

const all = () => schema.psql.query('select id, n from things order by id')
const doing = <T>(store: PostgresStore, steps: () => Steps<T>): Promise<T> => store.run(steps)
const code = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error: { code?: string }) => error.code ?? 'no code',
  )

/** The row `a`, locked by a transaction that is no store's, until it is let go. */
const lockedElsewhere = async (): Promise<() => Promise<void>> => {
  schema.psql.query(`insert into things values ('a', 0)`)
  const client = new pg.Client({
    connectionString: given,
    options: `-c search_path=${schema.schema}`,
  })
  await client.connect()
  await client.query('begin')
  await client.query(`select * from things where id = 'a' for update`)
  return async () => {
    await client.query('rollback')
    await client.end()
  }
}

const settings = sql<Record<string, string>>(
  'test.settings',
  `select current_setting('transaction_isolation') as isolation, current_setting('idle_in_transaction_session_timeout') as idle`,
)

describe('transactions', () => {
  it('SLOT-01 they read what is committed, whatever the role’s default is, and do not stand open for long', async () => {
    const repeatable = new URL(given)
    repeatable.searchParams.set('options', '-c default_transaction_isolation=repeatable\\ read')
    const store = open({ url: repeatable.href, schema: 'public' })
    const found = await store.run(function* () {
      yield* ask(statement(one))
      return (yield* ask(statement(settings)))[0][0]
    })
    expect(found).toEqual({ isolation: 'read committed', idle: '10s' })
  })

  it('RAIL-09 an ask is a round trip, and the last one commits with it', async () => {
    const store = open()
    await store.run(function* () {
      yield* finish(statement(put, 'a', 1), statement(one))
    })
    expect(store.roundTrips).toBe(1)
    await store.run(function* () {
      yield* ask(statement(one))
      yield* finish(statement(put, 'b', 2))
    })
    expect(store.roundTrips).toBe(3)
    await store.run(function* () {
      yield* ask(statement(put, 'c', 3))
    })
    expect(store.roundTrips).toBe(5)
    expect(all()).toEqual([
      { id: 'a', n: 1 },
      { id: 'b', n: 2 },
      { id: 'c', n: 3 },
    ])
  })

  it('PROOF-06 values come as they do from SQLite', async () => {
    const [[row]] = await open().read(function* () {
      return yield* ask(
        statement(
          kinds,
          rows([
            { a: 1, b: 'x' },
            { a: 2, b: 'z"\\' },
          ]),
        ),
      )
    })
    expect(row).toEqual({ big: 7, small: 7, half: 1.5, sum: 3, yes: 1, none: null, text: 'z"\\' })
  })

  it('RAIL-09 a row that must be new is said inside the transaction, which wrote nothing', async () => {
    const store = open()
    schema.psql.query(`insert into things values ('a', 1)`)
    const seen: string[] = []
    const failed = doing(store, function* () {
      yield* ask(statement(put, 'z', 9))
      try {
        yield* finish(statement(put, 'b', 2), statement(put, 'a', 2))
      } catch (error) {
        seen.push((error as UniqueViolation).table)
        throw new Error('the key is taken')
      }
    })
    await expect(failed).rejects.toThrow('the key is taken')
    expect(seen).toEqual(['things'])
    expect(all()).toEqual([{ id: 'a', n: 1 }])
    // and the connection is as good as before
    await store.run(function* () {
      yield* finish(statement(put, 'b', 2))
    })
    expect(all()).toHaveLength(2)
  })

  it('RAIL-09 what no index and no column holds is the refusal of what was sent, not a fault to repeat', async () => {
    const store = open()
    // what PostgreSQL packs for an index is longer than one holds only where it is as random
    let seed = 1
    const long = Array.from({ length: 5_000 }, () =>
      String.fromCharCode(33 + (((seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) >> 16) % 90)),
    ).join('')
    for (const [id, n] of [
      [long, 1],
      ['a', 2 ** 40],
    ] as const)
      await expect(
        doing(store, function* () {
          yield* finish(statement(put, id, n))
        }),
      ).rejects.toMatchObject({ name: 'LeaseholdError', code: 'invalid_request' })
    expect(all()).toEqual([])
  })

  it('PROOF-06 an error of ours inside a transaction rolls it back', async () => {
    const store = open({ connections: 2 })
    for (let i = 0; i < 5; i++)
      await expect(
        doing(store, function* () {
          yield* ask(statement(put, 'a', 1))
          throw new Error('ours')
        }),
      ).rejects.toThrow('ours')
    expect(all()).toEqual([])
    expect(store.pool.totalCount).toBe(1)
  })
})

describe('transactions that meet', () => {
  it('RAIL-09 of two that lock each other out both are done, one of them anew', async () => {
    const store = open()
    schema.psql.query(`insert into things values ('a', 0), ('b', 0)`)
    const crossing = (first: string, second: string): Promise<void> =>
      store.run(function* () {
        yield* ask(statement(raise, first))
        yield* ask(statement(nap, 0.2))
        yield* finish(statement(raise, second))
      })
    await Promise.all([crossing('a', 'b'), crossing('b', 'a')])
    expect(all()).toEqual([
      { id: 'a', n: 2 },
      { id: 'b', n: 2 },
    ])
  })

  it('RAIL-09 a row that stays locked is store_busy', async () => {
    const store = open({ lockMs: 100 })
    const letGo = await lockedElsewhere()
    const locking = doing(store, function* () {
      yield* ask(statement(lock, 'a'))
    })
    expect(await code(locking)).toBe('store_busy')
    await letGo()
  })
})

describe('a server that fails', () => {
  it('PROOF-06 a connection that is ended in a transaction: nothing is written, and the next one goes on', async () => {
    const store = open()
    const failing = doing(store, function* () {
      const [, [me]] = yield* ask(statement(put, 'a', 1), statement(self))
      schema.psql.query('select pg_terminate_backend(?)', [me?.n])
      yield* finish(statement(put, 'b', 1))
    })
    expect(['store_unavailable', 'unknown_outcome']).toContain(await code(failing))
    expect(all()).toEqual([])
    await store.run(function* () {
      yield* finish(statement(put, 'c', 1))
    })
    expect(all()).toEqual([{ id: 'c', n: 1 }])
  })

  it('RAIL-09 a commit whose answer is lost is an unknown outcome, never guessed', async () => {
    const proxy = await openProxy(Number(new URL(given).port))
    const url = new URL(given)
    url.port = String(proxy.port)
    const store = open({ url: url.href })
    const warm = (): Promise<void> =>
      store.run(function* () {
        yield* finish(statement(one))
      })
    await warm()
    proxy.cutAfter = () => true
    const committing = doing(store, function* () {
      yield* finish(statement(put, 'a', 1))
    })
    expect(await code(committing)).toBe('unknown_outcome')
    proxy.cutAfter = null
    // it had been done: whoever repeats finds it
    await expect.poll(all).toEqual([{ id: 'a', n: 1 }])
    await warm()
    // before the commit was sent, there is nothing to wonder about
    let asks = 0
    proxy.cutAfter = () => (asks += 1) === 2
    const early = doing(store, function* () {
      yield* ask(statement(put, 'b', 1))
      yield* ask(statement(put, 'c', 1))
      yield* finish(statement(put, 'd', 1))
    })
    expect(await code(early)).toBe('store_unavailable')
    expect(all()).toEqual([{ id: 'a', n: 1 }])
    await store.close()
    stores.splice(stores.indexOf(store), 1)
    await proxy.close()
  })

  it('P5 what was read is answered before its transaction has ended, also where that end is lost', async () => {
    const proxy = await openProxy(Number(new URL(given).port))
    const url = new URL(given)
    url.port = String(proxy.port)
    const store = open({ url: url.href, connections: 1 })
    const read = () =>
      store.read(function* () {
        const [[row]] = yield* ask(statement(self))
        return row?.n
      })
    const first = await read()
    // the one connection is free again once that read's end has come back
    await store.run(function* () {
      yield* finish(statement(one))
    })
    let sent = 0
    proxy.cutAfter = () => (sent += 1) === 2
    expect(await read()).toBe(first)
    await expect.poll(() => sent).toBe(2)
    proxy.cutAfter = null
    const second = await read()
    expect(second).not.toBe(first)
    // an end that was not lost leaves nothing open
    await store.close()
    stores.splice(stores.indexOf(store), 1)
    expect(
      schema.psql.query('select count(*)::int as n from pg_stat_activity where pid = ?', [second]),
    ).toEqual([{ n: 0 }])
    await proxy.close()
  })

  it('PROOF-06 a server that says nothing more is given up', async () => {
    const proxy = await openProxy(Number(new URL(given).port))
    const url = new URL(given)
    url.port = String(proxy.port)
    const store = open({ url: url.href, statementMs: 100, connectMs: 100 })
    await store.run(function* () {
      yield* finish(statement(one))
    })
    proxy.mode = 'swallow'
    const asking = store.read(function* () {
      return yield* ask(statement(one))
    })
    expect(await code(asking)).toBe('store_unavailable')
    proxy.mode = 'pass'
    await store.read(function* () {
      return yield* ask(statement(one))
    })
    await store.close()
    stores.splice(stores.indexOf(store), 1)
    await proxy.close()
  })

  it('PROOF-06 nobody there, or nobody let in, is a fault that may be repeated, with a sentence', async () => {
    const proxy = await openProxy(1)
    await proxy.close()
    const url = new URL(given)
    url.port = String(proxy.port)
    const absent = doing(open({ url: url.href }), function* () {
      yield* ask(statement(one))
    })
    await expect(absent).rejects.toMatchObject({
      code: 'store_unavailable',
      retryable: true,
      message: expect.stringContaining('cannot be reached') as string,
    })
    const stranger = new URL(given)
    stranger.username = 'nobody_of_that_name'
    const refused = doing(open({ url: stranger.href }), function* () {
      yield* ask(statement(one))
    })
    await expect(refused).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it('B102 a standby refuses writes: store_read_only, and reads go on', async () => {
    const url = new URL(given)
    url.searchParams.set(
      'options',
      `-c search_path=${schema.schema} -c default_transaction_read_only=on`,
    )
    const { timers, random } = systemPorts()
    const store = openPostgres({ url: url.href, timers, random, log: noLog })
    stores.push(store)
    const writing = doing(store, function* () {
      yield* finish(statement(put, 'a', 1))
    })
    expect(await code(writing)).toBe('store_read_only')
    const [[row]] = await store.read(function* () {
      return yield* ask(statement(count))
    })
    expect(row?.n).toBe(0)
  })

  it('PROOF-06 a statement that takes too long is ended, and the connection lives on', async () => {
    const store = open({ statementMs: 100 })
    const slow = store.read(function* () {
      return yield* ask(statement(nap, 30))
    })
    await expect(slow).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('too long') as string,
    })
    expect(store.pool.totalCount).toBe(1)
  })

  it('B107 a pool that is busy with other work keeps a connection for what is urgent', async () => {
    const store = open({ connections: 3, reserved: 1, connectMs: 60_000 })
    const letGo = await lockedElsewhere()
    const busy = Array.from({ length: 6 }, () =>
      doing(store, function* () {
        yield* finish(statement(raise, 'a'))
      }).catch(() => undefined),
    )
    const urgent = await store.run(function* () {
      return yield* finish(statement(one))
    }, 'urgent')
    expect(urgent).toEqual([[{ n: 1 }]])
    await letGo()
    await Promise.all(busy)
  })
})

describe('a table that a migration changes under an open store', () => {
  const everything = sql<{ id: string; n: unknown }>('test.everything', 'select * from things')
  const counted = sql<{ n: unknown }>('test.counted', 'select n from things')

  it('RAIL-18 a statement whose plan has outlived the table is tried again once, under another name, on every connection', async () => {
    const store = open({ connections: 4, reserved: 1 })
    schema.psql.query(`insert into things values ('a', 7)`)
    const read = () =>
      store.run(function* () {
        // several of its statements are outlived, and that is one thing
        const [[first]] = yield* ask(statement(everything), statement(nap, 0.05))
        const [[second]] = yield* finish(statement(counted))
        return [first, second]
      })
    // plans on more than one connection
    await Promise.all([read(), read(), read()])
    expect(store.pool.totalCount).toBe(3)
    schema.psql.query(`alter table things alter column n type text using 'n' || n`)
    schema.psql.query('alter table things add column more int')
    const before = store.roundTrips
    const row = { id: 'a', n: 'n7', more: null }
    expect(await read()).toEqual([row, { n: 'n7' }])
    // the ask that failed, its rollback, and the two of the whole anew
    expect(store.roundTrips - before).toBe(4)
    expect(await Promise.all([read(), read(), read()])).toEqual(
      Array.from({ length: 3 }, () => [row, { n: 'n7' }]),
    )
    schema.psql.query('alter table things drop column more')
    expect(await read()).toEqual([{ id: 'a', n: 'n7' }, { n: 'n7' }])
    schema.psql.query(`alter table things alter column n type int using 7`)
  })
})

describe('connections', () => {
  it('RAIL-17 no more are opened than the setting says, renewals included; one is enough', async () => {
    for (const connections of [1, 2, 5]) {
      const store = open({ connections })
      const all = await Promise.all(
        Array.from({ length: 12 }, (_each, i) =>
          store.run(
            function* () {
              yield* ask(statement(nap, 0.05))
              return (yield* ask(statement(self)))[0][0]?.n
            },
            i % 3 === 0 ? 'urgent' : undefined,
          ),
        ),
      )
      expect(new Set(all).size, `${connections} connections`).toBe(connections)
    }
  })
})
