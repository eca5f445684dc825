// An operator has seen to what a run left on an executor: the executor is told, and frees the slots that it had kept. Whether
// it has heard shows in what it says of itself; who asks again tells it again.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { sessionById } from '../store/tables/sessions.ts'

export interface ClearMarkers {
  readonly session: string
  readonly run: string
  readonly by: string
}

export function* clearMarkers(
  _tx: Tx,
  { session, run, by }: ClearMarkers,
): Steps<{ answer: Outcome<{ session: string; run: string }>; follow: Follow }> {
  const follow = nothing()
  const [row] = (yield* finish(sessionById(session)))[0]
  if (!row || row.ended_at !== null) {
    const message = row
      ? `the executor ${session} has ended; what it kept is free, and what it could not release is asked of the next start there`
      : `no executor has the session ${session}; \`leasehold executors\` lists them`
    return { answer: refuse('not_found', message, { session }), follow }
  }
  follow.told.push({ session, run, attempt: 0, directive: 'clear', note: `cleared by ${by}` })
  return { answer: { ok: true, session, run }, follow }
}
