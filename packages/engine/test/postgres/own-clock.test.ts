// Servers on the database's own clock, as they are in use: their machines' clocks may say something else.
import { expect, it, onTestFinished } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import { routes } from '../../src/protocol/routes.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'
import { definition, registration } from '../support/store.ts'

const schemaOf = () => {
  const made = testSchema(postgresUrl() ?? '')
  onTestFinished(() => made.free())
  return made
}

const opened = async (
  { url, schema }: { readonly url: string; readonly schema: string },
  offMs = 0,
): Promise<Opened> => {
  const own = systemPorts()
  const ports = {
    ...own,
    time: { now: () => own.time.now() + offMs, mono: () => own.time.mono() },
  }
  const server = await openOnPostgres({ url, schema, ports })
  onTestFinished(() => server.close())
  return server
}

const asked = async (
  { engine }: Opened,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: unknown }> => {
  const response = await makeHandler(engine, {}).fetch(
    new Request(`http://localhost${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  )
  return { status: response.status, body: await response.json() }
}

it('RUN-16 a queue is paused for a time, by the clock of the database', async () => {
  const server = await opened(schemaOf(), 3_600_000)
  const pause = { kind: 'queue', name: 'default', forMs: 60_000 }
  expect(await asked(server, 'POST', '/v1/pauses', pause)).toMatchObject({ status: 200 })
  const { body } = await asked(server, 'GET', '/v1/pauses')
  const [found] = (body as { pauses: { pausedAt: number; until: number }[] }).pauses
  expect((found?.until ?? 0) - (found?.pausedAt ?? 0)).toBe(60_000)
})

it('OPS-03 whatever is read is read on the database’s own clock too', async () => {
  const server = await opened(schemaOf())
  for (const [name, route] of Object.entries(routes)) {
    if (route.method !== 'GET' || ('stream' in route && route.stream)) continue
    const path = route.path.replaceAll(/:(\w+)/g, (_all, part) => (part === 'kind' ? 'queue' : 'x'))
    const response = await makeHandler(server.engine, {}).fetch(
      new Request(`http://localhost${path}`),
    )
    expect(response.status, `${name} ${path}`).not.toBe(500)
  }
})

it.each([3_600_000, -3_600_000])(
  'RUN-13 RUN-26 limits and ctx.now() are by the store’s clock, where the server’s is %d ms off it',
  async (offMs) => {
    const made = schemaOf()
    const server = await opened(made, offMs)
    const seen: number[] = []
    const w = workflow({ name: 'w', attemptLimit: '10m' }, async (ctx) => {
      await ctx.step('a', () => 1)
      seen.push(ctx.now())
      return 'ok'
    })
    const executor = makeExecutor({ port: server.remote, ports: systemPorts(), workflows: [w] })
    await executor.start()
    onTestFinished(() => executor.stop())
    await server.engine.start({
      command: { id: 'run_1', workflow: 'w', input: 'null' },
      actor: null,
    })
    const result = await asked(server, 'GET', '/v1/runs/run_1/result?waitMs=20000')
    expect(result.body).toMatchObject({ status: 'succeeded' })
    const run = (await asked(server, 'GET', '/v1/runs/run_1')).body as {
      run: { createdAt: number; endedAt: number }
    }
    expect(seen[0]).toBeGreaterThanOrEqual(run.run.createdAt)
    expect(seen[0]).toBeLessThanOrEqual(run.run.endedAt + 1_000)
  },
)

it('SLOT-03 a global limit that is set at one server holds for what starts at another', async () => {
  const made = schemaOf()
  const [a, b] = [await opened(made), await opened(made)]
  await a.remote.register(registration('ses_1', { definitions: [definition('w')] }))
  expect(await asked(a, 'PUT', '/v1/slots/global', { value: 1 })).toMatchObject({ status: 200 })
  await b.engine.learn([{ workflow: 'w' }])
  await expect.poll(() => b.engine.catalog.globalLimit, { timeout: 30_000 }).toBe(true)
  for (const id of ['run_1', 'run_2', 'run_3'])
    await asked(b, 'POST', '/v1/runs', { workflow: 'w', id })
  const { body } = await asked(b, 'GET', '/v1/runs')
  const { runs } = body as { runs: { status: string }[] }
  expect(runs.map(({ status }) => status).toSorted()).toEqual(['queued', 'waiting', 'waiting'])
})
