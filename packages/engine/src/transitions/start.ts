// Starts runs, many at once: each item is guarded, one bad one is reported and the others start. With limits it admits in
// the same transaction: the limits are locked in key order before the rows are inserted.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { mayAdmit, nothing, wakes } from '../model/follow.ts'
import type { RunStatus } from '../model/run.ts'
import type {
  NewRun,
  Origin,
  PlanContext,
  Planned,
  RunLimit,
  StartCommand,
} from '../model/start.ts'
import { planStart } from '../model/start.ts'
import { WEIGHT_MIN } from '../model/slots.ts'
import { declaredLimits } from '../store/consequences.ts'
import type { Statement, Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { insertEvents } from '../store/tables/journal.ts'
import type { LimitRow } from '../store/tables/limits.ts'
import {
  anyInLine,
  countedLimits,
  ensureLimits,
  holdersOf,
  lockLimits,
  writeTags,
} from '../store/tables/limits.ts'
import type { Known } from '../store/tables/runs.ts'
import { insertRuns, knownRuns, lowestTags, newestOfSeries } from '../store/tables/runs.ts'
import { putLanes } from '../store/tables/lanes.ts'

export interface StartOk {
  readonly ok: true
  readonly id: string
  /** False when the key or command id had been used with equal input: the run was there. */
  readonly started: boolean
  readonly status: RunStatus
}
export type StartAnswer = StartOk | Refusal

export interface StartItem {
  readonly command: StartCommand
  readonly origin?: Origin
  /** Who started it, for the event; null where nobody is to be named. */
  readonly actor?: string | null
}

export interface Started {
  /** One answer an item, in order; `known` where a row was there already: see `knownStarts`. */
  readonly answers: readonly (StartAnswer | 'known')[]
  readonly follow: Follow
}

export function* start(
  tx: Tx,
  items: readonly StartItem[],
  context: PlanContext,
  knownLanes: ReadonlySet<string>,
): Steps<Started> {
  const follow = nothing()
  const plans = items.map(({ command, origin }) => planStart(command, origin ?? {}, context))
  const planned = plans.map((plan) => (plan.ok ? plan.planned : null))
  const limited = planned.filter((each) => each !== null && each.limits.length > 0) as Planned[]
  const decided =
    limited.length === 0
      ? new Map<Planned, NewRun | Refusal | 'known'>()
      : yield* admitNew(limited, follow)
  const answers: (StartAnswer | 'known')[] = plans.map((plan) => (plan.ok ? 'known' : plan))
  const inserts: { run: NewRun; at: number }[] = []
  planned.forEach((each, at) => {
    if (!each) return
    const run = decided.get(each) ?? each.run
    if (run === 'known') return
    if ('ok' in run) answers[at] = run
    else inserts.push({ run, at })
  })
  const lanes = new Map(
    inserts.filter(({ run }) => !knownLanes.has(run.lane)).map(({ run }) => [run.lane, run]),
  )
  const more: Statement[] = []
  if (lanes.size > 0)
    more.push(
      putLanes(
        [...lanes.values()].map(({ lane, queue, workflow, version, labels }) => ({
          lane,
          queue,
          workflow,
          version,
          labels,
        })),
      ),
    )
  if (inserts.length === 0) return { answers, follow }
  const events = inserts.filter(({ at }) => (items[at]?.actor ?? null) !== null)
  if (events.length > 0)
    more.push(
      insertEvents(
        events.map(({ run, at }) => ({
          run: run.id,
          rev: 1,
          seq: 0,
          kind: 'run.started',
          actor: items[at]?.actor ?? null,
          data: null,
        })),
      ),
    )
  const [inserted] = yield* finish(insertRuns(inserts.map(({ run }) => run)), ...more)
  const rows = new Map(inserted.map((row) => [row.id, row]))
  for (const { run, at } of inserts) {
    const row = rows.get(run.id)
    if (!row) continue
    rows.delete(run.id)
    answers[at] = { ok: true, id: row.id, started: true, status: row.status }
    follow.changed.push(row.id)
    if (row.status === 'queued') wakes(follow, row)
    else if (run.ready_at !== null || run.ready_in_ms !== null) {
      const at = run.ready_at ?? tx.now + (run.ready_in_ms ?? 0)
      if (follow.readyAt === null || at < follow.readyAt) follow.readyAt = at
    }
  }
  return { answers, follow }
}

/** Locks the limits of new runs and decides which of them get their slots at once. */
function* admitNew(
  planned: readonly Planned[],
  follow: Follow,
): Steps<Map<Planned, NewRun | Refusal | 'known'>> {
  const keys = [...new Set(planned.flatMap((each) => each.limits.map(({ key }) => key)))]
  const [, locked, used, line, low, known] = yield* ask(
    ensureLimits(declaredLimits(planned)),
    lockLimits(keys),
    countedLimits(keys),
    anyInLine(keys),
    lowestTags([...new Set(planned.map((each) => each.run.lane))]),
    // under the locks: what another has started meanwhile is seen
    knownRuns(planned.map((each) => each.run)),
  )
  const limits = new Map(locked.map((row) => [row.key, row]))
  const units = new Map(used.map((row) => [row.key, row.units]))
  const inLine = new Set(line.filter((row) => row.waiters).map((row) => row.key))
  const lowest = new Map(low.map((row) => [row.lane, row.tag as number | null]))
  const tags = new Map(locked.map((row) => [row.key, row.tag]))
  const out = new Map<Planned, NewRun | Refusal | 'known'>()
  const closed = ({ key, units: wanted }: RunLimit): boolean =>
    inLine.has(key) || !fits(limits.get(key), units.get(key) ?? 0, wanted)
  /** What is there already, or will be by those of this batch before. */
  const taken = new Set<string>(known.flatMap(placesOf))
  const begins = (each: Planned, run: NewRun): void => {
    for (const place of placesOf(run)) taken.add(place)
    out.set(each, run)
  }
  for (const each of planned) {
    // a repeat is answered with its run, and takes no unit of its own
    if (placesOf(each.run).some((place) => taken.has(place))) {
      out.set(each, 'known')
      continue
    }
    const never = each.limits.find(
      ({ key, units: wanted }) => wanted > Math.max(1, valueOf(limits.get(key)) ?? wanted),
    )
    if (never) {
      out.set(
        each,
        refuse(
          'invalid_input',
          `the run takes ${never.units} units of ${never.key}, of which there are ${valueOf(limits.get(never.key))}; it could never start`,
          { limit: never.key, units: never.units },
        ),
      )
      continue
    }
    const tag = place(each, limits, tags, lowest, inLine)
    const full = each.limits.find(closed)
    const delayed = each.run.status === 'waiting'
    if (delayed) {
      begins(each, { ...each.run, tag })
      continue
    }
    const rejects =
      full &&
      each.limits.find((limit) => limits.get(limit.key)?.policy === 'reject' && closed(limit))
    if (rejects && each.run.parent === null) {
      const mode = limits.get(rejects.key)?.mode ?? 'whole_run'
      const [holders] = yield* ask(holdersOf(rejects.key, mode, 20))
      out.set(
        each,
        refuse(
          'limit_full',
          `the limit ${rejects.key} is full: ${units.get(rejects.key) ?? 0} of ${valueOf(limits.get(rejects.key)) ?? 'no limit'} held. Try again when a holder has ended`,
          {
            limit: rejects.key,
            value: valueOf(limits.get(rejects.key)),
            holders: holders.map((row) => ({
              run: row.id,
              since: row.leased_at ?? row.created_at,
              status: row.status,
            })),
          },
        ),
      )
      continue
    }
    if (full) {
      for (const limit of each.limits) {
        inLine.add(limit.key)
        mayAdmit(follow, limit.key, 1)
      }
      begins(each, { ...each.run, tag, status: 'waiting', wait_on: 'slot', reason: 'limit' })
      continue
    }
    for (const limit of each.limits) units.set(limit.key, (units.get(limit.key) ?? 0) + limit.units)
    begins(each, { ...each.run, tag })
  }
  const moved = [...tags]
    .filter(([key, tag]) => limits.get(key)?.tag !== tag)
    .map(([key, tag]) => ({ key, tag }))
  if (moved.length > 0) yield* ask(writeTags(moved))
  return out
}

export const valueOf = (limit: LimitRow | undefined): number | null =>
  limit?.operator_value ?? limit?.code_value ?? null

const fits = (limit: LimitRow | undefined, used: number, wanted: number): boolean => {
  const value = valueOf(limit)
  return value === null || used + wanted <= value
}

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996): a run's tag is the later of the lane's virtual time and its owner's
 * last tag, plus one over the owner's weight. The virtual time rises with what is claimed, so that what was used before
 * is no debt, and whoever waits comes up. A run without an owner goes behind those who wait for the same keys.
 */
