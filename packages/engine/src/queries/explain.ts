// Why is it not running? What holds a run back, in words and with the evidence, the binding condition first. The rows that
// the scheduler decides by are the rows that explain (RUN-36).
import { utc as at } from '../kernel/time.ts'
import type { Run, RunStatus } from '../model/run.ts'
import { isHeld, isTerminal } from '../model/run.ts'
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import type { Condition, Facts } from './explaining/facts.ts'
import { readFacts } from './explaining/facts.ts'
import { heldBy } from './explaining/held.ts'
import { forSlot, queued } from './explaining/line.ts'
import { waiting, waitingAt } from './explaining/waits.ts'

export interface Explanation {
  readonly run: string
  readonly status: RunStatus
  readonly now: number
  readonly sentence: string
  readonly conditions: readonly Condition[]
}

export function* explain(tx: Tx, id: string, settings: Settings): Steps<Explanation | undefined> {
  const facts = yield* readFacts(tx, id, settings)
  if (!facts) return undefined
  const { run } = facts
  const conditions = conditionsOf(facts)
  return {
    run: run.id,
    status: run.status,
    now: tx.now,
    sentence: conditions[0]?.sentence ?? `${run.id} is ${run.status}`,
    conditions,
  }
}

const conditionsOf = (facts: Facts): Condition[] => {
  const { run } = facts
  if (isTerminal(run.status)) return [ended(run)]
  if (isHeld(run.status)) return heldBy(facts)
  if (run.status === 'paused') return [pausedBy(run), ...underneath(facts)]
  if (run.status === 'queued') return queued(facts)
  return run.waitOn === 'slot' ? forSlot(facts) : waiting(facts)
}

const ended = (run: Run): Condition => ({
  code: 'ended',
  sentence: `it has ended ${run.status}${run.endedAt === null ? '' : ` at ${at(run.endedAt)}`}${run.note === null ? '' : `: ${run.note}`}`,
  since: run.endedAt,
  evidence: { status: run.status, reason: run.reason },
})

const pausedBy = (run: Run): Condition => ({
  code: run.reason === 'paused' || run.reason === null ? 'paused' : 'parked',
  sentence: `${run.reason === 'paused' || run.reason === null ? (run.note ?? `paused by ${run.pauseBy ?? 'somebody'}`) : `parked for ${run.reason.replaceAll('_', ' ')}: ${run.note ?? ''}`}; resume it to go on`,
  since: run.pauseRequestedAt,
  evidence: { by: run.pauseBy, reason: run.reason, note: run.note },
})

/** What a paused run will wait on, or has waited on. */
const underneath = (facts: Facts): Condition[] => facts.waits.map((wait) => waitingAt(wait, facts))
