// Retries: exponential backoff with jitter. The decision is a pure function of the policy and of what was counted.
import type { Duration } from '../kernel/duration.ts'
import { milliseconds } from '../kernel/duration.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { messageOf, shown } from '../kernel/json.ts'
import type { MembersOf } from '../kernel/known-members.ts'
import { strangeMembers } from '../kernel/known-members.ts'

/** How often and how far apart a step, or a workflow, is tried. */
export interface RetryPolicy {
  /** Tries in all, the first included. Steps: 3. Workflows: 1. */
  readonly maxAttempts?: number
  /** Delay after the first failure. Default 1 s. */
  readonly base?: Duration
  /** Factor from one delay to the next. Default 2. */
  readonly factor?: number
  /** The longest delay. Default 5 min. */
  readonly max?: Duration
}

const POLICY: MembersOf<RetryPolicy> = { maxAttempts: true, base: true, factor: true, max: true }

/** A retry that is due later than this suspends the run if nothing else is in flight. */
export const RETRY_IN_PLACE_MS = 2_000

/** Milliseconds before the next try, after `failures` of them (1 and above); `chance` in [0, 1) takes off up to half. */
export const backoffMs = (policy: RetryPolicy, failures: number, chance: number): number => {
  const full = growingDelayMs(failures, {
    firstMs: milliseconds(policy.base ?? 1_000, 'retry.base'),
    maxMs: milliseconds(policy.max ?? 300_000, 'retry.max'),
    factor: policy.factor ?? 2,
  })
  return Math.round(full * (1 - chance / 2))
}

export const triesLeft = (policy: RetryPolicy, fallback: number, failures: number): boolean =>
  failures < (policy.maxAttempts ?? fallback)

/** Faults of a policy as sentences, whatever was given for one. */
export const retryFaults = (given: unknown, where: string): string[] => {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return [`${where} is ${shown(given)}; expected a policy such as { maxAttempts: 3 }`]
  const policy: RetryPolicy = given
  const faults = strangeMembers(given, POLICY, where)
  const tries = policy.maxAttempts
  if (tries !== undefined && (!Number.isInteger(tries) || tries < 1))
    faults.push(`${where}.maxAttempts is ${tries}; expected a whole number of 1 or more`)
  if (policy.factor !== undefined && !(policy.factor >= 1 && Number.isFinite(policy.factor)))
    faults.push(`${where}.factor is ${policy.factor}; expected a number of 1 or more`)
  for (const [name, value] of Object.entries({ base: policy.base, max: policy.max }))
    try {
      if (value !== undefined) milliseconds(value, `${where}.${name}`)
    } catch (error) {
      faults.push(messageOf(error))
    }
  return faults
}
