// The launch check: whether a function may be called now. One synchronous turn decides, in the order of this file, and the
// first no is the answer; a context that has changed is judged before time.
import type { Job } from './job.ts'

export interface LaunchFacts {
  /** Whether the session of the attempt is trusted and the attempt is still its own. */
  readonly holder: boolean
  /** What the context was when the attempt began and what it is now; null where the workflow has none. */
  readonly context: { readonly captured: string; readonly current: string } | null
  /** The store's clock, and the attempt's limits on it. */
  readonly now: number
  readonly deadline: number | null
  readonly attemptDeadline: number | null
  /** Whether the executor takes nothing new, since something could not be released. */
  readonly failedClosed: boolean
}

export type LaunchVerdict =
  | { readonly launch: true }
  | {
      readonly launch: false
      readonly because:
        | 'not_holder'
        | 'first_reason'
        | 'stale'
        | 'time_limit'
        | 'attempt_deadline'
        | 'failed_closed'
      readonly note: string
    }

const GO: LaunchVerdict = { launch: true }

const no = (
  because: Extract<LaunchVerdict, { launch: false }>['because'],
  note: string,
): LaunchVerdict => ({ launch: false, because, note })

export const launchCheck = (job: Job, facts: LaunchFacts): LaunchVerdict => {
  const { holder, context, now, deadline, attemptDeadline, failedClosed } = facts
  if (!holder || job.left) return no('not_holder', 'the attempt no longer holds the run')
  if (job.reason !== null) return no('first_reason', job.note)
  if (context && context.captured !== context.current)
    return no('stale', changed(context.captured, context.current))
  if (deadline !== null && deadline <= now) return no('time_limit', 'Timed out')
  if (attemptDeadline !== null && attemptDeadline <= now) return no('attempt_deadline', 'Timed out')
  if (failedClosed)
    return no('failed_closed', 'the executor takes nothing new: something could not be released')
  return GO
}

const SHOWN = 120

/** The sentence of a stale attempt: what its context was and what it is. */
export const changed = (captured: string, current: string): string =>
  `the context was ${captured.slice(0, SHOWN)} when the attempt began and is ${current.slice(0, SHOWN)} now`
