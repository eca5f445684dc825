// What an attempt ends as: pure, from what its driver knows.
import { messageOf } from '../../kernel/json.ts'
import type { Job } from '../../model/job.ts'
import type { EndReport, WriteAnswer } from '../../model/work.ts'
import type { Returned } from './driver.ts'
import { failureOf } from '../authoring/failure.ts'

const NOTE_MAX = 2_000

export const failEnd = (reason: string, error: unknown, retryInMs?: number): EndReport => ({
  kind: 'fail',
  reason,
  note: messageOf(error).slice(0, NOTE_MAX),
  error: JSON.stringify(failureOf(error)),
  ...(retryInMs === undefined ? {} : { retryInMs }),
})

export const returnedEnd = (returned: Returned): EndReport =>
  returned.kind === 'value'
    ? { kind: 'complete', output: returned.output }
    : { kind: 'continue', input: returned.input, runId: returned.runId }

/** A first reason that is a limit of time: the attempt fails by it. */
export const limitOf = (job: Job): 'time_limit' | 'attempt_deadline' | null =>
  job.reason === 'time_limit' || job.reason === 'attempt_deadline' ? job.reason : null

/** Why a run is let go of that has no first reason. */
export interface WhyLetGo {
  readonly draining: boolean
  readonly pausing: boolean
  /** A reason of this executor's own for handing the run back. */
  readonly gaveBack: string | null
  readonly rivals: () => readonly string[]
}

/** The end of an attempt that is let go of; limits of time are failures and have none here. */
export const letGoEnd = (job: Job, why: WhyLetGo): EndReport => {
  if (job.reason === 'stale') return { kind: 'stale', note: job.note }
  if (job.reason !== null) return { kind: 'hand_back', reason: job.reason }
  if (why.draining) return { kind: 'hand_back', reason: 'shutdown' }
  if (why.pausing) return { kind: 'hand_back', reason: 'pause' }
  if (why.gaveBack !== null) return { kind: 'hand_back', reason: why.gaveBack }
  return { kind: 'hand_back', reason: 'chain', toEnd: true, ifWaiting: why.rivals() }
}

/** Whether the store may answer it with "go on": a wait was satisfied meanwhile, or nobody waits for the slot. */
export const mayBeTakenBack = (end: EndReport): boolean =>
  end.kind === 'suspend' || (end.kind === 'hand_back' && end.ifWaiting !== undefined)

/** The store refuses the content of a write: the run fails by name, and nothing else is touched. */
export const refusedEnd = (answer: Extract<WriteAnswer, { ok: false }>): EndReport => ({
  kind: 'fail',
  reason: answer.code === 'payload_too_large' ? 'result_unsaveable' : answer.code,
  note: answer.message,
  error: JSON.stringify({
    name: 'LeaseholdError',
    message: answer.message,
    code: answer.code,
  }),
})

export const unawaited = (key: string): Error =>
  Object.assign(
    new Error(
      `the function returned while ${key} was not awaited; await every step, or use ctx.race`,
    ),
    { code: 'unawaited_step' },
  )
