// The run that an id means now: runs that continue one another are a series, and what is sent to one reaches the newest.
import type { Run } from '../model/run.ts'
import { lockRuns, runOf } from './move.ts'
import type { Steps } from './sql.ts'
import { ask } from './sql.ts'
import { currentOfSeries } from './tables/runs.ts'

/** Locks the run, or the active one that continues it; undefined where there is none of that id. */
export function* lockCurrent(id: string): Steps<Run | undefined> {
  const [[row]] = yield* ask(lockRuns([id]))
  if (!row) return undefined
  const run = runOf(row)
  if (run.reason !== 'continued') return run
  const [[current]] = yield* ask(currentOfSeries(run.series))
  if (!current) return run
  const [[newest]] = yield* ask(lockRuns([current.id]))
  return newest ? runOf(newest) : run
}
