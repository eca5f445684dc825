// Notices: what people are to see and nothing waits for. Each is stored once for its kind, its run and its occurrence, in the
// transaction of its cause, with what is to be delivered of it.
import { checksum } from '../kernel/digest.ts'
import type { Run } from './run.ts'

export const noticeKinds = [
  'start_overdue',
  'start_refused',
  'attempt_lost',
  'executor_lost',
  'run_failed',
  'run_stuck',
  'approval_asked',
  'approval_lapsing',
  'on_end_not_started',
  'on_end_failed',
  'tick_refused',
  'order_set_aside',
] as const
export type NoticeKind = (typeof noticeKinds)[number]

export interface Notice {
  /** The run; or the session, the tick, or the order that never became one or was set aside. */
  readonly run: string
  readonly kind: NoticeKind
  /** Which of several of this kind and run: an attempt, an approval. Empty where there is one at most. */
  readonly occurrence: string
  readonly sentence: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Names a notice to those outside: the same each time it is sent, and it needs no quoting anywhere. */
export const noticeId = ({
  kind,
  run,
  occurrence,
}: Pick<Notice, 'kind' | 'run' | 'occurrence'>): string =>
  `ntc_${checksum(JSON.stringify([kind, run, occurrence])).slice(0, 24)}`

/** What an end of an attempt is told of; `how` is what the attempt ended as. */
export const noticesOfEnd = (
  before: Run,
  after: Run,
  how: string | null,
  evidence: string | null,
): Notice[] => {
  const notices: Notice[] = []
  const { id: run, workflow } = after
  if (how === 'lost' || how === 'expired')
    notices.push({
      run,
      kind: 'attempt_lost',
      occurrence: String(before.attempt),
      sentence: `attempt ${before.attempt} of ${run} (${workflow}) ${how === 'lost' ? 'was lost' : 'expired'}: ${evidence ?? 'its session has ended'}; the run is ${after.status}`,
      data: {
        workflow,
        attempt: before.attempt,
        session: before.session,
        end: how,
        evidence,
        losses: after.losses,
        status: after.status,
      },
    })
  // a pause that nobody asked for
  if (after.status === 'paused' && after.reason !== 'paused') notices.push(stuckRun(after))
  return notices
}

/** A run is set aside, openly, until somebody acts. */
export const stuckRun = ({ id: run, workflow, rev, status, reason, note }: Run): Notice => ({
  run,
  kind: 'run_stuck',
  occurrence: String(rev),
  sentence: `${run} (${workflow}) is ${status} until somebody acts (${reason}): ${note ?? 'no more is known'}`,
  data: { workflow, status, reason, note },
})

/** Whether its failure is for people: that of a child whose parent waits for it is for its parent. */
export const failsForPeople = (run: Run): boolean =>
  run.status === 'failed' && run.onEndOf === null && (run.parent === null || run.awaited === 0)

export const failedRun = ({ id: run, workflow, owner, reason, note, attempt }: Run): Notice => ({
  run,
  kind: 'run_failed',
  occurrence: '',
  sentence: `${run} (${workflow}) failed (${reason ?? 'no reason given'}): ${note ?? 'no more is known'}`,
  data: { workflow, owner, reason, note, attempt },
})

export const lostExecutor = (session: string, reason: string, evidence: string): Notice => ({
  run: session,
  kind: 'executor_lost',
  occurrence: '',
  sentence: `the executor of session ${session} is lost (${reason}): ${evidence}`,
  data: { session, reason, evidence },
})

export interface Asked {
  readonly run: string
  readonly key: string
  readonly id: string
  readonly prompt: string
  readonly deadline: number
}

export const askedApproval = ({ run, key, id, prompt, deadline }: Asked): Notice => ({
  run,
  kind: 'approval_asked',
  occurrence: key,
  sentence: `${run} asks for an approval until ${new Date(deadline).toISOString()}: ${prompt}; decide with leasehold approve ${id}`,
  data: { approval: id, key, prompt, deadline },
})

export const lapsingApproval = ({ run, key, id, prompt, deadline }: Asked): Notice => ({
  run,
  kind: 'approval_lapsing',
  occurrence: key,
  sentence: `the approval that ${run} asks for lapses at ${new Date(deadline).toISOString()}, undecided: ${prompt}; decide with leasehold approve ${id}`,
  data: { approval: id, key, prompt, deadline },
})
