// Killing processes: what they held is taken back on evidence, and nothing that was acknowledged is lost.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { CALM, folder, leasehold, runThat, serve, until, work } from './processes.ts'

const has = (file: string, line: string): boolean => {
  try {
    return readFileSync(file, 'utf8').includes(line)
  } catch {
    return false
  }
}

test('RUN-11 an executor that was killed is taken from on its launcher’s evidence, long before its lease lapses', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const first = await work(cwd, url)
  const file = path.join(cwd, 'steps.txt')
  const gate = path.join(cwd, 'gate')
  const { id } = await client.start('steps', { count: 1, file, gate })
  await until(() => has(file, 'begin 0 1'))
  const second = await work(cwd, url)
  first.process.kill('SIGKILL')
  expect(await first.process.ended).toBe('SIGKILL')
  writeFileSync(gate, '')
  await client.call('exited', {
    body: { session: first.session, evidence: `process ${first.process.pid} ended by SIGKILL` },
  })

  const { attempts } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')

  expect(attempts[0]).toMatchObject({ end: 'lost' })
  expect(attempts[0]?.note).toContain(`process ${first.process.pid} ended by SIGKILL`)
  expect(attempts[1]).toMatchObject({ session: second.session, end: 'completed' })
  // what was in work happened again, by the second one
  expect(readFileSync(file, 'utf8').match(/^begin 0 1 .*\nbegin 0 2/m)).toHaveLength(1)
})

test('RUN-11 L1 without a word from anybody its lease lapses, and then it is taken from', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd)
  const first = await work(cwd, url)
  const file = path.join(cwd, 'steps.txt')
  const gate = path.join(cwd, 'gate')
  const { id } = await client.start('steps', { count: 1, file, gate })
  await until(() => has(file, 'begin 0 1'))
  await work(cwd, url)
  first.process.kill('SIGKILL')
  await first.process.ended
  writeFileSync(gate, '')

  const { attempts } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')

  expect(attempts.map(({ end }) => end)).toEqual(['expired', 'completed'])
})

test('S6 RUN-11 a server that was killed loses nothing that it acknowledged, and its executors go on under their leases', async () => {
  const cwd = folder()
  const first = await serve(cwd)
  const executor = await work(cwd, first.url, ['--slots', '4'])
  const file = path.join(cwd, 'steps.txt')
  const acknowledged: string[] = []
  const starting = Array.from({ length: 60 }, async (_, i) => {
    const { id } = await first.client.start('steps', { count: 2, ms: 20, file }, { key: `k${i}` })
    acknowledged.push(id)
  })
  await until(() => acknowledged.length >= 20)
  first.process.kill('SIGKILL')
  await first.process.ended
  const before = [...acknowledged]

  const again = await serve(cwd, {}, new URL(first.url).port)
  await Promise.all(starting)

  expect(before.length).toBeGreaterThanOrEqual(20)
  for (const id of before) expect((await again.client.get(id)).run.id).toBe(id)
  for (const id of acknowledged) {
    const { journal } = await runThat(again.client, id, ({ run }) => run.status === 'succeeded')
    expect(journal).toHaveLength(2)
  }
  const { runs } = await again.client.list({ limit: '200' })
  expect(runs).toHaveLength(60)
  const { healthy, invariants } = await again.client.audit()
  expect(invariants.filter(({ figure }) => figure > 0)).toEqual([])
  expect(healthy).toBe(true)
  executor.process.kill('SIGTERM')
  expect(await executor.process.ended).toBe(0)
})

test('EX-11 what nobody caught, and be it null, stops the executor in order: its run is handed back', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  writeFileSync(
    path.join(cwd, 'astray.mjs'),
    `import { workflow } from 'leasehold'
     export const astray = workflow('astray', (ctx) =>
       ctx.step('s', () => {
         setImmediate(() => {
           throw null
         })
         return new Promise(() => {})
       }),
     )`,
  )
  const executor = leasehold(['work', 'astray.mjs', '--url', url], {
    cwd,
    env: { LEASEHOLD_DRAIN_MS: '0', LEASEHOLD_ABORT_GRACE_MS: '0' },
  })
  await executor.line(' works at ')
  const { id } = await client.start('astray', null)

  expect(await executor.ended).toBe(1)
  const { run, attempts } = await client.get(id)
  expect(attempts.map(({ end }) => end)).toEqual(['handed_back'])
  expect(run).toMatchObject({ losses: 0, failures: 0 })
})
