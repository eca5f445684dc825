// A session begins: its row, the definitions that it announces, and which of them became current. A version that is known
// takes the definition of its last registration, since a deploy must get through; what it changed is told.
import type { Definition, Redefined } from '../model/definition.ts'
import { eachOnce, redefined } from '../model/definition.ts'
import { laneFault } from '../model/indexed.ts'
import { laneOf } from '../model/run.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { readOr, storedObject } from '../kernel/stored.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import type { NewSession, SessionRow } from '../store/tables/sessions.ts'
import { allMeta } from '../store/tables/orders.ts'
import { insertSession, sessionById } from '../store/tables/sessions.ts'
import { knownDefinitions, makeCurrent, putDefinitions } from '../store/tables/definitions.ts'
import { putLanes } from '../store/tables/lanes.ts'

export interface Registered {
  readonly ok: true
  readonly session: SessionRow
  /** The store's, which a restore raises while servers are up. */
  readonly generation: number
  /** Versions that were known with another definition, which this one has replaced. */
  readonly redefined: readonly {
    readonly workflow: string
    readonly version: string
    readonly changed: Redefined
  }[]
}

export function* register(
  _tx: Tx,
  session: NewSession,
  definitions: readonly Definition[],
  queues: readonly string[],
): Steps<Registered | Refusal> {
  const once = eachOnce(definitions)
  if (!once.ok) return once
  // two that register at once write the same rows in the same order, so that neither waits for the other for ever
  const ordered = [...definitions].sort((a, b) =>
    byText(`${a.workflow}\n${a.version}`, `${b.workflow}\n${b.version}`),
  )
  const lanes = definitions.flatMap((definition) =>
    [...new Set([definition.queue, ...queues])].map((queue) => {
      const labels = [...definition.labels].sort()
      return {
        lane: laneOf(queue, definition.workflow, definition.version, labels),
        queue,
        workflow: definition.workflow,
        version: definition.version,
        labels: JSON.stringify(labels),
      }
    }),
  )
  for (const { lane } of lanes) {
    const long = laneFault(lane)
    if (long) return long
  }
  const [known] = yield* ask(
    knownDefinitions(ordered),
    makeCurrent(definitions),
    putDefinitions(
      ordered.map((definition) => ({
        workflow: definition.workflow,
        version: definition.version,
        queue: definition.queue,
        definition: JSON.stringify(definition),
      })),
    ),
    putLanes(lanes.sort((a, b) => byText(a.lane, b.lane))),
    insertSession(session),
  )
  const [[row], meta] = yield* finish(sessionById(session.id), allMeta())
  if (!row || row.ended_at !== null || row.process !== session.process)
    return refuse(
      'session_ended',
      `the session id ${session.id} has been used before; mint a new one for each registration`,
      { session: session.id },
    )
  return {
    ok: true,
    session: row,
    generation: Number(meta.find(({ name }) => name === 'generation')?.value ?? '1'),
    redefined: ordered.flatMap((each) => changeOf(each, known)),
  }
}

const changeOf = (
  definition: Definition,
  known: readonly { workflow: string; version: string; definition: string }[],
): Registered['redefined'][number][] => {
  const { workflow, version } = definition
  const stored = known.find((each) => each.workflow === workflow && each.version === version)
  const changed =
    stored &&
    readOr(
      () =>
        redefined(
          storedObject(stored.definition, `the definition of ${workflow} version ${version}`),
          storedObject(JSON.stringify(definition), 'the definition'),
        ),
      () => null,
    )
  return changed ? [{ workflow, version, changed }] : []
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
