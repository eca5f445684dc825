// Where the torture happens: a folder with a copy of the built package, so that a build that is made meanwhile changes
// nothing, and a PostgreSQL of its own that keeps what is committed, one server or a cluster that fails over, with a role
// for the engine that is nobody special.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Cluster } from '../../../../scripts/cluster.ts'
import { startCluster } from '../../../../scripts/cluster.ts'
import type { Server as Postgres } from '../../../../scripts/postgres.ts'
import { startPostgres } from '../../../../scripts/postgres.ts'

const engine = fileURLToPath(new URL('../../', import.meta.url))
const programs = fileURLToPath(new URL('./programs/', import.meta.url))

export interface Place {
  readonly folder: string
  readonly main: string
  readonly effects: string
  readonly postgres: Postgres | Cluster
  /** The database as the engine's role sees it, past all proxies. */
  readonly url: string
  /** As its superuser, who is let in when all connections are taken, and may write whatever the default is. */
  operator(): Promise<pg.Client>
}

/** A superuser may have three connections more. */
const CONNECTIONS = 48
const NAME = 'torture'

export const makePlace = async (cluster: boolean): Promise<Place> => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'leasehold-torture-'))
  const modules = path.join(folder, 'node_modules')
  const own = path.join(modules, 'leasehold')
  mkdirSync(own, { recursive: true })
  mkdirSync(path.join(folder, 'logs'))
  for (const part of ['package.json', 'bin', 'migrations'])
    cpSync(path.join(engine, part), path.join(own, part), { recursive: true })
  for (const part of ['cli', 'chunks', 'entry', 'programs'])
    cpSync(path.join(engine, 'dist', part), path.join(own, 'dist', part), { recursive: true })
  const { dependencies } = JSON.parse(readFileSync(path.join(own, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  for (const name of Object.keys(dependencies)) linkPackage(name, modules)
  cpSync(programs, folder, { recursive: true })

  const settings = { max_connections: String(CONNECTIONS), superuser_reserved_connections: '3' }
  const postgres = cluster
    ? await startCluster(settings)
    : await startPostgres({ durable: true, settings })
  const as = (user: string, database: string): string => {
    const url = new URL(postgres.url)
    url.username = user
    url.pathname = `/${database}`
    return url.href
  }
  const admin = new pg.Client({ connectionString: postgres.url })
  await admin.connect()
  await admin.query(`create role ${NAME} login`)
  await admin.query(`create database ${NAME} owner ${NAME}`)
  await admin.end()
  return {
    folder,
    main: path.join(own, 'dist/cli/main.js'),
    effects: path.join(folder, 'effects.jsonl'),
    postgres,
    url: as(NAME, NAME),
    async operator() {
      const client = new pg.Client({
        connectionString: as('leasehold', NAME),
        options: '-c default_transaction_read_only=off',
      })
      client.on('error', () => undefined)
      await client.connect()
      return client
    },
  }
}

/** A package that the engine needs, as it stands in this checkout; one that only types need may be absent. */
const linkPackage = (name: string, modules: string): void => {
  const require = createRequire(path.join(engine, 'package.json'))
  const at = (require.resolve.paths(name) ?? []).map((place) => path.join(place, name))
  const from = at.find((place) => {
    try {
      return readFileSync(path.join(place, 'package.json')).length > 0
    } catch {
      return false
    }
  })
  if (from === undefined) return
  mkdirSync(path.dirname(path.join(modules, name)), { recursive: true })
  symlinkSync(from, path.join(modules, name))
}
