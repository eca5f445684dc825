// The torture from its beginning to its verdict: processes start, people use them, the nemesis strikes; then all is healed,
// everything has to come to its end by itself, and the checker judges what is left.
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { Violation } from './checker.ts'
import { check } from './checker.ts'
import { doctor } from './doctor.ts'
import type { Program, Role, Stop } from './fleet.ts'
import type { History } from './history.ts'
import { newHistory, takeIn } from './history.ts'
import { muster, SETTINGS } from './muster.ts'
import type { Struck } from './nemesis.ts'
import type { Failover, StrikeKind } from './strikes.ts'
import { startNemesis } from './nemesis.ts'
import { startPeople } from './people.ts'
import { makePlace } from './place.ts'
import type { Rows } from './rows.ts'
import { readRows } from './rows.ts'
import { makeWatch } from './watch.ts'

export interface TortureOptions {
  readonly seed: number
  readonly strikingMs: number
  /** What strikes; by default every kind. */
  readonly only?: readonly StrikeKind[]
  /** Goes on, for three times as long at most, until every kind has struck. */
  readonly everyKind?: boolean
  readonly servers?: number
  readonly executors?: number
  /** On a cluster that fails over, of namespaces and links that root makes. Default false. */
  readonly cluster?: boolean
  /** How many start runs side by side. */
  readonly people?: number
  /** Between two strikes, in ms: at least and at most. */
  readonly pace?: readonly [number, number]
  readonly tell?: (line: string) => void
}

export interface Verdict {
  readonly violations: readonly Violation[]
  readonly struck: readonly Struck[]
  /** What could not be struck: a fault of the torture. */
  readonly faults: readonly string[]
  readonly history: History
  readonly rows: Rows
  /** Events of the processes' logs, counted. */
  readonly events: ReadonlyMap<string, number>
  readonly starts: ReadonlyMap<Role, number>
  readonly stops: readonly Stop[]
  /** Writes that a server refused over HTTP, since another attempt or nobody held the run. */
  readonly refused: number
  readonly failedCalls: ReadonlyMap<string, number>
  readonly failovers: readonly Failover[]
  readonly strikingMs: number
  /** From the last strike's healing to the end of the last run. */
  readonly quietMs: number
  /** Where the logs and the effects are, when something does not hold. */
  readonly folder: string
}

const START_WITHIN_MS = 60_000
const QUIET_WITHIN_MS = 120_000
const STOP_WITHIN_MS = 20_000
/** Full service is back by then (L9). */
const SERVICE_WITHIN_MS = 10_000
const SESSIONS_WITHIN_MS = 20_000
const PATIENCE_MS = 6_000
const SERVED_WITHIN_MS = 10_000
/** Longer than a silent primary stays one. */
const RETRY_MS = 60_000

