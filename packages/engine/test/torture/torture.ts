// The torture from its beginning to its verdict: processes start, people use them, the nemesis strikes; then all is healed,
// everything has to come to its end by itself, and the checker judges what is left.
import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { connect } from '../../src/client/client.ts'
import { envName } from '../../src/cli/config.ts'
import { messageOf } from '../../src/kernel/json.ts'
import type { Settings } from '../../src/model/settings.ts'
import { openProxy } from '../support/proxy.ts'
import type { Violation } from './checker.ts'
import { check, limitOf } from './checker.ts'
import type { Role, Stop } from './fleet.ts'
import { Program } from './fleet.ts'
import type { History } from './history.ts'
import { newHistory, takeIn } from './history.ts'
import type { Struck } from './nemesis.ts'
import { startNemesis } from './nemesis.ts'
import { startPeople } from './people.ts'
import { makePlace } from './place.ts'
import type { Rows } from './rows.ts'
import { readRows } from './rows.ts'

export interface TortureOptions {
  readonly seed: number
  readonly strikingMs: number
  readonly servers?: number
  readonly executors?: number
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
  /** Writes that a server refused over HTTP, since another attempt or nobody held the run. */
  readonly refused: number
  readonly stops: readonly Stop[]
  readonly failedCalls: ReadonlyMap<string, number>
  readonly strikingMs: number
  /** From the last strike's healing to the end of the last run. */
  readonly quietMs: number
  /** Where the logs and the effects are, when something does not hold. */
  readonly folder: string
}

/** Short, so that much happens; and losses that a run could end by do not, since it is the nemesis who makes them. */
const SETTINGS = {
  leaseMs: 3_000,
  renewMs: 1_000,
  sweepMs: 500,
  pollMs: 500,
  limitGraceMs: 2_000,
  cancelGraceMs: 4_000,
  lossesMax: 1_000,
  handBacksMax: 1_000,
  handBackDelayMs: 200,
  handBackDelayMaxMs: 1_000,
  ownerLimit: 4,
} as const satisfies Partial<Settings>

const QUIET_WITHIN_MS = 120_000
const STOP_WITHIN_MS = 20_000
const SESSIONS_WITHIN_MS = 20_000
const START_WITHIN_MS = 60_000
const PATIENCE_MS = 6_000

