// What operators look at: executors, slots, queues, workflows, pauses, and whether the sweeps are on time.
import { inWords } from '../kernel/duration.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { PauseRow } from '../store/tables/limits.ts'
import { allPauses, holdersOf } from '../store/tables/limits.ts'
import { allSweeps, storeAnswers } from '../store/tables/orders.ts'
import { allDefinitions } from '../store/tables/definitions.ts'
import { allLanes } from '../store/tables/lanes.ts'
import { liveSessions, servesOf, sessions as sessionRows } from '../store/tables/sessions.ts'
import type { SlotRow } from '../store/tables/lines.ts'
import { COUNT_MAX } from '../store/count-max.ts'
import { lineOf, slots as slotRows, slotsOf, valueInForce } from '../store/tables/lines.ts'
import { parseLane, serves } from '../model/lane.ts'
import { value } from './run-view.ts'

const SHOWN = 1_000

export function* executors(tx: Tx, endedWithinMs: number) {
  const [rows, lanes] = yield* ask(sessionRows(endedWithinMs), allLanes())
  return {
    now: tx.now,
    executors: rows.map((row) => {
      const what = servesOf(row)
      return {
        id: row.id,
        state: row.state,
        embedded: row.embedded === 1,
        host: row.host,
        pid: row.pid,
        build: row.build,
        queues: what.queues,
        labels: what.labels,
        workflows: what.workflows,
        lanes:
          row.ended_at === null
            ? lanes.map(({ lane }) => lane).filter((lane) => serves(what, parseLane(lane)))
            : [],
        capacity: row.capacity,
        held: row.held,
        leaseMs: row.lease_ms,
        leaseUntil: row.lease_until,
        createdAt: row.created_at,
        renewedAt: row.renewed_at,
        endedAt: row.ended_at,
        endReason: row.end_reason,
        evidence: row.evidence,
        status: value(row, 'status'),
      }
    }),
  }
}

const slotView = (row: SlotRow) => ({
  key: row.key,
  mode: row.mode,
  value: valueInForce(row),
  codeValue: row.code_value,
  operatorValue: row.operator_value,
  policy: row.policy,
  weight: row.weight,
  updatedBy: row.updated_by,
  used: row.used,
  waiters: Math.min(row.waiters, COUNT_MAX - 1),
  waitersMore: row.waiters >= COUNT_MAX,
})

export function* slots(_tx: Tx) {
  const [rows] = yield* ask(slotRows(SHOWN))
  return { slots: rows.map(slotView) }
}

/** A limit with its holders and the first of its line; undefined where there is none of that key. */
export function* slotDetail(_tx: Tx, key: string) {
  const [[row]] = yield* ask(slotsOf([key]))
  if (!row) return undefined
  const [holders, line] = yield* ask(holdersOf(key, row.mode, 200), lineOf(key, 200))
  return {
    slot: slotView(row),
    holders: holders.map((each) => ({
      run: each.id,
      workflow: each.workflow,
      status: each.status,
      waitOn: each.wait_on as never,
      session: each.session,
      since: each.leased_at ?? each.created_at,
      units: each.units,
    })),
    line: line.map((each, i) => ({
      run: each.id,
      workflow: each.workflow,
      place: i + 1,
      since: each.created_at,
      resumed: each.resumed === 1,
      units: each.units,
    })),
  }
}

const pauseView = (row: PauseRow) => ({
  kind: row.kind,
  name: row.name,
  pausedBy: row.paused_by,
  why: row.why,
  pausedAt: row.paused_at,
  until: row.until,
})
type PauseView = ReturnType<typeof pauseView>

export const pauseOf = (
  pauses: readonly PauseRow[],
  kind: PauseRow['kind'],
  name: string,
): PauseView | null => {
  const found = pauses.find((each) => each.kind === kind && each.name === name)
  return found ? pauseView(found) : null
}

export function* pauses(_tx: Tx) {
  const [rows] = yield* ask(allPauses())
  return { pauses: rows.map(pauseView) }
}

export function* workflows(_tx: Tx) {
  const [definitions, rows, live] = yield* ask(allDefinitions(), allPauses(), liveSessions())
  const served = live.map(servesOf)
  return {
    workflows: [...new Set(definitions.map((row) => row.workflow))].map((name) => {
      const mine = definitions.filter((row) => row.workflow === name)
      return {
        name,
        currentVersion: mine[0]?.current_version ?? '',
        versions: mine.map((row) => ({
          version: row.version,
          queue: row.queue,
          definition: value(row, 'definition'),
          served: served.some((session) =>
            session.workflows.some(
              (each) => each.workflow === name && each.version === row.version,
            ),
          ),
        })),
        paused: pauseOf(rows, 'workflow', name),
      }
    }),
  }
}

/** A sweep whose last pass is more than this many intervals ago is late. */
const LATE_INTERVALS = 3

/**
 * How long ago a sweep passed that did so `byStoreMs` ago by the store's clock. That clock may have jumped since; who sweeps knows
 * better.
 */
export type SincePass = (sweep: string, byStoreMs: number) => number

export function* sweeps(tx: Tx, since: SincePass) {
  const [rows] = yield* ask(allSweeps())
  return {
    now: tx.now,
    sweeps: rows.map((row) => {
      const by = since(row.name, tx.now - row.last_at) - LATE_INTERVALS * row.interval_ms
      return {
        name: row.name,
        intervalMs: row.interval_ms,
        lastAt: row.last_at,
        examined: row.examined,
        acted: row.acted,
        skipped: row.skipped,
        error: row.error,
        durationMs: row.duration_ms,
        late: by > 0,
        lateByMs: Math.max(0, by),
      }
    }),
  }
}

/** What keeps the server from being ready, in words; an empty list when nothing does. */
export function* readiness(tx: Tx, since: SincePass): Steps<string[]> {
  const [[meta]] = yield* ask(storeAnswers())
  const { sweeps: all } = yield* sweeps(tx, since)
  return [
    ...(meta ? [] : ['the store is not set up']),
    ...all
      .filter((sweep) => sweep.late)
      .map((sweep) => `the sweep ${sweep.name} is ${inWords(sweep.lateByMs)} late`),
  ]
}
