// What happens when the way to the database leads to a standby that lags: nothing that was acknowledged is said to be missing.
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPostgres } from '../../../../scripts/postgres.ts'
import type { Server } from '../../../../scripts/postgres.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import { inspect } from '../../src/testing/inspect.ts'
import type { Proxy } from '../support/proxy.ts'
import { openProxy } from '../support/proxy.ts'

const ports = systemPorts(noLog)
let primary: Server
let standby: Server
let proxy: Proxy

beforeAll(async () => {
  primary = await startPostgres()
  standby = await startPostgres({ standbyOf: primary })
  proxy = await openProxy(primary.port)
})
afterAll(async () => {
  await proxy.close()
  await standby.stop()
  await primary.stop()
})

const lagging = async (): Promise<void> => {
  const client = new pg.Client({ connectionString: standby.url })
  await client.connect()
  await client.query('select pg_wal_replay_pause()')
  await client.end()
}

it('B104 a standby that lags never denies what was acknowledged: each call is refused as such until the primary is reached', async () => {
  const url = new URL(primary.url)
  url.port = String(proxy.port)
  const here = await openOnPostgres({ url: url.href, ports, manualLoops: true })
  const hello = workflow('hello', () => 'Hello')
  const executor = makeExecutor({ port: here.embedded, ports, workflows: [hello] })
  await executor.start()
  await executor.stop()
  await lagging()
  const id = ports.ids.next('run')
  expect(
    await here.engine.start({ command: { id, workflow: 'hello', input: 'null' } }),
  ).toMatchObject({
    ok: true,
  })

  proxy.to = standby.port
  proxy.cut()
  const calls: Record<string, () => Promise<unknown>> = {
    get: () => inspect.run(here.engine, id),
    cancel: () => here.engine.cancel({ run: id, by: 'ana', reason: null }),
    pause: () => here.engine.pause(id, 'ana', null),
    start: () => here.engine.start({ command: { id, workflow: 'hello', input: 'null' } }),
  }
  for (const [name, call] of Object.entries(calls)) {
    // the connections that were cut may be found out one by one
    const refused = async (): Promise<string> =>
      call().then(
        (answer) => JSON.stringify(answer),
        (error: { code: string }) => error.code,
      )
    await expect.poll(refused, { message: name }).not.toBe('store_unavailable')
    expect(await refused(), name).toBe('store_read_only')
  }
  await expect(openOnPostgres({ url: standby.url, ports })).rejects.toThrow(/standby/)

  proxy.to = primary.port
  proxy.cut()
  await expect
    .poll(() =>
      inspect.run(here.engine, id).then(
        ({ status }) => status,
        (error: { code: string }) => error.code,
      ),
    )
    .toBe('queued')
  expect(await here.engine.cancel({ run: id, by: 'ana', reason: null })).toMatchObject({
    ok: true,
    status: 'canceled',
  })
  await here.close()
})
