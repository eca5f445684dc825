// A PostgreSQL that fails over: three nodes under Patroni with synchronous replication, each a host of its own in a network
// namespace, etcd to agree by, and HAProxy to find the primary by. It needs root, since it makes hosts and links.
import type { ChildProcess } from 'node:child_process'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { freePort, programs } from './postgres.ts'
import { installPackage } from './system.ts'

const NODES = 3
/** How long a primary that is silent stays one, at least; Patroni takes no less. */
const TTL_S = 20
const UP_WITHIN_MS = 90_000

export interface ClusterNode {
  readonly name: string
  /** Ends the node's PostgreSQL and its Patroni at once, as when a host loses its power. */
  kill(): void
  start(): void
  /** Takes the cable out, and puts it in again. */
  unplug(): void
  plug(): void
  /** Whether it says of itself that it is the primary. */
  isPrimary(): Promise<boolean>
}

export interface Cluster {
  /** Where the primary is found, whichever it is. */
  readonly url: string
  readonly port: number
  readonly version: string
  readonly nodes: readonly ClusterNode[]
  /** The primary, once there is one that is not this node. */
  primary(except?: ClusterNode): Promise<ClusterNode>
  /** Once somebody’s write is acknowledged, by a synchronous standby too. */
  writable(): Promise<void>
  /** Once all nodes are there and some standby is synchronous. */
  whole(): Promise<void>
  stop(): Promise<void>
}

const needed = (): void => {
  if (process.getuid?.() !== 0)
    throw new Error('a cluster of hosts is made of network namespaces; run it as root')
  const there = (command: string): boolean =>
    ['/usr/bin', '/usr/sbin', '/sbin', '/bin'].some((place) =>
      existsSync(path.join(place, command)),
    )
  if (['patroni', 'etcd', 'haproxy', 'ip'].every(there)) return
  installPackage('Patroni', {
    'apt-get': 'patroni etcd-server haproxy iproute2 python3-etcd python3-psycopg2 postgresql',
  })
}

const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: 'pipe' })