export const torture = async ({
  seed,
  strikingMs,
  servers = 2,
  executors = 3,
  people: count = 40,
  pace = [500, 2_500],
  tell = () => undefined,
}: TortureOptions): Promise<Verdict> => {
  const place = await makePlace()
  const history = newHistory()
  const violations: Violation[] = []
  const events = new Map<string, number>()
  const violate = (rule: string, what: string, run: string | null = null): void =>
    void violations.push({ rule, run, what })

  // ── the processes ──────────────────────────────────────────────────────────────────────────────

  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    TORTURE_EFFECTS: place.effects,
    LEASEHOLD_DATABASE_CONNECTIONS: '6',
    LEASEHOLD_DRAIN_MS: '3s',
    LEASEHOLD_ABORT_GRACE_MS: '500ms',
    LEASEHOLD_SLOTS: '6',
  }
  for (const [name, value] of Object.entries(SETTINGS)) env[envName(name)] = String(value)
  const common = {
    cwd: place.folder,
    onEvent: (level: string, event: string, program: string, line: string) => {
      events.set(event, (events.get(event) ?? 0) + 1)
      if (level === 'error') violate('logged', `${program}: ${line}`)
    },
    onDeath: (program: string, how: string, said: string) =>
      violate('died', `${program} ended by itself: ${how}\n${said.slice(-3_000)}`),
  }
  const link = () => openProxy(place.postgres.port)
  const through = (port: number): string => {
    const url = new URL(place.url)
    url.port = String(port)
    return url.href
  }
  const databaseLinks = await Promise.all(Array.from({ length: servers + 1 }, link))
  const serverLinks = await Promise.all(Array.from({ length: servers }, () => openProxy(1)))
  let refused = 0
  for (const each of serverLinks)
    each.answered = (data) => {
      refused += data.toString('latin1').split('"code":"stale_attempt"').length - 1
    }
  const urls = serverLinks.map(({ port }) => `http://127.0.0.1:${port}`)
  const programs: Program[] = []
  for (const [i, serverLink] of serverLinks.entries())
    programs.push(
      new Program({
        ...common,
        name: `server-${i + 1}`,
        role: 'server',
        args: [place.main, 'serve', '--port', '0'],
        env: { ...env, LEASEHOLD_DATABASE: through(databaseLinks[i]?.port ?? 0) },
        ready: ' at http',
        onReady: (line) => (serverLink.to = Number(line.split(':').at(-1))),
      }),
    )
  for (let i = 0; i < executors; i++)
    programs.push(
      new Program({
        ...common,
        name: `executor-${i + 1}`,
        role: 'executor',
        args: [place.main, 'work', path.join(place.folder, 'workflows.js')],
        env: {
          ...env,
          LEASEHOLD_URL: urls[i % urls.length] ?? '',
          LEASEHOLD_LABELS: `executor-${i + 1}`,
        },
        ready: ' works at ',
      }),
    )
  programs.push(
    new Program({
      ...common,
      name: 'embedded-1',
      role: 'embedded',
      args: [path.join(place.folder, 'embedded.js')],
      env: {
        ...env,
        TORTURE_DATABASE: through(databaseLinks[servers]?.port ?? 0),
        TORTURE_SETTINGS: JSON.stringify(SETTINGS),
        TORTURE_LABEL: 'embedded-1',
      },
      ready: 'the engine is embedded',
    }),
  )
  const drivers = programs.filter(({ role }) => role !== 'server')

  // ── watching ───────────────────────────────────────────────────────────────────────────────────

  let watcher: pg.Client | null = null
  /** Asks past the engine; undefined while the database is away. */
  const asked = async <T extends pg.QueryResultRow>(text: string): Promise<T[] | undefined> => {
    try {
      watcher ??= await place.operator()
      return (await watcher.query<T>(text)).rows
    } catch {
      void watcher?.end().catch(() => undefined)
      watcher = null
      return undefined
    }
  }
  const until = async (what: () => Promise<boolean> | boolean, withinMs: number) => {
    const end = performance.now() + withinMs
    while (!(await what())) {
      if (performance.now() > end) return false
      await pause(100)
    }
    return true
  }
  /** What is held of each limit at one instant, as one statement sees it. */
  const watchLimits = async (): Promise<void> => {
    const held = await asked<{ key: string; whole: string; held: string }>(HELD)
    for (const { key, whole, held: now } of held ?? []) {
      const limit = limitOf(key)
      const units = Number(limit?.whole === true ? whole : now)
      if (limit && units > limit.value)
        violate('limit', `${key} lets in ${limit.value}, and ${units} hold it`)
    }
  }
  const active = async (): Promise<number | undefined> =>
    (await asked<{ n: number }>('select count(*)::int as n from runs where ended_at is null'))?.[0]
      ?.n

  const clients = urls.map((url) =>
    connect({ url, actor: 'torture', retryForMs: 40_000, fetch: impatient }),
  )
  const finish = async (): Promise<void> => {
    await watcher?.end().catch(() => undefined)
    await Promise.all([...databaseLinks, ...serverLinks].map((each) => each.close()))
    await place.postgres.stop()
  }

  // ── it happens ─────────────────────────────────────────────────────────────────────────────────

  for (const program of programs) program.start()
  if (!(await until(() => programs.every(({ up }) => up), START_WITHIN_MS))) {
    await Promise.all(programs.map((program) => program.stop(0)))
    await finish()
    throw new Error(`not all processes came up; see ${place.folder}/logs`)
  }
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
  const nemesis = startNemesis(seed, pace, {
    programs,
    databaseLinks,
    serverLinks,
    postgres: place.postgres,
    databaseUrl: place.url,
    leaseMs: SETTINGS.leaseMs,
    operator: place.operator,
    async stall(program, ms) {
      const run = `run_stall_${history.asked.size}_${performance.now().toString(36).replace('.', '')}`
      history.asked.set(run, { run, workflow: 'stall', input: { ms }, by: 'client' })
      try {
        await clients[0]?.start('stall', { ms }, { id: run, labels: [program] })
        history.started.add(run)
        return true
      } catch {
        return false
      }
    },
  })
  const began = performance.now()
  const said = async (): Promise<void> => {
    const left = await active()
    const hits = nemesis.struck.reduce((sum, each) => sum + each.hits, 0)
    tell(
      `${Math.round((performance.now() - began) / 1_000)} s: ${history.started.size} started, ` +
        `${left === undefined ? 'the database is away' : `${left} active`}, ${hits} strikes` +
        (nemesis.now.length > 0 ? `; now ${nemesis.now.join(', ')}` : '') +
        (violations.length > 0 ? `; ${violations.length} VIOLATIONS` : ''),
    )
  }
  let told = 0
  while (performance.now() - began < strikingMs) {
    await watchLimits()
    if (performance.now() - told > 1_000) {
      told = performance.now()
      await said()
    }
    await pause(100)
  }
  await nemesis.stop()
  people.rest()

  // ── and is over: all of it comes to its end by itself ──────────────────────────────────────────

  const healed = performance.now()
  tell('healed; everything has to come to its end')
  let turn = 0
  const quiet = await until(async () => {
    await watchLimits()
    if (turn++ % 20 === 0) {
      await said()
      const owed = await asked<{ run: string; workflow: string }>(OWED)
      await people.care(owed ?? [])
    }
    return people.busy === 0 && (await active()) === 0
  }, QUIET_WITHIN_MS)
  const quietMs = performance.now() - healed
  if (!quiet)
    violate(
      'quiet',
      `${await active()} runs are active and ${people.busy} calls are open ${Math.round(quietMs / 1_000)} s after the last strike was healed`,
    )
  await people.leave()
  const sessionsLeft = async (): Promise<number> =>
    (
      await asked<{ n: number }>('select count(*)::int as n from sessions where ended_at is null')
    )?.[0]?.n ?? Infinity
  if (!(await until(async () => (await sessionsLeft()) <= drivers.length, SESSIONS_WITHIN_MS)))
    violate('sessions', `${await sessionsLeft()} sessions live, of ${drivers.length} processes`)
  for (const what of await doctor(place.main, urls[0] ?? '', place.folder, env))
    violate('doctor', what)

  const stopped = await Promise.all(drivers.map((program) => program.stop(STOP_WITHIN_MS)))
  drivers.forEach(({ name }, i) => {
    if (stopped[i] !== 0) violate('stop', `${name} was told to stop, and ended with ${stopped[i]}`)
  })
  await until(async () => (await sessionsLeft()) === 0, SESSIONS_WITHIN_MS)
  const rest = programs.filter(({ role }) => role === 'server')
  const ends = await Promise.all(rest.map((program) => program.stop(STOP_WITHIN_MS)))
  rest.forEach(({ name }, i) => {
    if (ends[i] !== 0) violate('stop', `${name} was told to stop, and ended with ${ends[i]}`)
  })

  takeIn(history, place.effects)
  const operator = await place.operator()
  const rows = await readRows(operator)
  await operator.end()
  await finish()
  violations.push(...check(history, rows))
  if (violations.length === 0) rmSync(place.folder, { recursive: true, force: true })
  else
    writeFileSync(path.join(place.folder, 'violations.json'), JSON.stringify(violations, null, 2))
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
    refused,
    stops: programs.flatMap(({ stops }) => stops),
    failedCalls: people.failed,
    strikingMs: healed - began,
    quietMs,
    folder: place.folder,
  }
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

