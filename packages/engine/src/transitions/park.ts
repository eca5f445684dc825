// Runs that nobody serves wait openly, without a slot, instead of standing in a queue that no one claims from; when an
// executor announces their lane they get in line again.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { stuckRun } from '../model/notice.ts'
import { moved } from '../model/run.ts'
import { due } from '../model/settle.ts'
import { follows } from '../store/consequences.ts'
import { runOf } from '../store/move/run-row.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { tell } from '../store/tables/notices.ts'
import { parkedInLane, queuedInLane } from '../store/tables/runs.ts'

export function* park(
  tx: Tx,
  lane: string,
  note: string,
  most: number,
): Steps<{ count: number; follow: Follow }> {
  const follow = nothing()
  const [rows] = yield* ask(queuedInLane(lane, most))
  const next = rows.map(runOf).map((run) => {
    const parked = moved(run, 'park', 'waiting', tx.now, {
      waitOn: 'slot',
      reason: 'no_executor',
      note,
    })
    follows(follow, run, parked)
    return parked
  })
  // of one that never began, people are told when its start is overdue
  const notices = next.filter(({ attempt }) => attempt > 0).map(stuckRun)
  follow.notices.push(...notices)
  yield* finish(writeRuns(next), ...(notices.length > 0 ? tell(notices) : []))
  return { count: next.length, follow }
}

export function* unpark(
  tx: Tx,
  lane: string,
  most: number,
): Steps<{ count: number; follow: Follow }> {
  const follow = nothing()
  const [rows] = yield* ask(parkedInLane(lane, most))
  const next = rows.map(runOf).map((run) => {
    const back = due(run, 'wake', tx.now)
    follows(follow, run, back)
    return back
  })
  yield* finish(writeRuns(next))
  return { count: next.length, follow }
}
