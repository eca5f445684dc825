// What became of an executor that was started: its spawner has seen its process end, or its session is over, or none ever came.
import { inWords } from '../kernel/duration.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { forgetSpawns, settleSpawns, spawnById, unsettledSpawns } from '../store/tables/spawns.ts'
import { endOnEvidence } from './end-session.ts'

/** Its process is gone, and with it its session, where there is one: what it held is taken back on that evidence. */
export function* settleSpawn(
  tx: Tx,
  session: string,
  evidence: string,
): Steps<{ found: boolean; ended: boolean; follow: Follow }> {
  const [[row]] = yield* ask(spawnById(session))
  if (!row) return { found: false, ended: false, follow: nothing() }
  yield* ask(settleSpawns([{ session, state: row.registered > 0 ? 'ended' : 'failed', evidence }]))
  return { found: true, ...(yield* endOnEvidence(tx, session, evidence)) }
}

/**
 * Settles those of which nobody says anything: a session that has ended, or one that has not come by the end of its time. It gives up
 * by itself then, and is not waited for much longer.
 */
export function* settleSilent(tx: Tx, graceMs: number, most: number): Steps<number> {
  const [rows] = yield* ask(unsettledSpawns(graceMs, most))
  if (rows.length === 0) return 0
  const [settled] = yield* finish(
    settleSpawns(
      rows.map(({ session, registered, start_by: startBy, evidence }) =>
        registered === 1
          ? { session, state: 'ended' as const, evidence: evidence ?? 'its session has ended' }
          : {
              session,
              state: 'failed' as const,
              evidence: `it has not registered, ${inWords(tx.now - startBy)} after its time`,
            },
      ),
    ),
  )
  return settled.length
}

export function* pruneSpawns(_tx: Tx, olderMs: number, most: number): Steps<number> {
  const [gone] = yield* finish(forgetSpawns(olderMs, most))
  return gone.length
}
