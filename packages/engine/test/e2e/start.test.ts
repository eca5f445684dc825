// `npm start` as a person has it: the example through stops and kills, Ctrl-C, a second one beside it, one after a crash.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { Process } from './processes.ts'
import { isGone, start, until } from './processes.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** `npm start`, with its files in a folder of the test's own, and as everywhere but in CI. */
const prepared = () => {
  const home = mkdtempSync(path.join(os.tmpdir(), 'leasehold-start-'))
  const processes = (): readonly number[] => {
    const file = readFileSync(path.join(home, 'start.json'), 'utf8')
    const { script, pids } = JSON.parse(file) as { script: number; pids: readonly number[] }
    return [script, ...pids]
  }
  onTestFinished(async () => {
    for (const pid of processes().filter((each) => !isGone(each))) process.kill(pid, 'SIGKILL')
    rmSync(home, { recursive: true, force: true })
  })
  const script = ['--import', 'tsx', 'scripts/start.ts', '--home', home, '--runs', '100']
  const npmStart = (...more: string[]): Process =>
    start(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `const { handOver } = await import('./scripts/bootstrap.mjs'); handOver(${JSON.stringify([...script, ...more])})`,
      ],
      { cwd: root, env: { CI: '' } },
    )
  return { npmStart, processes }
}

const CHECKED = 'checked: every run ended once, and every effect counts once'

test('npm start completes its example through SIGTERM and SIGKILL, serves the page, refuses a second one, and ends whole by Ctrl-C', async () => {
  const { npmStart, processes } = prepared()
  const shown = npmStart()
  const url = /http:\S+/.exec(await shown.line('the server stays up at'))?.[0] ?? ''
  expect(shown.out()).toContain('got SIGTERM and ended with code 0')
  expect(shown.out()).toMatch(
    /got SIGKILL and ended with SIGKILL[^]*got SIGKILL and ended with SIGKILL/,
  )
  expect(shown.out()).toContain('200 runs (100 of triage, each with a child)')
  expect(shown.out()).toContain(CHECKED)
  expect(await (await fetch(url)).text()).toContain('<title>Leasehold</title>')

  const second = npmStart()
  expect(await second.ended).toBe(0)
  expect(second.out()).toMatch(/^npm start runs already, as process \d+, at http/)

  process.kill(-shown.pid, 'SIGINT')
  expect(await shown.ended).toBe(0)
  expect(processes().filter((pid) => !isGone(pid))).toEqual([])
})

test('npm start after a crash of itself stops what it left, and ends by itself with --once', async () => {
  const { npmStart, processes } = prepared()
  const few = ['--runs', '10']
  const first = npmStart(...few)
  await first.line('the server stays up at')
  const [script = 0, ...left] = processes()
  process.kill(script, 'SIGKILL')
  await first.ended
  expect(left.some((pid) => !isGone(pid))).toBe(true)

  const again = npmStart(...few, '--once')
  expect(await again.ended, again.out() + again.err()).toBe(0)
  expect(again.out()).toContain('of an earlier start still runs; stopping it')
  expect(again.out()).toContain(CHECKED)
  await until(() => [...left, ...processes()].every(isGone))
})
