// Notices on their way out of a real server: as configured, signed, through a kill of the server while it sends, and what
// operators see and do.
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test } from 'vitest'
import { CALM, folder, ran, serve, until, work } from './processes.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
interface Got {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

test('RAIL-02 RAIL-05 OPS-03 a failure reaches its webhook though the server is killed while it sends; what is refused is seen, tried anew and dropped', async () => {
  const got: Got[] = []
  const waiting: ServerResponse[] = []
  let status = 0
  const receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (part: Buffer) => (body += part.toString()))
    request.on('end', () => {
      got.push({ headers: request.headers, body })
      // the first is taken, and whoever sent it hears nothing of it
      if (status === 0) waiting.push(response)
      else response.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    receiver.closeAllConnections()
    receiver.close()
  })
  const { port } = receiver.address() as AddressInfo

  const cwd = folder()
  writeFileSync(
    path.join(cwd, 'leasehold.config.json'),
    JSON.stringify({
      sinks: {
        ops: { type: 'webhook', allowPrivate: true, kinds: ['run_failed'] },
        log: { type: 'log' },
      },
    }),
  )
  const env = {
    ...CALM,
    LEASEHOLD_SINK_OPS_URL: `http://127.0.0.1:${port}/hush-hush`,
    LEASEHOLD_SINK_OPS_SECRET: SECRET,
  }
  const shown = await ran(['config'], { cwd, env })
  expect(shown.out).toMatch(/sinks\.ops .*"secret":"hidden"/)
  expect(shown.out).not.toMatch(/hush-hush|whsec_/)
  const first = await serve(cwd, env)
  await work(cwd, first.url)
  await first.client.start('ends badly', null, { id: 'run_a' })
  await until(
    () => got.length === 1,
    () => 'the notice was not sent',
  )
  first.process.kill('SIGKILL')
  await first.process.ended

  status = 204
  const second = await serve(cwd, env, new URL(first.url).port)
  const { client, url } = second
  const isTaken = async (): Promise<boolean> =>
    (await client.deliveries({ state: 'delivered' })).deliveries.some(({ sink }) => sink === 'ops')
  await until(isTaken, () => 'the notice was not sent again')
  expect(got.map(({ headers }) => headers['webhook-id'])).toEqual(
    Array.from({ length: 2 }, () => got[0]?.headers['webhook-id']),
  )
  for (const { headers, body } of got)
    expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toMatchObject({
      type: 'run_failed',
      data: { run: 'run_a', workflow: 'ends badly' },
    })
  expect((await client.deliveries({ state: 'delivered' })).deliveries).toContainEqual(
    expect.objectContaining({ sink: 'ops', lapses: 1, refusals: 0, note: 'it answered 204' }),
  )

  status = 410
  await client.start('ends badly', null, { id: 'run_b' })
  const dead = async () => (await client.deliveries({ state: 'dead' })).deliveries
  await until(
    async () => (await dead()).length === 1,
    () => 'the refusal was not recorded',
  )
  const call = (...args: string[]) => ran(args, { cwd, env: { LEASEHOLD_URL: url } })
  expect((await call('sinks')).out).toMatch(/ops +webhook +0 +- +1 /)
  expect((await call('doctor')).out).toMatch(/wrong sinks: 1 deliveries to ops are dead/)
  const listed = await call('deliveries', '--state', 'dead')
  expect(listed.out).toMatch(/ops +run_failed +run_b +1 +it answered 410/)
  const id = (await dead())[0]?.id ?? ''
  expect((await call('deliveries', id, '--retry')).out).toBe(`${id} was retried\n`)
  await until(
    async () => got.length === 4 && (await dead()).length === 1,
    () => 'it was not tried anew',
  )
  expect((await call('deliveries', id, '--drop')).out).toBe(`${id} was dropped\n`)
  expect(await call('deliveries', id, '--retry')).toMatchObject({ code: 4 })
  expect((await call('deliveries', '--state', 'lost')).err).toContain('expected due, sending')
  // nothing that is secret is in the log
  expect(first.process.err() + second.process.err()).not.toMatch(/hush-hush|whsec_/)
  expect(second.process.err()).toContain('"event":"notice"')
})
