// Forgets deliveries whose window is over; one that comes again after it is a new one.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { forgetArrivals } from '../store/tables/triggers.ts'

export function* pruneArrivals(_tx: Tx, olderMs: number, most: number): Steps<number> {
  const [gone] = yield* finish(forgetArrivals(olderMs, most))
  return gone.length
}
