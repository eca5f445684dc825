// Why is it not running? What holds a run back, in words and with the evidence, the binding condition first. The rows that
// the scheduler decides by are the rows that explain (RUN-36).
import { utc as at } from '../kernel/time.ts'
import { inWords } from '../kernel/duration.ts'
import type { Run, RunStatus } from '../model/run.ts'
import { isHeld, isTerminal } from '../model/run.ts'
import type { Settings } from '../model/settings.ts'
import { limitKeys, limitUses } from '../model/slots.ts'
import { runOf } from '../store/move/run-row.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { HolderRow, PauseRow } from '../store/tables/limits.ts'
import { allPauses, holdersOf } from '../store/tables/limits.ts'
import type { SessionRow } from '../store/tables/sessions.ts'
import { liveSessions, sessionById } from '../store/tables/sessions.ts'
import type { SlotRow } from '../store/tables/lines.ts'
import type { ViewRow } from '../store/tables/views.ts'
import { aheadInLane, aheadInLine, slotsOf } from '../store/tables/lines.ts'
import { approvalsOf, viewsOf } from '../store/tables/views.ts'
import { COUNT_MAX } from '../store/count-max.ts'
import type { ApprovalRow, WaitRow } from '../store/tables/waits.ts'
import { waitsOf } from '../store/tables/waits.ts'
import { parseLane, servesOf, unservedBecause } from './lines.ts'
import { decidersOf, noProgressSince, value } from './run-view.ts'

export interface Condition {
  readonly code: string
  readonly sentence: string
  readonly since: number | null
  readonly evidence: Readonly<Record<string, unknown>>
}

export interface Explanation {
  readonly run: string
  readonly status: RunStatus
  readonly now: number
  readonly sentence: string
  readonly conditions: readonly Condition[]
}

/** What is read to explain one run. */
interface Facts {
  readonly run: Run
  readonly now: number
  readonly settings: Settings
  readonly holder: SessionRow | undefined
  readonly live: readonly SessionRow[]
  readonly pauses: readonly PauseRow[]
  readonly waits: readonly (WaitRow & { readonly created_at: number })[]
  readonly approvals: readonly ApprovalRow[]
  readonly children: readonly ViewRow[]
  readonly slots: readonly (SlotRow & { readonly ahead: number })[]
  readonly holders: ReadonlyMap<string, readonly HolderRow[]>
  readonly aheadInLane: number
}

export function* explain(tx: Tx, id: string, settings: Settings): Steps<Explanation | undefined> {
  const [[row]] = yield* ask(viewsOf([id]))
  if (!row) return undefined
  const run = runOf(row)
  const keys = run.status === 'waiting' && run.waitOn === 'slot' ? limitKeys(run) : []
  const [[holder], live, pauses, waits, approvals, slots, ahead, [lane]] = yield* ask(
    sessionById(run.session ?? ''),
    liveSessions(),
    allPauses(),
    waitsOf(id),
    approvalsOf(id),
    slotsOf(keys),
    aheadInLine(keys, run.resumed, run.rank, run.id),
    aheadInLane(run.status === 'queued' ? run.lane : '', run.rank, run.id),
  )
  const open = waits.filter((wait) => LIVE.includes(wait.state))
  const lines = slots.map((slot) => ({
    ...slot,
    ahead: ahead.find((each) => each.key === slot.key)?.n ?? 0,
  }))
  const full = lines.filter((slot) => !hasRoom(slot, run))
  const named = open.filter((wait) => wait.kind === 'child').map((wait) => wait.name ?? '')
  const [children, ...holders] = yield* ask(
    viewsOf(named),
    ...full.map((slot) => holdersOf(slot.key, slot.mode, HOLDERS_SHOWN)),
  )
  const conditions = conditionsOf({
    run,
    now: tx.now,
    settings,
    holder,
    live,
    pauses,
    waits: open,
    approvals,
    children,
    slots: lines,
    holders: new Map(full.map((slot, i) => [slot.key, holders[i] ?? []])),
    aheadInLane: lane?.n ?? 0,
  })
  return {
    run: run.id,
    status: run.status,
    now: tx.now,
    sentence: conditions[0]?.sentence ?? `${run.id} is ${run.status}`,
    conditions,
  }
}

const LIVE: readonly string[] = ['open', 'satisfied', 'lapsed']
const HOLDERS_SHOWN = 10

