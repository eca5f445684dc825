// Heals families: a parent that was never told of its child's end, a child that outlived a parent it was bound to. What it
// finds becomes an ordinary order.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { insertOrders } from '../store/tables/orders.ts'
import { strandedChildren, untoldParents } from '../store/tables/runs.ts'

export function* reconcile(
  _tx: Tx,
  most: number,
): Steps<{ examined: number; acted: number; follow: Follow }> {
  const follow = nothing()
  const [untold, stranded] = yield* ask(untoldParents(most), strandedChildren(most))
  if (untold.length + stranded.length === 0) return { examined: 0, acted: 0, follow }
  const [orders] = yield* finish(
    insertOrders([
      ...untold.map((row) => ({
        id: `child:${row.id}`,
        kind: 'child_ended' as const,
        run: row.parent,
        payload: JSON.stringify({ key: row.parent_key, child: row.id, series: row.id }),
      })),
      ...stranded.map((row) => ({
        id: `cancel:${row.id}`,
        kind: 'cancel' as const,
        run: row.id,
        payload: JSON.stringify({ by: 'parent', reason: 'its parent has ended' }),
      })),
    ]),
  )
  follow.orders = orders.length > 0
  return { examined: untold.length + stranded.length, acted: orders.length, follow }
}
