// Cancel: at once where nobody holds the run, else an order to its holder with a grace. A repeat changes nothing.
import { utc } from '../kernel/time.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { RunStatus } from '../model/run.ts'
import { isTerminal, moved } from '../model/run.ts'
import type { PlanContext } from '../model/start.ts'
import { consequences, follows } from '../store/consequences.ts'
import { lockCurrent } from '../store/current.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { insertEvents } from '../store/tables/journal.ts'

export interface CancelCommand {
  readonly run: string
  readonly by: string
  readonly reason: string | null
}
export type CancelAnswer = Outcome<{ readonly run: string; readonly status: RunStatus }>

export function* cancel(
  tx: Tx,
  command: CancelCommand,
  context: PlanContext,
): Steps<{ answer: CancelAnswer; follow: Follow }> {
  const follow = nothing()
  const run = yield* lockCurrent(command.run)
  if (!run)
    return {
      answer: refuse('not_found', `there is no run ${command.run}`, { run: command.run }),
      follow,
    }
  if (isTerminal(run.status))
    return {
      answer: refuse(
        'already_ended',
        `${run.id} is ${run.status} since ${utc(run.endedAt ?? run.createdAt)}; an end is final`,
        { run: run.id, status: run.status, endedAt: run.endedAt },
      ),
      follow,
    }
  if (run.status === 'canceling')
    return { answer: { ok: true, run: run.id, status: run.status }, follow }
  const note = `canceled by ${command.by}${command.reason === null ? '' : `: ${command.reason}`}`
  const asked = { cancelRequestedAt: tx.now, cancelBy: command.by, reason: 'canceled', note }
  const event = (rev: number) =>
    insertEvents([
      {
        run: run.id,
        rev,
        seq: 0,
        kind: 'run.cancel_requested',
        actor: command.by,
        data: JSON.stringify({ reason: command.reason, was: run.status }),
      },
    ])
  if (run.status === 'running') {
    const next = moved(run, 'orderCancel', 'canceling', tx.now, asked)
    follows(follow, run, next)
    follow.told.push({
      session: run.session ?? '',
      run: run.id,
      attempt: run.attempt,
      directive: 'cancel',
      note,
    })
    yield* ask(writeRuns([next]), event(next.rev))
    return { answer: { ok: true, run: run.id, status: next.status }, follow }
  }
  const next = moved(run, 'cancel', 'canceled', tx.now, asked)
  follows(follow, run, next)
  const ended = { run: next, output: null, error: null }
  const more = yield* consequences([ended], follow, context)
  yield* ask(writeRuns([next]), ...more, event(next.rev))
  return { answer: { ok: true, run: run.id, status: next.status }, follow }
}
