// What a run's new state brings with it, in the same transaction: an end closes waits and approvals, orders the end of
// children and the parent's wake, and starts the workflow named for it; a freed slot and a due run are told as hints.
import { readOr, stored } from '../kernel/stored.ts'
import type { Follow } from '../model/follow.ts'
import type { Notice } from '../model/notice.ts'
import { failedRun, failsForPeople } from '../model/notice.ts'
import { FRONT, mayAdmit, wakes } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../model/run.ts'
import { limitUses, slotState } from '../model/slots.ts'
import { withTail } from '../model/shard.ts'
import type { NewRun, PlanContext, Planned, RunLimit } from '../model/start.ts'
import { planStart } from '../model/start.ts'
import type { Wait } from '../model/wait.ts'
import type { Statement, Steps } from './sql.ts'
import { ask } from './sql.ts'
import { ensureLimits } from './tables/limits.ts'
import { tell } from './tables/notices.ts'
import { insertOrders, orderChildrenToEnd } from './tables/orders.ts'
import { insertRuns, payloadsOf } from './tables/runs.ts'
import { cancelApprovals, closeWaits, decideApprovals } from './tables/waits.ts'

export interface Ended {
  readonly run: Run
  readonly output: string | null
  readonly error: string | null
}

/** Notes in `follow` what the move from `before` to `run` makes possible for others. */
export const follows = (follow: Follow, before: Run, run: Run): void => {
  follow.changed.push(run.id)
  if (run.status === 'queued') wakes(follow, run)
  if (isTerminal(run.status)) follow.ended.push(run.id)
  if (run.limitModes !== '') {
    const was = slotState(before.status, before.waitOn)
    const is = slotState(run.status, run.waitOn)
    if (
      (was & ~is) !== 0 ||
      (run.status === 'waiting' && run.waitOn === 'slot' && run.readyAt === null)
    )
      for (const { key, units } of limitUses(run)) mayAdmit(follow, key, units)
  }
  if (
    run.status === 'waiting' &&
    run.readyAt !== null &&
    (follow.readyAt === null || run.readyAt < follow.readyAt)
  )
    follow.readyAt = run.readyAt
}

/** The statements that belong to these ends; reads the inputs that it must hand on. */
export function* consequences(
  ended: readonly Ended[],
  follow: Follow,
  context: PlanContext,
): Steps<Statement[]> {
  const statements: Statement[] = []
  const waited = ended.filter(({ run }) => run.waits > 0).map(({ run }) => run.id)
  if (waited.length > 0) statements.push(closeWaits(waited), cancelApprovals(waited))
  // children outlive a run that is continued: they belong to the series
  const parents = ended.filter(({ run }) => run.children > 0 && run.reason !== 'continued')
  if (parents.length > 0)
    statements.push(
      orderChildrenToEnd(
        parents.map(({ run }) => ({
          run: run.id,
          payload: JSON.stringify({ by: 'parent', reason: `its parent ${run.id} ${run.status}` }),
        })),
      ),
    )
  const told = ended.filter(
    ({ run }) => run.parent !== null && run.awaited === 1 && run.reason !== 'continued',
  )
  if (told.length > 0)
    statements.push(
      insertOrders(
        told.map(({ run }) => ({
          id: `child:${run.id}`,
          kind: 'child_ended' as const,
          run: run.parent ?? '',
          payload: JSON.stringify({ key: run.parentKey, child: run.id, series: run.series }),
        })),
      ),
    )
  if (parents.length > 0 || told.length > 0) follow.orders = true
  const notices: Notice[] = ended.flatMap(({ run }) => (failsForPeople(run) ? failedRun(run) : []))
  notices.push(
    ...ended
      .filter(({ run }) => run.onEndOf !== null && run.status === 'failed')
      .map(({ run }): Notice => ({
        run: run.id,
        kind: 'on_end_failed',
        occurrence: '',
        sentence: `${run.id}, which ${run.workflow} runs at the end of ${run.onEndOf}, failed: ${run.note ?? run.reason ?? 'no reason given'}`,
        data: { of: run.onEndOf, workflow: run.workflow, reason: run.reason },
      })),
  )
  const handlers = ended.filter(({ run }) => run.onEnd !== null && run.status !== 'succeeded')
  if (handlers.length > 0) {
    const [payloads, taken] = yield* ask(
      payloadsOf(handlers.map(({ run }) => run.id)),
      payloadsOf(handlers.map(({ run }) => idAtEnd(run.id))),
    )
    for (const { run, error } of handlers) {
      const input = payloads.find((row) => row.id === run.id)?.input ?? null
      const id = idAtEnd(run.id)
      if (taken.some((row) => row.id === id)) {
        notices.push(notStarted(run, `its id ${id} belongs to another run`, { code: 'key_reused' }))
        continue
      }
      const outcome = planStart(
        {
          id,
          workflow: run.onEnd ?? '',
          input: JSON.stringify({
            run: run.id,
            workflow: run.workflow,
            outcome: run.status,
            reason: run.reason,
            error: orSaid(error, `the error of ${run.id}`),
            input: orSaid(input, `the input of ${run.id}`),
          }),
          owner: run.owner,
          queue: null,
        },
        { onEndOf: run.id },
        context,
      )
      if (!outcome.ok) {
        // the run has ended all the same; that nothing follows is said, and never silent
        notices.push(notStarted(run, outcome.message, { code: outcome.code, ...outcome.detail }))
        continue
      }
      const { planned } = outcome
      const limits = declaredLimits([planned])
      statements.push(insertRuns([atTheDoor(planned, follow)]))
      if (limits.length > 0) statements.push(ensureLimits(limits))
    }
  }
  if (notices.length > 0) {
    statements.push(...tell(notices))
    follow.notices.push(...notices)
  }
  return statements
}

