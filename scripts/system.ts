// What tests need of the system, installed with the distribution's package manager where it is not there.
import { spawnSync } from 'node:child_process'

interface Manager {
  readonly command: string
  readonly refresh: readonly string[]
  readonly install: readonly string[]
}

const MANAGERS: readonly Manager[] = [
  {
    command: 'apt-get',
    refresh: ['update', '-q'],
    install: ['install', '-y', '-q', '--no-install-recommends'],
  },
  { command: 'dnf', refresh: [], install: ['install', '-y', '-q'] },
  { command: 'apk', refresh: ['update', '-q'], install: ['add', '-q'] },
  { command: 'brew', refresh: [], install: ['install', '-q'] },
]

export type PackageNames = Readonly<Partial<Record<'apt-get' | 'dnf' | 'apk' | 'brew', string>>>

const succeeds = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

/** Installs a package under the name that the system's manager has for it; throws a sentence that says what to do by hand. */
export function installPackage(what: string, names: PackageNames): void {
  const manager = MANAGERS.find(({ command }) => succeeds(command, ['--version']))
  const name = manager && names[manager.command as keyof PackageNames]
  if (!manager || name === undefined)
    throw new Error(
      `${what} is needed and not there, and no package manager that we know is; install it by hand`,
    )
  const root = process.getuid?.() === 0 || manager.command === 'brew'
  if (!root && !succeeds('sudo', ['-n', 'true']))
    throw new Error(
      `${what} is needed and not there; install it: sudo ${manager.command} ${manager.install[0]} ${name}`,
    )
  const run = (args: readonly string[]): boolean => {
    const [command, ...rest] = [...(root ? [] : ['sudo', '-n']), manager.command, ...args]
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    return spawnSync(command as string, rest, { stdio: 'inherit', env }).status === 0
  }
  const wanted = name.split(' ')
  if (run([...manager.install, ...wanted])) return
  if (manager.refresh.length > 0 && run(manager.refresh) && run([...manager.install, ...wanted]))
    return
  throw new Error(`${what} is needed, and ${manager.command} could not install ${name}`)
}
