// The record of sweeps' passes: when, how much, and what went wrong.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import type { SweepRow } from '../store/tables/orders.ts'
import { beatSweep } from '../store/tables/orders.ts'

export function* beat(_tx: Tx, rows: readonly Omit<SweepRow, 'last_at'>[]): Steps<void> {
  yield* finish(...rows.map(beatSweep))
}
