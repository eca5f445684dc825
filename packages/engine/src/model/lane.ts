// A lane: runs that the same executors can claim, by queue, workflow, version and labels. Which sessions serve it is decided
// here, by what they announce.
import { readOr, storedTexts } from '../kernel/stored.ts'
import { definitionKey } from './definition.ts'

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
