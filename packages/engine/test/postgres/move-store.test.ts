// A file that has grown too small: all that it holds is moved to a database, row by row and equal, and work goes on there.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { embedded, workflow } from '../../src/entry/index.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { moveStore } from '../../src/orchestrator/main.ts'
import { postgresUrl } from '../support/postgres.ts'

const url = postgresUrl() ?? ''
const ports = systemPorts(noLog)
const asks = workflow('asks', async (ctx, input: string) => {
  const first = await ctx.step('first', () => `${input} é\u2028`)
  const more = await ctx.signal<string>('go')
  return ctx.step('second', () => `${first} ${more}`)
})
const fails = workflow({ name: 'fails', stepRetry: { maxAttempts: 1 } }, async (ctx) =>
  ctx.step('no', () => {
    throw new Error('no')
  }),
)
const workflows = [asks, fails]
let folder: string
let file: string
let schema: string
let made = 0

const admin = async (text: string): Promise<pg.QueryResultRow[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'leasehold-move-'))
  file = path.join(folder, 'engine.db')
  schema = `moved_${process.pid}_${++made}`
})
afterEach(async () => {
  await admin(`drop schema if exists ${schema} cascade`)
  rmSync(folder, { recursive: true, force: true })
})

/** Runs in several states: ended, failed, waiting for a signal, waiting for a time far away, and canceled. */
const fill = async (): Promise<{ waiting: string; ended: string; key: string }> => {
  const engine = await embedded({ file, workflows })
  const waiting = await engine.start(asks, 'a', { key: 'k', owner: 'ana' })
  const ended = await engine.start(asks, 'b')
  await engine.signal(ended.id, 'go', 'x')
  await engine.result(ended.id)
  const failed = await engine.start(fails, null)
  await engine.result(failed.id)
  const gone = await engine.start(asks, 'c')
  await engine.cancel(gone.id, 'no longer')
  await expect
    .poll(async () => (await engine.get(waiting.id)).run.status, { timeout: 20_000 })
    .toBe('waiting')
  await engine.close()
  return { waiting: waiting.id, ended: ended.id, key: 'k' }
}
const move = (tell: (table: string, rows: number) => void = () => undefined) =>
  moveStore(file, { database: url, schema }, ports, tell)

it('RAIL-18 a file is moved whole, and its runs go on in the database', async () => {
  const { waiting, ended } = await fill()
  const { tables, before } = await move()
  expect(before).toBe(false)
  expect(tables).toMatchObject({ runs: 4, attempts: expect.any(Number), signals: 1 })
  const engine = await embedded({ database: url, schema, workflows })
  expect(await engine.result(ended)).toMatchObject({ output: 'b é\u2028 x' })
  expect(await engine.start(asks, 'a', { key: 'k', owner: 'ana' })).toMatchObject({
    id: waiting,
    started: false,
  })
  await engine.signal(waiting, 'go', 'y')
  expect(await engine.result(waiting)).toMatchObject({ output: 'a é\u2028 y' })
  expect(await engine.audit()).toMatchObject({ healthy: true })
  await engine.close()
  // what the file held is elsewhere now
  await expect(embedded({ file, workflows })).rejects.toMatchObject({ code: 'store_transferred' })
})

it('RAIL-18 a move that is cut off leaves nothing there and is begun anew; one that was not heard of is known', async () => {
  await fill()
  let told = 0
  await expect(
    move(() => {
      told += 1
      if (told === 5) throw new Error('cut off')
    }),
  ).rejects.toThrow('cut off')
  expect(await admin(`select count(*)::int as n from ${schema}.runs`)).toEqual([{ n: 0 }])
  expect(await move()).toMatchObject({ before: false, tables: { runs: 4 } })
  expect(await move()).toMatchObject({ before: true })
  // a second copy would be driven as well
  const other = `${schema}_other`
  await expect(
    moveStore(file, { database: url, schema: other }, ports, () => undefined),
  ).rejects.toMatchObject({ code: 'store_transferred' })
  await admin(`drop schema ${other} cascade`)
  expect(await admin(`select count(*)::int as n from ${schema}.runs`)).toEqual([{ n: 4 }])
})

it('RAIL-18 a file that somebody owns, one that is not there, and a database that holds something are refused', async () => {
  await expect(move()).rejects.toMatchObject({ code: 'store_unavailable' })
  const owner = await embedded({ file, workflows })
  await expect(move()).rejects.toMatchObject({ code: 'owned_elsewhere' })
  await owner.close()
  const there = await embedded({ database: url, schema, workflows })
  await there.close()
  await expect(move()).rejects.toThrow('the database is not empty')
  const again = await embedded({ file, workflows })
  await again.close()
})
