// Makes runs due: those whose instant has come by the store's clock, judged in the transaction that fires.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { due } from '../model/settle.ts'
import { settleWaits } from '../model/wait.ts'
import { approvalsSettled, follows } from '../store/consequences.ts'
import { runOf } from '../store/move/run-row.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish, wrote } from '../store/sql.ts'
import { dueRuns } from '../store/tables/runs.ts'
import {
  liveWaits,
  putWaits,
  signalOf,
  takeSignals,
  unreadSignals,
  waitOf,
} from '../store/tables/waits.ts'

export interface Woken {
  readonly count: number
  readonly follow: Follow
}

export function* wake(tx: Tx, most = 1_000): Steps<Woken> {
  const follow = nothing()
  const [rows] = yield* ask(dueRuns(most))
  if (rows.length === 0) return { count: 0, follow }
  const runs = rows.map(runOf)
  const withWaits = runs.filter((run) => run.waits > 0).map((run) => run.id)
  const [waits, signals] =
    withWaits.length === 0 ? [[], []] : yield* ask(liveWaits(withWaits), unreadSignals(withWaits))
  const settled = runs.map((run) =>
    settleWaits(
      waits.filter((wait) => wait.run === run.id).map(waitOf),
      signals.filter((signal) => signal.run === run.id).map(signalOf),
      tx.now,
    ),
  )
  const next = runs.map((run): Run => due(run, 'wake', tx.now))
  next.forEach((run, i) => follows(follow, runs[i] ?? run, run))
  const revs = new Map(next.map((run) => [run.id, run.rev]))
  const changed = settled.flatMap((each) => each.waits)
  const rev = (run: string): number => revs.get(run) ?? 0
  const [written] = yield* finish(
    writeRuns(next),
    putWaits(changed, rev),
    takeSignals(settled.flatMap((each) => each.signals)),
    ...approvalsSettled(changed, rev),
  )
  wrote(written, next.length, 'wake')
  return { count: next.length, follow }
}