export const startCluster = async (
  settings: Readonly<Record<string, string>>,
): Promise<Cluster> => {
  needed()
  const bin = programs()
  if (bin === null) throw new Error('PostgreSQL was installed, and its initdb is not found')
  const folder = mkdtempSync(path.join(os.tmpdir(), 'leasehold-cluster-'))
  const id = (name: string): number =>
    Number(execFileSync('id', [name, 'postgres'], { encoding: 'utf8' }))
  const [uid, gid] = [id('-u'), id('-g')]
  chownSync(folder, uid, gid)
  // names of links have fifteen characters at most
  const tag = `lh${process.pid % 100_000}`
  const net = `10.${200 + (process.pid % 50)}.${Math.floor(process.pid / 50) % 250}`
  const children: ChildProcess[] = []
  const launch = (command: string, args: readonly string[], log: string): ChildProcess => {
    const out = path.join(folder, `${log}.log`)
    const child = spawn('sh', ['-c', `exec "$@" >>"${out}" 2>&1`, 'sh', command, ...args], {
      cwd: folder,
      stdio: 'ignore',
      detached: true,
    })
    children.push(child)
    return child
  }

  ip('link', 'add', `${tag}b`, 'type', 'bridge')
  ip('addr', 'add', `${net}.1/24`, 'dev', `${tag}b`)
  ip('link', 'set', `${tag}b`, 'up')
  const etcd = `${net}.1:2379`
  launch(
    'etcd',
    // prettier-ignore
    [
      '--name', 'etcd', '--data-dir', path.join(folder, 'etcd'),
      '--listen-client-urls', `http://${etcd}`, '--advertise-client-urls', `http://${etcd}`,
      '--listen-peer-urls', `http://${net}.1:2380`,
      '--initial-advertise-peer-urls', `http://${net}.1:2380`,
      '--initial-cluster', `etcd=http://${net}.1:2380`,
    ],
    'etcd',
  )

  const nodeOf = (number: number): ClusterNode => {
    const name = `pg${number}`
    const host = `${net}.${10 + number}`
    const [space, near, far] = [`${tag}n${number}`, `${tag}v${number}`, `${tag}w${number}`]
    ip('netns', 'add', space)
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far)
    ip('link', 'set', far, 'netns', space)
    ip('link', 'set', near, 'master', `${tag}b`)
    ip('link', 'set', near, 'up')
    ip('-n', space, 'addr', 'add', `${host}/24`, 'dev', far)
    ip('-n', space, 'link', 'set', far, 'up')
    ip('-n', space, 'link', 'set', 'lo', 'up')
    const own = path.join(folder, name)
    mkdirSync(own)
    chownSync(own, uid, gid)
    const config = path.join(own, 'patroni.json')
    // JSON is YAML
    writeFileSync(
      config,
      JSON.stringify({
        scope: tag,
        name,
        restapi: { listen: `${host}:8008`, connect_address: `${host}:8008` },
        etcd3: { host: etcd },
        bootstrap: {
          dcs: {
            ttl: TTL_S,
            loop_wait: 2,
            retry_timeout: 5,
            maximum_lag_on_failover: 1_048_576,
            synchronous_mode: true,
            postgresql: { use_pg_rewind: true, use_slots: true, parameters: settings },
          },
          initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
        },
        postgresql: {
          listen: `${host}:5432`,
          connect_address: `${host}:5432`,
          data_dir: path.join(own, 'data'),
          bin_dir: bin,
          pgpass: path.join(own, 'pgpass'),
          authentication: {
            superuser: { username: 'leasehold', password: 'x' },
            replication: { username: 'replicator', password: 'x' },
          },
          parameters: { unix_socket_directories: own },
          pg_hba: [
            'local all all trust',
            'host all all 0.0.0.0/0 trust',
            'host replication all 0.0.0.0/0 trust',
          ],
        },
      }),
    )
    chownSync(config, uid, gid)
    return {
      name,
      kill() {
        const found = spawnSync('ip', ['netns', 'pids', space], { encoding: 'utf8' }).stdout
        for (const pid of found.split('\n').filter((line) => line !== ''))
          try {
            process.kill(Number(pid), 'SIGKILL')
          } catch {
            // it went with one before it
          }
      },
      start() {
        const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
        launch('ip', ['netns', 'exec', space, ...as, 'patroni', config], name)
      },
      unplug: () => ip('link', 'set', near, 'down'),
      plug: () => ip('link', 'set', near, 'up'),
      async isPrimary() {
        try {
          const signal = AbortSignal.timeout(1_000)
          return (await fetch(`http://${host}:8008/primary`, { signal })).status === 200
        } catch {
          return false
        }
      },
    }
  }
  const numbers = Array.from({ length: NODES }, (_each, i) => i + 1)
  const nodes = numbers.map(nodeOf)
  const port = await freePort()
  const proxy = path.join(folder, 'haproxy.cfg')
  writeFileSync(
    proxy,
    [
      'defaults',
      '  mode tcp',
      '  timeout connect 2s',
      '  timeout client 1h',
      '  timeout server 1h',
      '  timeout check 1s',
      'listen primary',
      `  bind 127.0.0.1:${port}`,
      '  option httpchk OPTIONS /primary',
      '  http-check expect status 200',
      '  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions',
      ...numbers.map((n) => `  server pg${n} ${net}.${10 + n}:5432 check port 8008`),
      '',
    ].join('\n'),
  )
  const cluster: Omit<Cluster, 'version'> = {
    url: `postgres://leasehold@127.0.0.1:${port}/postgres`,
    port,
    nodes,
    async primary(except) {
      for (const until = performance.now() + UP_WITHIN_MS; ; await pause(50)) {
        for (const node of nodes) if (node !== except && (await node.isPrimary())) return node
        if (performance.now() > until)
          throw new Error(`no node became the primary; logs in ${folder}`)
      }
    },
    async writable() {
      for (const until = performance.now() + UP_WITHIN_MS; ; await pause(50)) {
        if (await hasWritten(cluster.url)) return
        if (performance.now() > until)
          throw new Error(`the cluster does not take writes; logs in ${folder}`)
      }
    },
    async whole() {
      for (const until = performance.now() + UP_WITHIN_MS; ; await pause(200)) {
        const synchronous = await replicas(cluster.url)
        if (synchronous.length === NODES - 1 && synchronous.includes('sync')) return
        if (performance.now() > until)
          throw new Error(`the cluster did not become whole again; logs in ${folder}`)
      }
    },
    async stop() {
      for (const node of nodes) node.kill()
      for (const child of children) if (child.exitCode === null) child.kill('SIGKILL')
      for (const number of numbers) {
        ip('link', 'del', `${tag}v${number}`)
        ip('netns', 'del', `${tag}n${number}`)
      }
      ip('link', 'del', `${tag}b`)
      for (const child of children) if (!hasEnded(child)) await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  try {
    for (const node of nodes) node.start()
    launch('haproxy', ['-db', '-f', proxy], 'haproxy')
    await cluster.primary()
    await cluster.whole()
    const client = new pg.Client({ connectionString: cluster.url })
    await client.connect()
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    await client.end()
    return { ...cluster, version: rows[0]?.server_version ?? '' }
  } catch (error) {
    for (const node of nodes) node.kill()
    throw error
  }
}

/** A transaction that leaves nothing but its place in the log. */
const hasWritten = async (url: string): Promise<boolean> => {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 1_000,
    query_timeout: 1_000,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(`select pg_logical_emit_message(true, 'leasehold', '')`)
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** How each standby follows: `sync`, `async` or `potential`; none where the primary is not reached. */
const replicas = async (url: string): Promise<readonly string[]> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ sync_state: string }>(
      `select sync_state from pg_stat_replication where state = 'streaming'`,
    )
    return rows.map(({ sync_state }) => sync_state)
  } catch {
    return []
  } finally {
    await client.end().catch(() => undefined)
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null
