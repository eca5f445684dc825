// Ends attempts from the store's side: hand-backs that were only listed, closed and dead sessions, limits, operators.
// The holder is named by its attempt, so one that has moved on meanwhile is never touched.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { noticesOfEnd } from '../model/notice.ts'
import type { Run } from '../model/run.ts'
import { isHeld, isTerminal } from '../model/run.ts'
import type { End } from '../model/settle.ts'
import { settle } from '../model/settle.ts'
import type { PlanContext } from '../model/start.ts'
import type { Ended } from '../store/consequences.ts'
import { consequences, follows } from '../store/consequences.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import { writeEnds, writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish, wrote } from '../store/sql.ts'
import { insertAttempts, insertEvents } from '../store/tables/journal.ts'
import { tell } from '../store/tables/notices.ts'

export interface StoreEnd {
  readonly run: string
  /** The attempt that is meant; null means whichever holds the run. */
  readonly attempt: number | null
  readonly session: string | null
  /** What happened, decided from the locked row; null leaves the attempt as it is. */
  readonly end: (run: Run, now: number) => End | null
  /** Who ended it and on what evidence, kept as an event. */
  readonly event: {
    readonly kind: string
    readonly actor: string | null
    readonly data: Readonly<Record<string, unknown>>
  } | null
  readonly note?: string
}

export interface StoreEnded {
  readonly ended: readonly {
    readonly run: string
    readonly attempt: number
    readonly status: Run['status']
    readonly session: string
  }[]
  readonly follow: Follow
}

export function* endAttempts(
  tx: Tx,
  items: readonly StoreEnd[],
  context: PlanContext,
): Steps<StoreEnded> {
  const follow = nothing()
  const [rows] = yield* ask(lockRuns(items.map((item) => item.run)))
  const found = new Map(rows.map((row) => [row.id, runOf(row)]))
  const ended: { before: Run; run: Run; how: string; reason: string | null; item: StoreEnd }[] = []
  for (const item of items) {
    const before = found.get(item.run)
    if (!before || !isHeld(before.status)) continue
    if (
      (item.attempt !== null && before.attempt !== item.attempt) ||
      (item.session !== null && before.session !== item.session)
    )
      continue
    const end = item.end(before, tx.now)
    if (!end) continue
    const settlement = settle(before, end, tx.now, context.settings)
    found.set(item.run, settlement.run)
    ended.push({
      before,
      run: settlement.run,
      how: settlement.end,
      reason: 'reason' in end ? end.reason : null,
      item,
    })
    follows(follow, before, settlement.run)
  }
  if (ended.length === 0) return { ended: [], follow }
  const terminal: Ended[] = ended
    .filter(({ run }) => isTerminal(run.status))
    .map(({ run }) => ({
      run,
      output: null,
      error:
        run.status === 'failed'
          ? JSON.stringify({ name: 'Error', message: run.note ?? run.reason, code: run.reason })
          : null,
    }))
  const active = ended.filter(({ run }) => !isTerminal(run.status)).map(({ run }) => run)
  const notices = ended.flatMap(({ before, run, how, item }) =>
    noticesOfEnd(before, run, how, item.note ?? run.note),
  )
  follow.notices.push(...notices)
  const more = yield* consequences(terminal, follow, context)
  const [, wroteActive, wroteTerminal] = yield* finish(
    insertAttempts(
      ended.map(({ before, run, how, reason, item }) => ({
        run: before.id,
        attempt: before.attempt,
        session: before.session ?? '',
        leased_at: before.leasedAt ?? 0,
        ended_at: tx.now,
        end: how,
        reason,
        note: item.note ?? run.note,
        first_reason: null,
        rev: run.rev,
      })),
    ),
    writeRuns(active),
    writeEnds(terminal),
    insertEvents(
      ended.flatMap(({ run, item }) =>
        item.event === null
          ? []
          : [
              {
                run: run.id,
                rev: run.rev,
                seq: 0,
                kind: item.event.kind,
                actor: item.event.actor,
                data: JSON.stringify(item.event.data),
              },
            ],
      ),
    ),
    ...tell(notices),
    ...more,
  )
  wrote([...wroteActive, ...wroteTerminal], ended.length, 'endAttempts')
  return {
    ended: ended.map(({ before, run }) => ({
      run: run.id,
      attempt: before.attempt,
      status: run.status,
      session: before.session ?? '',
    })),
    follow,
  }
}
