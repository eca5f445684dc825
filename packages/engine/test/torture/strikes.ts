// What strikes: each kind does its harm to one of the processes, the database or a link, and has healed it when it returns.
// It answers false where it met nobody, as while the process that it was for is being started again.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Cluster, ClusterNode } from '../../../../scripts/cluster.ts'
import type { Server as Postgres } from '../../../../scripts/postgres.ts'
import type { Proxy } from '../support/proxy.ts'
import type { Program, Role } from './fleet.ts'
import type { Strike } from './order.ts'
import { oneOf } from './order.ts'

export interface Victims {
  readonly programs: readonly Program[]
  /** Before the database, one for each process that speaks to it. */
  readonly databaseLinks: readonly Proxy[]
  /** Before the servers. */
  readonly serverLinks: readonly Proxy[]
  readonly postgres: Postgres | Cluster
  /** Of the role that the engine uses, past the proxies. */
  readonly databaseUrl: string
  readonly leaseMs: number
  /** Starts a run that blocks the process of this name for so long; true once it does. */
  stall(program: string, ms: number): Promise<boolean>
  /** Milliseconds until a run that is started now has come to its end, however often it has to be asked for. */
  served(): Promise<number>
  failedOver(failover: Failover): void
  /** A connection that is never refused, and may write whatever the default is. */
  operator(): Promise<pg.Client>
}

export interface Failover {
  readonly kind: string
  /** From the harm to the new primary, and to the first write that anybody gets acknowledged. */
  readonly primaryMs: number
  readonly writableMs: number
  /** From that write to a run that has come to its end. */
  readonly servedMs: number
}

type Act = (victims: Victims, strike: Strike) => Promise<boolean>

const LONG_GRACE_MS = 12_000
const SHORT_GRACE_MS = 250
const REACH_MS = 5_000

/** The process that it is for; or, where that is being started, the next that is up. */
const reached = async ({ programs }: Victims, roles: readonly Role[], { who }: Strike) => {
  const some = programs.filter(({ role }) => roles.includes(role))
  const first = some.indexOf(oneOf(some, who))
  const inOrder = [...some.slice(first), ...some.slice(0, first)]
  const until = performance.now() + REACH_MS
  for (;;) {
    const program = inOrder.find(({ up }) => up)
    if (program || performance.now() > until) return program ?? null
    await pause(20)
  }
}

const drivers: readonly Role[] = ['executor', 'embedded']
const all: readonly Role[] = ['server', 'executor', 'embedded']

const killed =
  (roles: readonly Role[]): Act =>
  async (victims, strike) =>
    (await reached(victims, roles, strike))?.signal('SIGKILL', true) ?? false

const terminated =
  (roles: readonly Role[], graceMs: number): Act =>
  async (victims, strike) => {
    const program = await reached(victims, roles, strike)
    return program !== null && (await program.terminate(graceMs)) !== 'absent'
  }

/** For longer than the lease, so that what it holds is somebody else's when it goes on. */
const frozen =
  (roles: readonly Role[]): Act =>
  async (victims, strike) => {
    const program = await reached(victims, roles, strike)
    if (!program?.signal('SIGSTOP', false)) return false
    await pause(victims.leaseMs * (1.2 + 0.8 * strike.long))
    program.signal('SIGCONT', false)
    return true
  }

const stalled =
  (roles: readonly Role[]): Act =>
  async (victims, strike) => {
    const program = await reached(victims, roles, strike)
    return (
      program !== null &&
      victims.stall(program.name, Math.round(victims.leaseMs * (1.2 + 0.6 * strike.long)))
    )
  }

/** One after the other, each once the one before is back. */
const inTurn: Act = async ({ programs }) => {
  for (const server of programs.filter(({ role }) => role === 'server')) {
    await server.terminate(LONG_GRACE_MS)
    const until = performance.now() + REACH_MS
    while (!server.up && performance.now() < until) await pause(20)
  }
  return true
}

type Links = 'databaseLinks' | 'serverLinks'

const cut =
  (links: Links): Act =>
  async (victims, { who, how }) => {
    const link = oneOf(victims[links], who)
    // in one of two it cannot come back at once
    if (how < 0.5) link.mode = 'refuse'
    link.cut()
    await pause(how < 0.5 ? 800 : 0)
    link.mode = 'pass'
    return true
  }

const delayed =
  (links: Links): Act =>
  async (victims, { who, long }) => {
    const link = oneOf(victims[links], who)
    link.delayMs = Math.round(20 + 400 * long)
    await pause(3_000)
    link.delayMs = 0
    return true
  }

/** Nothing comes through; then what was sent does, or both sides hear that it was lost. */
const blackholed =
  (links: Links): Act =>
  async (victims, { who, long, how }) => {
    const link = oneOf(victims[links], who)
    link.mode = how < 0.5 ? 'hold' : 'swallow'
    await pause(victims.leaseMs * (0.6 + long))
    if (how >= 0.5) link.cut()
    link.mode = 'pass'
    return true
  }

const halfClosed =
  (links: Links): Act =>
  async (victims, { who }) => {
    oneOf(victims[links], who).halfClose()
    return Promise.resolve(true)
  }

