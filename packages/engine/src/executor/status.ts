// What an executor shows of itself: a snapshot, sent with each renewal.
import type { Marker, SlotCount } from '../model/coordinator.ts'
import type { JobPhase } from '../model/job.ts'
import type { Core, ExecutorState } from './core.ts'

export interface ExecutorStatus {
  readonly state: ExecutorState
  readonly session: string | null
  readonly slots: readonly SlotCount[]
  readonly jobs: readonly {
    readonly run: string
    readonly workflow: string
    readonly attempt: number
    readonly phase: JobPhase
    /** Whether its attempt has ended in the store or is let go of, so that only its bodies are awaited. */
    readonly left: boolean
    readonly since: number
    /** What it has begun and what has not settled. */
    readonly bodies: number
    readonly firstReason: string | null
    /** Whether the store knows the first reason. */
    readonly saved: boolean
  }[]
  /** Slots that stay held, by what could not be settled. */
  readonly markers: readonly Marker[]
  /** What could not be released; while there is any, nothing new is taken. */
  readonly unreleased: readonly Marker[]
  readonly pollInProgress: boolean
  readonly lastRenewalAt: number | null
  readonly fenced: boolean
  /** Why it has stopped by itself, in words; null where it was told to stop, or works. */
  readonly stoppedBecause: string | null
}

export const statusOf = (core: Core): ExecutorStatus => {
  const { coordinator, session } = core
  return {
    state: core.state,
    session: session?.id ?? null,
    slots: coordinator.slots(),
    jobs: [...coordinator.jobs].map((job) => ({
      run: job.run,
      workflow: job.work?.claimed.workflow ?? '',
      attempt: job.attempt,
      phase: job.phase,
      left: job.left,
      since: job.since,
      bodies: job.bodies,
      firstReason: job.reason,
      saved: job.saved,
    })),
    markers: coordinator.markers.filter(({ kind }) => kind !== 'unreleased'),
    unreleased: coordinator.markers.filter(({ kind }) => kind === 'unreleased'),
    pollInProgress: core.pollInProgress,
    lastRenewalAt: session?.lastRenewalAt ?? null,
    fenced: session?.fenced ?? false,
    stoppedBecause: core.stoppedBecause,
  }
}
