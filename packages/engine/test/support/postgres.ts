// A PostgreSQL for the tests of this process: a schema of its own, or behind a pooler a database, emptied for each store, and
// a way to read it at once, as a test of SQLite can.
import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import { Worker } from 'node:worker_threads'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
    poolerUrl: string
  }
}

/** The database that the tests of this project are to run on; null for SQLite. */
export const postgresUrl = (): string | null =>
  process.env['LEASEHOLD_TEST_STORE'] === undefined ? null : inject('postgresUrl')

/** The way to it through a pooler, where the tests of this project are to go that way. */
const poolerUrl = (): string | null =>
  process.env['LEASEHOLD_TEST_STORE'] === 'pooled' ? inject('poolerUrl') : null

export interface Psql {
  query(text: string, params?: readonly unknown[]): Record<string, string | number | null>[]
  close(): Promise<void>
}

interface Answer {
  readonly id: number
  readonly rows?: Record<string, string | number | null>[]
  readonly error?: string
}

const SCRIPT = `
  const { workerData, parentPort } = require('node:worker_threads')
  const pg = require(workerData.pg)
  for (const type of [20, 700, 701, 1700]) pg.types.setTypeParser(type, Number)
  pg.types.setTypeParser(16, (text) => (text === 't' ? 1 : 0))
  const client = new pg.Client({ connectionString: workerData.url, options: '-c search_path=' + workerData.schema })
  const connected = client.connect()
  const flag = new Int32Array(workerData.flag)
  workerData.port.on('message', async ({ id, message }) => {
    let answer
    try {
      await connected
      if (message === null) { await client.end(); answer = { rows: [] } }
      else answer = { rows: (await client.query(message.text, message.params)).rows ?? [] }
    } catch (error) { answer = { error: error.message } }
    workerData.port.postMessage({ id, ...answer })
    Atomics.add(flag, 0, 1)
    Atomics.notify(flag, 0)
  })
`

/** A connection in a thread of its own, on whose answers this one waits. */
export const openPsql = (url: string, schema: string): Psql => {
  const { port1, port2 } = new MessageChannel()
  const flag = new SharedArrayBuffer(4)
  const cell = new Int32Array(flag)
  const thread = new Worker(SCRIPT, {
    eval: true,
    workerData: { url, schema, flag, port: port2, pg: new URL(import.meta.resolve('pg')).pathname },
    transferList: [port2],
  })
  thread.unref()
  let calls = 0
  const call = (message: unknown): Record<string, string | number | null>[] => {
    const id = ++calls
    port1.postMessage({ id, message })
    let got: Answer | undefined
    // the late answer to a call that was given up is nobody's
    while (got?.id !== id) {
      const seen = Atomics.load(cell, 0)
      got = receiveMessageOnPort(port1)?.message as Answer | undefined
      if (got === undefined && Atomics.wait(cell, 0, seen, 60_000) === 'timed-out')
        throw new Error('the database does not answer')
    }
    if (got.error !== undefined) throw new Error(got.error)
    return got.rows ?? []
  }
  return {
    query: (text, params = []) => {
      let at = 0
      return call({ text: text.replace(/\?/g, () => `$${++at}`), params })
    },
    async close() {
      call(null)
      port1.close()
      const gone = once(thread, 'exit')
      await thread.terminate()
      await gone
    },
  }
}

export interface TestSchema {
  /** What an engine is to open. */
  readonly url: string
  readonly schema: string
  readonly psql: Psql
  /** Gives it back, for the next store of this process. */
  free(): void
}

const free: TestSchema[] = []
let made = 0

/** An empty schema: one that was freed, with its rows removed, or a new one. */
export const testSchema = (url: string): TestSchema => {
  const found = free.pop()
  if (found) {
    const tables = found.psql.query(
      `select tablename as name from pg_tables where schemaname = current_schema() and tablename <> 'migrations'`,
    )
    if (tables.length > 0)
      found.psql.query(tables.map(({ name }) => `delete from ${name as string}`).join('; '))
    return found
  }
  const name = `test_${process.pid}_${++made}`
  const pooler = poolerUrl()
  const own = pooler === null ? ownSchema(url, name) : ownDatabase(url, pooler, name)
  const lent: TestSchema = { ...own, free: () => void free.push(lent) }
  return lent
}

const ownSchema = (url: string, schema: string): Omit<TestSchema, 'free'> => {
  const psql = openPsql(url, schema)
  psql.query(`create schema ${schema}`)
  return { url, schema, psql }
}

/** A pooler takes no search path along: what goes through it has a database to itself. */
const ownDatabase = (url: string, pooler: string, name: string): Omit<TestSchema, 'free'> => {
  const admin = openPsql(url, 'public')
  admin.query(`create database ${name} template template0 lc_collate 'C' lc_ctype 'C'`)
  void admin.close()
  const [direct, through] = [new URL(url), new URL(pooler)]
  direct.pathname = through.pathname = `/${name}`
  return { url: through.href, schema: 'public', psql: openPsql(direct.href, 'public') }
}
