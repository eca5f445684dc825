// Lines and lanes: which limits somebody waits for, and which lanes somebody serves.
import { parseLane, unservedBecause } from '../model/lane.ts'
import { liveSessions, servesOf } from '../store/tables/sessions.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { countedLimits, keysInLine } from '../store/tables/limits.ts'
import type { Settings } from '../model/settings.ts'
import { lanesWithWork, nextInstant } from '../store/tables/runs.ts'

export function* keysWithWaiters(_tx: Tx): Steps<string[]> {
  const [rows] = yield* ask(keysInLine())
  return rows.map((row) => row.key)
}

/** Of these keys those that have room, each with how many more may have their slots at most. */
export function* keysWithRoom(_tx: Tx, keys: readonly string[]): Steps<Map<string, number>> {
  const [counted] = yield* ask(countedLimits(keys))
  const room = new Map(
    counted.map(({ key, value, units }) => [
      key,
      value === null ? Number.POSITIVE_INFINITY : value - units,
    ]),
  )
  return new Map(
    keys.flatMap((key) => {
      const free = room.get(key) ?? Number.POSITIVE_INFINITY
      return free > 0 ? [[key, free] as const] : []
    }),
  )
}

export interface LaneService {
  readonly lane: string
  readonly served: boolean
  readonly queued: boolean
  readonly parked: boolean
  readonly note: string
}

/** Lanes that have work, each with whether somebody serves it. */
export function* servedLanes(_tx: Tx): Steps<LaneService[]> {
  const [sessions, lanes] = yield* ask(liveSessions(), lanesWithWork())
  const live = sessions.map(servesOf)
  const all = new Map<string, { queued: boolean; parked: boolean }>()
  for (const { lane, status } of lanes) {
    const known = all.get(lane) ?? { queued: false, parked: false }
    all.set(lane, {
      queued: known.queued || status === 'queued',
      parked: known.parked || status === 'parked',
    })
  }
  return [...all].map(([lane, state]) => {
    const note = unservedBecause(live, parseLane(lane))
    return { lane, served: note === null, ...state, note: note ?? '' }
  })
}

/** The next instant at which the store would do something to a run by itself, or null. */
export function* nextEvent(_tx: Tx, settings: Settings): Steps<number | null> {
  const [[row]] = yield* ask(nextInstant(settings.limitGraceMs, settings.cancelGraceMs))
  return row?.at ?? null
}
