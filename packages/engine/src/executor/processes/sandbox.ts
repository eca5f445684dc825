// The sandbox of an isolated attempt: what the kernel keeps its process, and all that this starts, from. `bwrap` makes it, from
// namespaces of Linux. Asked for, it is there or nothing is started; a process never goes without.
import { spawn } from 'node:child_process'
import type { Sandbox } from '../authoring/isolation.ts'

/** The program, found by the executor's PATH. */
const PROGRAM = 'bwrap'
const SETTLED_MS = 10_000

/** How a command is called in a sandbox. */
export const sandboxed = (
  { network, writable }: Required<Sandbox>,
  command: string,
  args: readonly string[],
): readonly [command: string, args: readonly string[]] => [
  PROGRAM,
  [
    // namespaces of its own for all; nothing in that of its processes outlives the first of them
    '--unshare-all',
    '--die-with-parent',
    // a root without rights cannot mount anything again
    '--cap-drop',
    'ALL',
    '--ro-bind',
    '/',
    '/',
    // with a folder in memory that is its own
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    '--setenv',
    'TMPDIR',
    '/dev/shm',
    // a socket in a folder can be reached without a network; with one, what finds names is there
    ...(network ? ['--share-net'] : ['--tmpfs', '/run']),
    ...writable.flatMap((folder) => ['--bind', folder, folder]),
    ...(network ? [] : ['--remount-ro', '/run']),
    '--chdir',
    process.cwd(),
    '--',
    command,
    ...args,
  ],
]

/** Starts a program that does nothing in such a sandbox: why that cannot be, or null where it can. */
export const whyNoSandbox = (
  sandbox: Required<Sandbox>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | null> =>
  new Promise((resolve) => {
    const [command, args] = sandboxed(sandbox, process.execPath, ['--version'])
    const child = spawn(command, args, {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: SETTLED_MS,
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(
        error.code === 'ENOENT'
          ? `there is no ${PROGRAM} in its PATH; install the package bubblewrap`
          : `${PROGRAM} cannot be started: ${error.message}`,
      ),
    )
    child.once('close', (code, signal) =>
      resolve(
        code === 0
          ? null
          : `${PROGRAM} ended with ${code ?? signal}: ${said.trim() || 'it said nothing'}`,
      ),
    )
  })
