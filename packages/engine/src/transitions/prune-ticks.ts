// Forgets what became of old ticks; one whose run is still there goes with its run.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { forgetTicks } from '../store/tables/schedules.ts'

export function* pruneTicks(_tx: Tx, olderMs: number): Steps<number> {
  const [gone] = yield* finish(forgetTicks(olderMs))
  return gone.length
}
