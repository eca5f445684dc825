// Pausing a queue or a workflow: claims skip its lanes, and nothing else changes. Resuming wakes those who wait for work.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { FRONT, nothing, wakes } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { putPause, removePause } from '../store/tables/limits.ts'
import { allLanes } from '../store/tables/lanes.ts'

export interface PauseLine {
  readonly kind: 'queue' | 'workflow'
  readonly name: string
  readonly by: string
  readonly why: string | null
  /** An instant, or so many milliseconds from now; neither means until somebody resumes it. */
  readonly until: number | null
  readonly forMs: number | null
}
type Answer = Outcome<{ readonly kind: 'queue' | 'workflow'; readonly name: string }>

export function* pauseLine(_tx: Tx, line: PauseLine): Steps<{ answer: Answer; follow: Follow }> {
  const { kind, name, by, why } = line
  const forMs = line.forMs === null ? null : Math.round(line.forMs)
  yield* finish(putPause(kind, name, by, why, line.until, forMs))
  return { answer: { ok: true, kind, name }, follow: nothing() }
}

export function* resumeLine(
  _tx: Tx,
  kind: 'queue' | 'workflow',
  name: string,
): Steps<{ answer: Answer; follow: Follow }> {
  const follow = nothing()
  const [removed, lanes] = yield* ask(removePause(kind, name), allLanes())
  if (removed.length === 0)
    return {
      answer: refuse('not_paused', `the ${kind} ${name} is not paused`, { kind, name }),
      follow,
    }
  for (const lane of lanes)
    if (name === (kind === 'queue' ? lane.queue : lane.workflow))
      wakes(follow, { lane: lane.lane, ...FRONT })
  return { answer: { ok: true, kind, name }, follow }
}
