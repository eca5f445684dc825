// Real processes for tests: the built program, started, watched and killed. Nothing here sleeps for a time: it waits for a
// condition, and fails with what the process had said when the condition does not come.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, mkdirSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { Client, RunDetail } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { program as inProcess } from '../support/program.ts'

const engine = fileURLToPath(new URL('../../', import.meta.url))
export const program = path.join(engine, 'dist/cli/main.js')
export const fixture = (name: string): string => path.join(engine, 'test/e2e/fixtures', name)

/** A folder of the test's own, in which the package can be imported; gone when the test is over. */
export const folder = (): string => {
  const made = mkdtempSync(path.join(os.tmpdir(), 'leasehold-e2e-'))
  mkdirSync(path.join(made, 'node_modules'))
  symlinkSync(engine, path.join(made, 'node_modules/leasehold'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

export interface Process {
  readonly pid: number
  readonly out: () => string
  readonly err: () => string
  /** Its exit code, or the signal that ended it; all that it said is there then. */
  readonly ended: Promise<number | string>
  kill(signal: NodeJS.Signals): void
  /** The first line of stdout that has this part; fails when the process ends without it. */
  line(part: string): Promise<string>
}

interface How {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts any command; what is still alive when the test is over is killed with all that it started. */
export const start = (
  command: string,
  args: readonly string[],
  { cwd, env = {} }: How,
): Process => {
  const child = spawn(command, args, {
    cwd,
    env: { ...bare(process.env), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (data: Buffer) => (out += data.toString()))
  child.stderr.on('data', (data: Buffer) => (err += data.toString()))
  let over = false
  // not at its exit: what it said last may still be on its way then
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      over = true
      resolve(signal ?? code ?? 0)
    })
  })
  const said = (part: string): string =>
    `${args.join(' ')} said no line with "${part}"\n${out}\n${err}`
  const pid = child.pid ?? 0
  onTestFinished(async () => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      return // its group is gone
    }
    await ended
  })
  return {
    pid,
    out: () => out,
    err: () => err,
    ended,
    kill: (signal) => void process.kill(pid, signal),
    line: (part) =>
      until(
        () => {
          const found = out.split('\n').find((line) => line.includes(part))
          if (found === undefined && over) throw new Error(said(part))
          return found
        },
        () => said(part),
      ),
  }
}

/** The environment without what would configure the program behind a test's back. */
export const bare = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => !/^(LEASEHOLD_|npm_|NODE_OPTIONS|FORCE_COLOR|VITEST)/.test(name),
    ),
  )

export const leasehold = (args: readonly string[], how: How): Process =>
  start(process.execPath, [program, ...args], how)

/** Runs a command of the program to its end. */
export const ran = async (
  args: readonly string[],
  how: How,
): Promise<{ code: number | string; out: string; err: string }> => {
  const started = leasehold(args, how)
  const code = await started.ended
  return { code, out: started.out(), err: started.err() }
}

/** Runs a command to its end in this process: for what it says and answers, where how its process ends is not looked at. */
export const called: typeof ran = (args, { cwd, env = {} }) =>
  inProcess(args, { cwd, env: { ...bare(process.env), ...env } })

export interface Server {
  readonly process: Process
  readonly url: string
  readonly client: Client
}

/** Nothing lapses: what happens all the same has another cause, however slow the machine is. */
export const CALM = {
  LEASEHOLD_LEASE_MS: '4h',
  LEASEHOLD_RENEW_MS: '1h',
  LEASEHOLD_SWEEP_MS: '1m',
}

const QUICK = {
  LEASEHOLD_LEASE_MS: '6s',
  LEASEHOLD_RENEW_MS: '1500ms',
  LEASEHOLD_SWEEP_MS: '500ms',
}

export const serve = async (
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  port = '0',
): Promise<Server> => {
  // a file that a flag names beats a database of the environment
  const onDatabase = Object.keys(env).some((name) => name.startsWith('LEASEHOLD_DATABASE'))
  const store = onDatabase ? [] : ['--file', 'store.db']
  const started = leasehold(['serve', ...store, '--port', port], {
    cwd,
    env: { ...QUICK, ...env },
  })
  const url = (await started.line(' at http')).split(' at ').at(-1) ?? ''
  return { process: started, url, client: connect({ url, actor: 'test', retryForMs: 20_000 }) }
}

export interface Worked {
  readonly process: Process
  readonly session: string
}

export const work = async (
  cwd: string,
  url: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Worked> => {
  const started = leasehold(['work', fixture('workflows.js'), '--url', url, ...args], { cwd, env })
  return { process: started, session: /ses_\w+/.exec(await started.line(' works at '))?.[0] ?? '' }
}

/** Asks again until there is an answer; what hangs fails with `otherwise`, shortly before the runner would end it. */
export const until = async <T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  otherwise: () => string = () => 'the condition did not come',
  withinMs = 200_000,
): Promise<T> => {
  const end = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (Date.now() > end) throw new Error(`after ${withinMs} ms: ${otherwise()}`)
    await pause(20)
  }
}

/** The run, once it looks as wanted. */
export const runThat = (
  client: Client,
  run: string,
  fits: (detail: RunDetail) => boolean,
): Promise<RunDetail> => {
  let last: RunDetail | undefined
  return until(
    async () => {
      last = await client.get(run)
      return fits(last) && last
    },
    () =>
      `${run} is ${JSON.stringify(last?.run.status)}, attempts ${JSON.stringify(last?.attempts)}`,
  )
}

export const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}
