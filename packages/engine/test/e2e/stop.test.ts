// Stopping an executor by signals: what it holds is handed back and goes on elsewhere, whoever passes the signal on.
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Process } from './processes.ts'
import {
  CALM,
  fixture,
  folder,
  isGone,
  program,
  runThat,
  serve,
  start,
  until,
  work,
} from './processes.ts'

const begun = (file: string, line: string): Promise<true> =>
  until(() => {
    try {
      return readFileSync(file, 'utf8').includes(line) || undefined
    } catch {
      return undefined
    }
  }) as Promise<true>

test('EX-17 EX-20 L2 an executor that gets SIGTERM lets its step end, hands the run back and exits 0; another goes on, long before the lease lapses', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const first = await work(cwd, url)
  const file = path.join(cwd, 'steps.txt')
  const gate = path.join(cwd, 'gate')
  const { id } = await client.start('steps', { count: 4, file, gate })
  await begun(file, 'begin 0 1')
  const second = await work(cwd, url)
  first.process.kill('SIGTERM')
  await until(() => first.process.err().includes('stopping'))
  writeFileSync(gate, '')

  expect(await first.process.ended).toBe(0)
  const { run, attempts, journal } = await runThat(
    client,
    id,
    (detail) => detail.run.status === 'succeeded',
  )

  expect(attempts[0]).toMatchObject({
    session: first.session,
    end: 'handed_back',
    reason: 'shutdown',
  })
  expect(attempts[1]).toMatchObject({ session: second.session, end: 'completed' })
  expect(run).toMatchObject({ failures: 0, losses: 0 })
  expect(journal.map(({ key }) => key)).toEqual(['step 0', 'step 1', 'step 2', 'step 3'])
  // the step that was in work has ended where it began: none was done twice
  expect(readFileSync(file, 'utf8').match(/^begin/gm)).toHaveLength(4)
  const { executors } = await client.call('listExecutors')
  expect(executors.find((each) => each.id === first.session)).toMatchObject({
    state: 'ended',
    endReason: 'stopped',
    held: 0,
  })
})

test('EX-20 a second signal ends the process at once and non-zero, whatever its step and its drain limit', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const { process: executor } = await work(cwd, url, ['--drain-ms', '1h'])
  const file = path.join(cwd, 'steps.txt')
  await client.start('steps', { count: 1, file, gate: path.join(cwd, 'gate') })
  await begun(file, 'begin 0')
  executor.kill('SIGINT')
  await until(() => executor.err().includes('once more exits at once'))
  executor.kill('SIGTERM')

  expect(await executor.ended).toBe(1)
  expect(executor.err()).toContain('exiting at once')
})

test('B009 a step that never ends is handed back at the drain limit, however long the lease, and no retry is charged', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const grace = { LEASEHOLD_DRAIN_MS: '1s', LEASEHOLD_ABORT_GRACE_MS: '300ms' }
  const first = await work(cwd, url, [], grace)
  const file = path.join(cwd, 'steps.txt')
  const { id } = await client.start('steps', { count: 1, file, gate: path.join(cwd, 'gate') })
  await begun(file, 'begin 0 1')
  const second = await work(cwd, url, [], grace)
  first.process.kill('SIGTERM')

  expect(await first.process.ended).toBe(0)
  const { attempts, run } = await runThat(client, id, (detail) => detail.attempts.length > 1)

  expect(attempts[0]).toMatchObject({ end: 'handed_back', reason: 'shutdown' })
  expect(attempts[1]).toMatchObject({ session: second.session })
  expect(run.failures).toBe(0)
})

test('B013 a claim whose answer was lost at shutdown is handed back with the session, not stranded', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const lossy = await losingClaims(url)
  const first = await work(cwd, lossy.url)
  const { id } = await client.start('greet', { name: 'Ann' })
  await until(lossy.lost)
  first.process.kill('SIGTERM')
  expect(await first.process.ended).toBe(0)
  const second = await work(cwd, url)

  const { attempts } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')

  expect(attempts[0]).toMatchObject({ session: first.session, end: 'handed_back' })
  expect(attempts.at(-1)).toMatchObject({ session: second.session, end: 'completed' })
})

/** A proxy that passes everything on but the answers to claims that bring runs. */
const losingClaims = async (to: string): Promise<{ url: string; lost: () => boolean }> => {
  let lost = false
  const proxy = createServer((incoming, outgoing) => {
    const passed = httpRequest(
      new URL(incoming.url ?? '/', to),
      { method: incoming.method, headers: incoming.headers },
      (answer) => {
        if (incoming.url !== '/v1/executor/claim') {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(outgoing)
          return
        }
        const parts: Buffer[] = []
        answer.on('data', (part: Buffer) => parts.push(part))
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString()
          if (text.includes('"run"')) {
            lost = true
            incoming.socket.destroy()
          } else {
            outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
            outgoing.end(text)
          }
        })
      },
    )
    passed.on('error', () => incoming.socket.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, lost: () => lost }
}

const command = (url: string): string =>
  `'${process.execPath}' '${program}' work '${fixture('workflows.js')}' --url ${url}`

const wrappers: readonly [string, (cwd: string, url: string) => Process][] = [
  // the shell stays, since something comes after the command
  ['sh -c', (cwd, url) => start('sh', ['-c', `${command(url)}; true`], { cwd })],
  [
    'npm run',
    (cwd, url) => {
      writeFileSync(
        path.join(cwd, 'package.json'),
        JSON.stringify({ name: 'wrapped', scripts: { work: `${command(url)}; true` } }),
      )
      return start('npm', ['run', 'work'], { cwd })
    },
  ],
]

test.each(wrappers)(
  'B015 SIGTERM to a wrapper (%s) that does not pass it on still hands back',
  async (_name, wrap) => {
    const cwd = folder()
    const { url, client } = await serve(cwd, CALM)
    const wrapper = wrap(cwd, url)
    const session = /ses_\w+/.exec(await wrapper.line(' works at '))?.[0] ?? ''
    const file = path.join(cwd, 'steps.txt')
    const { id } = await client.start('steps', { count: 100, ms: 500, file })
    await begun(file, 'begin 1 1')
    const [executor] = (await client.call('listExecutors')).executors
    expect(executor?.pid).not.toBe(wrapper.pid)

    wrapper.kill('SIGTERM')

    const { attempts } = await runThat(client, id, (detail) => detail.attempts[0]?.end !== 'held')
    expect(attempts[0]).toMatchObject({ session, end: 'handed_back', reason: 'shutdown' })
    await until(() => isGone(executor?.pid ?? 0))
  },
)

test('EX-20 an executor that was told to stop before it found its server exits 0', async () => {
  const cwd = folder()
  const executor = start(
    process.execPath,
    [program, 'work', fixture('workflows.js'), '--url', 'http://127.0.0.1:9'],
    { cwd },
  )
  await until(() => executor.err().includes('server.awaited'))
  await until(() => executor.err().includes('no server is ready at http://127.0.0.1:9 yet'))
  executor.kill('SIGTERM')
  expect(await executor.ended).toBe(0)
})
