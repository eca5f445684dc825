// A server of two databases: every route knows which of them it is about.
import { expect, test } from 'vitest'
import { shardAnswers } from '../../src/orchestrator/shards/shard-answers.ts'
import { routes } from '../../src/protocol/routes.ts'
import { join, ownerOn, serve } from '../support/shards.ts'
import { definition, registration } from '../support/store.ts'

const idsOf = (list: unknown): string[] => (list as { id: string }[]).map(({ id }) => id)

test('RUN-18 every route has its line in the table of a server of several databases', async () => {
  const t = await join()
  const table = shardAnswers({
    shards: t.shards,
    answers: [],
    whole: {} as never,
    figures: () => [],
  })
  expect(Object.keys(table).sort()).toEqual(Object.keys(routes).sort())
})

test('RUN-18 OPS-01 runs are started where their owner is and found by their id, whatever is asked of them', async () => {
  const s = await serve()
  const here = await s.begin(ownerOn(0))
  const there = await s.begin(ownerOn(1), { id: 'run_x', key: 'k' })
  expect(here).not.toContain('~')
  expect(there).toBe('run_x~1')
  // once for a key, on the shard where it was done
  const key = { 'idempotency-key': 'cmd_1' }
  const body = { workflow: 'w', input: null, owner: ownerOn(1, 1) }
  const first = await s.ask('POST', '/v1/runs', body, key)
  const again = await s.ask('POST', '/v1/runs', body, key)
  expect(again.body['id']).toBe(first.body['id'])
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  for (const run of [here, there])
    for (const path of ['', '/explain', '/journal', '/result', '/logs'])
      expect(await s.ask('GET', `/v1/runs/${run}${path}`)).toMatchObject({ status: 200 })
  expect(await s.ask('POST', `/v1/runs/${there}/pause`, {})).toMatchObject({ status: 200 })
  expect(await s.ask('POST', `/v1/runs/${there}/resume`, {})).toMatchObject({ status: 200 })
  const signal = { name: 'go', payload: 1 }
  expect(await s.ask('POST', `/v1/runs/${there}/signal`, signal)).toMatchObject({ status: 200 })
  expect(await s.ask('POST', `/v1/runs/${there}/cancel`, {})).toMatchObject({ status: 200 })
  const retried = await s.ask('POST', `/v1/runs/${there}/retry`, { id: 'run_again' })
  expect(retried.body).toMatchObject({ run: 'run_again~1' })
  expect(await s.ask('GET', '/v1/runs/run_y~1')).toMatchObject({ status: 404 })
  expect(await s.ask('GET', '/v1/runs/run_y~7')).toMatchObject({ status: 404 })
  expect(
    await s.ask('POST', '/v1/runs', {
      workflow: 'w',
      input: null,
      id: 'run_z~1',
      owner: ownerOn(0),
    }),
  ).toMatchObject({ status: 400 })

  const many = await s.ask('POST', '/v1/runs/bulk', {
    items: [
      { workflow: 'w', input: 1, owner: ownerOn(1) },
      { workflow: 'w', input: 1, owner: 5 },
      { workflow: 'w', input: 1 },
      { workflow: 'w', input: 1, owner: ownerOn(1), surplus: 1 },
    ],
  })
  expect(many.body).toMatchObject({
    started: 2,
    answers: [{ ok: true }, { ok: false }, { ok: true }, { ok: false }],
  })
  expect(JSON.stringify((many.body['answers'] as unknown[])[3])).toContain('items[3]')

  // one list, page by page, and one count
  const all: string[] = []
  let cursor = ''
  for (let i = 0; i < 10; i++) {
    const page = await s.ask('GET', `/v1/runs?limit=2${cursor}`)
    all.push(...idsOf(page.body['runs']))
    if (page.body['next'] === null) break
    cursor = `&cursor=${page.body['next'] as string}`
  }
  expect(all).toHaveLength(6)
  expect(all).toEqual([...all].sort().reverse())
  const counts = (await s.ask('GET', '/v1/runs/counts')).body['counts'] as { count: number }[]
  expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(6)
})

