// `leasehold doctor`: looks at a running server from outside and says what is wrong, each with the command that mends it.
// With --after-restore it raises the generation of a restored store, so that holders from before are never honoured.
import type { Client } from '../../client/client.ts'
import type { ErrorCode } from '../../kernel/codes.ts'
import { codes } from '../../kernel/codes.ts'
import { systemPorts } from '../../kernel/ports.ts'
import { messageOf } from '../../kernel/json.ts'
import { nameOf, storesIn } from '../../model/store-at.ts'
import type { AnswerOf } from '../../protocol/route.ts'
import type { Routes } from '../../protocol/routes.ts'
import type { Run } from '../call.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load-config.ts'
import { storeOf } from '../config/store.ts'
import { exit, exitCodeOf } from '../exit.ts'
import { span } from '../said.ts'
import { reach } from '../server.ts'
import { systemTime } from '../../kernel/time.ts'

interface Finding {
  readonly check: string
  readonly ok: boolean
  readonly what: string
  /** The command, or what to do, that mends it. */
  readonly mend?: string
}
type Look = (client: Client, config: Config) => Promise<Finding[]>

/** Clocks further apart than this make instants on screens misleading; the engine itself goes by the store's clock. */
const SKEW_MS = 2_000
const OVERDUE_MS = 60_000
/** The check that says that the store takes no writes: whatever is late is so for that. */
const REFUSES = 'writes'

export const run: Run<{ readonly afterRestore?: boolean }> = async ({ options, out, sources }) => {
  if (options.afterRestore) {
    const { config } = loadConfig(sources)
    const { ofPlace, raiseGenerationOf } = await import('../../orchestrator/main.ts')
    const stores = storesIn(storeOf(config))
    for (const [number, at] of stores.entries()) {
      const generation = await ofPlace(at, { number, count: stores.length }, () =>
        raiseGenerationOf(at, systemPorts()),
      )
      if (options.json) out.json({ store: nameOf(at), generation })
      else
        out.line(
          `${nameOf(at)} is generation ${generation}: holders from before the restore are not honoured`,
        )
    }
    return exit.ok
  }
  const { client, config } = reach(sources)
  const findings: Finding[] = []
  let code: number = exit.ok
  try {
    await client.call('alive')
    findings.push({ check: 'server', ok: true, what: `${config.url} answers` })
  } catch (error) {
    code = exitCodeOf(error)
    findings.push({
      check: 'server',
      ok: false,
      what: messageOf(error),
      mend: `leasehold serve${config.database === null && config.databases.length === 0 ? ` --file ${config.file}` : ''} --port ${config.port}`,
    })
  }
  let refused = false
  if (code === exit.ok)
    for (const look of LOOKS) {
      if (refused && OF_TIME.includes(look)) continue
      try {
        const found = await look(client, config)
        refused ||= found.some(({ check }) => check === REFUSES)
        findings.push(...found)
      } catch (error) {
        code = exitCodeOf(error)
        findings.push({ check: look.name, ok: false, what: messageOf(error), mend: mendOf(code) })
      }
    }
  if (code === exit.ok && findings.some(({ ok }) => !ok)) code = exit.failed
  if (refused)
    findings.push({
      check: 'left out',
      ok: true,
      what: 'sweeps, executors, waits, orders and sinks: what is late there is so for the store',
    })
  if (options.json) out.json({ well: code === exit.ok, findings })
  else
    for (const { check, ok, what, mend } of findings) {
      out.line(`${ok ? out.colors.green('ok   ') : out.colors.red('wrong')} ${check}: ${what}`)
      if (mend !== undefined) out.line(`      mend: ${mend}`)
    }
  return code
}

const mendOf = (code: number): string =>
  code === exit.denied
    ? 'set LEASEHOLD_TOKEN to a token of the server that may read'
    : 'leasehold doctor, once more; then look at the server’s log'

/** `readyz` answers 503 with its faults where it is not ready, which is an answer and no fault here. */
const ready = async (_client: Client, config: Config): Promise<Finding[]> => {
  const response = await fetch(`${config.url}/readyz`)
  const { ready: well, faults, store } = (await response.json()) as AnswerOf<Routes['ready']>
  // an older server does not say
  if (typeof store === 'string' && isCode(store))
    return faults.map((what) => ({
      check: REFUSES,
      ok: false,
      what,
      mend: codes[store].todo,
    }))
  return well
    ? [{ check: 'store', ok: true, what: 'reachable, migrated, sweeps on time' }]
    : faults.map((what) => ({
        check: 'store',
        ok: false,
        what,
        mend: 'look at the server’s log, then restart `leasehold serve`',
      }))
}

