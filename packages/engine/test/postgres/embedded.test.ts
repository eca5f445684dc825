// The engine in the process of a program, on a database that others share.
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { embedded, workflow } from '../../src/entry/index.ts'
import { gate } from '../support/executor.ts'
import { postgresUrl } from '../support/postgres.ts'

const url = postgresUrl() ?? ''
const slow = workflow('slow', async (ctx, input: number) => {
  const first = await ctx.step('first', () => input + 1)
  await ctx.sleep('a while', 50)
  return ctx.step('second', () => first + 1)
})
let made = 0

const ownSchema = async (): Promise<string> => {
  const schema = `embedded_${process.pid}_${++made}`
  onTestFinished(async () => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`drop schema if exists ${schema} cascade`)
    await client.end()
  })
  return schema
}

it('RAIL-10 RAIL-17 several programs embed it on one database, in a schema that is made: each drives what any of them starts', async () => {
  const options = { database: url, schema: await ownSchema(), connections: 3, workflows: [slow] }
  const engines = await Promise.all([embedded(options), embedded(options), embedded(options)])
  const runs = await Promise.all(
    Array.from({ length: 30 }, (_, i) => engines[i % 3]?.start(slow, i).then((run) => run.id)),
  )
  const results = await Promise.all(runs.map((id, i) => engines[(i + 1) % 3]?.result(id as string)))
  expect(results).toMatchObject(runs.map((_id, i) => ({ status: 'succeeded', output: i + 2 })))
  const [one] = engines
  expect((await one?.executors())?.filter(({ state }) => state === 'live')).toHaveLength(3)
  for (const engine of engines) await engine.close()
})

it('EX-17 one that closes lets its step end and hands the run back, and another goes on with it', async () => {
  const options = { database: url, schema: await ownSchema(), connections: 3 }
  const begins = gate()
  const goes = gate()
  const holding = workflow('holding', async (ctx) => {
    await ctx.step('held', () => {
      begins.open()
      return goes.opened
    })
    return ctx.step('after', () => 'done')
  })
  const first = await embedded({ ...options, workflows: [holding] })
  const { id } = await first.start(holding, null)
  await begins.opened
  const second = await embedded({ ...options, workflows: [holding] })
  const closing = first.close()
  goes.open()
  await closing
  expect(await second.result(id)).toMatchObject({ status: 'succeeded', output: 'done' })
  expect(await second.get(id)).toMatchObject({ run: { attempt: 2 } })
  await second.close()
})
