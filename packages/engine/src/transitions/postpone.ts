// An order that could not be applied is due again later, with the error beside it.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { postponeOrder } from '../store/tables/orders.ts'

export function* postpone(_tx: Tx, id: string, ms: number, error: string): Steps<void> {
  yield* finish(postponeOrder(id, ms, error))
}
