// Server-sent events and the end of a server, over real sockets.
import { once } from 'node:events'
import { connect as dial } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { RunEvent, RunSummary } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { httpExecutorPort } from '../../src/client/executor-port.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import { eventStream, STILL_HERE_MS } from '../../src/orchestrator/http/event-stream.ts'
import type { Listening } from '../../src/orchestrator/http/server.ts'
import { serve } from '../../src/orchestrator/http/server.ts'
import type { Message } from '../../src/protocol/sse.ts'
import { messageReader } from '../../src/protocol/sse.ts'
import type { TestEngine } from '../support/engine.ts'
import { definition, hands, openTestEngine } from '../support/engine.ts'
import { testPorts } from '../support/ports.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const ports = systemPorts()

const world = async (): Promise<TestEngine & { server: Listening }> => {
  const test = await openTestEngine(ports)
  closing.push(() => test.close())
  const server = await serve(test.engine, { port: 0 })
  closing.push(() => server.close(100))
  return { ...test, server }
}

const collect = async <T>(all: AsyncIterable<T>, until: (list: readonly T[]) => boolean) => {
  const list: T[] = []
  for await (const each of all) {
    list.push(each)
    if (until(list)) break
  }
  return list
}

/** Reads messages of a raw response until `until` or its end. */
const messages = async (response: Response, until: (list: readonly Message[]) => boolean) => {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const read = messageReader()
  const decoder = new TextDecoder()
  const list: Message[] = []
  while (!until(list)) {
    const part = await reader.read()
    if (part.done) break
    list.push(...read(decoder.decode(part.value, { stream: true })))
  }
  await reader.cancel()
  return list
}

/** Turns of the event loop until something is so. */
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

test('OPS-01 the changes of a run are sent as they come, and the stream ends with the run', async () => {
  const { server, port } = await world()
  const executor = await hands(port, 'ses_1', [definition('hello')])
  const client = connect({ url: server.url })
  const { id } = await client.start('hello', null)
  const following = collect(client.events(id), () => false)
  const [run] = (await executor.claim()) as [ClaimedRun]
  await executor.step(run, 1, 'a', 1)
  await executor.step(run, 2, 'b', 2)
  await executor.end(run, { kind: 'complete', output: '"done"' })
  const events = await following
  const seen = events.map(({ event, data }) => {
    const { end, key, kind, status } = data as Record<string, unknown>
    return event === 'run' ? status : event === 'attempt' ? end : event === 'event' ? kind : key
  })
  expect(seen).toContain('run.started')
  expect(seen.filter((each) => each === 'a' || each === 'b')).toEqual(['a', 'b'])
  expect(seen.filter((each) => each === 'completed')).toHaveLength(1)
  expect(seen.at(-1)).toBe('succeeded')
  const revs = events.flatMap(({ position }) => (position === null ? [] : [Number(position)]))
  expect(revs).toEqual([...revs].sort((a, b) => a - b))
})

test('OPS-01 a reader resumes by Last-Event-ID and misses nothing of what came after', async () => {
  const { server, port } = await world()
  const executor = await hands(port, 'ses_1', [definition('hello')])
  const client = connect({ url: server.url })
  const { id } = await client.start('hello', null)
  const [run] = (await executor.claim()) as [ClaimedRun]
  await executor.step(run, 1, 'a', 1)
  const isWhole = (list: readonly RunEvent[]): boolean => list.at(-1)?.event === 'run'
  const first = await collect(client.events(id), isWhole)
  expect(first.filter(({ event }) => event === 'entry')).toHaveLength(1)
  await executor.step(run, 2, 'b', 2)
  await executor.end(run, { kind: 'complete', output: null })
  const after = first.at(-1)?.position ?? ''
  const rest = await collect(client.events(id, { after }), () => false)
  expect(
    rest.filter(({ event }) => event === 'entry').map(({ data }) => (data as { key: string }).key),
  ).toEqual(['b'])
  expect(rest.at(-1)).toMatchObject({ event: 'run', data: { status: 'succeeded' } })

  // the same by hand, as a browser does it
  const raw = await fetch(`${server.url}/v1/runs/${id}/events`, {
    headers: { 'last-event-id': after },
  })
  expect(raw.headers.get('content-type')).toContain('text/event-stream')
  const list = await messages(raw, () => false)
  expect(list.at(-1)).toMatchObject({ event: 'run', data: { status: 'succeeded' } })
})