const isCode = (text: string): text is ErrorCode => Object.hasOwn(codes, text)

const clocks = async (client: Client): Promise<Finding[]> => {
  const sent = systemTime.now()
  const { now } = await client.call('listExecutors', { query: { endedWithinMs: 0 } })
  const received = systemTime.now()
  // the server read its clock somewhere between the two: only what is outside is proof
  const skew = now < sent ? now - sent : now > received ? now - received : 0
  return [
    Math.abs(skew) <= SKEW_MS
      ? {
          check: 'clocks',
          ok: true,
          what: `this machine and the server agree to ${Math.max(1, Math.abs(skew), received - sent)} ms`,
        }
      : {
          check: 'clocks',
          ok: false,
          what: `the server’s clock is ${span(Math.abs(skew))} ${skew > 0 ? 'ahead of' : 'behind'} this machine’s`,
          mend: 'set both by NTP, as with `timedatectl set-ntp true`',
        },
  ]
}

const invariants = async (client: Client): Promise<Finding[]> => {
  const { invariants: all } = await client.audit()
  const broken = all.filter(({ figure }) => figure > 0)
  return broken.length === 0
    ? [{ check: 'audit', ok: true, what: `${all.length} invariants hold` }]
    : broken.map(({ name, what, figure, sample }) => ({
        check: 'audit',
        ok: false,
        what: `${name}: ${figure} break it (${what})`,
        mend: sample[0]?.startsWith('run_')
          ? `leasehold show ${sample[0]}`
          : `look at ${sample.slice(0, 3).join(', ')}, and report it`,
      }))
}

const sweepsOnTime = async (client: Client): Promise<Finding[]> => {
  const sweeps = await client.sweeps()
  const bad = sweeps.filter(({ late, error }) => late || error !== null)
  return bad.length === 0
    ? [{ check: 'sweeps', ok: true, what: `${sweeps.length} on time` }]
    : bad.map(({ name, lateByMs, error }) => ({
        check: 'sweeps',
        ok: false,
        what: error === null ? `${name} is late by ${span(lateByMs)}` : `${name} failed: ${error}`,
        mend: 'restart `leasehold serve`; what it holds is kept',
      }))
}

const executorsWell = async (client: Client): Promise<Finding[]> => {
  const { executors, now } = await client.call('listExecutors', { query: { endedWithinMs: 0 } })
  const live = executors.filter(({ endedAt }) => endedAt === null)
  const bad = live.flatMap((each): Finding[] => {
    const who = `${each.id} (process ${each.pid} on ${each.host})`
    const status = (each.status ?? {}) as {
      markers?: unknown[]
      unreleased?: unknown[]
      fenced?: unknown
    }
    const restart = `kill -TERM ${each.pid} on ${each.host}, and start it again`
    const found: Finding[] = []
    if ((status.markers?.length ?? 0) + (status.unreleased?.length ?? 0) > 0)
      found.push({
        check: 'markers',
        ok: false,
        what: `${who} keeps slots taken: ${JSON.stringify([...(status.markers ?? []), ...(status.unreleased ?? [])])}`,
        mend: restart,
      })
    if (each.leaseUntil !== null && each.leaseUntil < now)
      found.push({
        check: 'executors',
        ok: false,
        what: `the lease of ${who} lapsed ${span(now - each.leaseUntil)} ago and no sweep has taken its runs back`,
        mend: 'leasehold doctor, in a sweep’s time; then restart `leasehold serve`',
      })
    else if (each.leaseUntil !== null && now - each.renewedAt > each.leaseMs / 2)
      found.push({
        check: 'executors',
        ok: false,
        what: `${who} renewed ${span(now - each.renewedAt)} ago, of a lease of ${span(each.leaseMs)}`,
        mend: restart,
      })
    return found
  })
  return bad.length > 0
    ? bad
    : [{ check: 'executors', ok: true, what: `${live.length} live, no marker` }]
}

