// The HTTP API without sockets: one handler from request to response.
import { afterEach, expect, test } from 'vitest'
import type { Ports } from '../../src/kernel/ports.ts'
import type { Handler, HandlerOptions } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Route } from '../../src/protocol/route.ts'
import { routes } from '../../src/protocol/routes.ts'
import { ask } from '../../src/store/sql.ts'
import { tell } from '../../src/store/tables/notices.ts'
import { insertOrders } from '../../src/store/tables/orders.ts'
import { failOrder } from '../../src/transitions/fail-order.ts'
import type { Hands, TestEngine } from '../support/engine.ts'
import { definition, hands, openTestEngine } from '../support/engine.ts'
import type { TestPorts } from '../support/ports.ts'
import { settled, testPorts } from '../support/ports.ts'

interface World extends TestEngine, TestPorts {
  readonly handler: Handler
  readonly hands: Hands
}
const opened: TestEngine[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

const greeting = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
  additionalProperties: false,
}

const world = async (options: HandlerOptions = {}): Promise<World> => {
  const ports = testPorts()
  const test = await openTestEngine(ports.ports)
  opened.push(test)
  const serving = await hands(test.port, 'ses_1', [
    definition('hello'),
    definition('typed', { input: greeting }),
    definition('one', { limits: [{ key: 'customer:{id}', value: 1 }] }),
  ])
  return { ...test, ...ports, handler: makeHandler(test.engine, options), hands: serving }
}

const send = async (
  handler: Handler,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) => {
  const response = await handler.fetch(
    new Request(`http://localhost${path}`, {
      method,
      headers,
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }),
  )
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: JSON.parse(text) as Record<string, never> & Record<string, unknown>,
  }
}

test('OPS-01 a run is started, listed, read and its result waited for', async () => {
  const { handler, hands: executor } = await world()
  const started = await send(handler, 'POST', '/v1/runs', {
    workflow: 'hello',
    input: { name: 'a', __proto__: 1 },
    labels: [],
  })
  expect(started.status).toBe(200)
  expect(started.body).toMatchObject({ started: true, status: 'queued' })
  const id = started.body['id'] as unknown as string

  const pending = await send(handler, 'GET', `/v1/runs/${id}/result`)
  expect(pending.body).toMatchObject({ ended: false, status: 'queued' })

  const [run] = await executor.claim()
  if (!run) throw new Error('nothing was claimed')
  await executor.step(run, 1, 'greet', 'hi')
  const waiting = send(handler, 'GET', `/v1/runs/${id}/result?waitMs=10000`)
  await settled()
  await executor.end(run, { kind: 'complete', output: '{"said":"hi"}' })
  expect((await waiting).body).toMatchObject({
    run: id,
    ended: true,
    status: 'succeeded',
    output: { said: 'hi' },
  })

  const detail = await send(handler, 'GET', `/v1/runs/${id}`)
  expect(detail.body).toMatchObject({
    run: { id, status: 'succeeded', entries: 1 },
    attempts: [{ attempt: 1, session: 'ses_1', end: 'completed' }],
    journal: [{ n: 1, key: 'greet', output: 'hi' }],
  })
  const list = await send(handler, 'GET', '/v1/runs?status=succeeded,failed&workflow=hello')
  expect(list.body).toMatchObject({ runs: [{ id }], next: null })
  const counts = await send(handler, 'GET', '/v1/runs/counts')
  expect(counts.body['counts']).toContainEqual({ status: 'succeeded', count: 1, more: false })
})

test('OPS-01 the wait for a result is over when its time is, and when the server stops', async () => {
  const { handler, advance } = await world()
  const { body } = await send(handler, 'POST', '/v1/runs', { workflow: 'hello', id: 'run_a' })
  expect(body['id']).toBe('run_a')
  const timed = send(handler, 'GET', '/v1/runs/run_a/result?waitMs=5000')
  await advance(5_000)
  expect((await timed).body).toMatchObject({ ended: false })
  const stopped = send(handler, 'GET', '/v1/runs/run_a/result?waitMs=60000')
  await settled()
  handler.stop()
  expect((await stopped).body).toMatchObject({ ended: false })
})