const idAtEnd = (run: string): string => withTail(run, '_end')

const notStarted = (run: Run, why: string, data: Readonly<Record<string, unknown>>): Notice => ({
  run: run.id,
  kind: 'on_end_not_started',
  occurrence: '',
  sentence: `${run.onEnd}, which was to run at the end of ${run.id} (${run.status}), was not started: ${why}`,
  data: { workflow: run.onEnd, ...data },
})

/** A run ends also where its own row cannot be read any more: what follows is handed the sentence that says so. */
const orSaid = (text: string | null, what: string): unknown =>
  text === null
    ? null
    : readOr(
        () => stored(text, what),
        (sentence) => sentence,
      )

/** A run that a transaction of another run starts: it cannot lock limits there, so one that has any begins in their line. */
export const atTheDoor = ({ run, limits }: Planned, follow: Follow): NewRun => {
  if (run.status === 'queued' && run.limit_modes === '') {
    wakes(follow, { lane: run.lane, ...FRONT })
    return run
  }
  for (const limit of limits) mayAdmit(follow, limit.key, 1)
  return run.status === 'queued'
    ? { ...run, status: 'waiting', wait_on: 'slot', reason: 'limit' }
    : run
}

/** The limits that the code declares for these runs, each once: of two modes the one that holds for longer. */
export const declaredLimits = (planned: readonly Planned[]): RunLimit[] => {
  const declared = planned.flatMap(({ limits }) => limits).filter((limit) => limit.value !== null)
  const whole = new Set(declared.filter(({ mode }) => mode === 'whole_run').map(({ key }) => key))
  const once = new Map(declared.map((limit) => [limit.key, limit]))
  return [...once.values()].map((limit) =>
    whole.has(limit.key) ? { ...limit, mode: 'whole_run' } : limit,
  )
}

/** An approval follows its wait: it lapses with it, and is canceled when the wait is closed. */
export const approvalsSettled = (
  changed: readonly Wait[],
  rev: (run: string) => number,
): Statement[] => {
  const settled = changed.filter(
    (wait) => wait.kind === 'approval' && (wait.state === 'lapsed' || wait.state === 'closed'),
  )
  if (settled.length === 0) return []
  return [
    decideApprovals(
      settled.map((wait) => ({
        id: wait.name ?? '',
        state: wait.state === 'lapsed' ? 'lapsed' : 'canceled',
        decided_by: null,
        reason: wait.state === 'lapsed' ? 'the deadline passed' : 'the run no longer asks',
        payload: null,
        rev: rev(wait.run),
      })),
    ),
  ]
}
