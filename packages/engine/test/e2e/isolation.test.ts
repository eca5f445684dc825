// Attempts in processes of their own: what they see, and that nothing of them is left, whoever dies.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { installPackage } from '../../../../scripts/system.ts'
import { processAt, processTable } from '../../src/executor/processes/host-process.ts'
import { whyNoSandbox } from '../../src/executor/processes/sandbox.ts'
import type { LogLine } from '../../src/client/client.ts'
import { CALM, fixture, folder, leasehold, ran, runThat, serve, until } from './processes.ts'

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
const argumentsOf = (pid: number): readonly string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
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

test('EX-24 in a sandbox an attempt reads, writes where it may, reaches no network, and nothing that it started outlives it', async ({
  skip,
}) => {
  const asked = () => whyNoSandbox({ network: false, writable: [] }, process.env)
  if (process.platform === 'linux' && (await asked())?.includes('install the package') === true)
    installPackage('bubblewrap', {
      'apt-get': 'bubblewrap',
      dnf: 'bubblewrap',
      apk: 'bubblewrap',
    })
  const why = await asked()
  skip(why !== null, `this host can make no sandbox: ${why}`)
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  const out = folder()
  const made = leasehold(['work', fixture('sandboxed.js'), '--url', url], {
    cwd,
    env: { OUT: out },
  })
  await made.line('works at')
  const { id } = await client.start('sandboxed', { out, cwd })

  const { output } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')

  expect(output).toEqual({
    out: 'done',
    cwd: 'EROFS',
    temporary: 'done',
    remounted: false,
    networks: ['lo'],
    others: 0,
    run: [],
    stray: 'number',
  })
  expect(existsSync(path.join(out, 'made'))).toBe(true)
  expect(existsSync(path.join(cwd, 'made'))).toBe(false)
  // what it started has a session of its own and no label
  while ((await processTable()).some(({ pid }) => argumentsOf(pid).includes(out)))
    await new Promise((resolve) => setImmediate(resolve))
})

test('EX-25 what a process printed before it was killed is kept with its attempt, is followed, and slows nobody', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd, CALM)
  await working(cwd, url)
  const { id } = await client.start('chatty', null)
  const lines: LogLine[] = []
  for await (const line of client.followLogs(id)) lines.push(line)

  const first = lines.filter(({ attempt }) => attempt === 1)
  const said = first.map(({ source, text }) => `${source} ${text}`)
  expect(said).toEqual(
    expect.arrayContaining(['log began', 'stderr to stderr', 'stdout to stdout, 1']),
  )
  expect(first.at(-1)).toMatchObject({ source: 'stdout', text: 'last words', n: 20_004 })
  expect(first.reduce((sum, { dropped }) => sum + dropped, first.length)).toBe(20_004)
  expect(lines.at(-1)).toMatchObject({ attempt: 2, text: 'began', facts: { attempt: 2 } })

  const shown = await ran(['logs', id, '--attempt', '2'], { cwd, env: { LEASEHOLD_URL: url } })
  expect(shown.code).toBe(0)
  expect(shown.out).toMatch(/^attempt 2\n.* began \{"attempt":2\}\n$/)
  const followed = await ran(['logs', id, '--follow', '--json'], {
    cwd,
    env: { LEASEHOLD_URL: url },
  })
  expect(
    followed.out
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as unknown),
  ).toEqual(lines)
})
