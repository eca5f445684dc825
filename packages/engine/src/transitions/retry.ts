// Starting again: a terminal run becomes a new run linked by `retry_of`, from the beginning or from a named step.
import { utc } from '../kernel/time.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../model/run.ts'
import type { PlanContext } from '../model/start.ts'
import { limitsGiven } from '../model/start.ts'
import { lockCurrent } from '../store/current.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, within } from '../store/sql.ts'
import {
  copySteps,
  insertEvents,
  replayFrom,
  stepByKey,
  stepBytes,
} from '../store/tables/journal.ts'
import { payloadsOf } from '../store/tables/runs.ts'
import { start } from './start.ts'

export interface RetryCommand {
  readonly run: string
  /** The new run's id, minted by the client. */
  readonly id: string
  /** Key of the step to start from: the entries before it are copied. */
  readonly from: string | null
  readonly version: string | null
  readonly by: string
}
export type RetryAnswer = Outcome<{
  readonly run: string
  readonly retryOf: string
  readonly started: boolean
}>

export function* retry(
  tx: Tx,
  command: RetryCommand,
  context: PlanContext,
): Steps<{ answer: RetryAnswer; follow: Follow }> {
  const [[row], [again]] = yield* ask(lockRuns([command.run]), lockRuns([command.id]))
  if (again) {
    if (again.retry_of === command.run)
      return {
        answer: { ok: true, run: again.id, retryOf: command.run, started: false },
        follow: nothing(),
      }
    return {
      answer: refuse('command_reused', `${command.id} is another run`, { run: command.id }),
      follow: nothing(),
    }
  }
  if (!row)
    return {
      answer: refuse('not_found', `there is no run ${command.run}`, { run: command.run }),
      follow: nothing(),
    }
  const run = runOf(row)
  // a run that continues as another has not ended as long as its series has not
  const now = run.reason === 'continued' ? ((yield* lockCurrent(run.id)) ?? run) : run
  if (!isTerminal(now.status)) return { answer: stillActive(run.id, now), follow: nothing() }
  const [payloads, steps] = yield* ask(payloadsOf([run.id]), stepByKey(run.id, command.from ?? ''))
  const step = steps[0]
  if (command.from !== null && !step)
    return {
      answer: refuse(
        'not_found',
        `${run.id} has no entry ${command.from}; see its journal for the keys`,
        { run: run.id, key: command.from },
      ),
      follow: nothing(),
    }
  const [copied] = step ? (yield* ask(stepBytes(run.id, step.n)))[0] : []
  const { answers, follow } = yield* within(
    start(
      tx,
      [
        {
          command: {
            id: command.id,
            workflow: run.workflow,
            version: command.version ?? run.version,
            input: payloads[0]?.input ?? null,
            owner: run.owner,
            queue: run.queue,
            labels: run.labels,
            priority: run.priority,
            ...limitsGiven(run, context.catalog),
          },
          origin: {
            retryOf: run.id,
            ...(run.onEndOf === null ? {} : { onEndOf: run.onEndOf }),
            entries: step ? step.n - 1 : 0,
            journalBytes: copied?.bytes ?? 0,
          },
          actor: null,
        },
      ],
      context,
      new Set(),
    ),
  )
  const [answer] = answers
  if (answer === undefined || answer === 'known')
    return {
      answer: refuse('command_reused', `${command.id} is taken`, { run: command.id }),
      follow,
    }
  if (!answer.ok) return { answer, follow }
  yield* ask(
    ...(step ? [copySteps(run.id, command.id, step.n), replayFrom(run.id, command.id)] : []),
    insertEvents([
      {
        run: command.id,
        rev: 1,
        seq: 0,
        kind: 'run.retried',
        actor: command.by,
        data: JSON.stringify({ retryOf: run.id, from: command.from }),
      },
    ]),
  )
  return { answer: { ok: true, run: answer.id, retryOf: run.id, started: true }, follow }
}

const stillActive = (asked: string, run: Run) =>
  refuse(
    'already_active',
    `${asked === run.id ? run.id : `${asked} goes on as ${run.id}, which`} is ${run.status}${run.session === null ? '' : `, held by ${run.session} since ${utc(run.leasedAt ?? run.createdAt)}`}; only a run that has ended can be started again`,
    {
      run: run.id,
      status: run.status,
      holder: run.session,
      since: run.leasedAt,
      reason: run.reason,
    },
  )