const conditionsOf = (facts: Facts): Condition[] => {
  const { run } = facts
  if (isTerminal(run.status)) return [ended(run)]
  if (isHeld(run.status)) return heldBy(facts)
  if (run.status === 'paused') return [pausedBy(run), ...underneath(facts)]
  if (run.status === 'queued') return queued(facts)
  return waiting(facts)
}

const ended = (run: Run): Condition => ({
  code: 'ended',
  sentence: `it has ended ${run.status}${run.endedAt === null ? '' : ` at ${at(run.endedAt)}`}${run.note === null ? '' : `: ${run.note}`}`,
  since: run.endedAt,
  evidence: { status: run.status, reason: run.reason },
})

const heldBy = (facts: Facts): Condition[] => {
  const { run, now, settings } = facts
  const held = holding(facts)
  const progress: Condition = {
    code: 'no_progress_since',
    sentence: `no new entry since ${at(noProgressSince(run) ?? now)}, held by ${run.session}`,
    since: noProgressSince(run),
    evidence: { session: run.session, entries: run.entries, progressAt: run.progressAt },
  }
  if (run.status === 'canceling') {
    const until = (run.cancelRequestedAt ?? now) + settings.cancelGraceMs
    return [
      {
        code: 'canceling',
        sentence: `canceled by ${run.cancelBy ?? 'somebody'} at ${at(run.cancelRequestedAt ?? now)}; its holder has until ${at(until)} to settle`,
        since: run.cancelRequestedAt,
        evidence: { by: run.cancelBy, graceUntil: until, session: run.session },
      },
      held,
      progress,
    ]
  }
  const asked: Condition[] =
    run.pauseRequestedAt === null
      ? []
      : [
          {
            code: 'pause_asked',
            sentence: `${run.pauseBy ?? 'somebody'} asked for a pause at ${at(run.pauseRequestedAt)}; it takes effect at the next end of a step or attempt, and a run that ends by then keeps its end`,
            since: run.pauseRequestedAt,
            evidence: { by: run.pauseBy },
          },
        ]
  return [held, ...asked, progress]
}

const holding = ({ run, now, holder, settings }: Facts): Condition => {
  const since = run.leasedAt ?? 0
  const evidence = {
    session: run.session,
    attempt: run.attempt,
    leasedAt: run.leasedAt,
    host: holder?.host ?? null,
    pid: holder?.pid ?? null,
    build: holder?.build ?? null,
    state: holder?.state ?? 'missing',
    renewedAt: holder?.renewed_at ?? null,
    leaseUntil: holder?.lease_until ?? null,
    attemptDeadline: run.attemptDeadline,
    deadline: run.deadline,
  }
  const who = `attempt ${run.attempt} of ${run.session}`
  if (!holder || holder.state === 'ended')
    return {
      code: 'holder_ended',
      sentence: `${who} holds it, but that session ${holder ? `was ended (${holder.end_reason}: ${holder.evidence})` : 'does not exist'}; a sweep takes it back within ${inWords(settings.sweepMs)}`,
      since,
      evidence,
    }
  const where = `${holder.host}, process ${holder.pid}`
  const lease =
    holder.lease_until === null
      ? 'for as long as that process lives'
      : holder.lease_until < now
        ? `; the lease lapsed at ${at(holder.lease_until)} and a sweep is due`
        : `; the lease runs until ${at(holder.lease_until)}`
  return {
    code: 'held',
    sentence: `${who} (${where}) has held it since ${at(since)}${lease.startsWith(';') ? '' : ' '}${lease}`,
    since,
    evidence,
  }
}

const pausedBy = (run: Run): Condition => ({
  code: run.reason === 'paused' || run.reason === null ? 'paused' : 'parked',
  sentence: `${run.reason === 'paused' || run.reason === null ? (run.note ?? `paused by ${run.pauseBy ?? 'somebody'}`) : `parked for ${run.reason.replaceAll('_', ' ')}: ${run.note ?? ''}`}; resume it to go on`,
  since: run.pauseRequestedAt,
  evidence: { by: run.pauseBy, reason: run.reason, note: run.note },
})

/** What a paused run will wait on, or has waited on. */
const underneath = (facts: Facts): Condition[] => facts.waits.map((wait) => waitingAt(wait, facts))

