// A PostgreSQL for the tests of this process: a schema of its own, emptied for each store, and a way to read it at once,
// as a test of SQLite can.
import { once } from 'node:events'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import { Worker } from 'node:worker_threads'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

/** The database that the tests of this project are to run on; null for SQLite. */
export const postgresUrl = (): string | null =>
  process.env['LEASEHOLD_TEST_STORE'] === 'postgres' ? inject('postgresUrl') : null

export interface Psql {
  query(text: string, params?: readonly unknown[]): Record<string, string | number | null>[]
  close(): Promise<void>
}

const SCRIPT = `
  const { workerData, parentPort } = require('node:worker_threads')
  const pg = require(workerData.pg)
  for (const type of [20, 700, 701, 1700]) pg.types.setTypeParser(type, Number)
  pg.types.setTypeParser(16, (text) => (text === 't' ? 1 : 0))
  const client = new pg.Client({ connectionString: workerData.url, options: '-c search_path=' + workerData.schema })
  const connected = client.connect()
  const flag = new Int32Array(workerData.flag)
  workerData.port.on('message', async (message) => {
    let answer
    try {
      await connected
      if (message === null) { await client.end(); answer = { rows: [] } }
      else answer = { rows: (await client.query(message.text, message.params)).rows ?? [] }
    } catch (error) { answer = { error: error.message } }
    workerData.port.postMessage(answer)
    Atomics.store(flag, 0, 1)
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
  const call = (message: unknown): Record<string, string | number | null>[] => {
    Atomics.store(cell, 0, 0)
    port1.postMessage(message)
    if (Atomics.wait(cell, 0, 0, 60_000) === 'timed-out')
      throw new Error('the database does not answer')
    const got = receiveMessageOnPort(port1)?.message as {
      rows?: Record<string, string | number | null>[]
      error?: string
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
  const schema = `test_${process.pid}_${++made}`
  const psql = openPsql(url, schema)
  psql.query(`create schema ${schema}`)
  const own: TestSchema = { url, schema, psql, free: () => void free.push(own) }
  return own
}
