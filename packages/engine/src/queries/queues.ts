// Queues: what waits in them, for how long, and what their executors have room for.
import type { Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { allPauses } from '../store/tables/limits.ts'
import type { SessionRow } from '../store/tables/sessions.ts'
import { heldOfQueues, servesOf, sessions } from '../store/tables/sessions.ts'
import { COUNT_MAX } from '../store/count-max.ts'
import { laneDepths } from '../store/tables/lanes.ts'
import type { Serves } from '../model/lane.ts'
import { parseLane, serves, unservedBecause } from '../model/lane.ts'
import { pauseOf } from './operations.ts'
import { value } from './run-view.ts'

const SHOWN = 1_000

export function* queues(tx: Tx) {
  const [depths, pauses, rows, held] = yield* ask(
    laneDepths(SHOWN),
    allPauses(),
    sessions(0),
    heldOfQueues(),
  )
  const live = rows.filter(({ state }) => state === 'live')
  const served = live.map(servesOf)
  const lanes = depths.map((row) => {
    const note = unservedBecause(served, parseLane(row.lane))
    return {
      queue: row.queue,
      lane: row.lane,
      workflow: row.workflow,
      version: row.version,
      labels: parseLane(row.lane).labels,
      depth: Math.min(row.depth, COUNT_MAX - 1),
      more: row.depth >= COUNT_MAX,
      oldestAt: row.oldest_at,
      parked: row.parked,
      since: earliest([row.since, row.parked_since]),
      served: note === null,
      note: note ?? '',
      paused: pauseOf(pauses, 'workflow', row.workflow),
    }
  })
  return {
    now: tx.now,
    queues: [...new Set([...lanes, ...held].map(({ queue }) => queue))].map((queue) => {
      const mine = lanes.filter((lane) => lane.queue === queue)
      const paused = pauseOf(pauses, 'queue', queue)
      const load = loadOf(
        paused === null ? mine.filter((lane) => lane.paused === null) : [],
        held.find((each) => each.queue === queue)?.n ?? 0,
        live.filter((_row, i) => servesAny(served[i], queue, mine)),
        tx.now,
      )
      return {
        queue,
        depth: mine.reduce((sum, lane) => sum + lane.depth, 0),
        more: mine.some((lane) => lane.more),
        oldestAt: earliest(mine.map((lane) => lane.oldestAt)),
        ...load,
        paused,
        lanes: mine.map(({ queue: _queue, since: _since, ...lane }) => lane),
      }
    }),
  }
}

/** One queue; of one that nobody has used yet nothing waits. */
export function* queueNamed(tx: Tx, name: string) {
  const { now, queues: all } = yield* queues(tx)
  const found = all.find(({ queue }) => queue === name)
  return {
    now,
    ...(found ?? {
      queue: name,
      depth: 0,
      more: false,
      oldestAt: null,
      ...loadOf([], 0, [], now),
      paused: null,
      lanes: [],
    }),
  }
}

interface Waiting {
  readonly lane: string
  readonly depth: number
  readonly parked: number
  readonly since: number | null
}

/** What an autoscaler goes by: what waits for an executor, and what the executors of a queue have room for. */
const loadOf = (
  waiting: readonly Waiting[],
  held: number,
  executors: readonly (SessionRow & { readonly held: number })[],
  now: number,
) => {
  const runs = waiting.reduce((sum, { depth, parked }) => sum + depth + parked, 0)
  const since = earliest(waiting.map((lane) => lane.since))
  return {
    waiting: runs,
    oldestWaitMs: since === null ? 0 : Math.max(0, now - since),
    held,
    wanted: held + runs,
    executors: executors.length,
    capacity: executors.reduce((sum, { capacity }) => sum + capacity, 0),
    free: executors.reduce((sum, row) => sum + freeOf(row), 0),
  }
}

/** Slots that an executor could fill now: those that it keeps under a marker are not, and none while it has failed closed. */
const freeOf = (row: SessionRow & { readonly held: number }): number => {
  const { markers, unreleased } = (value(row, 'status') ?? {}) as {
    markers?: unknown
    unreleased?: unknown
  }
  if (Array.isArray(unreleased) && unreleased.length > 0) return 0
  const kept = Array.isArray(markers) ? markers.length : 0
  return Math.max(0, row.capacity - row.held - kept)
}

const servesAny = (what: Serves | undefined, queue: string, lanes: readonly Waiting[]): boolean =>
  what !== undefined &&
  (what.queues.includes(queue) || lanes.some(({ lane }) => serves(what, parseLane(lane))))

const earliest = (instants: readonly (number | null)[]): number | null => {
  const known = instants.filter((each) => each !== null)
  return known.length === 0 ? null : Math.min(...known)
}
