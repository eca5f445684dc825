// The session of one attempt's own process takes that attempt over from the session that launched it (RAIL-14). Both are locked in
// the order of their ids, the new one must be live, and its only claim is this attempt; a repeat finds what it holds already.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Settings } from '../model/settings.ts'
import type { ClaimedRun } from '../model/work.ts'
import type { Adoption } from '../store/move/claims.ts'
import { adoptRun, heldUnderClaim } from '../store/move/claims.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { insertEvents, stepsOfClaim } from '../store/tables/journal.ts'
import { lockSessions, numberClaim, sessionById } from '../store/tables/sessions.ts'
import { waitsOfClaim } from '../store/tables/waits.ts'
import { runsOf } from './claim.ts'

/** Under this number a session adopts; it makes no other claim. */
const CLAIM = 1

export interface Adopted {
  readonly ok: true
  readonly run: ClaimedRun
  readonly leaseUntil: number | null
  /** The store's clock. */
  readonly now: number
}

export function* adopt(
  tx: Tx,
  adoption: Adoption & { readonly startBy: number },
  settings: Settings,
): Steps<Adopted | Refusal> {
  const { run, attempt, from, session, startBy } = adoption
  const [locked] = yield* ask(lockSessions([from, session]))
  if (locked.find(({ id }) => id === session)?.state !== 'live')
    return refuse('session_ended', `there is no live session ${session}; drop the attempt`, {
      session,
    })
  if (tx.now > startBy)
    return refuse(
      'stale_attempt',
      `attempt ${attempt} of ${run} was to begin by ${startBy}, and its launcher gives it back; drop it`,
      { run, attempt, session, startBy, now: tx.now },
    )
  const [moved] = yield* ask(adoptRun(adoption, CLAIM), numberClaim(session, CLAIM))
  const [, rows, steps, waits, [row]] = yield* finish(
    insertEvents(
      moved.map(({ id, rev }) => ({
        run: id,
        rev,
        seq: 0,
        kind: 'attempt.adopted',
        actor: session,
        data: JSON.stringify({ attempt, from }),
      })),
    ),
    heldUnderClaim(session, CLAIM),
    stepsOfClaim(session, CLAIM, settings.claimJournalMaxBytes),
    waitsOfClaim(session, CLAIM),
    sessionById(session),
  )
  const mine = rows.filter((each) => each.id === run && each.attempt === attempt)
  const [claimed] = runsOf(mine, steps, waits)
  if (!claimed)
    return refuse(
      'stale_attempt',
      `${from} no longer drives attempt ${attempt} of ${run}, or has begun to stop it, so it cannot be adopted. Drop it`,
      { run, attempt, session },
    )
  return { ok: true, run: claimed, leaseUntil: row?.lease_until ?? null, now: tx.now }
}
