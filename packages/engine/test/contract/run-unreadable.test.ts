// Somebody changed rows by hand, and what they hold is not JSON any more: that concerns these rows, and is said by name.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Log } from '../../src/kernel/log.ts'
import { noLog } from '../../src/kernel/log.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
const logged: { event: string; facts: unknown }[] = []
const log: Log = { ...noLog, error: (event, facts) => void logged.push({ event, facts }) }
beforeEach(async () => {
  logged.length = 0
  t = await openStore({ log })
  a = await t.session({ embedded: true })
})
afterEach(() => t.close())

const SENTENCE = /cannot be read, since somebody changed it in the database: it is not JSON/

const get = async (path: string, method = 'GET', body?: unknown) => {
  const handler = makeHandler(t.engine, {
    onDefect: (error) => {
      throw error
    },
  })
  const response = await handler.fetch(
    new Request(`http://localhost${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  )
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const ended = async (): Promise<string> => {
  const id = await t.start('w', { input: '{"a":1}' })
  const run = (await a.claim()).find((each) => each.run === id)
  if (!run) throw new Error(`${id} was not claimed`)
  await a.write(run, { entries: [entry(1)], state: '1', progress: '1' })
  await a.complete(run, 'done')
  return id
}

describe('L10 a row that cannot be read', () => {
  it('L10 broken labels stop neither the run nor who signals it or lists', async () => {
    const id = await t.start('w')
    const run = only(await a.claim())
    t.sql(`update runs set labels = '[' where id = ? returning id`, id)
    expect((await get('/v1/runs')).status).toBe(200)
    expect(await get(`/v1/runs/${id}/signal`, 'POST', { name: 'go' })).toMatchObject({
      status: 200,
    })
    await a.complete(run, 'done')
    expect(t.run(id)).toMatchObject({ status: 'succeeded' })
  })

  it('L10 is shown with the sentence that says so, in a list beside the others and in full', async () => {
    const broken = await ended()
    const fine = await ended()
    t.sql(
      `update runs set input = '{', output = 'no', error = '', state = '[', progress = 'x' where id = ? returning id`,
      broken,
    )
    t.sql(`update steps set output = '{"a":' where run = ? returning run`, broken)
    t.sql(
      `insert into notices (run, kind, at, sentence, data) values (?, 'start_overdue', 1, 's', '{') returning run`,
      broken,
    )
    const { status, body } = await get('/v1/runs')
    expect(status).toBe(200)
    const runs = body['runs'] as { id: string; progress: unknown }[]
    expect(runs.find(({ id }) => id === fine)?.progress).toBe(1)
    expect(runs.find(({ id }) => id === broken)?.progress).toMatch(SENTENCE)
    const detail = await get(`/v1/runs/${broken}`)
    expect(detail.status).toBe(200)
    for (const member of ['input', 'output', 'error', 'state'])
      expect(detail.body[member]).toMatch(SENTENCE)
    expect((detail.body['journal'] as { output: unknown }[])[0]?.output).toMatch(SENTENCE)
    expect((await get('/v1/notices')).status).toBe(200)
  })

  it('L10 gives no result: who waits for it is told which run, and is not told to try again', async () => {
    const broken = await ended()
    const fine = await ended()
    t.sql(`update runs set output = 'no' where id = ? returning id`, broken)
    expect(await get(`/v1/runs/${broken}/result`)).toMatchObject({
      status: 500,
      body: {
        code: 'row_unreadable',
        detail: expect.stringMatching(
          new RegExp(`the result of ${broken} cannot be read`),
        ) as string,
      },
    })
    expect(await get(`/v1/runs/${fine}/result`)).toMatchObject({ body: { output: 'done' } })
  })

  it('L10 is no success for a parent, and keeps no other parent from hearing of its child', async () => {
    await t.session({ definitions: [definition('c')] })
    const parents = [await t.start('w'), await t.start('w')]
    for (const run of await a.claim(2))
      await a.write(run, {
        waits: [
          {
            key: 'c',
            kind: 'child',
            child: {
              id: `${run.run}_c`,
              workflow: 'c',
              input: null,
              awaited: true,
              onParentEnd: 'cancel',
            },
          },
        ],
        end: { kind: 'suspend', keys: ['c'] },
      })
    const b = await t.session({ embedded: true, definitions: [definition('c')] })
    for (const child of await b.claim(2)) await b.complete(child, 7)
    t.sql(`update runs set output = '{' where id = ? returning id`, `${parents[0]}_c`)
    t.sql(`update orders set payload = 'x' where id = ? returning id`, `child:${parents[0]}_c`)
    await t.settle('apply-orders', 'reconcile-families')
    const told = (await a.claim(2)).map(({ run, waits }) => ({
      run,
      result: JSON.parse(waits[0]?.result ?? 'null') as unknown,
    }))
    expect(told).toHaveLength(2)
    expect(told.find(({ run }) => run === parents[1])?.result).toMatchObject({
      status: 'succeeded',
      output: 7,
    })
    expect(told.find(({ run }) => run === parents[0])?.result).toMatchObject({
      status: 'failed',
      reason: 'row_unreadable',
      error: { message: expect.stringMatching(SENTENCE) as string },
    })
  })

  it('L10 ends all the same, and what runs at its end is handed the sentence', async () => {
    await t.session({ definitions: [definition('v', { onEnd: 'h' }), definition('h')] })
    const id = await t.start('v', { input: '1' })
    t.sql(`update runs set input = '{' where id = ? returning id`, id)
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    expect(t.run(id)['status']).toBe('canceled')
    expect(JSON.parse(String(t.run(`${id}_end`)['input']))).toMatchObject({
      run: id,
      input: expect.stringMatching(SENTENCE) as string,
    })
  })

  it('L10 keeps its own approval from being decided, and no other', async () => {
    const ids = [await t.start('w'), await t.start('w')]
    for (const run of await a.claim(2))
      await a.write(run, {
        waits: [
          { key: 'ok', kind: 'approval', approval: { prompt: '?', data: null, deciders: [] } },
        ],
        end: { kind: 'suspend', keys: ['ok'] },
      })
    t.sql(`update approvals set deciders = '{}' where run = ? returning run`, ids[0] ?? '')
    const decide = (run: string | undefined) =>
      get(`/v1/approvals/${run}:ok/decide`, 'POST', { decision: 'approved' })
    expect(await decide(ids[0])).toMatchObject({ status: 500, body: { code: 'row_unreadable' } })
    expect((await decide(ids[1])).status).toBe(200)
    const { body } = await get('/v1/approvals')
    expect(only(body['approvals'] as { deciders: string[] }[]).deciders[0]).toMatch(
      /cannot be read, since .* it is not a list of texts/,
    )
    expect(JSON.stringify(await get(`/v1/runs/${ids[0]}/explain`))).toMatch(/is not a list/)
  })

  it('L10 an order of a transaction that cannot be read is put off with its error, and the next is applied', async () => {
    const run = await t.start('w')
    for (const [id, payload] of [
      ['o1', '{'],
      ['o2', '{"by":"ana"}'],
    ] as const)
      t.sql(
        `insert into orders (id, kind, run, payload, created_at) values (?, 'cancel', ?, ?, 1) returning id`,
        id,
        run,
        payload,
      )
    await t.pass('apply-orders')
    expect(t.run(run)['status']).toBe('canceled')
    expect(only(t.sql('select id, error from orders'))).toMatchObject({
      id: 'o1',
      error: expect.stringMatching(/the order o1 cannot be read/) as string,
    })
  })

  it('L10 a definition that cannot be read is unknown until it is registered again, and the rest is served', async () => {
    await t.session({ definitions: [definition('v')] })
    t.sql(`update definitions set definition = '{' where workflow = 'v' returning workflow`)
    t.sql(`update sessions set queues = 'x' returning id`)
    t.sql(`update lanes set lane = 'x' where workflow = 'v' returning lane`)
    await t.engine.reload()
    expect(logged).toMatchObject([
      { event: 'definition.unreadable', facts: { workflow: 'v', version: '1' } },
    ])
    expect(await t.startAnswer('v')).toMatchObject({ code: 'unknown_workflow' })
    await t.start('w')
    for (const path of ['workflows', 'executors', 'queues', 'runs'])
      expect((await get(`/v1/${path}`)).status).toBe(200)
    await t.session({ definitions: [definition('v')] })
    expect(await t.startAnswer('v')).toMatchObject({ ok: true })
  })
})
