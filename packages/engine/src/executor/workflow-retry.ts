// The next try of a run whose function has failed: its workflow's policy, unless no try can mend the error.
import { FatalError, LeaseholdError } from '../kernel/errors.ts'
import { backoffMs, triesLeft } from '../model/retry.ts'
import type { ClaimedRun } from '../model/work.ts'
import type { AnyWorkflow } from './authoring/context.ts'
import { StepError } from './authoring/failure.ts'

/** Milliseconds before the workflow's own next try for an error, or undefined when there is none. */
export const workflowRetry = (
  workflow: AnyWorkflow,
  claimed: ClaimedRun,
  error: unknown,
  chance: number,
): number | undefined => {
  const policy = workflow.options.retry
  if (!policy || isFinal(error)) return undefined
  return triesLeft(policy, 1, claimed.failures + 1)
    ? backoffMs(policy, claimed.failures + 1, chance)
    : undefined
}

/** Errors that no try mends: our own refusals, and what an author has called final, in the function or in a step of it. */
const isFinal = (error: unknown): boolean => {
  try {
    if (error instanceof LeaseholdError) return error.code !== 'child_failed'
    return (
      error instanceof FatalError || (error instanceof StepError && error.name === 'FatalError')
    )
  } catch {
    return true // it cannot even be looked at
  }
}