test('RUN-05 RAIL-10 an executor over HTTP has one session on all, and what it sees of them is one', async () => {
  const s = await serve()
  const runs = [await s.begin(ownerOn(0)), await s.begin(ownerOn(1))]
  const queue = await s.ask('GET', '/v1/queues/default')
  expect(queue.body).toMatchObject({ depth: 2, waiting: 2, executors: 1, capacity: 10, free: 10 })
  const claim = { session: 'ses_a', claim: 1, most: 10, except: [], waitMs: 0 }
  const claimed = await s.ask('POST', '/v1/executor/claim', claim)
  const held = claimed.body['runs'] as unknown as { run: string; attempt: number }[]
  expect(held.map(({ run }) => run).sort()).toEqual([...runs].sort())
  expect((await s.ask('GET', '/v1/executors')).body['executors']).toMatchObject([
    { id: 'ses_a', held: 2, state: 'live' },
  ])
  expect((await s.ask('GET', '/v1/queues')).body['queues']).toMatchObject([
    { queue: 'default', depth: 0, held: 2, free: 8, executors: 1 },
  ])
  const renewal = { session: 'ses_a', draining: false, status: null, letGo: [] }
  expect(await s.ask('POST', '/v1/executor/renew', renewal)).toMatchObject({ body: { ok: true } })
  const end = { kind: 'complete', output: '1' }
  const writes = held.map(({ run, attempt }) => ({ run, attempt, entries: [], end }))
  expect(
    (await s.ask('POST', '/v1/executor/write', { session: 'ses_a', writes })).body['answers'],
  ).toMatchObject([{ ok: true }, { ok: true }])
  for (const run of runs)
    expect((await s.ask('GET', `/v1/runs/${run}/result`)).body).toMatchObject({ ended: true })
  expect(
    (await s.ask('POST', '/v1/executor/exited', { session: 'ses_a', evidence: 'x' })).body,
  ).toMatchObject({ ended: true })
  expect((await s.ask('GET', '/v1/executors?endedWithinMs=60000')).body['executors']).toMatchObject(
    [{ id: 'ses_a', state: 'ended' }],
  )
})

test('RUN-29 a schedule is where its owner is, and so are its runs; no other has its name', async () => {
  const s = await serve()
  const made = { name: 'nightly', cron: '0 3 * * *', workflow: 'w', input: null }
  const owner = ownerOn(1)
  expect(await s.ask('POST', '/v1/schedules', { ...made, owner })).toMatchObject({ status: 200 })
  expect(await s.ask('POST', '/v1/schedules', { ...made, owner: ownerOn(0) })).toMatchObject({
    status: 409,
    body: { code: 'schedule_exists' },
  })
  await s.ask('POST', '/v1/schedules', { ...made, name: 'a', owner: ownerOn(0) })
  const list = (await s.ask('GET', '/v1/schedules')).body['schedules'] as unknown
  expect((list as { name: string }[]).map(({ name }) => name)).toEqual(['a', 'nightly'])
  const now = await s.ask('POST', '/v1/schedules/nightly/run', { id: 'run_now' })
  expect(now.body).toMatchObject({ run: 'run_now~1' })
  for (const store of s.stores) store.later(24 * 3_600_000)
  await s.stores[1]?.pass('fire-schedules')
  const runs = s.stores[1]?.sql('select id from runs order by id') ?? []
  expect(runs).toHaveLength(2)
  for (const { id } of runs) {
    expect(id).toMatch(/~1$/)
    expect(await s.ask('GET', `/v1/runs/${String(id)}`)).toMatchObject({ status: 200 })
  }
  expect(await s.ask('POST', '/v1/schedules/nightly/pause', {})).toMatchObject({ status: 200 })
  // with another owner it would be elsewhere
  expect(await s.ask('POST', '/v1/schedules/nightly', { owner: ownerOn(0) })).toMatchObject({
    status: 400,
  })
  expect(await s.ask('DELETE', '/v1/schedules/nightly')).toMatchObject({ status: 200 })
  expect(await s.ask('GET', '/v1/schedules/nightly')).toMatchObject({ status: 404 })
})