export const torture = async ({
  seed,
  strikingMs,
  only,
  everyKind = false,
  servers = 2,
  executors = 3,
  cluster = false,
  people: count = 40,
  pace = [500, 2_500],
  tell = () => undefined,
}: TortureOptions): Promise<Verdict> => {
  const place = await makePlace(cluster)
  const history = newHistory()
  const violations: Violation[] = []
  const failovers: Failover[] = []
  const events = new Map<string, number>()
  const violate = (rule: string, what: string): void =>
    void violations.push({ rule, run: null, what })
  const fleet = await muster(
    place,
    { servers, executors },
    {
      onEvent(level, event, program, line) {
        events.set(event, (events.get(event) ?? 0) + 1)
        if (level === 'error') violate('logged', `${program}: ${line}`)
      },
      onDeath: (program, how, said) =>
        violate('died', `${program} ended by itself: ${how}\n${said.slice(-3_000)}`),
    },
  )
  const { programs, drivers } = fleet
  const watch = makeWatch(place)
  const clients = fleet.urls.map((url) =>
    connect({ url, actor: 'torture', retryForMs: RETRY_MS, fetch: impatient }),
  )

  // ── it happens ─────────────────────────────────────────────────────────────────────────────────

  for (const program of programs) program.start()
  if (!(await until(() => programs.every(({ up }) => up), START_WITHIN_MS)))
    violate('start', `not all came up: ${programs.flatMap(({ up, name }) => (up ? [] : [name])).join(', ')}`) // prettier-ignore
  tell(`${programs.length} processes are up; logs in ${place.folder}/logs`)
  const people = startPeople({
    seed,
    count,
    clients,
    history,
    async connection() {
      const client = new pg.Client({ connectionString: place.url, connectionTimeoutMillis: 5_000 })
      client.on('error', () => undefined)
      await client.connect()
      return client
    },
  })
  const nemesis = startNemesis(
    seed,
    pace,
    {
      ...fleet,
      postgres: place.postgres,
      databaseUrl: place.url,
      leaseMs: SETTINGS.leaseMs,
      operator: place.operator,
      stall: staller(history, clients),
      served: server(history, clients),
      failedOver(failover) {
        failovers.push(failover)
        const { kind, servedMs } = failover
        if (servedMs > SERVED_WITHIN_MS)
          violate(
            'failover',
            `${kind}: a run was served ${Math.round(servedMs)} ms after the database took writes again`,
          )
      },
    },
    only,
  )
  const began = performance.now()
  const look = async (): Promise<void> => {
    for (const what of await watch.overfull()) violate('limit', what)
  }
  const say = async (): Promise<void> => {
    const left = await watch.active()
    const hits = nemesis.struck.reduce((sum, each) => sum + each.hits, 0)
    tell(
      `${Math.round((performance.now() - began) / 1_000)} s: ${history.started.size} started, ` +
        `${left === undefined ? 'the database is away' : `${left} active`}, ${hits} strikes` +
        (nemesis.now.length > 0 ? `; now ${nemesis.now.join(', ')}` : '') +
        (violations.length > 0 ? `; ${violations.length} VIOLATIONS` : ''),
    )
  }
  const goesOn = (): boolean => {
    const ms = performance.now() - began
    if (ms < strikingMs) return true
    return everyKind && ms < 3 * strikingMs && nemesis.struck.some(({ hits }) => hits === 0)
  }
  for (let turn = 0; goesOn(); turn++) {
    await look()
    if (turn % 10 === 0) await say()
    await pause(100)
  }
  await nemesis.stop()
  people.rest()

  // ── and is over: all of it comes to its end by itself ──────────────────────────────────────────

  const healed = performance.now()
  tell('healed; everything has to come to its end')
  let turn = 0
  const quiet = await until(async () => {
    await look()
    for (const each of programs)
      if (each.role === 'embedded' && each.up) each.signal('SIGUSR2', false)
    if (turn++ % 20 === 0) {
      await say()
      await people.care(await watch.owed())
    }
    return people.busy === 0 && (await watch.active()) === 0
  }, QUIET_WITHIN_MS)
  const quietMs = performance.now() - healed
  if (!quiet)
    violate('quiet', `${await watch.active()} runs are active and ${people.busy} calls are open ${Math.round(quietMs / 1_000)} s after the last strike was healed`) // prettier-ignore
  await people.leave()
  const sessionsLeft = (most: number) =>
    until(async () => ((await watch.sessions()) ?? Infinity) <= most, SESSIONS_WITHIN_MS)
  if (!(await sessionsLeft(drivers.length)))
    violate('sessions', `${await watch.sessions()} live, of ${drivers.length} processes`)
  // a sweep that met the last strike has made up for it by then
  let found: readonly string[] = []
  await until(async () => {
    found = await doctor(place, fleet.urls[0] ?? '', fleet.env)
    return found.length === 0
  }, SERVICE_WITHIN_MS)
  for (const what of found) violate('doctor', what)
  const stop = (some: readonly Program[]): Promise<void[]> =>
    Promise.all(
      some.map(async (program) => {
        const how = await program.stop(STOP_WITHIN_MS)
        if (how !== 0) violate('stop', `${program.name} was told to stop, and ended with ${how}`)
      }),
    )
  await stop(drivers)
  await sessionsLeft(0)
  await stop(fleet.servers)

  takeIn(history, place.effects)
  const operator = await place.operator()
  const rows = await readRows(operator)
  await operator.end()
  await watch.close()
  await fleet.close()
  await place.postgres.stop()
  violations.push(...check(history, rows))
  if (violations.length === 0) rmSync(place.folder, { recursive: true, force: true })
  else writeFileSync(path.join(place.folder, 'violations.json'), JSON.stringify(violations))
  const starts = new Map<Role, number>()
  for (const { role, starts: n } of programs) starts.set(role, (starts.get(role) ?? 0) + n)
  return {
    violations,
    struck: nemesis.struck,
    faults: nemesis.faults,
    history,
    rows,
    events,
    starts,
    stops: programs.flatMap(({ stops }) => stops),
    refused: fleet.refused,
    failedCalls: people.failed,
    failovers,
    strikingMs: healed - began,
    quietMs,
    folder: place.folder,
  }
}

const until = async (
  what: () => Promise<boolean> | boolean,
  withinMs: number,
): Promise<boolean> => {
  const end = performance.now() + withinMs
  while (!(await what())) {
    if (performance.now() > end) return false
    await pause(100)
  }
  return true
}

/** People ask again when there is no answer for a while, and do not know what became of what they had asked for. */
const impatient: typeof fetch = (url, init) =>
  fetch(url, {
    ...init,
    signal: AbortSignal.any([
      AbortSignal.timeout(PATIENCE_MS),
      ...(init?.signal ? [init.signal] : []),
    ]),
  })

/** Starts short runs until one has come to its end, and answers how long that took. */
const server = (history: History, clients: readonly Client[]) => {
  let count = 0
  return async (): Promise<number> => {
    const from = performance.now()
    for (;;) {
      const run = `run_served_${(count += 1)}`
      const input = { steps: 1, ms: 1 }
      history.asked.set(run, { run, workflow: 'chain', input, by: 'client' })
      const client = clients[count % clients.length]
      try {
        await client?.start('chain', input, { id: run })
        history.started.add(run)
        await client?.result(run)
        return performance.now() - from
      } catch {
        await pause(50)
      }
    }
  }
}

/** Starts a run that blocks the process which alone has its label. */
const staller = (history: History, [client]: readonly Client[]) => {
  let count = 0
  return async (program: string, ms: number): Promise<boolean> => {
    const run = `run_stall_${(count += 1)}`
    history.asked.set(run, { run, workflow: 'stall', input: { ms }, by: 'client' })
    try {
      await client?.start('stall', { ms }, { id: run, labels: [program] })
      history.started.add(run)
      return true
    } catch {
      return false
    }
  }
}
