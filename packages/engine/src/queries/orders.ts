// Orders that were set aside, the oldest first: what operators decide about; and how far behind those are that are open.
import { readOr, stored } from '../kernel/stored.ts'
import { inWords } from '../kernel/duration.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { backlogOfOrders, ordersSetAside } from '../store/tables/orders.ts'

const MOST = 1_000

/** The first thousand. A payload that cannot be read is shown as the text that it is. */
export function* ordersAside(tx: Tx) {
  const [rows] = yield* ask(ordersSetAside(MOST))
  const { open, ageMs, late } = yield* orderBacklog(tx)
  return {
    open,
    oldestMs: ageMs,
    late,
    orders: rows.map((row) => ({
      id: row.id,
      kind: row.kind,
      run: row.run,
      createdAt: row.created_at,
      setAsideAt: row.set_aside_at,
      failures: row.failures,
      error: row.error,
      payload: readOr(
        () => (row.payload === null ? null : stored(row.payload, `the order ${row.id}`)),
        () => row.payload,
      ),
    })),
  }
}

/** Counted as far as this. */
const COUNTED = 10_000
/** An order is applied at once; one that is as old as this is not, and somebody waits for it. */
const LATE_MS = 60_000

export function* orderBacklog(
  tx: Tx,
): Steps<{ open: number; ageMs: number; late: boolean; aside: number }> {
  const [[row]] = yield* ask(backlogOfOrders(COUNTED))
  const oldest = row?.oldest_at ?? null
  const ageMs = oldest === null ? 0 : Math.max(0, tx.now - oldest)
  return { open: row?.open ?? 0, ageMs, late: ageMs > LATE_MS, aside: row?.aside ?? 0 }
}

/** What is wrong with orders, in words; an empty list when nothing is. */
export function* orderWarnings(tx: Tx): Steps<string[]> {
  const { late, open, ageMs, aside } = yield* orderBacklog(tx)
  return [
    ...(late
      ? [`orders are late: the oldest of ${open} that are open has waited for ${inWords(ageMs)}`]
      : []),
    ...(aside > 0 ? [`${aside} orders were set aside; leasehold orders lists them`] : []),
  ]
}