test('RUN-34 the changes of a run that is continued go on with those of its successor, also for a reader that resumes', async () => {
  const { server, port } = await world()
  const executor = await hands(port, 'ses_1', [definition('hello')])
  const client = connect({ url: server.url })
  const { id } = await client.start('hello', null)
  const following = collect(client.events(id), () => false)
  const [first] = (await executor.claim()) as [ClaimedRun]
  await executor.step(first, 1, 'a', 1)
  await executor.end({ ...first, entries: 1 }, { kind: 'continue', input: '2', runId: 'run_näxt' })
  const [second] = (await executor.claim()) as [ClaimedRun]
  expect(second.run).toBe('run_näxt')
  await executor.step(second, 1, 'b', 2)
  await executor.end({ ...second, entries: 1 }, { kind: 'complete', output: '3' })
  const all = await following
  const rows = all.filter(({ event }) => event === 'run').map(({ data }) => data as RunSummary)
  expect(rows.at(-1)).toMatchObject({ id: 'run_näxt', status: 'succeeded' })
  expect(rows.filter(({ reason }) => reason === 'continued')).toMatchObject([{ id }])
  expect(
    all.filter(({ event }) => event === 'entry').map(({ data }) => (data as { key: string }).key),
  ).toEqual(['a', 'b'])
  expect(
    all.flatMap(({ event, data }) =>
      event === 'event' && (data as { kind: string }).kind === 'run.continued' ? [data] : [],
    ),
  ).toMatchObject([{ data: { as: 'run_näxt' } }])
  // from the end of the first run, and from inside the second
  const positions = all.flatMap(({ position }) => (position === null ? [] : [position]))
  const ofSecond = positions.filter((each) => each.includes('@'))
  const rest = await collect(
    client.events(id, { after: positions.filter((each) => !each.includes('@')).at(-1) ?? '' }),
    () => false,
  )
  expect(rest.filter(({ event }) => event === 'entry')).toHaveLength(1)
  expect(rest.at(-1)).toMatchObject({ event: 'run', data: { id: 'run_näxt' } })
  const last = await collect(client.events(id, { after: ofSecond.at(-1) ?? '' }), () => false)
  expect(last).toMatchObject([{ event: 'run', data: { id: 'run_näxt', status: 'succeeded' } }])
  const ended = await messages(await fetch(`${server.url}/v1/runs/${id}/stream/log`), () => false)
  expect(ended).toMatchObject([{ event: 'end', data: { continuedAs: 'run_näxt' } }])
})

test('RUN-34 a position that is not one of its series begins the stream of a run anew', async () => {
  const { server, port } = await world()
  const executor = await hands(port, 'ses_1', [definition('hello')])
  const client = connect({ url: server.url })
  for (const id of ['run_mine', 'run_other']) {
    await client.start('hello', null, { id })
    const [run] = (await executor.claim()) as [ClaimedRun]
    await executor.step(run, 1, `step of ${id}`, 1)
    await executor.end(run, { kind: 'complete', output: null })
  }
  const whole = await collect(client.events('run_mine'), () => false)
  for (const after of ['1@run_other', '1@run_none', '1000', '1000@run_mine'])
    expect(await collect(client.events('run_mine', { after }), () => false)).toEqual(whole)
})

