// A PostgreSQL of the tests' own: found or installed, in a folder that goes with it, on a port of this machine alone; it can
// be ended and started again over the same data.
import type { ChildProcess } from 'node:child_process'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { installPackage } from './system.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

const PREFIX = 'leasehold-postgres-'

export interface Server {
  /** Of a database with C collation, empty. */
  readonly url: string
  readonly port: number
  readonly data: string
  readonly version: string
  /** Ends it and starts it again over what is on disk: `fast` ends its sessions in order, `immediate` as a crash would. */
  restart(how: 'fast' | 'immediate'): Promise<void>
  stop(): Promise<void>
}

interface Options {
  /** Whether what is committed is on disk; tests of anything but crashes do without. Default false. */
  readonly durable?: boolean
  readonly settings?: Readonly<Record<string, string>>
  /** A server that it is a standby of, which follows by streaming; by default it is a database of its own. */
  readonly standbyOf?: Server
}

/** The folder of the newest server's programs. */
export const programs = (): string | null => {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian)
    ? readdirSync(debian)
        .map(Number)
        .toSorted((a, b) => b - a)
    : []
  const asked = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' })
  const places = [
    ...versions.map((version) => path.join(debian, String(version), 'bin')),
    ...(asked.status === 0 ? [asked.stdout.trim()] : []),
    '/usr/libexec/postgresql',
    '/usr/bin',
  ]
  return places.find((place) => existsSync(path.join(place, 'initdb'))) ?? null
}

const found = (): string => {
  const there = programs()
  if (there !== null) return there
  installPackage('PostgreSQL', {
    'apt-get': 'postgresql',
    dnf: 'postgresql-server',
    apk: 'postgresql',
    brew: 'postgresql@17',
  })
  const now = programs()
  if (now === null) throw new Error('PostgreSQL was installed, and its initdb is not found')
  return now
}

/** The server refuses to run as root: then it runs as the user that its package made. */
const user = (): { uid: number; gid: number } | null => {
  if (process.getuid?.() !== 0) return null
  const number = (flag: string): number =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

export const freePort = async (): Promise<number> => {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Ends the servers of tests that were killed, and removes their folders. */
const sweep = (): void => {
  for (const name of readdirSync(os.tmpdir()).filter((each) => each.startsWith(PREFIX))) {
    const [, pid] = /-(\d+)-/.exec(name.slice(PREFIX.length - 1)) ?? []
    if (pid === undefined || alive(Number(pid))) continue
    const folder = path.join(os.tmpdir(), name)
    try {
      const [master] = readFileSync(path.join(folder, 'data/postmaster.pid'), 'utf8').split('\n')
      process.kill(Number(master), 'SIGQUIT')
    } catch {
      // it had ended
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}

export const startPostgres = async ({
  durable = false,
  settings = {},
  standbyOf,
}: Options = {}): Promise<Server> => {
  const bin = found()
  sweep()
  const as = user()
  const folder = mkdtempSync(path.join(os.tmpdir(), `${PREFIX}${process.pid}-`))
  const data = path.join(folder, 'data')
  mkdirSync(data)
  if (as) for (const each of [folder, data]) chownSync(each, as.uid, as.gid)
  const how = { cwd: folder, ...as }
  const make = (program: string, args: readonly string[]): void =>
    void execFileSync(
      path.join(bin, program),
      ['-D', data, '-U', 'leasehold', '--no-sync', ...args],
      {
        ...how,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
  if (standbyOf) {
    chmodSync(data, 0o700)
    make('pg_basebackup', ['-h', '127.0.0.1', '-p', String(standbyOf.port), '-R', '-c', 'fast'])
  } else make('initdb', ['--auth=trust', '--locale=C', '--encoding=UTF8'])
  const port = await freePort()
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: folder,
    max_connections: '200',
    log_min_messages: 'warning',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    ...settings,
  }
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  let said = ''
  const launch = (): ChildProcess => {
    const launched = spawn(path.join(bin, 'postgres'), ['-D', data, ...args], {
      ...how,
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    launched.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4_000)
    })
    return launched
  }
  let server = launch()
  const end = async (signal: 'SIGINT' | 'SIGQUIT'): Promise<void> => {
    if (hasEnded(server)) return
    const gone = once(server, 'exit')
    server.kill(signal)
    await gone
  }
  const url = `postgres://leasehold@127.0.0.1:${port}/postgres`
  /** Its version, once it answers. */
  const answered = async (): Promise<string> => {
    for (let tries = 0; ; tries++) {
      const client = new pg.Client({ connectionString: url })
      // one that is lost while it connects says so beside what is thrown
      client.on('error', () => undefined)
      try {
        await client.connect()
        const { rows } = await client.query<{ server_version: string }>('show server_version')
        await client.end()
        return rows[0]?.server_version ?? ''
      } catch (error) {
        // every connection may be taken: then it is up
        if ((error as { code?: string }).code === '53300') return ''
        if (hasEnded(server) || tries > 300)
          throw new Error(`PostgreSQL did not start: ${said}`, { cause: error })
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }
  const version = await answered()
  return {
    url,
    port,
    data,
    version,
    async restart(how) {
      await end(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
      for (let tries = 1; ; tries++) {
        server = launch()
        try {
          await answered()
          return
        } catch (error) {
          // its port may be taken for a moment, as by somebody's own end of a connection
          if (tries === 10) throw error
        }
      }
    },
    async stop() {
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null

let running: Server | null = null

/** Of vitest: one server for all tests of a project. */
export async function setup(project: TestProject): Promise<void> {
  running = await startPostgres()
  project.provide('postgresUrl', running.url)
}

export async function teardown(): Promise<void> {
  await running?.stop()
}