const queued = (facts: Facts): Condition[] => {
  const { run, live, aheadInLane: ahead } = facts
  const unserved = noExecutor(run, live)
  const suspect: Condition[] =
    run.suspectSince === null
      ? []
      : [
          {
            code: 'lost_twice',
            sentence: `its last ${run.losses} attempts were lost without a new entry, so only an executor that holds nothing else may claim it`,
            since: run.suspectSince,
            evidence: { losses: run.losses },
          },
        ]
  const count = ahead >= COUNT_MAX ? `more than ${COUNT_MAX - 1}` : String(ahead)
  return [
    ...linePauses(facts),
    ...(unserved === null ? [] : [unserved]),
    ...suspect,
    {
      code: 'queued',
      sentence: `it can be claimed now; ${count} ${ahead === 1 ? 'run is' : 'runs are'} ahead of it in its lane`,
      since: run.attempt === 0 ? run.createdAt : null,
      evidence: { lane: run.lane, ahead: Math.min(ahead, COUNT_MAX - 1), rank: run.rank },
    },
  ]
}

const linePauses = ({ run, pauses }: Facts): Condition[] =>
  pauses
    .filter(({ kind, name }) => name === (kind === 'queue' ? run.queue : run.workflow))
    .map((pause) => ({
      code: `${pause.kind}_paused`,
      sentence: `the ${pause.kind} ${pause.name} is paused by ${pause.paused_by} since ${at(pause.paused_at)}${pause.until === null ? '' : ` until ${at(pause.until)}`}${pause.why === null ? '' : `: ${pause.why}`}`,
      since: pause.paused_at,
      evidence: { kind: pause.kind, name: pause.name, by: pause.paused_by, until: pause.until },
    }))

const noExecutor = (run: Run, live: readonly SessionRow[]): Condition | null => {
  const because = unservedBecause(live.map(servesOf), parseLane(run.lane))
  return because === null
    ? null
    : {
        code: 'no_executor',
        sentence: `${because}; start one that does`,
        since: null,
        evidence: {
          queue: run.queue,
          workflow: run.workflow,
          version: run.version,
          labels: run.labels,
          liveExecutors: live.length,
        },
      }
}

const waiting = (facts: Facts): Condition[] => {
  const { run } = facts
  if (run.waitOn === 'slot') return forSlot(facts)
  const own = facts.waits.filter((wait) => onOf(wait) === run.waitOn)
  const rest = facts.waits.filter((wait) => !own.includes(wait))
  const stands = [...own, ...rest].map((wait) => waitingAt(wait, facts))
  if (run.waitOn === 'time' && (run.reason === 'retry' || run.reason === 'handed_back'))
    return [later(run), ...stands]
  if (stands.length > 0) return stands
  return run.readyAt === null
    ? [
        {
          code: 'unexplained',
          sentence: `it waits on ${run.waitOn} and nothing of that kind is recorded; look at its events`,
          since: run.progressAt,
          evidence: { waitOn: run.waitOn },
        },
      ]
    : [later(run)]
}

const onOf = (wait: WaitRow): string => (wait.kind === 'retry' ? 'time' : wait.kind)

const later = (run: Run): Condition => {
  const why =
    run.reason === 'retry'
      ? `its last attempt failed (${run.note ?? 'no reason given'}) and it is tried again`
      : run.reason === 'handed_back'
        ? `it was ${run.note ?? 'handed back'}, so the next claim is delayed`
        : 'it sleeps'
  return {
    code:
      run.reason === 'retry'
        ? 'retry_backoff'
        : run.reason === 'handed_back'
          ? 'hand_back_delay'
          : 'sleeping',
    sentence: `${why} ${run.reason === 'retry' ? 'at' : 'until'} ${run.readyAt === null ? 'an unknown time' : at(run.readyAt)}`,
    since: null,
    evidence: { until: run.readyAt, failures: run.failures, handBacks: run.handBacks },
  }
}