test('OPS-01 the changes of all runs are sent, coalesced, and a reader that comes back reads anew', async () => {
  const { server, port } = await world()
  const executor = await hands(port, 'ses_1', [definition('hello')])
  const client = connect({ url: server.url })
  const response = await fetch(`${server.url}/v1/events`, { headers: { 'last-event-id': '1' } })
  await client.startMany(
    'hello',
    Array.from({ length: 20 }, () => ({ input: null })),
  )
  expect(await executor.claim(20)).toHaveLength(20)
  const list = await messages(response, (all) => all.length >= 21)
  expect(list[0]?.event).toBe('reset')
  expect(new Set(list.slice(1).map(({ data }) => (data as { id: string }).id)).size).toBe(20)
})

test('RUN-34 what a run appends to a stream is read live and resumed by its number', async () => {
  const { server, port } = await world()
  const executor = await hands(port, 'ses_1', [definition('hello')])
  const client = connect({ url: server.url })
  const { id } = await client.start('hello', null)
  const [run] = (await executor.claim()) as [ClaimedRun]
  const append = (seq: number) =>
    port.write('ses_1', {
      run: run.run,
      attempt: run.attempt,
      entries: [],
      stream: [{ stream: 'tokens', seq, data: `"t${seq}"` }],
    })
  await append(1)
  const reading = collect(client.stream(id, 'tokens'), () => false)
  await append(2)
  await append(3)
  await executor.end(run, { kind: 'complete', output: null })
  expect((await reading).map(({ seq, data }) => [seq, data])).toEqual([
    [1, 't1'],
    [2, 't2'],
    [3, 't3'],
  ])
  const rest = await collect(client.stream(id, 'tokens', { after: '2' }), () => false)
  expect(rest.map(({ seq }) => seq)).toEqual([3])
})

test('L9 a stream whose source fails, as while the database is away, ends and says nothing more, and the server lives on', async () => {
  const { ports: own, advance } = testPorts()
  let fail: (error: Error) => void = () => undefined
  const away = new Promise<void>((_resolve, reject) => {
    fail = reject
  })
  const { body } = eventStream(
    async function* () {
      yield { event: 'told', id: null, data: 1 }
      await away
    },
    own.timers,
    new AbortController().signal,
  )
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  await reader.read()
  const next = reader.read()
  fail(new Error('the database is away'))
  await expect(next).rejects.toThrow('the database is away')

  // the comment that says that it is still here would be an error that nobody catches
  await advance(2 * STILL_HERE_MS)
})

test('OPS-06 closing ends streams and long polls at once, and the sockets with them', async () => {
  const { server, port, engine } = await world()
  await hands(port, 'ses_1', [definition('hello')])
  await engine.start({ command: { id: 'run_a', workflow: 'hello', input: null } })
  const remote = httpExecutorPort({ url: server.url, ports })
  await hands(remote, 'ses_2', [definition('other')])
  const claim = remote.claim({ session: 'ses_2', claim: 1, most: 1, except: [], waitMs: 20_000 })
  const result = fetch(`${server.url}/v1/runs/run_a/result?waitMs=60000`)
  const stream = await fetch(`${server.url}/v1/events`)
  const reading = messages(stream, () => false)
  const began = performance.now()
  await new Promise((resolve) => setImmediate(resolve))
  await server.close(3_000)
  await Promise.allSettled([claim, result, reading])
  expect(performance.now() - began).toBeLessThan(2_000)
  await expect(fetch(`${server.url}/healthz`)).rejects.toThrow()
})

test('SEC-01 a server is not opened to others without a token', async () => {
  const { engine } = await world()
  await expect(serve(engine, { port: 0, host: '0.0.0.0' })).rejects.toMatchObject({
    code: 'invalid_config',
  })
  const open = await serve(engine, {
    port: 0,
    host: '0.0.0.0',
    tokens: [{ token: 'secret', role: 'admin' }],
  })
  expect((await fetch(`http://127.0.0.1:${open.port}/v1/runs`)).status).toBe(401)
  const client = connect({ url: `http://127.0.0.1:${open.port}`, token: 'secret' })
  expect((await client.list()).runs).toEqual([])
  await open.close(100)
})