const HELD = `
  select l.key, sum(case when r.slot_state in (1, 3) then 1 else 0 end) as whole,
         sum(case when r.slot_state in (2, 3) then 1 else 0 end) as held
    from runs r, lateral (values (r.limit_owner), (r.limit_global), (r.limit_a), (r.limit_b)) as l (key)
   where l.key is not null and r.slot_state > 0 group by l.key`

/** Runs that nobody ends but people, whose start may not have been acknowledged to those who asked for it. */
const OWED = `
  select r.id as run, r.workflow from runs r where r.ended_at is null and (r.workflow = 'never' or
    (r.workflow = 'waits' and not exists (select 1 from signals s where s.run = r.id)))`

/** What the audit finds wrong, as sentences. */
const doctor = (
  main: string,
  url: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<string[]> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [main, 'doctor', '--url', url, '--json'], { cwd, env })
    let out = ''
    let err = ''
    child.stdout.on('data', (data: Buffer) => (out += data.toString()))
    child.stderr.on('data', (data: Buffer) => (err += data.toString()))
    child.once('close', () => {
      try {
        const { findings } = JSON.parse(out) as {
          findings: { check: string; ok: boolean; what: string }[]
        }
        resolve(findings.filter(({ ok }) => !ok).map((each) => `${each.check}: ${each.what}`))
      } catch (error) {
        resolve([`it could not be asked: ${messageOf(error)}\n${out}\n${err}`])
      }
    })
  })
