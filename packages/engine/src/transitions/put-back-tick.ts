// The store's clock was ahead for a while and is right again: a schedule that had moved on with it goes back to the tick that
// comes next. Ticks that have fired are known, and fire no second time.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import type { ScheduleRow } from '../store/tables/schedules.ts'
import { putBackTick } from '../store/tables/schedules.ts'

export function* putBack(_tx: Tx, seen: ScheduleRow, next: number): Steps<number> {
  const [moved] = yield* finish(putBackTick(seen, next))
  return moved.length
}
