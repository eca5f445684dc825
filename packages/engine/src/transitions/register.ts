// A session begins: its row, the definitions that it announces, and which of them became current.
import type { Definition } from '../model/definition.ts'
import { laneOf } from '../model/run.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import type { NewSession, SessionRow } from '../store/tables/sessions.ts'
import {
  insertSession,
  makeCurrent,
  putDefinitions,
  putLanes,
  sessionById,
} from '../store/tables/sessions.ts'

export function* register(
  _tx: Tx,
  session: NewSession,
  definitions: readonly Definition[],
  queues: readonly string[],
): Steps<{ ok: true; session: SessionRow } | Refusal> {
  const names = definitions.map(({ workflow, version }) => ({ workflow, version }))
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
  yield* ask(
    makeCurrent(names),
    putDefinitions(
      definitions.map((definition) => ({
        workflow: definition.workflow,
        version: definition.version,
        queue: definition.queue,
        definition: JSON.stringify(definition),
      })),
    ),
    putLanes(lanes),
    insertSession(session),
  )
  const [[row]] = yield* finish(sessionById(session.id))
  if (!row || row.ended_at !== null || row.process !== session.process)
    return refuse(
      'session_ended',
      `the session id ${session.id} has been used before; mint a new one for each registration`,
      { session: session.id },
    )
  return { ok: true, session: row }
}
