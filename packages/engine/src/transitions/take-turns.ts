// A server takes the turns of sweeps that are its own or nobody's any more, and gives them back when it stops. A row, and no
// lock: a lock of a session does not come through a pooler, and one of a transaction would keep it open.
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { giveTurns, makeTurns, takeTurns as take } from '../store/tables/turns.ts'

/** Answers those that are this holder's now, for `ms`. */
export function* takeTurns(
  _tx: Tx,
  sweeps: readonly string[],
  holder: string,
  ms: number,
  make: boolean,
): Steps<readonly string[]> {
  if (make) yield* ask(makeTurns(sweeps))
  const [taken] = yield* finish(take(sweeps, holder, ms))
  return taken.map(({ sweep }) => sweep)
}

export function* giveBackTurns(_tx: Tx, holder: string): Steps<void> {
  yield* finish(giveTurns(holder))
}
