// The run that an id means now: runs that continue one another are a series, and what is sent to one reaches the newest.
import type { Run } from '../model/run.ts'
import { lockRuns, runOf } from './move/run-row.ts'
import type { Steps } from './sql.ts'
import { ask } from './sql.ts'
import { currentOfSeries, presentRuns } from './tables/runs.ts'

/** Locks the run, or the active one that continues it; undefined where there is none of that id. */
export function* lockCurrent(id: string): Steps<Run | undefined> {
  const [[row]] = yield* ask(lockRuns([id]))
  if (!row) return undefined
  let run = runOf(row)
  // the one that was found active may have continued as well before its lock was had
  while (run.reason === 'continued') {
    const [[current]] = yield* ask(currentOfSeries(run.series))
    const [[newest]] = current ? yield* ask(lockRuns([current.id])) : [[]]
    if (!newest) return run
    run = runOf(newest)
  }
  return run
}

/** Locks the same without waiting; false where another transaction has locked it. */
export function* freeCurrent(id: string): Steps<boolean> {
  const [[row], [there]] = yield* ask(lockRuns([id], 'skip'), presentRuns([id]))
  if (!row) return !there
  if (row.reason !== 'continued') return true
  const [[current]] = yield* ask(currentOfSeries(row.series))
  if (!current) return true
  const [newest, left] = yield* ask(lockRuns([current.id], 'skip'), presentRuns([current.id]))
  return newest.length > 0 || left.length === 0
}
