// An executor over a WebSocket as a process of its own, through the end of its server.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { CALM, folder, runThat, serve, until, work } from './processes.ts'

test('RAIL-10 RAIL-12 RAIL-13 an executor over a WebSocket does a run, outlives its server, and goes on with what it held under the session that it had', async () => {
  const cwd = folder()
  const first = await serve(cwd, CALM)
  const executor = await work(cwd, first.url, ['--via', 'websocket'], {
    LEASEHOLD_LOG_LEVEL: 'info',
  })
  const [file, gate] = [path.join(cwd, 'steps.txt'), path.join(cwd, 'gate')]
  const done = await first.client.start('steps', { count: 1, file: path.join(cwd, 'other.txt') })
  await runThat(first.client, done.id, ({ run }) => run.status === 'succeeded')
  const held = await first.client.start('steps', { count: 1, file, gate })
  await until(() => readFileSync(file, { encoding: 'utf8', flag: 'a+' }).includes('begin 0 1'))

  first.process.kill('SIGKILL')
  await first.process.ended
  const again = await serve(cwd, CALM, new URL(first.url).port)
  await until(() => executor.process.err().includes('socket.connected'))
  writeFileSync(gate, '')

  const own = { session: executor.session, end: 'completed' }
  const { attempts } = await runThat(again.client, held.id, ({ run }) => run.status === 'succeeded')
  expect(attempts).toMatchObject([own])
  const later = await again.client.start('steps', { count: 1, file })
  const after = await runThat(again.client, later.id, ({ run }) => run.status === 'succeeded')
  expect(after.attempts).toMatchObject([own])
  executor.process.kill('SIGTERM')
  expect(await executor.process.ended).toBe(0)
})
