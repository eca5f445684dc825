// Orders that were set aside, the oldest first: what operators decide about.
import { readOr, stored } from '../kernel/stored.ts'
import type { Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { ordersSetAside } from '../store/tables/orders.ts'

const MOST = 1_000

/** The first thousand. A payload that cannot be read is shown as the text that it is. */
export function* ordersAside(_tx: Tx) {
  const [rows] = yield* ask(ordersSetAside(MOST))
  return {
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
