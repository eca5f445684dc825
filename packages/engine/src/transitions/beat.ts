// The record of sweeps' passes: when, how much, and what went wrong.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import type { SweepRow } from '../store/tables/orders.ts'
import { beatSweep } from '../store/tables/orders.ts'

/** A pass as its loop reports it; the store adds when. */
export type PassRow = Omit<SweepRow, 'last_at'>

export function* beat(_tx: Tx, rows: readonly PassRow[]): Steps<void> {
  yield* finish(...rows.map(beatSweep))
}
