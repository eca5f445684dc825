// An operator takes a held run from its holder: its attempt is handed back and the run can be claimed at once. The holder
// is told to stop; the fence refuses whatever it still writes.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { RunStatus } from '../model/run.ts'
import type { PlanContext } from '../model/start.ts'
import { lockCurrent } from '../store/current.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { endAttempts } from './end-attempts.ts'

export function* takeFrom(
  tx: Tx,
  id: string,
  by: string,
  reason: string | null,
  context: PlanContext,
): Steps<{
  answer: Outcome<{ run: string; attempt: number; status: RunStatus }>
  follow: Follow
}> {
  const current = yield* lockCurrent(id)
  if (!current)
    return {
      answer: refuse('not_found', `there is no run ${id}`, { run: id }),
      follow: nothing(),
    }
  const run = current.id
  const { ended, follow } = yield* endAttempts(
    tx,
    [
      {
        run,
        attempt: null,
        session: null,
        end: () => ({ kind: 'hand_back', reason: 'operator' }),
        event: { kind: 'attempt.taken_from', actor: by, data: { reason } },
        note: `taken back by ${by}${reason === null ? '' : `: ${reason}`}`,
      },
    ],
    context,
  )
  const [first] = ended
  if (!first)
    return {
      answer: refuse('not_held', `nobody holds ${run}: it is ${current.status}`, {
        run,
        status: current.status,
      }),
      follow,
    }
  follow.told.push({
    session: first.session,
    run,
    attempt: first.attempt,
    directive: 'cancel',
    note: `taken back by ${by}`,
  })
  return { answer: { ok: true, run, attempt: first.attempt, status: first.status }, follow }
}
