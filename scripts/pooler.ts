// A PgBouncer of the tests' own, in transaction mode: each transaction may get another connection to the server.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { freePort } from './postgres.ts'
import { installPackage } from './system.ts'

declare module 'vitest' {
  interface ProvidedContext {
    poolerUrl: string
  }
}

export interface Pooler {
  /** Of the database, through the pooler. */
  readonly url: string
  /** Ends it at once, as a crash would, and starts it again at the same port. */
  restart(): Promise<void>
  close(): Promise<void>
}

const program = (): string => {
  const found = (): boolean =>
    spawnSync('pgbouncer', ['--version'], { stdio: 'ignore' }).status === 0
  if (!found())
    installPackage('PgBouncer', {
      'apt-get': 'pgbouncer',
      dnf: 'pgbouncer',
      apk: 'pgbouncer',
      brew: 'pgbouncer',
    })
  return 'pgbouncer'
}

/** Leads to the database that `url` names, with so many connections to the server at most. */
export const openPooler = async (url: string, connections: number): Promise<Pooler> => {
  const to = new URL(url)
  const bin = program()
  const port = await freePort()
  const folder = mkdtempSync(path.join(os.tmpdir(), 'leasehold-pooler-'))
  const users = path.join(folder, 'users.txt')
  const config = path.join(folder, 'pgbouncer.ini')
  writeFileSync(users, `"${to.username}" ""\n`)
  writeFileSync(
    config,
    `[databases]
* = host=${to.hostname} port=${to.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 200
server_round_robin = 1
`,
  )
  // it refuses to run as root
  const root = process.getuid?.() === 0
  const number = (flag: string): number =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  const as = root ? { uid: number('-u'), gid: number('-g') } : {}
  if (as.uid !== undefined)
    for (const each of [folder, users, config]) chownSync(each, as.uid, as.gid)
  const through = new URL(url)
  through.port = String(port)
  const launch = async () => {
    const child = spawn(bin, ['-q', config], { ...as, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-2_000)
    })
    for (let tries = 0; ; tries++) {
      const client = new pg.Client({ connectionString: through.href })
      client.on('error', () => undefined)
      try {
        await client.connect()
        await client.end()
        return child
      } catch (error) {
        if (child.exitCode !== null || tries > 100)
          throw new Error(`PgBouncer did not start: ${said}`, { cause: error })
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }
  let running = await launch()
  const end = async (): Promise<void> => {
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
  }
  return {
    url: through.href,
    async restart() {
      await end()
      running = await launch()
    },
    async close() {
      await end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

let running: Pooler | null = null

/** Of vitest: one pooler for all tests of a project, before the server that `postgres.ts` has started. */
export async function setup(project: TestProject): Promise<void> {
  running = await openPooler(project.getProvidedContext().postgresUrl, 2)
  project.provide('poolerUrl', running.url)
}

export async function teardown(): Promise<void> {
  await running?.close()
}