const linesServed = async (client: Client): Promise<Finding[]> => {
  const { queues, now } = await client.call('listQueues')
  const bad = queues.flatMap(({ lanes }) =>
    lanes
      .filter((lane) => !lane.served && lane.depth + lane.parked > 0)
      .map((lane) => ({
        check: 'queues',
        ok: false,
        what:
          `${lane.depth + lane.parked} runs of ${lane.workflow}@${lane.version} wait` +
          `${lane.oldestAt === null ? '' : `, the oldest for ${span(now - lane.oldestAt)}`}: ${lane.note}`,
        mend: `leasehold work <the module that exports ${lane.workflow} in version ${lane.version}>`,
      })),
  )
  return bad.length > 0
    ? bad
    : [{ check: 'queues', ok: true, what: 'every line with work is served' }]
}

/** What one run wants of another is applied at once; what is not is stuck behind something, or was set aside. */
const ordersApplied = async (client: Client): Promise<Finding[]> => {
  const { orders, open, oldestMs, late } = await client.call('listOrders')
  const bad: Finding[] = [
    ...(late
      ? [
          {
            check: 'orders',
            ok: false,
            what: `${open} orders are open, the oldest for ${span(oldestMs)}`,
            mend: 'leasehold doctor, in a minute; then restart `leasehold serve`, which applies them',
          },
        ]
      : []),
    ...(orders.length > 0
      ? [
          {
            check: 'orders',
            ok: false,
            what: `${orders.length} were set aside, since they fail by their content`,
            mend: 'leasehold orders; then leasehold orders <order> --retry or --drop',
          },
        ]
      : []),
  ]
  return bad.length > 0 ? bad : [{ check: 'orders', ok: true, what: `${open} open, none late` }]
}

const sinksOnTime = async (client: Client): Promise<Finding[]> => {
  const { sinks } = await client.sinks()
  const bad = sinks.flatMap(({ name, late, ageMs, open, dead, gone, type }): Finding[] => [
    ...(late
      ? [
          {
            check: 'sinks',
            ok: false,
            what: `${open} deliveries to ${name} are open, the oldest for ${span(ageMs)}${gone ? '; no server has this sink' : ''}`,
            mend:
              gone || type === null
                ? `leasehold serve, with the sink ${name} in its configuration`
                : 'leasehold deliveries --state due; then look why its sink refuses them',
          },
        ]
      : []),
    ...(dead > 0
      ? [
          {
            check: 'sinks',
            ok: false,
            what: `${dead} deliveries to ${name} are dead`,
            mend: 'leasehold deliveries --state dead; then leasehold deliveries <delivery> --retry or --drop',
          },
        ]
      : []),
  ])
  return bad.length > 0
    ? bad
    : [{ check: 'sinks', ok: true, what: `${sinks.length} sinks, none late` }]
}

/** A waiting run has a reason that will end its wait; one that is due long since was not heard. */
const waitsHeard = async (client: Client): Promise<Finding[]> => {
  const { runs } = await client.list({ status: 'waiting', waitOn: 'time', limit: '200' })
  const now = systemTime.now()
  const silent = runs.filter(({ readyAt }) => readyAt !== null && now - readyAt > OVERDUE_MS)
  return silent.length === 0
    ? [{ check: 'waits', ok: true, what: 'no wait is overdue' }]
    : silent.slice(0, 10).map(({ id, readyAt }) => ({
        check: 'waits',
        ok: false,
        what: `${id} was due ${span(now - (readyAt ?? now))} ago and still waits`,
        mend: `leasehold show ${id}; then restart \`leasehold serve\``,
      }))
}

/** What a trigger lacks on the server that answers: its deliveries fail there, or may go round in a circle. */
const triggersWell = async (client: Client): Promise<Finding[]> => {
  const triggers = await client.triggers()
  const bad = triggers.flatMap(({ name, faults }) =>
    faults.map((what) => ({
      check: 'triggers',
      ok: false,
      what: `${name}: ${what}`,
      mend: `leasehold triggers show ${name}`,
    })),
  )
  return bad.length > 0
    ? bad
    : [{ check: 'triggers', ok: true, what: `${triggers.length} work as meant` }]
}

const OF_TIME: readonly Look[] = [
  sweepsOnTime,
  executorsWell,
  waitsHeard,
  ordersApplied,
  sinksOnTime,
]
const LOOKS: readonly Look[] = [
  ready,
  clocks,
  invariants,
  sweepsOnTime,
  executorsWell,
  linesServed,
  waitsHeard,
  ordersApplied,
  sinksOnTime,
  triggersWell,
]
