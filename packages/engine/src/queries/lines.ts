// Lines and lanes: which limits somebody waits for, and which lanes somebody serves.
import { readOr, stored, storedTexts } from '../kernel/stored.ts'
import type { SessionRow } from '../store/tables/sessions.ts'
import { liveSessions } from '../store/tables/sessions.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { countedLimits, keysInLine } from '../store/tables/limits.ts'
import { definitionKey } from '../model/definition.ts'
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

/** What a session announces. */
export interface Serves {
  readonly queues: readonly string[]
  readonly labels: readonly string[]
  readonly workflows: readonly {
    readonly workflow: string
    readonly version: string
    readonly queue: string
  }[]
}

const NOTHING: Serves = { queues: [], labels: [], workflows: [] }

/** A session whose row cannot be read serves nothing, until it registers anew. */
export const servesOf = (
  session: Pick<SessionRow, 'id' | 'queues' | 'labels' | 'workflows'>,
): Serves =>
  readOr(
    () => ({
      queues: storedTexts(session.queues, `the queues of ${session.id}`),
      labels: storedTexts(session.labels, `the labels of ${session.id}`),
      workflows: stored(session.workflows, `the workflows of ${session.id}`) as Serves['workflows'],
    }),
    () => NOTHING,
  )

export interface Lane {
  readonly queue: string
  readonly workflow: string
  readonly version: string
  readonly labels: readonly string[]
}

export const parseLane = (lane: string): Lane => {
  const [queue = '', workflow = '', version = '', ...labels] = readOr<readonly string[]>(
    () => storedTexts(lane, 'the lane'),
    // nobody serves it, and what says so shows it as it stands
    () => ['', lane],
  )
  return { queue, workflow, version, labels }
}

/** Whether the runs of a lane are of one of these versions of workflows, as `definitionKey` names them; of any, where none is named. */
export const isAmong = (versions: readonly string[] | undefined, lane: string): boolean => {
  if (versions === undefined) return true
  const { workflow, version } = parseLane(lane)
  return versions.includes(definitionKey(workflow, version))
}

/** Whether a session may be given the runs of a lane. */
export const serves = (session: Serves, lane: Lane): boolean =>
  session.workflows.some(
    (each) =>
      each.workflow === lane.workflow &&
      each.version === lane.version &&
      (session.queues.length === 0
        ? each.queue === lane.queue
        : session.queues.includes(lane.queue)),
  ) && lane.labels.every((label) => session.labels.includes(label))

/** Why no live session serves a lane, in words; null when one does. */
export const unservedBecause = (sessions: readonly Serves[], lane: Lane): string | null => {
  if (sessions.some((session) => serves(session, lane))) return null
  const named = sessions.filter((session) =>
    session.workflows.some((each) => each.workflow === lane.workflow),
  )
  if (sessions.length === 0) return 'no executor is connected'
  if (named.length === 0)
    return `none of the ${sessions.length} live executors serves ${lane.workflow}`
  const versioned = named.filter((session) =>
    session.workflows.some(
      (each) => each.workflow === lane.workflow && each.version === lane.version,
    ),
  )
  if (versioned.length === 0)
    return `no live executor serves ${lane.workflow} in version ${lane.version}`
  const queued = versioned.filter((session) =>
    serves({ ...session, labels: [...session.labels, ...lane.labels] }, lane),
  )
  if (queued.length === 0) return `no live executor serves the queue ${lane.queue}`
  return `no live executor has the labels ${lane.labels.join(', ')}`
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
