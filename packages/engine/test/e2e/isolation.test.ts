// Attempts in processes of their own: what they see, and that nothing of them is left, whoever dies.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { processAt } from '../../src/executor/host-process.ts'
import { CALM, fixture, folder, leasehold, runThat, serve, until } from './processes.ts'

const working = async (cwd: string, url: string) => {
  const made = leasehold(['work', fixture('isolated.js'), '--url', url], {
    cwd,
    env: { ALLOWED: 'seen', SECRET: 'hidden' },
  })
  await made.line('works at')
  return made
}

const pidsIn = (file: string): number[] | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as number[]
  } catch {
    return undefined
  }
}
const isUp = async (pid: number): Promise<boolean> => (await processAt(pid))?.alive === true
const goneAll = async (pids: readonly number[]): Promise<void> => {
  while ((await Promise.all(pids.map(isUp))).some(Boolean))
    await new Promise((resolve) => setImmediate(resolve))
}

test('EX-24 EX-25 an isolated attempt sees what it is allowed to, and all that it started is gone when it has settled', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  await working(cwd, url)
  const file = path.join(cwd, 'pids')
  const gate = path.join(cwd, 'gate')
  const { id } = await client.start('isolated', { file, gate })
  const pids = await until(() => pidsIn(file))
  expect(await Promise.all(pids.map(isUp))).toEqual([true, true, true])
  writeFileSync(gate, '')

  const { output } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')

  expect(output).toEqual({ ALLOWED: 'seen', LEASEHOLD_RUN: id })
  await goneAll(pids)
})

test('EX-26 where its executor is killed it ends itself, and the next start kills what it had started', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const first = await working(cwd, url)
  const file = path.join(cwd, 'pids')
  await client.start('isolated', { file, gate: path.join(cwd, 'gate') })
  const pids = await until(() => pidsIn(file))
  first.kill('SIGKILL')
  await first.ended
  await goneAll(pids.slice(0, 1))
  await working(cwd, url)
  await goneAll(pids)
})
