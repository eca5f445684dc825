// Limits of time, enforced by the store whatever a body does: at once where nobody holds the run, after a grace where
// somebody does.
import type { Follow } from '../model/follow.ts'
import { merge, nothing } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { isHeld, isTerminal, moved } from '../model/run.ts'
import type { End } from '../model/settle.ts'
import type { PlanContext } from '../model/start.ts'
import { limitRetry } from '../model/start.ts'
import { consequences, follows } from '../store/consequences.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import { writeEnds } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { runsPastLimits } from '../store/tables/runs.ts'
import { endAttempts } from './end-attempts.ts'

export function* enforceLimits(
  tx: Tx,
  most: number,
  context: PlanContext,
): Steps<{ examined: number; acted: number; follow: Follow }> {
  const { settings } = context
  const follow = nothing()
  const [past] = yield* ask(runsPastLimits(settings.limitGraceMs, settings.cancelGraceMs, most))
  if (past.length === 0) return { examined: 0, acted: 0, follow }
  const [rows] = yield* ask(
    lockRuns(
      past.map((row) => row.id),
      'skip',
    ),
  )
  const runs = rows.map(runOf)
  const unheld = runs
    .filter((run) => !isHeld(run.status) && !isTerminal(run.status))
    .flatMap((run) => failed(run, tx.now))
  for (const { before, run } of unheld) follows(follow, before, run)
  const terminal = unheld.map(({ run }) => ({
    run,
    output: null,
    error: JSON.stringify({ name: 'Error', message: run.note, code: run.reason }),
  }))
  if (terminal.length > 0) {
    const more = yield* consequences(terminal, follow, context)
    yield* ask(writeEnds(terminal), ...more)
  }
  const held = runs.filter((run) => isHeld(run.status))
  const { ended, follow: after } = yield* endAttempts(
    tx,
    held.map((run) => ({
      run: run.id,
      attempt: run.attempt,
      session: run.session,
      end: (locked, now) => revocation(locked, now, context),
      event: {
        kind: 'attempt.revoked',
        actor: 'sweep',
        data: {
          attempt: run.attempt,
          session: run.session,
          deadline: run.deadline,
          attemptDeadline: run.attemptDeadline,
          cancelRequestedAt: run.cancelRequestedAt,
        },
      },
    })),
    context,
  )
  return {
    examined: past.length,
    acted: terminal.length + ended.length,
    follow: merge(follow, after),
  }
}

const at = (instant: number): string => new Date(instant).toISOString()

const failed = (run: Run, now: number): { before: Run; run: Run }[] => {
  if (run.deadline !== null && run.deadline <= now)
    return [
      {
        before: run,
        run: moved(run, 'fail', 'failed', now, {
          reason: 'time_limit',
          note: `the run’s total limit passed at ${at(run.deadline)}`,
        }),
      },
    ]
  if (run.startBy !== null && run.attempt === 0 && run.startBy <= now)
    return [
      {
        before: run,
        run: moved(run, 'fail', 'failed', now, {
          reason: 'not_started',
          note: `nobody had claimed the run by ${at(run.startBy)}`,
        }),
      },
    ]
  return []
}

const revocation = (run: Run, now: number, { settings, catalog }: PlanContext): End | null => {
  if (
    run.status === 'canceling' &&
    run.cancelRequestedAt !== null &&
    run.cancelRequestedAt <= now - settings.cancelGraceMs
  )
    return {
      kind: 'revoke',
      reason: 'cancel_grace',
      note: 'the holder had not settled when the grace of the cancel was over',
      outcome: 'fail',
    }
  if (run.deadline !== null && run.deadline <= now - settings.limitGraceMs)
    return {
      kind: 'revoke',
      reason: 'time_limit',
      note: `the run’s total limit passed at ${at(run.deadline)}`,
      outcome: 'fail',
    }
  if (run.attemptDeadline !== null && run.attemptDeadline <= now - settings.limitGraceMs) {
    return {
      kind: 'revoke',
      reason: 'attempt_deadline',
      note: `the attempt’s limit passed at ${at(run.attemptDeadline)}`,
      outcome: 'fail',
      ...limitRetry(run, catalog),
    }
  }
  return null
}