test('OPS-01 all faults of a request are listed at once with their paths, as problem+json', async () => {
  const { handler } = await world()
  const { status, headers, body } = await send(handler, 'POST', '/v1/runs', {
    workflow: '',
    priority: 1_000,
    labels: ['ok', 7],
    colour: 'red',
  })
  expect(status).toBe(400)
  expect(headers.get('content-type')).toBe('application/problem+json')
  expect(body).toMatchObject({
    type: 'urn:leasehold:invalid_request',
    code: 'invalid_request',
    status: 400,
  })
  const paths = (body['faults'] as unknown as { path: string }[]).map((fault) => fault.path)
  expect(paths.sort()).toEqual(['$.colour', '$.labels[1]', '$.priority', '$.workflow'])

  const notJson = await send(handler, 'POST', '/v1/runs', '{"workflow":')
  expect(notJson.body).toMatchObject({ code: 'invalid_request' })
  const unknown = await send(handler, 'GET', '/v1/nothing')
  expect(unknown).toMatchObject({ status: 404, body: { code: 'unknown_route' } })
  const page = await send(handler, 'GET', '/v1/runs?limit=1000&status=lost')
  expect((page.body['faults'] as unknown as unknown[]).length).toBe(2)
})

test('OPS-01 a route that is called by another method says which it takes, and a path that is none is unknown', async () => {
  const { handler } = await world()
  const wrong = await send(handler, 'PATCH', '/v1/runs')
  expect(wrong).toMatchObject({
    status: 405,
    body: { code: 'method_not_allowed', method: 'PATCH', allowed: ['GET', 'HEAD', 'POST'] },
  })
  expect(wrong.headers.get('content-type')).toBe('application/problem+json')
  expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS')
  for (const route of Object.values(routes) as Route[])
    expect(await send(handler, 'PATCH', route.path)).toMatchObject({ status: 405 })
  expect(await send(handler, 'DELETE', '/docs')).toMatchObject({ status: 405 })
  expect(await send(handler, 'PATCH', '/v1/nothing')).toMatchObject({ status: 404 })

  const options = await handler.fetch(
    new Request('http://localhost/v1/runs', { method: 'OPTIONS' }),
  )
  expect(options.status).toBe(204)
  expect(options.headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS')
  const head = await handler.fetch(new Request('http://localhost/v1/runs', { method: 'HEAD' }))
  expect(head.status).toBe(200)
  expect(await head.text()).toBe('')
})

test('RUN-23 an input that does not fit its workflow is refused with every path, before anything is stored', async () => {
  const { handler } = await world()
  const { status, body } = await send(handler, 'POST', '/v1/runs', {
    workflow: 'typed',
    input: { name: 7, extra: true },
  })
  expect(status).toBe(422)
  expect(body).toMatchObject({ code: 'invalid_input', workflow: 'typed' })
  const paths = (body['faults'] as unknown as { path: string }[]).map((fault) => fault.path)
  expect(paths.sort()).toEqual(['$.extra', '$.name'])
  const none = await send(handler, 'GET', '/v1/runs')
  expect(none.body['runs']).toEqual([])
  const good = await send(handler, 'POST', '/v1/runs', { workflow: 'typed', input: { name: 'a' } })
  expect(good.status).toBe(200)
})

test('RAIL-08 a repeat under an Idempotency-Key gets the first answer, another request is refused', async () => {
  const { handler, store } = await world()
  const key = { 'idempotency-key': 'k1' }
  const first = await send(handler, 'POST', '/v1/runs', { workflow: 'hello', input: 1 }, key)
  expect(first.headers.get('idempotency-replayed')).toBeNull()
  const again = await send(handler, 'POST', '/v1/runs', { workflow: 'hello', input: 1 }, key)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect(again.body).toEqual(first.body)
  const other = await send(handler, 'POST', '/v1/runs', { workflow: 'hello', input: 2 }, key)
  expect(other).toMatchObject({ status: 422, body: { code: 'command_reused', key: 'k1' } })

  const id = first.body['id'] as unknown as string
  const cancel = () =>
    send(handler, 'POST', `/v1/runs/${id}/cancel`, {}, { 'idempotency-key': 'k2' })
  const [one, two] = await Promise.all([cancel(), cancel()])
  expect(one.body).toEqual({ run: id, status: 'canceled' })
  expect(two.body).toEqual(one.body)
  // without the key the repeat meets the end
  const bare = await send(handler, 'POST', `/v1/runs/${id}/cancel`, {})
  expect(bare).toMatchObject({ status: 409, body: { code: 'already_ended', status: 409 } })
  expect(store.db.prepare('select count(*) from runs').pluck().get()).toBe(1)
  expect(store.db.prepare('select count(*) from commands where status = 0').pluck().get()).toBe(0)
})

test('RAIL-08 a refusal that was judged is the answer to its repeat too', async () => {
  const { handler } = await world()
  const key = { 'idempotency-key': 'k1' }
  const missing = await send(handler, 'POST', '/v1/runs/run_none/cancel', {}, key)
  expect(missing).toMatchObject({ status: 404, body: { code: 'not_found' } })
  const again = await send(handler, 'POST', '/v1/runs/run_none/cancel', {}, key)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
})

test('OPS-02 every write names its actor, and every refusal says what was found', async () => {
  const { handler } = await world()
  await send(
    handler,
    'POST',
    '/v1/runs',
    { workflow: 'hello', id: 'run_a' },
    { 'leasehold-actor': 'ada' },
  )
  await send(
    handler,
    'POST',
    '/v1/runs/run_a/pause',
    { why: 'lunch' },
    { 'leasehold-actor': 'ben' },
  )
  await send(handler, 'POST', '/v1/runs/run_a/resume', {})
  const { body } = await send(handler, 'GET', '/v1/runs/run_a')
  expect(
    (body['events'] as unknown as { kind: string; actor: string }[]).map(({ kind, actor }) => [
      kind,
      actor,
    ]),
  ).toEqual([
    ['run.started', 'ada'],
    ['run.pause_requested', 'ben'],
    ['run.resumed', 'api'],
  ])
  const refused = await send(handler, 'POST', '/v1/runs/run_a/hand-back', {})
  expect(refused).toMatchObject({ status: 409, body: { code: 'not_held' } })
  expect(refused.body['detail']).toContain('queued')
})

test('RUN-22 a bulk start reports bad items and starts the others', async () => {
  const { handler } = await world()
  const { status, body } = await send(handler, 'POST', '/v1/runs/bulk', {
    items: [
      { workflow: 'hello', input: 1 },
      { workflow: 'typed', input: {} },
      { workflow: 'nobody' },
      { workflow: 'hello', wrong: 1 },
      { workflow: 'hello', input: 2, id: 'run_b' },
    ],
  })
  expect(status).toBe(200)
  expect(body['started']).toBe(2)
  expect(
    (body['answers'] as unknown as { ok: boolean; code?: string }[]).map(
      (answer) => answer.code ?? answer.ok,
    ),
  ).toEqual([true, 'invalid_input', 'unknown_workflow', 'invalid_request', true])
})

test('OPS-01 a body over the limit is refused before it is read whole', async () => {
  const { handler } = await world()
  const { status, body } = await send(handler, 'POST', '/v1/runs', {
    workflow: 'hello',
    input: 'x'.repeat(2 * 1024 ** 2),
  })
  expect(status).toBe(413)
  expect(body).toMatchObject({ code: 'payload_too_large' })
})

test('SEC-01 without a token only names of this machine may call, so that a bent name cannot', async () => {
  const { handler } = await world()
  const from = (url: string, headers: Record<string, string>) =>
    handler.fetch(new Request(url, { headers })).then((response) => response.status)
  expect(await from('http://localhost:7400/v1/runs', {})).toBe(200)
  expect(await from('http://127.0.0.1/v1/runs', {})).toBe(200)
  expect(await from('http://[::1]:7400/v1/runs', {})).toBe(200)
  expect(await from('http://evil.example/v1/runs', {})).toBe(403)
  expect(await from('http://localhost.evil.example/v1/runs', {})).toBe(403)
  expect(await from('http://localhost/v1/runs', { host: 'evil.example' })).toBe(403)
  expect(await from('http://localhost/v1/runs', { origin: 'https://evil.example' })).toBe(403)
  expect(await from('http://localhost/v1/runs', { origin: 'null' })).toBe(403)
  expect(await from('http://localhost/v1/runs', { origin: 'http://localhost:3000' })).toBe(200)
  expect(await from('http://evil.example/healthz', {})).toBe(403)
})

test('SEC-02 with tokens each role reaches its own routes', async () => {
  const { handler } = await world({
    tokens: [
      { token: 'v', role: 'viewer' },
      { token: 'o', role: 'operator' },
      { token: 'e', role: 'executor' },
      { token: 'a', role: 'admin' },
    ],
  })
  const as = (token: string | null, method: string, path: string, body?: unknown) =>
    send(
      handler,
      method,
      path,
      body,
      token === null ? {} : { authorization: `Bearer ${token}` },
    ).then(({ status }) => status)
  expect(await as(null, 'GET', '/healthz')).toBe(200)
  expect(await as(null, 'GET', '/v1/runs')).toBe(401)
  expect(await as('x', 'GET', '/v1/runs')).toBe(401)
  expect(await as('v', 'GET', '/v1/runs')).toBe(200)
  expect(await as('v', 'POST', '/v1/runs', { workflow: 'hello' })).toBe(403)
  expect(await as('o', 'POST', '/v1/runs', { workflow: 'hello' })).toBe(200)
  expect(await as('e', 'GET', '/v1/runs')).toBe(403)
  expect(await as('o', 'POST', '/v1/executor/close', { session: 'ses_1', reason: 'x' })).toBe(403)
  expect(await as('e', 'POST', '/v1/executor/close', { session: 'ses_1', reason: 'x' })).toBe(200)
  expect(await as('a', 'POST', '/v1/executor/close', { session: 'ses_1', reason: 'x' })).toBe(200)
})

test('OPS-06 a draining server refuses work, says so to probes, and is safe to kill when nothing is in flight', async () => {
  const { handler } = await world()
  expect((await send(handler, 'GET', '/healthz')).body).toEqual({ alive: true })
  expect((await send(handler, 'GET', '/readyz')).status).toBe(200)
  expect((await send(handler, 'GET', '/drainz')).status).toBe(503)
  handler.drain()
  const refused = await send(handler, 'POST', '/v1/runs', { workflow: 'hello' })
  expect(refused).toMatchObject({ status: 503, body: { code: 'draining' } })
  expect((await send(handler, 'GET', '/readyz')).status).toBe(503)
  expect((await send(handler, 'GET', '/drainz')).body).toEqual({ safe: true, inFlight: 0 })
})

test('SEC-02 every route but the public ones asks for a token, and refuses one of another role', async () => {
  const { handler } = await world({
    tokens: [
      { token: 'v', role: 'viewer' },
      { token: 'o', role: 'operator' },
      { token: 'e', role: 'executor' },
    ],
  })
  const rightful = { viewer: 'v', operator: 'o', executor: 'e' } as const
  for (const [name, entry] of Object.entries(routes)) {
    const route: Route = entry
    const path = route.path.replace(/:\w+/g, 'x')
    const status = async (token: string | null): Promise<number> => {
      const response = await handler.fetch(
        new Request(`http://elsewhere.example${path}`, {
          method: route.method,
          headers: token === null ? {} : { authorization: `Bearer ${token}` },
          ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body: '{' }),
        }),
      )
      await response.body?.cancel()
      return response.status
    }
    if (route.raw === true) {
      // no token of the API stands in for a sender's signature
      for (const token of [null, 'guess', 'v', 'o', 'e'])
        expect([name, await status(token)]).toEqual([name, 401])
      continue
    }
    if (route.role === 'public') {
      expect([name, await status(null)]).not.toEqual([name, 401])
      continue
    }
    const wrong = route.role === 'executor' ? 'o' : route.role === 'operator' ? 'v' : 'e'
    expect([name, await status(null)]).toEqual([name, 401])
    expect([name, await status('guess')]).toEqual([name, 401])
    expect([name, await status(wrong)]).toEqual([name, 403])
    expect([401, 403]).not.toContain(await status(rightful[route.role]))
  }
})

