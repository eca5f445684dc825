// A session ends: closed by itself, or on evidence that its process has. The row is ended first; its runs follow, by
// `endAttempts`, in the same transaction where it closes itself and in batches where a sweep does it.
import { inWords } from '../kernel/duration.ts'
import type { PlanContext } from '../model/start.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { lostExecutor } from '../model/notice.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { freeClaims } from '../store/tables/deliveries.ts'
import { tell } from '../store/tables/notices.ts'
import { raiseGeneration } from '../store/tables/orders.ts'
import {
  endAllSessions,
  endEmbeddedSessions,
  endLapsedSessions,
  endSession,
  recountLeases,
  retireSession,
  writeEvidence,
} from '../store/tables/sessions.ts'
import { orphanedRuns, runsOfSession } from '../store/tables/runs.ts'
import { endAttempts } from './end-attempts.ts'

/**
 * Ends a session and hands back all that it holds, also what it never heard of. With runs that have not settled in a
 * process that lives on, it is retired instead: it claims nothing and has one last lease. A repeat does nothing more.
 */
export function* closeSession(
  tx: Tx,
  request: {
    readonly session: string
    readonly reason: string
    readonly except?: readonly string[]
  },
  context: PlanContext,
): Steps<{ ended: boolean; handedBack: number; follow: Follow }> {
  const { session, reason } = request
  const except = new Set(request.except ?? [])
  const close =
    except.size === 0
      ? endSession(session, reason, 'closed by the session itself')
      : retireSession(session)
  const [closed, held] = yield* ask(close, runsOfSession(session, 100_000))
  const { ended, follow } = yield* endAttempts(
    tx,
    held
      .filter((row) => !except.has(row.id))
      .map((row) => ({
        run: row.id,
        attempt: row.attempt,
        session,
        end: () => ({ kind: 'hand_back', reason: 'shutdown' }),
        event: null,
        note: `its session closed: ${reason}`,
      })),
    context,
  )
  return { ended: closed.length > 0, handedBack: ended.length, follow }
}

/**
 * Ends every session whose lease had lapsed at an instant when the clock was seen to be right, and had been for so long; a
 * longer lease than that is left. Nobody is ended where the clock says less than at that look, or more than `latest`: it has
 * jumped since, and who renewed meanwhile did so by another clock.
 */
export function* endLapsed(
  tx: Tx,
  at: number,
  seenMs = 1e15,
  latest = 1e15,
): Steps<{ ended: readonly { id: string; evidence: string }[]; follow: Follow }> {
  const follow = nothing()
  const [lapsed] = yield* ask(endLapsedSessions(at, Math.min(seenMs, 1e15), latest))
  if (lapsed.length === 0) return { ended: [], follow }
  const ended = lapsed.map(({ id, lease_until, renewed_at }) => ({
    id,
    evidence: `the lease lapsed ${inWords(tx.now - lease_until)} before the sweep looked; last renewed at ${new Date(renewed_at).toISOString()}`,
  }))
  follow.notices.push(
    ...ended.map(({ id, evidence }) => lostExecutor(id, 'its lease lapsed', evidence)),
  )
  yield* finish(writeEvidence(ended), ...tell(follow.notices))
  return { ended, follow }
}

/** Ends one session on evidence that exactly its process has ended. A repeat is a no-op. */
export function* endOnEvidence(
  _tx: Tx,
  session: string,
  evidence: string,
): Steps<{ ended: boolean; follow: Follow }> {
  const follow = nothing()
  const [ended] = yield* ask(endSession(session, 'process_ended', evidence))
  if (ended.length === 0) return { ended: false, follow }
  follow.notices.push(lostExecutor(session, 'its process has ended', evidence))
  yield* finish(...tell(follow.notices))
  return { ended: true, follow }
}

/** Counts every lease anew: the store's clock has jumped, and instants from before it say nothing. */
export function* recount(_tx: Tx): Steps<number> {
  const [recounted] = yield* finish(recountLeases())
  return recounted.length
}

/** A new owner of the SQLite file has proof of death for what lived in the earlier one; remote leases count anew. */
export function* takeOverFile(
  _tx: Tx,
  process: string,
  evidence: string,
): Steps<{ ended: number; recounted: number }> {
  const [ended, recounted] = yield* ask(
    endEmbeddedSessions(process, evidence),
    recountLeases(),
    freeClaims(),
  )
  yield* finish(
    ...tell(
      ended.map(({ id }) => lostExecutor(id, 'the process that it lived in ended', evidence)),
    ),
  )
  return { ended: ended.length, recounted: recounted.length }
}

/** Takes back a batch of runs whose holder has ended or does not exist, each with the evidence of its session. */
export function* takeBack(
  tx: Tx,
  most: number,
  context: PlanContext,
): Steps<{
  examined: number
  ended: readonly { run: string; attempt: number; status: string; session: string }[]
  follow: Follow
}> {
  const [orphans] = yield* ask(orphanedRuns(most))
  if (orphans.length === 0) return { examined: 0, ended: [], follow: nothing() }
  const { ended, follow } = yield* endAttempts(
    tx,
    orphans.map(({ id, session, attempt, end_reason, evidence }) => {
      const lapsed = end_reason === 'lease_lapsed'
      const note = evidence ?? `the session ${session} does not exist`
      return {
        run: id,
        attempt,
        session,
        end: () => ({ kind: lapsed ? ('expire' as const) : ('lose' as const), note }),
        event: {
          kind: lapsed ? 'attempt.expired' : 'attempt.lost',
          actor: 'sweep',
          data: { session, attempt, evidence: note },
        },
        note,
      }
    }),
    context,
  )
  return { examined: orphans.length, ended, follow }
}

/** After a restore from a backup: the generation rises, and holders from before it are never honoured again. */
export function* afterRestore(_tx: Tx): Steps<{ generation: number; ended: number }> {
  const [raised, ended] = yield* finish(
    raiseGeneration(),
    endAllSessions('the store was restored from a backup'),
  )
  return { generation: Number(raised[0]?.value ?? 1), ended: ended.length }
}
