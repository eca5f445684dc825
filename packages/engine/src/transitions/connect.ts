// A connection of a session becomes its newest: by its number, which only ever rises, so that of two that are made at once,
// through whichever server, one stands. The session keeps its lease and all that it holds.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { connectSession, sessionById } from '../store/tables/sessions.ts'

export interface Connected {
  readonly ok: true
}

export function* connect(
  _tx: Tx,
  session: string,
  connection: number,
  process: string,
): Steps<Connected | Refusal> {
  const [[row], [any]] = yield* finish(
    connectSession(session, connection, process),
    sessionById(session),
  )
  if (row) return { ok: true }
  if (!any || any.ended_at !== null || any.process !== process)
    return refuse(
      'session_ended',
      any?.ended_at
        ? `session ${session} was ended: ${any.end_reason} (${any.evidence}); drop what it held and register anew`
        : `there is no session ${session} of this process; register anew`,
      { session, reason: any?.end_reason ?? null, evidence: any?.evidence ?? null },
    )
  return refuse(
    'connection_superseded',
    `connection ${connection} of ${session} is not its newest, which is ${any.connection}; speak over that one`,
    { session, connection: any.connection },
  )
}