test('OPS-02 SLOT-03 what operators see is of all, and what they set is set on all', async () => {
  const s = await serve()
  const limited = definition('w', { limits: [{ key: 'all', value: 4, mode: 'whole_run' }] })
  await s.ask('POST', '/v1/executor/register', registration('ses_b', { definitions: [limited] }))
  for (let i = 0; i < 4; i++) for (const shard of [0, 1]) await s.begin(ownerOn(shard))
  expect((await s.ask('GET', '/v1/slots/all')).body).toMatchObject({
    slot: { key: 'all', value: 4, used: 4, waiters: 4 },
  })
  expect((await s.ask('PUT', '/v1/slots/all', { value: 7 })).body).toMatchObject({
    slot: { value: 7, operatorValue: 7, codeValue: 4 },
  })
  expect(await s.ask('PUT', '/v1/slots/all', { value: 1 })).toMatchObject({ status: 400 })
  const slots = (await s.ask('GET', '/v1/slots')).body['slots'] as { key: string }[]
  expect(slots.filter(({ key }) => key === 'all')).toHaveLength(1)
  expect((await s.ask('GET', '/v1/workflows')).body['workflows']).toHaveLength(1)
  expect(await s.ask('POST', '/v1/pauses', { kind: 'queue', name: 'default' })).toMatchObject({
    status: 200,
  })
  expect((await s.ask('GET', '/v1/pauses')).body['pauses']).toHaveLength(1)
  for (const store of s.stores) expect(store.sql('select name from pauses')).toHaveLength(1)
  expect(await s.ask('DELETE', '/v1/pauses/queue/default')).toMatchObject({ status: 200 })
  for (const store of s.stores) await store.pass()
  const sweeps = (await s.ask('GET', '/v1/sweeps')).body['sweeps'] as { name: string }[]
  expect(new Set(sweeps.map(({ name }) => name)).size).toBe(sweeps.length)
  let page = await s.ask('GET', '/v1/audit')
  expect(page.body).toMatchObject({ healthy: true, next: '' })
  const places: unknown[] = []
  while (page.body['next'] !== null) {
    places.push(page.body['next'])
    page = await s.ask('GET', `/v1/audit?after=${encodeURIComponent(page.body['next'] as string)}`)
  }
  expect(places).toEqual(['', 'begin~1'])
  const { text } = (await s.ask('GET', '/metrics')).body as unknown as { text: string }
  for (const shard of [0, 1]) expect(text).toContain(`leasehold_shard_up{shard="${shard}"} 1`)
  const helps = text.split('\n').filter((line) => line.startsWith('# HELP'))
  expect(new Set(helps).size).toBe(helps.length)
  expect(await s.ask('GET', '/readyz')).toMatchObject({ status: 200, body: { ready: true } })
  for (const path of ['notices', 'approvals', 'deliveries', 'orders', 'sinks', 'spawns'])
    expect(await s.ask('GET', `/v1/${path}`)).toMatchObject({ status: 200 })
})

test('RUN-18 notices of all are one list, newest first, page by page', async () => {
  const s = await serve()
  for (const [n, shard] of [0, 1, 1, 0, 1].entries())
    s.stores[shard]?.sql(
      `insert into notices (run, kind, occurrence, at, sentence, data) values (?, 'run_failed', '', ${1_000 + n}, 'x', null) returning run`,
      `run_${n}`,
    )
  const seen: unknown[] = []
  let cursor = ''
  for (let i = 0; i < 10; i++) {
    const page = await s.ask('GET', `/v1/notices?limit=2${cursor}`)
    seen.push(...(page.body['notices'] as { run: string }[]).map(({ run }) => run))
    if (page.body['next'] === null) break
    cursor = `&cursor=${encodeURIComponent(page.body['next'] as string)}`
  }
  expect(seen).toEqual(['run_4', 'run_3', 'run_2', 'run_1', 'run_0'])
})