test('OPS-01 a port that is taken is a sentence, not a crash', async () => {
  const { engine, server } = await world()
  await expect(serve(engine, { port: server.port })).rejects.toMatchObject({
    code: 'invalid_config',
    message: expect.stringContaining(String(server.port)) as string,
  })
})

test('RUN-10 a claim whose caller has left takes nothing', async () => {
  const { server, engine } = await world()
  const remote = httpExecutorPort({ url: server.url, ports })
  const executor = await hands(remote, 'ses_1', [definition('hello')])
  expect(await executor.claim()).toEqual([])
  const leaving = new AbortController()
  const request = { session: 'ses_1', claim: 2, most: 1, except: [], waitMs: 20_000 }
  const claim = remote.claim(request, leaving.signal).catch((error: unknown) => error)
  await until(() => server.handler.inFlight === 1)
  leaving.abort()
  expect(await claim).toMatchObject({ code: 'peer_unreachable' })
  await until(() => server.handler.inFlight === 0)
  await engine.start({ command: { id: 'run_a', workflow: 'hello', input: null } })
  const client = connect({ url: server.url })
  expect((await client.get('run_a')).run).toMatchObject({ status: 'queued', session: null })
  expect(await remote.claim({ ...request, claim: 3 })).toMatchObject({
    ok: true,
    runs: [{ run: 'run_a' }],
  })
})

/** What a server says to bytes, until it closes the connection. */
const saidTo = async ({ port }: Listening, bytes: string): Promise<string> => {
  const socket = dial(port, '127.0.0.1')
  const parts: string[] = []
  socket.setEncoding('utf8')
  socket.on('data', (part: string) => parts.push(part))
  // what came before the connection was cut is what counts
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(bytes)
  await closed
  return parts.join('')
}

test('OPS-01 what is no request is answered with a problem document, and its connection closed', async () => {
  const { server } = await world()
  const odd = (head: string) => saidTo(server, `${head}\r\nconnection: close\r\n\r\n`)
  const upgrade = 'upgrade: websocket\r\nsec-websocket-version: 13'
  const told: [Promise<string>, number, string][] = [
    [saidTo(server, 'hello\r\n\r\n'), 400, 'invalid_request'],
    [odd('GET /healthz HTTP/1.1'), 400, 'invalid_request'],
    [odd('GET /healthz HTTP/1.1\r\nhost: a b'), 400, 'invalid_request'],
    [odd('OPTIONS * HTTP/1.1\r\nhost: localhost'), 400, 'invalid_request'],
    [odd('GET /v1/runs/%zz HTTP/1.1\r\nhost: localhost'), 404, 'not_found'],
    [odd('GET /v1/runs/%00 HTTP/1.1\r\nhost: localhost'), 404, 'not_found'],
    [odd('GET /%c0%ae HTTP/1.1\r\nhost: localhost'), 404, 'unknown_route'],
    [
      saidTo(server, `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`),
      431,
      'headers_too_large',
    ],
    [
      saidTo(
        server,
        `GET /v1/executors/socket HTTP/1.1\r\nconnection: upgrade\r\n${upgrade}\r\n\r\n`,
      ),
      400,
      'invalid_request',
    ],
  ]
  for (const [answer, status, code] of told) {
    const said = await answer
    const [head = '', body = ''] = said.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(head).toMatch(/content-type: application\/problem\+json/i)
    expect(JSON.parse(body)).toMatchObject({ code, status })
    expect(said).not.toContain('node:')
  }
})

test('OPS-01 what is no request says nothing into an answer that is on its way', async () => {
  const { server } = await world()
  const socket = dial(server.port, '127.0.0.1')
  socket.write('GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n')
  const parts: string[] = []
  socket.setEncoding('utf8')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  socket.on('data', (part: string) => parts.push(part))
  await once(socket, 'data')
  socket.write('hello\r\n\r\n')
  await closed
  expect(parts.join('')).toContain('text/event-stream')
  expect(parts.join('')).not.toContain('problem')
})
