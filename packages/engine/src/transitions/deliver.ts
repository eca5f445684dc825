// What a server relays: it claims what is due for a sink it has, sends it outside of any transaction, and records what came
// of it, guarded by the claim. The receipt is written with the delivery's last state, so that it is there exactly once.
import { readOr, stored } from '../kernel/stored.ts'
import type { Message } from '../model/delivery.ts'
import { batchSize } from '../model/delivery.ts'
import { noticeId } from '../model/notice.ts'
import type { Settings } from '../model/settings.ts'
import type { Statement, Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import type { Claim, SettledRow } from '../store/tables/deliveries.ts'
import {
  annulClaimed,
  claimDue,
  deliverClaimed,
  deliveriesNow,
  refuseClaimed,
  shedClaimed,
  sinksWithDue,
} from '../store/tables/deliveries.ts'
import type { ToldRow } from '../store/tables/notices.ts'
import { noticesByKeys } from '../store/tables/notices.ts'
import { insertReceipts } from '../store/tables/orders.ts'

export interface Claimed extends Claim {
  readonly refusals: number
  readonly lapses: number
  readonly message: Message
}

/** No delivery is put off for longer: an instant beyond it was written by a clock that was ahead. */
const putOffMax = ({ deliveryLeaseMs, deliveryBackoffMaxMs }: Settings): number =>
  2 * (deliveryLeaseMs + deliveryBackoffMaxMs)

export function* dueSinks(_tx: Tx, sinks: readonly string[], settings: Settings): Steps<string[]> {
  const [due] = yield* ask(sinksWithDue(sinks, putOffMax(settings)))
  return due.map(({ sink }) => sink)
}

/** As many as can be sent before the claim lapses; one whose notice is gone gets a receipt that says so. */
export function* claimDeliveries(
  _tx: Tx,
  sink: string,
  holder: string,
  settings: Settings,
): Steps<{ claimed: Claimed[]; void: number }> {
  const [rows] = yield* ask(
    claimDue(sink, putOffMax(settings), batchSize(settings), holder, settings.deliveryLeaseMs),
  )
  if (rows.length === 0) return { claimed: [], void: 0 }
  const [notices] = yield* ask(noticesByKeys(rows))
  const byId = new Map(notices.map((row) => [noticeId(row), row]))
  const gone = rows.filter((row) => !byId.has(noticeId(row)))
  const [annulled] = yield* ask(
    annulClaimed(gone.map(({ id, claim }) => ({ id, claim, note: 'notice_gone' }))),
  )
  yield* finish(receiptsFor(annulled, () => 'notice_gone'))
  const claimed = rows.flatMap((row) => {
    const notice = byId.get(noticeId(row))
    const { id, claim, refusals, lapses } = row
    return notice
      ? [{ id, claim, refusals, lapses, message: messageOf(notice, refusals + lapses > 0) }]
      : []
  })
  return { claimed, void: annulled.length }
}

const messageOf = (row: ToldRow, again: boolean): Message => ({
  id: noticeId(row),
  kind: row.kind,
  at: row.at,
  run: row.run,
  occurrence: row.occurrence,
  sentence: row.sentence,
  data: readOr(
    () => (row.data === null ? null : stored(row.data, `the data of a notice of ${row.run}`)),
    (sentence) => ({ unreadable: sentence }),
  ),
  workflow: row.workflow,
  owner: row.owner,
  key: row.key,
  again,
})

/** What came of one that was claimed. `cut`: nobody knows, since its send was cut off. */
export type Came =
  | { readonly how: 'delivered'; readonly note: string }
  | {
      readonly how: 'refused'
      readonly why: string
      readonly forGood: boolean
      /** When it is tried again. */
      readonly afterMs: number
    }
  /** It is not for this sink. */
  | { readonly how: 'void'; readonly note: string }
  | { readonly how: 'shed' | 'cut' }

export interface Result extends Claim {
  readonly came: Came
}

export interface Recorded {
  readonly delivered: number
  readonly refused: number
  readonly dead: readonly string[]
  /** Whose claim another server has taken over: what was recorded of them counts for nothing. */
  readonly lost: readonly string[]
}

export function* recordDeliveries(
  _tx: Tx,
  results: readonly Result[],
  settings: Settings,
): Steps<Recorded> {
  const delivered = results.flatMap(({ id, claim, came }) =>
    came.how === 'delivered' ? [{ id, claim, note: came.note }] : [],
  )
  const refused = results.flatMap(({ id, claim, came }) =>
    came.how === 'refused'
      ? [
          {
            id,
            claim,
            error: came.why,
            ms: came.afterMs,
            most: came.forGood ? 0 : settings.deliveryRefusalsMax,
          },
        ]
      : [],
  )
  const shed = results.flatMap(({ id, claim, came }) =>
    came.how === 'shed' || came.how === 'cut'
      ? [{ id, claim, cut: came.how === 'cut' ? (1 as const) : (0 as const) }]
      : [],
  )
  const annulled = results.flatMap(({ id, claim, came }) =>
    came.how === 'void' ? [{ id, claim, note: came.note }] : [],
  )
  const [taken, put, left, never] = yield* ask(
    deliverClaimed(delivered),
    refuseClaimed(refused),
    shedClaimed(shed),
    annulClaimed(annulled),
  )
  const mine = new Set([...taken, ...put, ...left, ...never].map(({ id }) => id))
  const missed = results.filter(({ id }) => !mine.has(id))
  const notes = new Map([...delivered, ...annulled].map(({ id, note }) => [id, note]))
  const [, now] = yield* finish(
    receiptsFor([...taken, ...never], ({ id, state }) => `${state}: ${notes.get(id) ?? ''}`),
    deliveriesNow(missed.map(({ id }) => id)),
  )
  // one that was recorded under this very claim is a repeat, whose first answer got lost
  const known = new Set(
    now
      .filter(({ id, state, claim }) =>
        results.some((each) => each.id === id && each.claim === claim && state !== 'sending'),
      )
      .map(({ id }) => id),
  )
  return {
    delivered: taken.length,
    refused: put.length,
    dead: put.filter(({ state }) => state === 'dead').map(({ id }) => id),
    lost: missed.map(({ id }) => id).filter((id) => !known.has(id)),
  }
}

/** Written by whoever has performed, dropped or annulled the very delivery, and with it. */
export const receiptsFor = (
  settled: readonly SettledRow[],
  outcome: (row: SettledRow) => string,
): Statement<{ run: string }> =>
  insertReceipts(
    settled.map((row) => ({
      run: row.run,
      kind: `notice.${row.kind}`,
      attempt: 0,
      recipient: row.id,
      outcome: outcome(row),
    })),
  )