test('RUN-18 OPS-06 one database is taken away: the server is of use for the others, and says which is not there', async () => {
  const s = await serve()
  const there = await s.begin(ownerOn(1))
  const here = await s.begin(ownerOn(0))
  s.away(1, true)
  const lost = await s.ask('GET', `/v1/runs/${there}`)
  expect(lost).toMatchObject({ status: 503, body: { code: 'store_unavailable', shard: 1 } })
  expect(lost.headers.get('retry-after')).toBe('1')
  expect(await s.ask('GET', `/v1/runs/${here}`)).toMatchObject({ status: 200 })
  const start = { workflow: 'w', input: null, owner: ownerOn(1) }
  expect(await s.ask('POST', '/v1/runs', start)).toMatchObject({ status: 503 })
  expect(await s.begin(ownerOn(0, 1))).not.toContain('~')
  const claim = { session: 'ses_a', claim: 1, most: 10, except: [], waitMs: 0 }
  expect((await s.ask('POST', '/v1/executor/claim', claim)).body['runs']).toHaveLength(2)
  expect(await s.ask('GET', '/v1/runs')).toMatchObject({ status: 503 })
  const ready = await s.ask('GET', '/readyz')
  expect(ready).toMatchObject({ status: 200, body: { ready: true, faults: [] } })
  expect(JSON.stringify(ready.body['warnings'])).toContain('shard 1: the store does not answer')
  const { text } = (await s.ask('GET', '/metrics')).body as unknown as { text: string }
  expect(text).toContain('leasehold_shard_up{shard="1"} 0')
  s.away(1, false)
  expect(await s.ask('GET', `/v1/runs/${there}`)).toMatchObject({ status: 200 })
  expect(await s.ask('POST', '/v1/runs', start)).toMatchObject({ status: 200 })
})

test('RAIL-15 a trigger is on each database, and a delivery is taken once, where what it starts has its owner', async () => {
  const s = await serve()
  const rule = { workflow: 'w', owner: { $: '/who' }, key: { $: '/order' } }
  const trigger = { kind: 'token', secrets: ['shop'], deliveryHeader: 'x-id', rules: [rule] }
  expect(await s.ask('PUT', '/v1/triggers/shop', trigger)).toMatchObject({ status: 200 })
  for (const store of s.stores) expect(store.sql('select name from triggers')).toHaveLength(1)
  expect((await s.ask('GET', '/v1/triggers')).body['triggers']).toHaveLength(1)
  const bring = (id: string, who: string): ReturnType<typeof s.ask> =>
    s.ask(
      'POST',
      '/hooks/shop',
      { who, order: id },
      {
        authorization: 'Bearer secret-of-the-shop',
        'x-id': id,
      },
    )
  const [here, there] = [await bring('a', ownerOn(0)), await bring('b', ownerOn(1))]
  expect([here, there]).toMatchObject([
    { status: 200, body: { outcome: 'started', repeated: false } },
    { status: 200, body: { outcome: 'started', repeated: false } },
  ])
  expect(here.body['run']).not.toMatch(/~1$/)
  expect(there.body['run']).toMatch(/~1$/)
  expect(await bring('b', ownerOn(1))).toMatchObject({
    body: { run: there.body['run'], repeated: true },
  })
  // also where the trigger has changed since, and it would go elsewhere now
  const changed = { ...trigger, rules: [{ ...rule, owner: ownerOn(0) }] }
  await s.ask('PUT', '/v1/triggers/shop', changed)
  expect(await bring('b', ownerOn(1))).toMatchObject({ body: { repeated: true } })
  await s.ask('PUT', '/v1/triggers/shop', trigger)
  expect((await s.ask('GET', '/v1/triggers/shop')).body['deliveries']).toHaveLength(2)

  s.away(0, true)
  expect(await bring('c', ownerOn(1))).toMatchObject({ status: 200 })
  expect(await bring('d', ownerOn(0))).toMatchObject({ status: 503 })
  s.away(0, false)
  expect(await bring('d', ownerOn(0))).toMatchObject({ body: { outcome: 'started' } })
  expect(await s.ask('POST', '/v1/triggers/shop/pause', {})).toMatchObject({ status: 200 })
  expect(await bring('e', ownerOn(1))).toMatchObject({ status: 503 })
  expect(await s.ask('DELETE', '/v1/triggers/shop')).toMatchObject({ status: 200 })
  for (const store of s.stores) expect(store.sql('select name from triggers')).toEqual([])
})

test('RUN-18 what a server of several databases does not do yet is refused with a sentence', async () => {
  const s = await serve()
  const spawn = { spawner: 's', queue: 'default', most: 1, slots: 1, labels: [] }
  for (const answer of [
    await s.ask('POST', '/v1/executor/spawns', spawn),
    await s.ask('POST', '/v1/executor/spawns/ses_x/settle', { evidence: 'x' }),
  ])
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  const socket = new Request('http://localhost/v1/executor/socket')
  expect(s.handler.mayConnect(socket)?.status).not.toBe(200)
})
