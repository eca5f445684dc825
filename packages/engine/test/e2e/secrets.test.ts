// Secrets that real processes are given, and every place where they could come out again.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { CALM, fixture, folder, leasehold, ran, runThat, until } from './processes.ts'

const TOKENS = {
  LEASEHOLD_TOKEN: 'canary-of-admins-0001',
  LEASEHOLD_OPERATOR_TOKEN: 'canary-of-operators-0002',
  LEASEHOLD_VIEWER_TOKEN: 'canary-of-viewers-0003',
  LEASEHOLD_EXECUTOR_TOKEN: 'canary-of-executors-0004',
}
const OWN = { SOME_API_KEY: 'canary-of-the-program-0005' }

/** All that lies below a folder, as one text a file. */
const filesIn = (dir: string): { file: string; text: string }[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(dir, name))
    .filter((file) => !file.includes('node_modules') && statSync(file).isFile())
    .map((file) => ({ file, text: readFileSync(file, 'latin1') }))

test('B139 SEC-01 no secret comes out in a log at its most talkative, in what commands print, in the store, or in a crash', async () => {
  const cwd = folder()
  const secrets = { ...TOKENS, ...OWN }
  const env = { ...CALM, ...secrets, LEASEHOLD_LOG_LEVEL: 'debug' }
  const server = leasehold(['serve', '--file', 'store.db', '--port', '0'], { cwd, env })
  const url = (await server.line(' at http')).split(' at ').at(-1) ?? ''
  const client = connect({ url, token: TOKENS.LEASEHOLD_TOKEN, actor: 'test', retryForMs: 20_000 })
  const { LEASEHOLD_TOKEN: _none, ...rest } = env
  const executor = leasehold(['work', fixture('workflows.js'), '--url', url], { cwd, env: rest })
  await executor.line(' works at ')
  const told: string[] = []
  const call = async (...args: string[]): Promise<void> => {
    const { out, err } = await ran([...args, '--url', url], { cwd, env })
    told.push(out, err)
  }

  const { id } = await client.start('greet', { name: 'Ann' })
  const { id: waiting } = await client.start('waits', null)
  const { id: failing } = await client.start('fails', null)
  await runThat(client, id, ({ run }) => run.status === 'succeeded')
  await runThat(client, failing, ({ run }) => run.status === 'failed')
  await runThat(client, waiting, ({ run }) => run.status === 'waiting')
  await Promise.all([
    call('runs', '--json'),
    call('show', id, '--json'),
    call('doctor', '--json'),
    call('config', '--json'),
    call('cancel', waiting),
    call('retry', failing),
    call('show', 'run_none'),
  ])
  // those who may not come in, and what is no request
  const wrong = await ran(['runs', '--url', url, '--token', 'canary-of-a-stranger-0006'], {
    cwd,
    env: { LEASEHOLD_LOG_LEVEL: 'debug' },
  })
  expect(wrong.code).not.toBe(0)
  told.push(wrong.out, wrong.err)
  for (const init of [
    { method: 'POST', body: '{"workflow":', headers: { 'content-type': 'application/json' } },
    { method: 'GET', headers: { authorization: `Basic ${TOKENS.LEASEHOLD_TOKEN}` } },
  ])
    told.push(await (await fetch(`${url}/v1/runs`, init)).text())
  const openapi = await fetch(`${url}/openapi.json`)
  told.push(await openapi.text())

  executor.kill('SIGTERM')
  await executor.ended
  server.kill('SIGKILL')
  await server.ended
  const again = leasehold(['serve', '--file', 'store.db', '--port', '0'], { cwd, env })
  await again.line(' at http')
  again.kill('SIGTERM')
  await until(() => again.ended)

  const all = [
    ...[server, executor, again].flatMap((each) => [each.out(), each.err()]),
    ...told,
    ...filesIn(cwd).map(({ text }) => text),
  ].join('\n')
  expect(all).toContain('"level":"debug"')
  expect(all.match(/canary-of-\S+/g) ?? []).toEqual([])
})