test('OPS-01 a cursor leads to the next page of its own list; any other text is refused by name', async () => {
  const { handler } = await world()
  for (let i = 0; i < 3; i++)
    await send(handler, 'POST', '/v1/runs', { workflow: 'hello', id: `run_${i}😀` })
  const first = (await send(handler, 'GET', '/v1/runs?limit=2')).body
  const next = String(first['next'])
  const page = await send(handler, 'GET', `/v1/runs?limit=2&cursor=${next}`)
  expect(page.body).toMatchObject({ runs: [{ id: 'run_0😀' }], next: null })
  for (const [list, cursor] of [
    ['runs', 'run_1'],
    ['runs', '%00'],
    ['runs', ''],
    ['runs', next.slice(0, -1)],
    ['runs', next.slice(1)],
    ['runs', `${next}.x`],
    ['notices', next],
    ['approvals', next],
    ['notices', '7:nothing:run_1'],
  ])
    expect(await send(handler, 'GET', `/v1/${list}?cursor=${cursor}`)).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_request',
        detail: expect.stringMatching(
          /query\.cursor is not one that this list gave; expected what the page before said as next/,
        ) as string,
      },
    })
})

test('SEC-05 hostile ids, keys and cursors are data', async () => {
  const { handler, port, hands: executor } = await world()
  const odd = `a/b%2F?#'";--<b>`
  const run = `run_${odd}`
  expect((await send(handler, 'POST', '/v1/runs', { workflow: 'hello', id: run })).status).toBe(200)
  const path = `/v1/runs/${encodeURIComponent(run)}`
  expect((await send(handler, 'GET', path)).body).toMatchObject({ run: { id: run } })
  const [claimed] = await executor.claim()
  await port.write('ses_1', {
    run,
    attempt: claimed?.attempt ?? 0,
    entries: [],
    waits: [{ key: odd, kind: 'approval', approval: { prompt: odd, data: null, deciders: [] } }],
    end: { kind: 'suspend', keys: [odd] },
  })
  const approval = encodeURIComponent(`${run}:${odd}`)
  expect(
    await send(handler, 'POST', `/v1/approvals/${approval}/decide`, { decision: 'approved' }),
  ).toMatchObject({ status: 200, body: { run, decision: 'approved' } })
  for (const query of [`text=${encodeURIComponent(odd)}`, 'label=%25', 'owner=%F0'])
    expect((await send(handler, 'GET', `/v1/runs?${query}`)).status).toBe(200)
  expect((await send(handler, 'GET', '/v1/runs/%E0%A4%A')).status).toBe(404)
  const slot = await send(handler, 'PUT', `/v1/slots/${encodeURIComponent(odd)}`, { value: 3 })
  expect(slot.body).toMatchObject({ slot: { key: odd, value: 3, updatedBy: 'api' } })
  const deep = await send(
    handler,
    'POST',
    '/v1/runs',
    `{"workflow":"hello","input":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
  )
  expect(deep).toMatchObject({ status: 422, body: { code: 'not_serializable' } })
})

test('SLOT-01 a full limit with the policy to reject lists its holders', async () => {
  const { handler, port } = await world()
  await hands(port, 'ses_2', [
    definition('only', { limits: [{ key: 'x:{id}', value: 1, policy: 'reject' }] }),
  ])
  const start = () => send(handler, 'POST', '/v1/runs', { workflow: 'only', input: { id: '7' } })
  const first = await start()
  const second = await start()
  expect(second.status).toBe(429)
  expect(second.headers.get('retry-after')).toBe('1')
  expect(second.body).toMatchObject({
    code: 'limit_full',
    limit: 'x:7',
    value: 1,
    holders: [{ run: first.body['id'], status: 'queued' }],
  })
  const slot = await send(handler, 'GET', '/v1/slots/x%3A7')
  expect(slot.body).toMatchObject({
    slot: { key: 'x:7', value: 1, used: 1, waiters: 0 },
    holders: [{ run: first.body['id'] }],
    line: [],
  })
})

test('OPS-01 operators see and set limits, pauses, versions, queues, executors and sweeps', async () => {
  const { handler, engine } = await world()
  await send(handler, 'POST', '/v1/runs', { workflow: 'hello' })
  const queues = await send(handler, 'GET', '/v1/queues')
  expect(queues.body['queues']).toMatchObject([{ queue: 'default', depth: 1, paused: null }])
  await send(handler, 'POST', '/v1/pauses', { kind: 'workflow', name: 'hello', why: 'deploy' })
  expect((await send(handler, 'GET', '/v1/pauses')).body).toMatchObject({
    pauses: [{ kind: 'workflow', name: 'hello', pausedBy: 'api', why: 'deploy', until: null }],
  })
  expect((await send(handler, 'DELETE', '/v1/pauses/workflow/hello')).status).toBe(200)
  expect((await send(handler, 'DELETE', '/v1/pauses/workflow/hello')).status).toBe(409)
  expect(
    await send(handler, 'POST', '/v1/workflows/hello/current', { version: '9' }),
  ).toMatchObject({ status: 404, body: { code: 'unknown_workflow' } })
  expect(
    (await send(handler, 'POST', '/v1/workflows/hello/current', { version: '1' })).body,
  ).toEqual({
    name: 'hello',
    currentVersion: '1',
  })
  expect((await send(handler, 'GET', '/v1/workflows')).body['workflows']).toContainEqual(
    expect.objectContaining({ name: 'hello', currentVersion: '1' }),
  )
  expect((await send(handler, 'GET', '/v1/executors')).body['executors']).toMatchObject([
    { id: 'ses_1', state: 'live', held: 0, capacity: 100 },
  ])
  await send(handler, 'PUT', '/v1/slots/global', { value: 1 })
  expect(engine.catalog.globalLimit).toBe(true)
  await send(handler, 'POST', '/v1/runs', { workflow: 'hello' })
  expect((await send(handler, 'GET', '/v1/slots/global')).body).toMatchObject({
    slot: { used: 1, operatorValue: 1 },
  })
  expect((await send(handler, 'GET', '/v1/audit')).body).toMatchObject({ healthy: true })
  expect((await send(handler, 'GET', '/v1/sweeps')).body).toMatchObject({ sweeps: [] })
})

test('RUN-13 RUN-33 notices are listed newest first, a page at a time', async () => {
  const { engine, handler } = await world()
  for (const run of ['run_1', 'run_2', 'run_3'])
    await engine.store.run(function* () {
      yield* ask(
        ...tell([
          {
            run,
            kind: 'start_overdue',
            occurrence: '',
            sentence: `${run} waits`,
            data: { run },
          },
        ]),
      )
    })
  const first = await send(handler, 'GET', '/v1/notices?limit=2')
  expect(first.body['notices']).toMatchObject([
    { run: 'run_3', kind: 'start_overdue', sentence: 'run_3 waits', data: { run: 'run_3' } },
    { run: 'run_2' },
  ])
  const next = encodeURIComponent(String(first.body['next']))
  expect((await send(handler, 'GET', `/v1/notices?limit=2&cursor=${next}`)).body).toMatchObject({
    notices: [{ run: 'run_1' }],
    next: null,
  })
})

test('RUN-21 orders that were set aside are listed, tried anew and dropped', async () => {
  const { engine, handler } = await world()
  const placed = [1, 2].map((n) => ({
    id: `cancel:run_${n}`,
    kind: 'cancel' as const,
    run: `run_${n}`,
    payload: '{"by":"ada"}',
  }))
  await engine.store.run(function* () {
    yield* ask(insertOrders(placed))
  })
  const path = (id: string) => `/v1/orders/${encodeURIComponent(id)}`
  expect((await send(handler, 'GET', '/v1/orders')).body).toEqual({
    orders: [],
    open: 2,
    oldestMs: 0,
    late: false,
  })
  for (const { id } of placed)
    await engine.store.run((tx) => failOrder(tx, id, 0, 'it cannot be applied', 1))
  expect((await send(handler, 'GET', '/v1/orders')).body['orders']).toMatchObject([
    {
      id: 'cancel:run_1',
      kind: 'cancel',
      run: 'run_1',
      failures: 1,
      error: 'it cannot be applied',
      payload: { by: 'ada' },
    },
    { id: 'cancel:run_2' },
  ])
  expect((await send(handler, 'GET', '/v1/notices')).body['notices']).toMatchObject([
    { run: 'cancel:run_2', kind: 'order_set_aside' },
    { run: 'cancel:run_1', data: { order: 'cancel:run_1', kind: 'cancel', run: 'run_1' } },
  ])
  expect((await send(handler, 'POST', `${path('cancel:run_1')}/retry`, {})).body).toMatchObject({
    order: 'cancel:run_1',
    done: 'retried',
  })
  expect((await send(handler, 'DELETE', path('cancel:run_2'))).body).toMatchObject({
    run: 'run_2',
    done: 'dropped',
  })
  expect((await send(handler, 'DELETE', path('cancel:run_2'))).status).toBe(404)
  expect((await send(handler, 'GET', '/v1/orders')).body).toEqual({
    orders: [],
    open: 1,
    oldestMs: 0,
    late: false,
  })
  expect((await send(handler, 'GET', '/v1/notices')).body['notices']).toEqual([])
})

test('OPS-01 the document, the page and the dashboard are served', async () => {
  const { handler } = await world({ dashboard: new URL(import.meta.url).pathname })
  const text = async (path: string) => {
    const response = await handler.fetch(new Request(`http://localhost${path}`))
    return [response.status, response.headers.get('content-type'), await response.text()] as const
  }
  const [status, type, document] = await text('/openapi.json')
  expect([status, type]).toEqual([200, 'application/json; charset=utf-8'])
  expect(document).toContain('"openapi":"3.1.0"')
  expect((await text('/docs'))[1]).toBe('text/html; charset=utf-8')
  expect((await text('/'))[2]).toContain('the dashboard are served')
  const without = await world()
  expect((await send(without.handler, 'GET', '/')).body).toMatchObject({ code: 'unknown_route' })
})

