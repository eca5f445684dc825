// The processes of `npm start`: a server and executors, each a real one with its log in a file, and what an earlier start
// may have left behind.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { root } from '../files.ts'
import { home } from './flags.ts'

const program = path.join(root, 'packages/engine/dist/cli/main.js')

export interface Started {
  readonly name: string
  readonly pid: number
  /** Resolves with the line by which it says that it is up; rejects when it ends before. */
  readonly up: Promise<string>
  /** Resolves with how it ended: a code or a signal. */
  readonly ended: Promise<string>
  kill(signal: NodeJS.Signals): void
}

interface What {
  readonly name: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Part of the line that says that it is up. */
  readonly up: string
}

/** Starts a command of the built program in a process group of its own, so that Ctrl-C reaches this script alone. */
export const startProcess = ({ name, args, env, up }: What): Started => {
  const logs = path.join(home, 'start-logs')
  mkdirSync(logs, { recursive: true })
  const log = openSync(path.join(logs, `${name}.log`), 'a')
  const child = spawn(process.execPath, [program, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', log],
  })
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`))
  })
  const early = ended.then((how): never => {
    const file = path.relative(root, path.join(logs, `${name}.log`))
    throw new Error(`${name} ended (${how}) before it was up; see ${file}`)
  })
  return {
    name,
    pid: child.pid ?? 0,
    up: Promise.race([lineWith(child, up), early]),
    ended,
    kill: (signal) => void child.kill(signal),
  }
}

const lineWith = (child: ChildProcess, part: string): Promise<string> =>
  new Promise((resolve) => {
    let text = ''
    child.stdout?.on('data', (data: Buffer) => {
      text += data.toString()
      const line = text.split('\n').find((each) => each.includes(part))
      if (line !== undefined) resolve(line)
    })
  })

/** The command line of a process, or null when there is none of that number. */
export const commandOf = (pid: number): string | null => {
  try {
    return (
      execFileSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' }).trim() || null
    )
  } catch {
    return null
  }
}

/** Ends processes of an earlier start, and no others: a number may be somebody else's by now. */
export const endLeftovers = async (
  pids: readonly number[],
  say: (line: string) => void,
): Promise<void> => {
  const ours = (pid: number): boolean => commandOf(pid)?.includes(program) === true
  const alive = pids.filter(ours)
  for (const pid of alive) {
    say(`process ${pid} of an earlier start still runs; stopping it`)
    process.kill(pid, 'SIGTERM')
  }
  for (let waited = 0; waited < 15_000 && alive.some(ours); waited += 100) await pause(100)
  for (const pid of alive.filter(ours)) process.kill(pid, 'SIGKILL')
}

/** Whether this build can go on with a file: one of another schema, or a damaged one, is no use to it. */
export const isUsable = (file: string): boolean =>
  spawnSync(process.execPath, [program, 'migrate', '--file', file], { stdio: 'ignore' }).status ===
  0

/** The port that is wanted, or 0 for a free one where another program has it. */
export const portOr = (wanted: number): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(0))
    probe.listen(wanted, '127.0.0.1', () => probe.close(() => resolve(wanted)))
  })
