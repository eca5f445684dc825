// Executors over WebSocket, on real sockets: the way in, offers, and what a server says no to.
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { connect } from '../../src/client/connect.ts'
import { dial } from '../../src/client/dial.ts'
import { socketExecutorPort } from '../../src/client/socket-executor-port.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { messageOf } from '../../src/kernel/json.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { Listening, ServerOptions } from '../../src/orchestrator/http/server.ts'
import { serve } from '../../src/orchestrator/http/server.ts'
import { closeCodes, MESSAGE_MAX, SOCKET_PATH } from '../../src/protocol/socket.ts'
import type { TestEngine } from '../support/engine.ts'
import { definition, hands, openTestEngine } from '../support/engine.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const ports = systemPorts()

const world = async (options: ServerOptions = {}): Promise<TestEngine & { server: Listening }> => {
  const test = await openTestEngine(ports)
  closing.push(() => test.close())
  const server = await serve(test.engine, { port: 0, ...options })
  closing.push(() => server.close(100))
  return { ...test, server }
}

test('RAIL-10 RAIL-12 an executor over a WebSocket drives a run to its end', async () => {
  const { server } = await world()
  const greet = workflow({ name: 'greet' }, async (ctx, who: string) =>
    ctx.step('say', () => `hello ${who}`),
  )
  const executor = makeExecutor({
    port: socketExecutorPort({ url: server.url, ports }),
    ports,
    workflows: [greet],
  })
  closing.push(() => executor.stop())
  await executor.start()
  const client = connect({ url: server.url })
  const runs = await Promise.all(
    Array.from({ length: 30 }, (_each, i) => client.start('greet', `${i}`)),
  )
  const results = await Promise.all(runs.map((run) => client.result(run)))
  expect(results.map(({ ended, status }) => ended && status)).toEqual(
    Array.from({ length: 30 }, () => 'succeeded'),
  )
  expect((await client.audit()).invariants.filter((each) => each.figure > 0)).toEqual([])
})

test('SEC-02 RAIL-12 who may not come in is told so before there is a socket, by token, role, name and origin', async () => {
  const closed = await world({
    tokens: [
      { token: 'views', role: 'viewer' },
      { token: 'works', role: 'executor' },
    ],
  })
  const register = (port: ExecutorPort) =>
    hands(port, 'ses_1', [definition('w')]).then(
      () => null,
      (error: unknown) => messageOf(error),
    )
  const by = (token: string | null) => socketExecutorPort({ url: closed.server.url, token, ports })
  expect(await register(by(null))).toContain('the request has no token')
  expect(await register(by('guess'))).toContain('is not one of this server')
  expect(await register(by('views'))).toContain('it needs executor')
  const port = by('works')
  expect(await register(port)).toBeNull()
  await port.close({ session: 'ses_1', reason: 'test' })

  const { server } = await world()
  const address = `${server.url.replace('http', 'ws')}${SOCKET_PATH}`
  for (const headers of [{ host: 'evil.example' }, { origin: 'https://evil.example' }] as const)
    await expect(dial(address, headers, new AbortController().signal)).rejects.toMatchObject({
      code: 'forbidden_origin',
    })
  await expect(
    dial(`${server.url.replace('http', 'ws')}/elsewhere`, {}, new AbortController().signal),
  ).rejects.toMatchObject({ code: 'unknown_route' })
  expect((await fetch(`${server.url}${SOCKET_PATH}`)).status).toBe(400)
})

test('RAIL-12 a binary frame closes its connection, and what is too large is not read', async () => {
  const { server } = await world()
  const address = `${server.url.replace('http', 'ws')}${SOCKET_PATH}`
  const closedWith = (send: (web: WebSocket) => void): Promise<number> =>
    new Promise((resolve) => {
      const web = new WebSocket(address)
      web.on('open', () => send(web))
      web.on('error', () => undefined)
      web.on('close', (code) => resolve(code))
    })
  expect(await closedWith((web) => web.send(Buffer.from([1, 2, 3])))).toBe(closeCodes.not_text)
  expect(await closedWith((web) => web.send('x'.repeat(MESSAGE_MAX + 1)))).toBe(1009)
})

test('OPS-06 closing a server ends its sockets at once, with a code that says so', async () => {
  const { server } = await world()
  const port = socketExecutorPort({ url: server.url, ports })
  await hands(port, 'ses_1', [definition('w')])
  const claim = port
    .claim({ session: 'ses_1', claim: 1, most: 1, except: [], waitMs: 20_000 })
    .catch((error: unknown) => error)
  const began = performance.now()
  await server.close(3_000)
  await claim
  expect(performance.now() - began).toBeLessThan(2_000)
  // nobody answers any more: that it gives up is not waited for
  void port.close({ session: 'ses_1', reason: 'test' }).catch(() => undefined)
})