const restarted =
  (how: 'fast' | 'immediate'): Act =>
  async ({ postgres }) => {
    if (!('restart' in postgres)) return false
    await postgres.restart(how)
    return true
  }

/** All that is up is killed, and the database stops at once, as when a machine loses its power. */
const plugPulled: Act = async ({ programs, postgres }) => {
  if (!('restart' in postgres)) return false
  const struck = programs.filter((program) => program.signal('SIGKILL', true))
  await postgres.restart('immediate')
  return struck.length > 0
}

/** The primary is harmed, another takes its place, runs are served again; then the old one follows the new. */
const failedOver =
  (kind: string, harm: (node: ClusterNode) => void, heal: (node: ClusterNode) => void): Act =>
  async ({ postgres: cluster, served, failedOver: tell }) => {
    if (!('nodes' in cluster)) return false
    const old = await cluster.primary()
    const from = performance.now()
    harm(old)
    try {
      await cluster.primary(old)
      const primaryMs = performance.now() - from
      await cluster.writable()
      const writableMs = performance.now() - from
      tell({ kind, primaryMs, writableMs, servedMs: await served() })
    } finally {
      heal(old)
    }
    await cluster.whole()
    return true
  }

/** Another standby becomes the synchronous one, and nobody waits for this one for ever. */
const standbyKilled: Act = async ({ postgres: cluster, served }, { who }) => {
  if (!('nodes' in cluster)) return false
  const primary = await cluster.primary()
  const standby = oneOf(
    cluster.nodes.filter((node) => node !== primary),
    who,
  )
  standby.kill()
  await served()
  standby.start()
  await cluster.whole()
  return true
}

const readOnly: Act = async (victims, { long }) => {
  const set = async (value: string): Promise<void> => {
    const operator = await victims.operator()
    try {
      await operator.query(`alter system set default_transaction_read_only = ${value}`)
      await operator.query('select pg_reload_conf()')
    } finally {
      await operator.end()
    }
  }
  await set('on')
  await pause(1_000 + 2_500 * long)
  await set('off')
  return true
}

/** Somebody takes every connection there is, also those that the engine had. */
const exhausted: Act = async (victims, { long }) => {
  const taken: pg.Client[] = []
  const take = async (): Promise<boolean> => {
    const client = new pg.Client({
      connectionString: victims.databaseUrl,
      application_name: 'somebody',
    })
    client.on('error', () => undefined)
    try {
      await client.connect()
      taken.push(client)
      return true
    } catch {
      return false
    }
  }
  const until = performance.now() + 1_500 + 2_000 * long
  try {
    while (performance.now() < until) {
      while (await take());
      const operator = await victims.operator()
      try {
        await operator.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'leasehold'`,
        )
      } finally {
        await operator.end()
      }
      await pause(100)
    }
  } finally {
    await Promise.all(taken.map((client) => client.end().catch(() => undefined)))
  }
  return taken.length > 0
}

const restart = (node: ClusterNode): void => node.start()

export const strikes = {
  'executor killed': killed(['executor']),
  'embedded killed': killed(['embedded']),
  'server killed': killed(['server']),
  'terminated, long grace': terminated(all, LONG_GRACE_MS),
  'terminated, short grace': terminated(all, SHORT_GRACE_MS),
  'terminated, no grace': terminated(drivers, 0),
  'executor frozen': frozen(['executor']),
  'embedded frozen': frozen(['embedded']),
  'server frozen': frozen(['server']),
  'executor stalled': stalled(['executor']),
  'embedded stalled': stalled(['embedded']),
  'servers restarted in turn': inTurn,
  'database restarted, fast': restarted('fast'),
  'database restarted, immediate': restarted('immediate'),
  'plug pulled': plugPulled,
  'database read-only': readOnly,
  'connections exhausted': exhausted,
  'database link cut': cut('databaseLinks'),
  'database link delayed': delayed('databaseLinks'),
  'database link blackholed': blackholed('databaseLinks'),
  'database link half-closed': halfClosed('databaseLinks'),
  'server link cut': cut('serverLinks'),
  'server link delayed': delayed('serverLinks'),
  'server link blackholed': blackholed('serverLinks'),
  'server link half-closed': halfClosed('serverLinks'),
  'primary killed': failedOver('primary killed', (node) => node.kill(), restart),
  'primary unplugged': failedOver(
    'primary unplugged',
    (node) => node.unplug(),
    (node) => node.plug(),
  ),
  'standby killed': standbyKilled,
} satisfies Record<string, Act>

export type StrikeKind = keyof typeof strikes

/** Of one server alone, and of a cluster. */
const ALONE = /^(database (restarted|read-only)|connections exhausted|plug pulled)/
const CLUSTER = /^(primary|standby)/

export const strikeKinds = (cluster: boolean): StrikeKind[] =>
  (Object.keys(strikes) as StrikeKind[]).filter((kind) => !(cluster ? ALONE : CLUSTER).test(kind))

/**
 * What only one strike may have in its hands at a time; null where two do not get into each other's way, as one that kills
 * what another has frozen.
 */
export const handsOn = (kind: StrikeKind): string | null =>
  kind.startsWith('database link') || kind.startsWith('server link')
    ? kind.slice(0, kind.indexOf(' link'))
    : ALONE.test(kind) || CLUSTER.test(kind)
      ? 'postgres'
      : null