test('OPS-01 a HEAD of a stream has its head alone: no source is asked and no timer is left behind', async () => {
  const { ports } = testPorts()
  let left = 0
  const after: Ports['timers']['after'] = (ms, run) => {
    left += 1
    const cancel = ports.timers.after(ms, run)
    return () => {
      left -= 1
      cancel()
    }
  }
  const test = await openTestEngine({ ...ports, timers: { ...ports.timers, after } })
  opened.push(test)
  const handler = makeHandler(test.engine)
  const events = (method: string) =>
    handler.fetch(new Request('http://localhost/v1/events', { method }))
  const head = await events('HEAD')
  expect(head.headers.get('content-type')).toContain('text/event-stream')
  expect(left).toBe(0)
  const { body } = await events('GET')
  expect(left).toBeGreaterThan(0)
  await body?.cancel()
})

test('OPS-01 the limit of a body is said in whole bytes', async () => {
  const test = await openTestEngine(testPorts().ports, { settings: { payloadMaxBytes: 1_048_577 } })
  opened.push(test)
  const { status, body } = await send(
    makeHandler(test.engine),
    'POST',
    '/v1/runs',
    'x'.repeat(2 * 1024 ** 2),
  )
  expect(status).toBe(413)
  expect(body['limit']).toSatisfy(Number.isInteger)
})

test.each(['run_1:r', 'run_1_end', 'run_1_end~1'])(
  'DAG-11 RUN-33 a run of the id %s is refused: the engine makes ids of its own so',
  async (id) => {
    const { handler } = await world()
    const answer = await send(handler, 'POST', '/v1/runs', { workflow: 'hello', id })
    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer.body)).toContain('without a colon')
  },
)
