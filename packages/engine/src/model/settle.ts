// How an attempt's end settles its run: the table of RUN-17 with the counts of RUN-12, as one pure function. Every
// path that ends an attempt (executor, suspend, hand-back, reap, limit, operator) passes through it.
import { growingDelayMs } from '../kernel/growing-delay.ts'
import type { AttemptEnd } from './attempt.ts'
import type { Run, RunPatch, WaitOn } from './run.ts'
import { moved } from './run.ts'
import type { Settings } from './settings.ts'
import { holdsAll } from './slots.ts'

/** How an attempt ended, as its holder or a sweep reports it. */
export type End =
  | { readonly kind: 'complete'; readonly continued?: boolean }
  /** `retryInMs`: the workflow's own retry has tries left and the next is due after this. */
  | {
      readonly kind: 'fail'
      readonly reason: string
      readonly note: string
      readonly retryInMs?: number
    }
  | { readonly kind: 'suspend'; readonly waitOn: WaitOn; readonly readyAt: number | null }
  /** `tag`: the run goes to the end of its priority; without it, to its old place. */
  | { readonly kind: 'hand_back'; readonly reason: string; readonly tag?: number }
  | { readonly kind: 'park'; readonly reason: string; readonly note: string }
  | { readonly kind: 'stale'; readonly note: string }
  | { readonly kind: 'expire' | 'lose'; readonly note: string }
  /** The engine ends the attempt without waiting; `outcome` is what becomes of the run. */
  | {
      readonly kind: 'revoke'
      readonly reason: string
      readonly note: string
      readonly outcome: 'fail' | 'requeue'
      readonly retryInMs?: number
    }

export interface Settlement {
  readonly run: Run
  readonly end: AttemptEnd
}

/** Failures for these reasons beat a pause that was asked; any other waits behind it. */
const LIMITS: readonly string[] = ['time_limit', 'attempt_deadline']

/** Hand-backs for these reasons are the engine's own doing and never delay the next claim. */
const BLAMELESS: readonly string[] = ['shutdown', 'chain', 'pause', 'canceled']

export const settle = (run: Run, end: End, now: number, settings: Settings): Settlement => {
  if (run.status === 'canceling')
    return {
      run: moved(run, 'endCanceling', 'canceled', now, { reason: 'canceled', resumed: 1 }),
      end:
        end.kind === 'expire'
          ? 'expired'
          : end.kind === 'lose'
            ? 'lost'
            : end.kind === 'revoke'
              ? 'revoked'
              : 'canceled',
    }
  switch (end.kind) {
    case 'stale':
      return {
        run: moved(run, 'endAttempt', 'failed', now, { reason: 'stale', note: end.note }),
        end: 'stale',
      }
    case 'complete':
      return {
        run: moved(run, 'endAttempt', 'succeeded', now, {
          reason: end.continued ? 'continued' : null,
          note: null,
        }),
        end: 'completed',
      }
    case 'fail':
      return { run: afterFailure(run, end, now), end: 'failed' }
    case 'revoke':
      return {
        run:
          end.outcome === 'requeue'
            ? requeued(run, now, { resumed: 1 })
            : afterFailure(run, end, now),
        end: 'revoked',
      }
    case 'park':
      return {
        run: moved(run, 'endAttempt', 'paused', now, {
          waitOn: null,
          readyAt: null,
          reason: end.reason,
          note: end.note,
          resumed: 1,
          pauseRequestedAt: run.pauseRequestedAt ?? now,
        }),
        end: 'suspended',
      }
    case 'suspend':
      return {
        run:
          paused(run, now, end.waitOn, end.readyAt) ??
          moved(run, 'endAttempt', 'waiting', now, {
            waitOn: end.waitOn,
            readyAt: end.readyAt,
            reason: null,
            note: null,
            resumed: 1,
          }),
        end: 'suspended',
      }
    case 'hand_back':
      return { run: afterHandBack(run, end, now, settings), end: 'handed_back' }
    case 'expire':
    case 'lose':
      return {
        run: afterLoss(run, end, now, settings),
        end: end.kind === 'expire' ? 'expired' : 'lost',
      }
  }
}

