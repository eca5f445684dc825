// Processes of this host, as children of this one: each leads a group of its own and carries its label in its environment,
// where it is found also when it has left the group.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Fault } from '../../kernel/errors.ts'
import type { FromBody } from './body-protocol.ts'
import type { HostProcess } from './host-process.ts'
import { processAt, processBegan, processTable } from './host-process.ts'
import type { ProcessGroup, ProcessLabel, Processes } from './processes.ts'
import { programs } from '../programs.ts'
import { sandboxed, whyNoSandbox } from './sandbox.ts'

/** What every program needs to find its way, and nothing that lets it into anywhere. */
const PLAIN = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SystemRoot']

export interface ProcessesOptions {
  /** The module that exports the workflows, as a path or URL. */
  readonly module: string
  /** What processes may be given of it, by name. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The program that loads the module and drives. */
  readonly program?: string
}

const OUTPUTS = ['stdout', 'stderr'] as const

export const systemProcesses = ({
  module,
  env,
  program = fileURLToPath(programs.body),
}: ProcessesOptions): Processes => {
  /** Groups that this process has started and looks at until they are gone: nobody else can have their numbers meanwhile. */
  const own = new WeakSet<ProcessGroup>()
  const alive = (group: ProcessGroup): Promise<readonly HostProcess[]> =>
    membersOf(group, own.has(group))
  const spawnBody: Processes['spawn'] = async (
    { label, env: allowed, memoryMb, sandbox },
    hears,
  ) => {
    const node = [
      // a loader of the program that this is, such as one for TypeScript, is needed there too
      ...process.execArgv.filter((arg) => !/^--(inspect|max-old-space-size|eval)/.test(arg)),
      ...(memoryMb === null ? [] : [`--max-old-space-size=${memoryMb}`]),
      program,
      module.startsWith('file:') ? fileURLToPath(module) : module,
    ]
    const [command, args] =
      sandbox === null ? [process.execPath, node] : sandboxed(sandbox, process.execPath, node)
    const child = spawn(command, args, {
      detached: true,
      env: {
        ...Object.fromEntries([...PLAIN, ...allowed].map((name) => [name, env[name]])),
        ...variablesOf(label),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const source of OUTPUTS) {
      child[source]?.setEncoding('utf8')
      child[source]?.on('data', (text: string) => hears.printed(source, text))
      child[source]?.once('end', () => hears.printed(source, null))
    }
    child.on('message', (message) => hears.message(message as FromBody))
    child.on('exit', (code, signal) =>
      hears.exited(
        signal === null ? `its process exited with ${code}` : `its process was ended by ${signal}`,
      ),
    )
    await started(child)
    const pid = child.pid ?? 0
    // it has just been made, and cannot be collected before this turn has passed
    const group = { leader: { pid, began: await processBegan(pid) }, label }
    own.add(group)
    return {
      group,
      send(message) {
        // what cannot be said any more is settled by the exit, which follows
        if (child.connected) child.send(message, () => undefined)
      },
      leaveOutput() {
        for (const source of OUTPUTS) child[source]?.destroy()
      },
      flow(on) {
        for (const source of OUTPUTS) {
          if (on) child[source]?.resume()
          else child[source]?.pause()
        }
      },
    }
  }
  return {
    spawn: spawnBody,
    whyNoSandbox: (sandbox) => whyNoSandbox(sandbox, env),
    async isAlive(group) {
      return (await alive(group)).length > 0
    },
    async signal(group, signal) {
      for (const { pid } of await alive(group))
        try {
          process.kill(pid, signal)
        } catch (error) {
          // it went meanwhile
          if ((error as { code?: unknown }).code !== 'ESRCH') throw error
        }
    },
  }
}

const started = async (child: ReturnType<typeof spawn>): Promise<void> => {
  const failed = once(child, 'error').then(([error]) => {
    throw new Fault('peer_unreachable', `no process could be started: ${String(error)}`)
  })
  await Promise.race([once(child, 'spawn'), failed])
  failed.catch(() => undefined)
}

const variablesOf = ({ session, run, attempt }: ProcessLabel): Record<string, string> => ({
  LEASEHOLD_SESSION: session,
  LEASEHOLD_RUN: run,
  LEASEHOLD_ATTEMPT: String(attempt),
})

/**
 * Who is alive of a group: those in it as long as its leader is the one that is meant, and whoever carries its label. A
 * number that another process has by now is nobody's of this group. Where the leader has gone, its number stays taken while
 * anybody is in the group, so that of a `watched` one those in it are its own; of one that was left behind by an earlier
 * process the number may have been given again and left again, and only the label proves whose they are.
 */
const membersOf = async (
  { leader, label }: ProcessGroup,
  watched: boolean,
): Promise<readonly HostProcess[]> => {
  const now = await processAt(leader.pid)
  const isLed = now !== null && (leader.began === null || now.began === leader.began)
  const isReused = now !== null && !isLed
  const labelled = Object.entries(variablesOf(label)).map(([name, value]) => `${name}=${value}`)
  const table = (await processTable()).filter(({ alive }) => alive)
  const members = await Promise.all(
    table.map(async (each) => {
      const inGroup = each.group === leader.pid && !isReused
      return (inGroup && (isLed || watched)) || (await carries(each.pid, labelled)) ? each : null
    }),
  )
  return members.filter((each) => each !== null)
}

/** Whether its environment has all of these; that of another user, or on another system, cannot be read. */
const carries = async (pid: number, variables: readonly string[]): Promise<boolean> => {
  try {
    const has = new Set((await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0'))
    return variables.every((each) => has.has(each))
  } catch {
    return false
  }
}
