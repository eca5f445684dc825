// Engines behind PgBouncer in transaction mode: each transaction of theirs may run on another connection, and nothing that is
// said to one connection may be counted on in the next.
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Log } from '../../src/kernel/log.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import type { Pooler } from '../../../../scripts/pooler.ts'
import { openPooler } from '../../../../scripts/pooler.ts'
import { postgresUrl } from '../support/postgres.ts'

const warned: string[] = []
const log: Log = { ...noLog, error: (event) => void warned.push(event) }
const ports = systemPorts(log)
const name = `pooled_${process.pid}`
const ends: (() => Promise<unknown>)[] = []
let direct: string
let pooler: Pooler

const admin = async <T extends pg.QueryResultRow>(text: string, at = postgresUrl() ?? '') => {
  const client = new pg.Client({ connectionString: at })
  await client.connect()
  try {
    return (await client.query<T>(text)).rows
  } finally {
    await client.end()
  }
}

beforeEach(async () => {
  warned.length = 0
  await admin(`drop database if exists ${name} with (force)`)
  await admin(`create database ${name} template template0 lc_collate 'C' lc_ctype 'C'`)
  const url = new URL(postgresUrl() ?? '')
  url.pathname = `/${name}`
  direct = url.href
  pooler = await openPooler(direct, 3)
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await pooler.close()
  await admin(`drop database if exists ${name} with (force)`)
})

const open = async (listenUrl?: string): Promise<Opened> => {
  const opened = await openOnPostgres({
    url: pooler.url,
    ports,
    connections: 6,
    ...(listenUrl === undefined ? {} : { listenUrl }),
  })
  ends.push(() => opened.close())
  return opened
}

const steps = workflow('steps', async (ctx, input: number) => {
  const one = await ctx.step('one', () => input + 1)
  await ctx.sleep('nap', 20)
  const two = await ctx.map('each', [1, 2, 3], (inner, each) => inner.step('add', () => one + each))
  return two.reduce((sum, each) => sum + each, 0)
})

const drive = async (opened: Opened): Promise<void> => {
  const executor = makeExecutor({
    port: opened.embedded,
    ports,
    workflows: [steps],
    slots: { default: 20 },
  })
  await executor.start()
  ends.push(() => executor.stop())
}

const startSome = async (opened: Opened, count: number): Promise<readonly string[]> => {
  const items = Array.from({ length: count }, (_, i) => ({
    command: { id: ports.ids.next('run'), workflow: 'steps', input: String(i) },
  }))
  const answers = await opened.engine.startMany(items)
  return answers.map((answer) => {
    if (!answer.ok) throw new Error(answer.message)
    return answer.id
  })
}

const results = () =>
  admin<{ output: string; status: string; entries: number }>(
    'select output, status, entries from runs order by id',
    direct,
  )
const expected = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    status: 'succeeded',
    output: String(3 * (i + 1) + 6),
    entries: 5,
  }))
const until = (what: () => unknown) => expect.poll(what, { timeout: 60_000, interval: 50 })

it('B105 RAIL-17 several engines behind a pooler in transaction mode drive all that any of them starts', async () => {
  const one = await open(direct)
  const two = await open(direct)
  await drive(one)
  await drive(two)
  await startSome(one, 60)
  await until(results).toMatchObject(expected(60))
  expect(warned).toEqual([])
  // what was set for a transaction has not stayed with a connection that others get
  const [left] = await admin<{ seqscan: string; timeout: string }>(
    `select current_setting('enable_seqscan') as seqscan, current_setting('statement_timeout') as timeout`,
    pooler.url,
  )
  expect(left).toEqual({ seqscan: 'on', timeout: '0' })
})

it('RAIL-17 without a way around it for wake-ups they live on polling', async () => {
  const one = await open()
  await drive(one)
  const two = await open()
  await startSome(two, 5)
  await until(results).toMatchObject(expected(5))
})

it('B099 a pooler that dies and comes back costs no write that was acknowledged, and nothing twice', async () => {
  const one = await open(direct)
  await drive(one)
  await startSome(one, 80)
  await until(async () => (await results()).some(({ status }) => status === 'succeeded')).toBe(true)
  await pooler.restart()
  await until(
    async () => (await results()).filter(({ status }) => status === 'succeeded').length,
  ).toBeGreaterThan(40)
  await pooler.restart()
  await until(results).toMatchObject(expected(80))
  const [twice] = await admin<{ n: string }>(
    `select count(*) as n from (select run, n from steps group by run, n having count(*) > 1) x`,
    direct,
  )
  expect(twice?.n).toBe('0')
  expect(warned).toEqual([])
})
