// What the parts of one executor share: its coordinator, which owns jobs, slots and markers, and where it is in its life.
import type { Growth } from '../kernel/growing-delay.ts'
import type { Coordinator } from '../model/coordinator.ts'
import type { Job } from '../model/job.ts'
import { definitionKey } from '../model/definition.ts'
import { shardOfId } from '../model/shard.ts'
import type { ClaimedRun, LetGo, RegisterOk } from '../model/work.ts'
import type { AnyWorkflow } from './authoring/context.ts'
import type { Driver, Returned } from './driving/driver.ts'
import type { AttemptLog } from './logs/attempt-log.ts'
import type { LogSending } from './logs/log-sending.ts'
import type { ExecutorOptions } from './options.ts'
import type { Renewals, Sent } from './session/renewals.ts'
import type { Turns } from './driving/turns.ts'

/** Between tries at the engine. */
export const RETRY: Growth = { firstMs: 100, maxMs: 2_000 }

export type ExecutorState = 'idle' | 'starting' | 'running' | 'draining' | 'stopped'

/** A job with what drives it. */
export interface Drive extends Job {
  work: Work | null
}

export interface Work {
  readonly claimed: ClaimedRun
  readonly workflow: AnyWorkflow
  readonly driver: Driver
  /** What it writes for people to read. */
  readonly log: AttemptLog
  /** What drives it in a process of its own, where its workflow is isolated so. */
  readonly isolated: {
    drive(
      of: Session,
      work: Work,
      context: { readonly captured: string; readonly current: string } | null,
      storeOffset: number,
    ): Promise<Returned>
  } | null
  /** The workflow's own next try after this error. */
  readonly retryInMs: (error: unknown) => number | undefined
  /** Files of its preparation. */
  directory: string | null
  /** Whether its preparation took something that is to be released. */
  held: boolean
  /** What its preparation gave. */
  prepared: unknown
  /** While it is prepared: ends the attempt by its deadline, without a first reason. */
  timedOut: (() => void) | null
}

export interface Session {
  readonly id: string
  readonly answer: RegisterOk
  readonly renewals: Renewals
  readonly unlisten: () => void
  lastSent: Sent
  /** Of several databases, those that the last renewal did not reach, with the last one that did. */
  readonly behind: Map<number, Sent>
  /** Those whose runs were let go for it, until they have been handed back. */
  readonly apart: Set<number>
  lastRenewalAt: number | null
  claimNo: number
  /** The highest claim whose answer has come. */
  received: number
  letGo: LetGo[]
  digestAt: number
  wantsList: boolean
  fenced: boolean
  over: boolean
}

export interface Core {
  readonly options: ExecutorOptions
  readonly coordinator: Coordinator<Drive>
  readonly workflows: ReadonlyMap<string, AnyWorkflow>
  readonly turns: Turns
  readonly logs: LogSending
  /** Aborts when the executor is told to stop. */
  readonly stopping: AbortController
  state: ExecutorState
  session: Session | null
  pollInProgress: boolean
  stoppedBecause: string | null
  /** Wakes a poll that waits for room, or for a session. */
  wakePoll: (() => void) | null
  /** Tells a claim that waits that it may be given more than it asked for: by a class with room, or a run it was not to have. */
  wider: ((isRunFree: boolean) => void) | null
  /** Tells whoever waits for jobs to settle. */
  settledOne: (() => void) | null
  /** Ends the watch over the lease. */
  cancelFence: (() => void) | null
  warnedUnknownCall: boolean
  /** What it shows of itself, as JSON text. */
  statusText(): string
  /** It would stay up idle and look healthy: it stops instead, and says why. */
  stopForGood(event: string, error: unknown): void
}

export const driversOf = (core: Core): Driver[] =>
  [...core.coordinator.jobs].flatMap(({ work }) => (work ? [work.driver] : []))

/** Whether the lease of a run can no longer be trusted: of all, or of those of its shard until a renewal reaches it again. */
export const isFenced = (of: Session, run: string): boolean => {
  const shard = shardOfId(run)
  return of.fenced || (of.apart.has(shard) && of.behind.has(shard))
}

/** Runs that this executor still holds, for renewals and for letting go. */
export const heldBy = (core: Core): { run: string; attempt: number }[] =>
  [...core.coordinator.jobs]
    .filter((job) => !job.left)
    .map(({ run, attempt }) => ({ run, attempt }))

/** The versions of workflows, as `definitionKey` names them, whose runs take slots of these classes. */
export const workflowsOf = (core: Core, classes: readonly string[]): string[] =>
  core.options.workflows
    .filter((each) => classes.includes(each.definition.slotClass))
    .map((each) => definitionKey(each.name, each.version))
