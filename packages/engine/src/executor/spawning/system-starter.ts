// Executors as processes of this host, each `leasehold work` with a group of its own. A pipe ties it to its spawner: when that is
// gone, by whatever way, the executor stops in order.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { programs } from '../programs.ts'
import type { Starter } from './spawner.ts'

export interface SystemStarterOptions {
  /** The module that exports the workflows. */
  readonly module: string
  /** What each is given beside its queue, slots and session: flags of `leasehold work`. */
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** How long one may have nothing to do before it ends by itself. */
  readonly idleMs: number
  /** The program that is `leasehold`. */
  readonly program?: string
}

export const systemStarter = ({
  module,
  flags,
  env,
  cwd,
  idleMs,
  program = fileURLToPath(programs.command),
}: SystemStarterOptions): Starter => ({
  kind: 'process',
  async start({ session, queue, slots, startByMs }) {
    const child = spawn(
      process.execPath,
      [
        ...process.execArgv.filter((arg) => !/^--(inspect|eval)/.test(arg)),
        program,
        'work',
        module,
        ...flags,
        ...flagsOf({
          session,
          queues: queue,
          slots,
          'idle-ms': idleMs,
          'start-by-ms': startByMs,
        }),
        '--tied',
      ],
      { cwd, env, detached: true, stdio: ['pipe', 'inherit', 'inherit'] },
    )
    const gone = new Promise<string>((resolve) =>
      child.once('exit', (code, signal) => {
        const pid = child.pid ?? 0
        // what it has started and left behind goes with it
        signalGroup(pid, 'SIGKILL')
        resolve(
          signal === null
            ? `process ${pid} exited with ${code}`
            : `process ${pid} was ended by ${signal}`,
        )
      }),
    )
    // it may end before it has read anything
    child.stdin?.on('error', () => undefined)
    await once(child, 'spawn')
    return {
      gone,
      tell: () => void child.kill('SIGTERM'),
      kill: () => signalGroup(child.pid ?? 0, 'SIGKILL'),
    }
  },
})

/** As a command line has them. */
export const flagsOf = (values: Readonly<Record<string, string | number>>): string[] =>
  Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)])

/** To all of a group that this process leads; none is alive where it says so. */
const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  if (pid <= 0) return
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
