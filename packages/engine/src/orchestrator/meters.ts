// What this process counts as it happens. What stands in the store is read when somebody asks (`queries/metrics.ts`), so that every
// server says the same of it; these are each server's own, and are added up over all of them.
import type { Counter, Family, Histogram } from '../kernel/meters.ts'
import { counter, histogram } from '../kernel/meters.ts'
import type { AttemptWrite, WriteAnswer } from '../model/work.ts'

/** What a transaction was for. */
export type Purpose = 'start' | 'claim' | 'write' | 'renew' | 'sweep' | 'read' | 'other'

export interface Meters {
  readonly transactions: Histogram
  readonly claimed: Counter
  readonly ends: Counter
  readonly refused: Counter
  readonly notices: Counter
  readonly deliveries: Counter
  readonly delivered: Histogram
  readonly passes: Histogram
  readonly requests: Histogram
  /** Counts what a write of an attempt came to. */
  wrote(write: AttemptWrite, answer: WriteAnswer): void
  families(): Family[]
}

export const makeMeters = (): Meters => {
  const meters = {
    transactions: histogram(
      'leasehold_transaction_seconds',
      'Transactions, from when they were asked for to their commit, by what they were for.',
    ),
    claimed: counter('leasehold_claimed_runs_total', 'Runs that were given to executors.'),
    ends: counter(
      'leasehold_attempts_ended_total',
      'Attempts that ended by a write of their executor, by what it said.',
    ),
    refused: counter(
      'leasehold_writes_refused_total',
      'Writes of attempts that were refused; code stale_attempt is the loss of a fence.',
    ),
    notices: counter(
      'leasehold_notices_total',
      'Notices by kind: attempt_lost and executor_lost are what was taken back.',
    ),
    deliveries: counter(
      'leasehold_deliveries_total',
      'Sends of notices to sinks by what came of them; claim_lost counts for nothing.',
    ),
    delivered: histogram(
      'leasehold_delivery_seconds',
      'From a notice’s cause to its receipt, of what was delivered.',
      [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600],
    ),
    passes: histogram(
      'leasehold_sweep_pass_seconds',
      'Passes of sweeps on this server.',
      [0.001, 0.01, 0.1, 1, 10],
    ),
    requests: histogram(
      'leasehold_request_seconds',
      'Requests by route and status. A claim waits for work, and a stream for its end.',
      [0.005, 0.025, 0.1, 0.5, 2.5, 10],
    ),
  }
  // a figure that is there from the beginning is seen to rise from 0
  meters.claimed.add({}, 0)
  meters.refused.add({ code: 'stale_attempt' }, 0)
  return {
    ...meters,
    wrote({ end }, answer) {
      if (!answer.ok) meters.refused.add({ code: answer.code })
      else if (end && answer.ended !== null) meters.ends.add({ how: end.kind })
    },
    families: () => Object.values(meters).map((each) => each.family()),
  }
}
