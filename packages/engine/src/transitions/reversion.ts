// An operator moves an unheld run to another version of its workflow.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { definitionOf } from '../model/definition.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { isHeld, isTerminal, laneOf, moved } from '../model/run.ts'
import type { PlanContext } from '../model/start.ts'
import { follows } from '../store/consequences.ts'
import { lockCurrent } from '../store/current.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { insertEvents } from '../store/tables/journal.ts'
import { putLanes } from '../store/tables/lanes.ts'

export function* reversion(
  tx: Tx,
  asked: string,
  version: string,
  by: string,
  { catalog }: PlanContext,
): Steps<{ answer: Outcome<{ run: string; version: string }>; follow: Follow }> {
  const follow = nothing()
  const run = yield* lockCurrent(asked)
  if (!run)
    return { answer: refuse('not_found', `there is no run ${asked}`, { run: asked }), follow }
  const { id } = run
  if (isTerminal(run.status))
    return {
      answer: refuse('already_ended', `${id} is ${run.status}`, { run: id, status: run.status }),
      follow,
    }
  if (isHeld(run.status))
    return {
      answer: refuse(
        'held',
        `${id} is held by attempt ${run.attempt} of ${run.session}; hand it back first`,
        { run: id, holder: run.session, attempt: run.attempt },
      ),
      follow,
    }
  const definition = definitionOf(catalog, run.workflow, version)
  if (!definition)
    return {
      answer: refuse('unknown_workflow', `${run.workflow} has no version ${version}`, {
        workflow: run.workflow,
        version,
      }),
      follow,
    }
  const lane = laneOf(run.queue, run.workflow, version, run.labels)
  const next = moved({ ...run, version, lane }, 'reversion', run.status, tx.now, {
    waitOn: run.waitOn,
    readyAt: run.readyAt,
    reason: run.reason,
    note: run.note,
  })
  follows(follow, run, next)
  yield* finish(
    putLanes([
      {
        lane,
        queue: run.queue,
        workflow: run.workflow,
        version,
        labels: JSON.stringify(run.labels),
      },
    ]),
    writeRuns([next]),
    insertEvents([
      {
        run: id,
        rev: next.rev,
        seq: 0,
        kind: 'run.version_changed',
        actor: by,
        data: JSON.stringify({ from: run.version, to: version }),
      },
    ]),
  )
  return { answer: { ok: true, run: id, version }, follow }
}
