// A renewal: writes its session's row only, and answers what the session should know. What it lists is applied later, in
// transactions of its own, and stays listed until it has been.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { LetGo, Told } from '../model/work.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { directivesOf, stillHeldBy } from '../store/tables/runs.ts'
import type { SessionRow } from '../store/tables/sessions.ts'
import { renewSession, sessionById } from '../store/tables/sessions.ts'

export interface Renewed {
  readonly ok: true
  readonly session: SessionRow
  readonly told: readonly Told[]
  /** What was listed as let go and is still held. */
  readonly pending: readonly { readonly run: string; readonly attempt: number }[]
  readonly now: number
}

export function* renew(
  tx: Tx,
  session: string,
  status: string | null,
  draining: boolean,
  letGo: readonly LetGo[] = [],
): Steps<Renewed | Refusal> {
  const [[row], [any], told, pending] = yield* finish(
    renewSession(session, status, draining),
    sessionById(session),
    directivesOf(session),
    stillHeldBy(session, letGo),
  )
  if (!row)
    return refuse(
      'session_ended',
      any
        ? `session ${session} was ended: ${any.end_reason} (${any.evidence}); drop what it held and register anew`
        : `there is no session ${session}; register anew`,
      {
        session,
        reason: any?.end_reason ?? null,
        evidence: any?.evidence ?? null,
      },
    )
  return {
    ok: true,
    session: row,
    told: told.map((run) => ({
      run: run.id,
      attempt: run.attempt,
      directive: run.status === 'canceling' ? ('cancel' as const) : ('pause' as const),
      note: run.note,
    })),
    pending,
    now: tx.now,
  }
}