const waitingAt = (
  wait: WaitRow & { readonly created_at: number },
  { approvals, children, now }: Facts,
): Condition => {
  const since = wait.created_at
  const limit = wait.due_at === null ? '' : `, until ${at(wait.due_at)}`
  const evidence = { key: wait.key, dueAt: wait.due_at, state: wait.state }
  if (wait.state !== 'open')
    return {
      code: 'wait_over',
      sentence: `its wait ${wait.key} (${wait.kind}) is ${wait.state}; it goes on with its next attempt`,
      since,
      evidence,
    }
  switch (wait.kind) {
    case 'signal':
      return {
        code: 'signal',
        sentence: `it waits for a signal named ${wait.name} since ${at(since)}${limit}`,
        since,
        evidence: { ...evidence, name: wait.name },
      }
    case 'approval': {
      const asked = approvals.find((each) => each.id === wait.name)
      const deciders = asked ? decidersOf(asked) : []
      return {
        code: 'approval',
        sentence: `it waits for a decision on “${asked?.prompt ?? wait.key}” since ${at(since)}${asked ? `, at the latest at ${at(asked.deadline)}` : ''}; ${deciders.length === 0 ? 'anybody may decide' : `${deciders.join(', ')} may decide`}`,
        since,
        evidence: {
          ...evidence,
          approval: wait.name,
          deadline: asked?.deadline ?? null,
          deciders,
        },
      }
    }
    case 'child': {
      const child = children.find((each) => each.id === wait.name)
      return {
        code: 'child',
        sentence: child
          ? `it waits for its child ${child.id}, which is ${child.status}${child.ended_at === null ? '' : ' and whose end is about to be told'}`
          : `it waits for its child ${wait.name}, which does not exist`,
        since,
        evidence: { ...evidence, child: wait.name, status: child?.status ?? null },
      }
    }
    case 'retry':
      return {
        code: 'step_retry',
        sentence: `the step ${wait.key} failed ${wait.tries} ${wait.tries === 1 ? 'time' : 'times'} and is tried again at ${at(wait.due_at ?? now)}`,
        since,
        evidence: { ...evidence, tries: wait.tries, error: value(wait, 'error') },
      }
    default:
      return {
        code: 'sleeping',
        sentence: `it sleeps (${wait.key}) since ${at(since)}${limit}`,
        since,
        evidence,
      }
  }
}

const unitsOf = (run: Run, key: string): number =>
  limitUses(run).find((use) => use.key === key)?.units ?? 1

const hasRoom = (slot: SlotRow, run: Run): boolean => {
  const value = valueInForce(slot)
  return value === null || slot.used + unitsOf(run, slot.key) <= value
}

export const valueInForce = (slot: Pick<SlotRow, 'operator_value' | 'code_value'>): number | null =>
  slot.operator_value ?? slot.code_value

const forSlot = (facts: Facts): Condition[] => {
  const { run, now, live, slots } = facts
  if (run.readyAt !== null && run.readyAt > now)
    return [
      {
        code: 'delayed',
        sentence: `it starts at ${at(run.readyAt)} and not before`,
        since: run.createdAt,
        evidence: { until: run.readyAt },
      },
    ]
  if (run.reason === 'no_executor') {
    const still = noExecutor(run, live)
    return [
      still ?? {
        code: 'no_executor',
        sentence: 'an executor serves it now; it gets in line at the next look',
        since: null,
        evidence: { note: run.note, liveExecutors: live.length },
      },
    ]
  }
  const full = slots.filter((slot) => !hasRoom(slot, run)).map((slot) => limitFull(slot, facts))
  const inLine = slots
    .filter((slot) => hasRoom(slot, run))
    .map((slot): Condition => ({
      code: 'in_line',
      sentence: `it is number ${slot.ahead + 1} in line for ${slot.key}, which has room (${slot.used} of ${valueInForce(slot) ?? 'any number'} held)`,
      since: null,
      evidence: {
        limit: slot.key,
        value: valueInForce(slot),
        used: slot.used,
        place: slot.ahead + 1,
      },
    }))
  const about: Condition = {
    code: 'admission',
    sentence: 'its slots are free; admission looks at it within a second',
    since: null,
    evidence: { limits: slots.map((slot) => slot.key) },
  }
  return [...full, ...linePauses(facts), ...(full.length === 0 ? [about] : []), ...inLine]
}

const limitFull = (
  slot: SlotRow & { readonly ahead: number },
  { run, holders }: Facts,
): Condition => {
  const list = holders.get(slot.key) ?? []
  const value = valueInForce(slot)
  const shown = list.slice(0, 3).map((each) => `${each.id} (${each.status})`)
  const others = list.length > 3 ? ' and others' : ''
  const units = unitsOf(run, slot.key)
  const by = value === 0 ? 'its value is 0' : `held by ${shown.join(', ')}${others}`
  return {
    code: 'limit_full',
    sentence: `the limit ${slot.key} is full (${slot.used} of ${value} held${units > 1 ? `, it needs ${units}` : ''}): ${by}; it is number ${slot.ahead + 1} in line`,
    since: null,
    evidence: {
      limit: slot.key,
      value,
      used: slot.used,
      units,
      place: slot.ahead + 1,
      holders: list.map((each) => ({
        run: each.id,
        status: each.status,
        session: each.session,
        since: each.leased_at ?? each.created_at,
      })),
    },
  }
}
