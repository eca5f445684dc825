// The client and the executor port over HTTP, on a handler in this process and on networks that lose things.
import { afterEach, expect, expectTypeOf, test } from 'vitest'
import type { Fetch } from '../../src/client/call.ts'
import type { Client, Result } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { httpExecutorPort } from '../../src/client/executor-port.ts'
import { Fault } from '../../src/kernel/errors.ts'
import type { Timers } from '../../src/kernel/timers.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { ClaimedRun, Told } from '../../src/model/work.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { TestEngine } from '../support/engine.ts'
import { definition, hands, openTestEngine } from '../support/engine.ts'
import { settled, testPorts } from '../support/ports.ts'
import { registration } from '../support/store.ts'

const opened: TestEngine[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

const ports = systemPorts()
/** Delays pass fifty times as fast. */
const hurried: Timers = {
  soon: ports.timers.soon,
  after: (ms, run) => ports.timers.after(ms / 50, run),
}
const url = 'http://localhost'

const world = async () => {
  const test = await openTestEngine(ports)
  opened.push(test)
  const handler = makeHandler(test.engine)
  const requests: string[] = []
  const direct: Fetch = (input, init) => {
    requests.push(`${init.method} ${new URL(input).pathname}`)
    return handler.fetch(new Request(input, init))
  }
  return { ...test, handler, direct, requests }
}

/** Loses the first answers of each kind that it is told to, after or before the server has done the thing. */
const losing = (fetch: Fetch, when: 'before' | 'after', times: number): Fetch => {
  let left = times
  return async (input, init) => {
    if (left <= 0) return fetch(input, init)
    left -= 1
    if (when === 'after') await fetch(input, init)
    throw new TypeError('fetch failed', { cause: new Error('connection reset') })
  }
}

interface Release {
  readonly name: string
  readonly types?: { readonly input: { readonly tag: string }; readonly output: { url: string } }
}

test('DX-05 a client is typed by the type of a workflow alone', () => {
  const use = async (client: Client) => {
    const run = await client.start<Release>('release', { tag: 'v1' })
    // @ts-expect-error the input is another one
    await client.start<Release>('release', { tog: 'v1' })
    return client.result(run)
  }
  expectTypeOf(use).returns.resolves.toEqualTypeOf<Result<{ url: string }>>()
})

test('DX-05 a client starts, looks, waits, tells and decides', async () => {
  const { port, direct } = await world()
  const executor = await hands(port, 'ses_1', [definition('release')])
  const client = connect({ url, fetch: direct, actor: 'ada' })
  const run = await client.start<Release>('release', { tag: 'v1' }, { key: 'k' })
  expect(run).toMatchObject({ started: true, status: 'queued' })
  expect((await client.start<Release>('release', { tag: 'v1' }, { key: 'k' })).id).toBe(run.id)
  await expect(client.start<Release>('release', { tag: 'v2' }, { key: 'k' })).rejects.toMatchObject(
    {
      code: 'key_reused',
      detail: { run: run.id },
    },
  )
  expect(
    (await client.list({ status: ['queued'], limit: 10 })).runs.map((each) => each.id),
  ).toEqual([run.id])
  expect((await client.explain(run.id)).conditions[0]).toMatchObject({ code: 'queued' })
  expect(await client.result(run, { timeoutMs: 0 })).toMatchObject({ ended: false })

  const [claimed] = (await executor.claim()) as [ClaimedRun]
  await port.write('ses_1', {
    run: run.id,
    attempt: 1,
    entries: [],
    waits: [
      {
        key: 'ship',
        kind: 'approval',
        approval: { prompt: 'Ship it?', data: null, deciders: [] },
      },
    ],
    end: { kind: 'suspend', keys: ['ship'] },
  })
  expect(claimed.run).toBe(run.id)
  expect(await client.explain(run.id)).toMatchObject({
    status: 'waiting',
    conditions: [{ code: 'approval', evidence: { approval: `${run.id}:ship` } }],
  })
  expect((await client.approvals()).approvals).toMatchObject([
    { prompt: 'Ship it?', state: 'open' },
  ])
  await client.approve(`${run.id}:ship`, { reason: 'looks good', payload: { when: 'now' } })
  await expect(client.deny(`${run.id}:ship`)).rejects.toMatchObject({
    code: 'already_decided',
    detail: { by: 'ada' },
  })
  const [again] = (await executor.claim()) as [ClaimedRun]
  const result = client.result(run)
  await executor.end(again, { kind: 'complete', output: '{"url":"x"}' })
  expect(await result).toMatchObject({ ended: true, status: 'succeeded', output: { url: 'x' } })
  await expect(client.cancel(run.id)).rejects.toMatchObject({ code: 'already_ended' })
  expect((await client.get(run.id)).events.map(({ kind, actor }) => [kind, actor])).toEqual([
    ['run.started', 'ada'],
    ['approval.decided', 'ada'],
  ])
  const retried = await client.retry(run.id)
  expect(retried).toMatchObject({ retryOf: run.id, started: true })
  expect((await client.audit()).invariants.filter((each) => each.figure > 0)).toEqual([])
})

test('OPS-04 the audit of a client looks at every run, and counts a broken one once', async () => {
  const { port, direct, store } = await world()
  await hands(port, 'ses_1', [definition('release')])
  const client = connect({ url, fetch: direct })
  const { id } = await client.start('release', null)
  store.db.exec(`
    with recursive g (i) as (select 1 union all select i + 1 from g where i < 2500)
    insert into runs (id, workflow, version, queue, lane, tag, rank, input_hash, status, attempt, created_at, ended_at, root, series)
      select 'run_' || i, 'w', '1', 'default', '["default","w","1"]', i, i, '', 'canceled', 0, 1, 2, 'run_' || i, 'run_' || i from g;
    insert into steps (run, key, n, kind, attempt, rev, at) values ('run_1', 's', 1, 'step', 1, 2, 1);
    update runs set entries = 7 where id = '${id}';`)
  const { healthy, invariants } = await client.audit()
  expect(healthy).toBe(false)
  expect(invariants.find(({ name }) => name === 'S6')).toMatchObject({
    figure: 2,
    sample: [id, 'run_1'],
  })
  expect(invariants.map(({ name }) => name)).toContain('L11')
})

test('SEC-02 an executor reads the journal of runs that its session holds, and of no other', async () => {
  const { port, direct } = await world()
  const client = connect({ url, fetch: direct })
  const executor = await hands(port, 'ses_1', [definition('release')])
  await hands(port, 'ses_2', [definition('release')])
  await client.start('release', null)
  const [run] = (await executor.claim()) as [ClaimedRun]
  await executor.step(run, 1, 'a', 1)
  const over = httpExecutorPort({ url, fetch: direct, ports })
  expect(await over.journal('ses_1', run.run, 0)).toMatchObject([{ key: 'a' }])
  for (const way of [port, over])
    for (const session of ['ses_2', 'ses_9'])
      await expect(way.journal(session, run.run, 0)).rejects.toMatchObject({
        code: 'stale_attempt',
        name: 'StaleAttemptError',
      })
  await executor.end({ ...run, entries: 1 }, { kind: 'hand_back', reason: 'shutdown' })
  await expect(over.journal('ses_1', run.run, 0)).rejects.toMatchObject({ code: 'stale_attempt' })
})

test('RAIL-08 a call whose answer was lost is repeated and done once', async () => {
  const { port, direct, store } = await world()
  await hands(port, 'ses_1', [definition('release')])
  for (const when of ['before', 'after'] as const) {
    const client = connect({ url, fetch: losing(direct, when, 2), timers: hurried })
    const run = await client.start<Release>('release', { tag: when })
    const telling = connect({ url, fetch: losing(direct, when, 2), timers: hurried })
    expect(await telling.cancel(run.id)).toEqual({ run: run.id, status: 'canceled' })
    const retrying = connect({ url, fetch: losing(direct, when, 2), timers: hurried })
    expect(await retrying.retry(run.id)).toMatchObject({ started: true })
    const many = connect({ url, fetch: losing(direct, when, 1), timers: hurried })
    await many.startMany<Release>('release', [{ input: { tag: 'a' } }, { input: { tag: 'b' } }])
  }
  // four of each round: the run, its retry, and the two of the bulk start
  expect(store.db.prepare('select count(*) from runs').pluck().get()).toBe(8)
})

test('OPS-01 a client gives up after a while, and at once when the server says no', async () => {
  const { direct, requests } = await world()
  const client = connect({
    url,
    fetch: losing(direct, 'before', 1_000),
    retryForMs: 300,
    timers: hurried,
  })
  await expect(client.get('run_a')).rejects.toMatchObject({ code: 'peer_unreachable' })
  const other = connect({ url, fetch: direct })
  await expect(other.get('run_a')).rejects.toMatchObject({ code: 'not_found' })
  expect(requests).toEqual(['GET /v1/runs/run_a'])
})

test('RAIL-10 the port over HTTP does what the direct one does', async () => {
  const { direct, engine } = await world()
  const port = httpExecutorPort({ url, fetch: direct, ports })
  const executor = await hands(port, 'ses_1', [definition('release', { limits: [] })])
  await engine.start({
    command: { id: 'run_a', workflow: 'release', input: '{"tag":"v1","__proto__":{"x":1}}' },
  })
  const [run] = (await executor.claim()) as [ClaimedRun]
  expect(run).toMatchObject({
    run: 'run_a',
    attempt: 1,
    input: '{"tag":"v1","__proto__":{"x":1}}',
    journal: [],
  })
  expect(await executor.step(run, 1, 'build', { a: [1, null, '\u0000'] })).toMatchObject({
    ok: true,
    ended: null,
  })
  expect(await port.journal('ses_1', 'run_a', 0)).toEqual([
    { n: 1, key: 'build', kind: 'step', at: 1, output: '{"a":[1,null,"\\u0000"]}', error: null },
  ])
  const renewed = await port.renew({
    session: 'ses_1',
    draining: false,
    status: '{"slots":1}',
    letGo: [],
  })
  expect(renewed).toMatchObject({ ok: true, wantsList: false })
  expect(await executor.end(run, { kind: 'complete', output: 'null' })).toMatchObject({
    ok: true,
    ended: 'succeeded',
  })
  expect(await executor.end(run, { kind: 'complete', output: 'null' })).toMatchObject({ ok: true })
  expect(
    await port.write('ses_2', { run: 'run_a', attempt: 1, entries: [], look: true }),
  ).toMatchObject({
    ok: false,
    code: 'stale_attempt',
    detail: { status: 'succeeded' },
  })
  expect(await port.close({ session: 'ses_1', reason: 'shutdown' })).toMatchObject({ ok: true })
  expect(
    await port.renew({ session: 'ses_1', draining: false, status: null, letGo: [] }),
  ).toMatchObject({ ok: false, code: 'session_ended' })
})

test('RAIL-10 writes are grouped while a request is in flight, and a bad one harms no other', async () => {
  const { direct, engine, requests } = await world()
  const port = httpExecutorPort({ url, fetch: direct, ports })
  const executor = await hands(port, 'ses_1', [definition('release')])
  await engine.startMany(
    Array.from({ length: 20 }, (_each, i) => ({
      command: { id: `run_${i}`, workflow: 'release', input: null },
    })),
  )
  const runs = await executor.claim(20)
  expect(runs).toHaveLength(20)
  requests.length = 0
  const answers = await Promise.all(
    runs.map((run, i) => executor.step(run, 1, i === 3 ? '' : 'build', i)),
  )
  expect(answers.filter((answer) => answer.ok)).toHaveLength(19)
  expect(answers[3]).toMatchObject({ ok: false, code: 'invalid_request' })
  expect(requests.filter((each) => each === 'POST /v1/executor/write').length).toBeLessThan(3)
})

test('RAIL-11 an executor of another protocol is refused with a sentence that says what to upgrade', async () => {
  const { direct } = await world()
  const port = httpExecutorPort({ url, fetch: direct, ports })
  const answer = await port.register(
    registration('ses_1', { protocol: PROTOCOL_VERSION + 1, capacity: 1, definitions: [] }),
  )
  expect(answer).toMatchObject({ ok: false, code: 'incompatible_protocol' })
  expect(answer.ok || answer.message).toContain('upgrade the server')
})

test('RAIL-10 what the network does is a fault, and only a server of ours refuses', async () => {
  const asking = (fetch: Fetch) =>
    httpExecutorPort({ url, fetch, ports })
      .renew({ session: 's', draining: false, status: null, letGo: [] })
      .catch((error: unknown) => error)
  const lost = await asking(() => Promise.reject(new TypeError('fetch failed')))
  expect(lost).toBeInstanceOf(Fault)
  expect(lost).toMatchObject({ code: 'peer_unreachable', retryable: true })
  const proxy = await asking(() => Promise.resolve(new Response('bad gateway', { status: 502 })))
  expect(proxy).toMatchObject({ code: 'peer_unreachable', retryable: true })
  for (const status of [404, 501]) {
    const older = await asking(() => Promise.resolve(new Response('no such page', { status })))
    expect(older).toMatchObject({
      code: 'peer_unreachable',
      retryable: false,
      detail: { unknownCall: true, status },
    })
  }
  const { direct, handler } = await world()
  handler.drain()
  expect(await asking(direct)).toMatchObject({ code: 'peer_unreachable', retryable: true })
})

test('L9 a registration whose answer does not come is given up within 10 s, so that its executor is there when the server is', async () => {
  const { ports: own, advance } = testPorts()
  const silent = httpExecutorPort({
    url,
    ports: own,
    fetch: (_input, init) =>
      new Promise((_resolve, reject) => {
        init.signal?.addEventListener('abort', () => reject(new Error('aborted')))
      }),
  })
  const registering = silent
    .register(registration('ses_1', { capacity: 1, definitions: [] }))
    .catch((error: Fault) => error.code)
  await advance(10_000)
  expect(await registering).toBe('peer_unreachable')
})

test('RAIL-10 a session is told of a cancel by push, over a new connection too', async () => {
  const { direct, engine } = await world()
  const port = httpExecutorPort({ url, fetch: direct, ports })
  const executor = await hands(port, 'ses_1', [definition('release')])
  await engine.start({ command: { id: 'run_a', workflow: 'release', input: null } })
  await executor.claim()
  const heard: Told[] = []
  const leave = port.listen('ses_1', (told) => heard.push(told))
  await settled(50)
  await engine.cancel({ run: 'run_a', by: 'ada', reason: null })
  await settled(50)
  expect(heard).toEqual([
    { run: 'run_a', attempt: 1, directive: 'cancel', note: 'canceled by ada' },
  ])
  const later: Told[] = []
  const again = port.listen('ses_1', (told) => later.push(told))
  await settled(50)
  expect(later).toHaveLength(1)
  leave()
  again()
})

test('RUN-11 a reported exit ends the session on evidence, and what it held goes on at once', async () => {
  const { engine, port, direct } = await world()
  const loopsWanted: string[] = []
  const handler = makeHandler(engine, { reapSoon: () => loopsWanted.push('reap') })
  const executor = await hands(port, 'ses_1', [definition('release')])
  await engine.start({ command: { id: 'run_a', workflow: 'release', input: null } })
  await executor.claim()
  const client = connect({ url, fetch: (input, init) => handler.fetch(new Request(input, init)) })
  const said = { body: { session: 'ses_1', evidence: 'process 1 exited with code 137' } }
  expect(await client.call('exited', said)).toEqual({ ok: true, ended: true })
  expect(await client.call('exited', said)).toEqual({ ok: true, ended: false })
  expect(loopsWanted).toEqual(['reap'])
  const shown = connect({ url, fetch: direct })
  expect(await shown.executors()).toMatchObject([
    { id: 'ses_1', state: 'ended', evidence: expect.stringContaining('137') as string },
  ])
  expect((await shown.explain('run_a')).conditions[0]).toMatchObject({ code: 'holder_ended' })
})

test.each(['Łukasz', '名前', "UTF-8''x", 'José'])(
  'OPS-02 DAG-11 whoever may be named a decider decides over HTTP, and is kept by that name: %s',
  async (actor) => {
    const { direct, port } = await world()
    const executor = await hands(port, 'ses_1', [definition('hello')])
    const client = connect({ url, fetch: direct, actor })
    const { id } = await client.start('hello', null)
    const [run] = (await executor.claim()) as [ClaimedRun]
    await port.write('ses_1', {
      run: run.run,
      attempt: run.attempt,
      entries: [],
      waits: [
        {
          key: 'ship',
          kind: 'approval',
          approval: { prompt: 'Ship it?', data: null, deciders: [actor] },
        },
      ],
      end: { kind: 'suspend', keys: ['ship'] },
    })
    await client.approve(`${id}:ship`)
    const { events } = await client.get(id)
    expect(events.flatMap((each) => (each.actor === null ? [] : [each.actor]))).toContain(actor)
  },
)

test.each([
  [{ actor: 'a\nb' }, 'the actor is'],
  [{ actor: 'a\0b' }, 'the actor is'],
  [{ token: 'tök→n' }, 'the token has a character'],
  [{ url: 'http://ana:secret@localhost' }, "the server's url has a user or a password"],
  [{ url: 'localhost' }, "the server's url is"],
])(
  'OPS-02 what no request can carry is refused as what it is, before any call: %j',
  (given, says) => {
    const making = () => connect({ url, ...given })
    expect(making).toThrow(says)
    expect(making).not.toThrow('secret')
  },
)