/** A pause that was asked takes effect here: the row keeps what it waits on. */
const paused = (
  run: Run,
  now: number,
  waitOn: WaitOn | null,
  readyAt: number | null,
  patch: RunPatch = {},
): Run | undefined =>
  run.pauseRequestedAt === null
    ? undefined
    : moved(run, 'endAttempt', 'paused', now, {
        ...patch,
        waitOn,
        readyAt,
        reason: 'paused',
        note: run.pauseBy === null ? null : `paused by ${run.pauseBy}`,
        resumed: 1,
      })

/** A running run holds all its slots, and `queued` holds the same: it goes back without admission. */
const requeued = (run: Run, now: number, patch: RunPatch): Run =>
  paused(run, now, null, null, patch) ??
  moved(run, 'endAttempt', 'queued', now, { ...patch, resumed: 1 })

const later = (
  run: Run,
  now: number,
  delayMs: number,
  reason: string,
  note: string | null,
  patch: RunPatch,
): Run =>
  paused(run, now, 'time', now + delayMs, patch) ??
  moved(run, 'endAttempt', 'waiting', now, {
    ...patch,
    waitOn: 'time',
    readyAt: now + delayMs,
    reason,
    note,
    resumed: 1,
  })

const afterFailure = (
  run: Run,
  end: { reason: string; note: string; retryInMs?: number },
  now: number,
): Run => {
  if (end.retryInMs === undefined) {
    const stays = LIMITS.includes(end.reason) ? undefined : paused(run, now, null, null)
    return (
      stays ??
      moved(run, 'endAttempt', 'failed', now, {
        reason: end.reason,
        note: end.note,
        failures: run.failures + 1,
      })
    )
  }
  return later(run, now, end.retryInMs, 'retry', end.note, { failures: run.failures + 1 })
}

const afterHandBack = (
  run: Run,
  end: { reason: string; tag?: number },
  now: number,
  settings: Settings,
): Run => {
  const place = end.tag === undefined ? {} : { tag: end.tag }
  if (BLAMELESS.includes(end.reason)) return requeued(run, now, place)
  const handBacks = run.handBacks + 1
  if (handBacks >= settings.handBacksMax)
    return moved(run, 'endAttempt', 'paused', now, {
      waitOn: null,
      readyAt: null,
      handBacks,
      reason: 'no_progress',
      note: `handed back ${handBacks} times in a row without a new entry, last for ${end.reason}; resume it when the cause is gone`,
      resumed: 1,
      pauseRequestedAt: run.pauseRequestedAt ?? now,
    })
  // the first is claimable at once: only hand-backs in a row are delayed
  if (handBacks === 1) return requeued(run, now, { ...place, handBacks })
  const delayMs = growingDelayMs(handBacks - 1, {
    firstMs: settings.handBackDelayMs,
    maxMs: settings.handBackDelayMaxMs,
  })
  return later(
    run,
    now,
    delayMs,
    'handed_back',
    `handed back ${handBacks} times in a row for ${end.reason}`,
    { ...place, handBacks },
  )
}

const afterLoss = (
  run: Run,
  end: { kind: 'expire' | 'lose'; note: string },
  now: number,
  settings: Settings,
): Run => {
  const losses = run.losses + 1
  if (losses >= settings.lossesMax)
    return moved(run, 'endAttempt', 'failed', now, {
      losses,
      reason: 'attempts_exhausted',
      note: `${losses} attempts in a row were lost without a new entry; the last: ${end.note}`,
    })
  const suspectSince = losses >= settings.lossesSuspect ? (run.suspectSince ?? now) : null
  return requeued(run, now, { losses, suspectSince })
}

/** Where a run goes that is due now: `queued` where it holds all its slots, else in line for them. */
export const due = (run: Run, move: 'wake' | 'resume', now: number): Run => {
  if (holdsAll(run)) return moved(run, move, 'queued', now, {})
  return moved(run, move, 'waiting', now, {
    waitOn: 'slot',
    readyAt: null,
    reason: 'limit',
    note: null,
  })
}