const place = (
  planned: Planned,
  limits: ReadonlyMap<string, LimitRow>,
  tags: Map<string, number>,
  lowest: ReadonlyMap<string, number | null>,
  inLine: ReadonlySet<string>,
): number => {
  const { run } = planned
  const virtual = Math.max(lowest.get(run.lane) ?? 0, run.floor)
  const own = run.limit_owner
  const behind =
    own === null
      ? planned.limits.filter(({ key }) => inLine.has(key)).map(({ key }) => tags.get(key) ?? 0)
      : [tags.get(own) ?? 0]
  const weight = own === null ? 1 : Math.max(WEIGHT_MIN, limits.get(own)?.weight ?? 1)
  const tag = Math.max(virtual, ...behind) + 1 / weight
  for (const { key } of planned.limits)
    if (own === null || key === own) tags.set(key, Math.max(tags.get(key) ?? 0, tag))
  return tag
}

/** Answers the items whose insert ran into a row: the same run for equal input, a refusal that names it for another. */
export function* knownStarts(
  _tx: Tx,
  items: readonly StartItem[],
  context: PlanContext,
): Steps<StartAnswer[]> {
  const plans = items.map(({ command, origin }) => planStart(command, origin ?? {}, context))
  const planned = plans.map((plan) => (plan.ok ? plan.planned.run : null))
  const [known] = yield* ask(knownRuns(planned.filter((run) => run !== null)))
  const keyed = known.filter((row) => row.key !== null).map((row) => row.series)
  const [newest] = yield* finish(newestOfSeries(keyed))
  return planned.map((run, at) => {
    const plan = plans[at]
    if (!run) return plan?.ok === false ? plan : refuse('not_found', 'the start has no plan')
    const row = known.find((each) => same(each, run))
    if (!row)
      return refuse(
        'not_found',
        `the start of ${run.workflow} was neither stored nor found; send it again`,
        { workflow: run.workflow },
      )
    if (row.input_hash !== run.input_hash || row.workflow !== run.workflow)
      return refuse(
        'key_reused',
        `${row.key === run.key && run.key !== null ? `the key ${run.key}` : `the command id`} belongs to ${row.id}, which was started with another input`,
        { run: row.id, status: row.status },
      )
    const last = run.key === null ? undefined : newest.find((each) => each.series === row.series)
    return { ok: true, id: last?.id ?? row.id, started: false, status: last?.status ?? row.status }
  })
}

const same = (row: Known, run: NewRun): boolean => {
  const places = placesOf(row)
  return placesOf(run).some((place) => places.includes(place))
}

/** What only one run can have: its id, its command, its key and its place among its parent's children. */
const placesOf = (
  run: Pick<Known, 'id' | 'command' | 'key' | 'owner' | 'workflow' | 'parent' | 'parent_key'>,
): string[] => [
  JSON.stringify(['id', run.id]),
  ...(run.command === null ? [] : [JSON.stringify(['command', run.command])]),
  ...(run.key === null ? [] : [JSON.stringify(['key', run.owner, run.workflow, run.key])]),
  ...(run.parent === null ? [] : [JSON.stringify(['child', run.parent, run.parent_key])]),
]
