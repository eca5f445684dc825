// Executors over WebSocket, on real sockets: the way in, offers, and what a server says no to.
import { afterEach, expect, test } from 'vitest'
import { connect } from '../../src/client/client.ts'
import { socketExecutorPort } from '../../src/client/socket-executor-port.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/workflow.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { Listening, ServerOptions } from '../../src/orchestrator/server.ts'
import { serve } from '../../src/orchestrator/server.ts'
import type { TestEngine } from '../support/engine.ts'
import { openTestEngine } from '../support/engine.ts'

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
