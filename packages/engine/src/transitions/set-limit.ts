// An operator's value of a limit, which beats the code's. Lowering it ends nothing; raising it lets the line move.
import type { Follow } from '../model/follow.ts'
import { mayAdmit, nothing } from '../model/follow.ts'
import type { LimitMode } from '../model/slots.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { lockLimits, setOperatorLimit } from '../store/tables/limits.ts'

export interface SetLimit {
  readonly key: string
  /** Null: the code's value again. */
  readonly value: number | null
  /** For a key that has no row yet; one that has keeps its own. */
  readonly mode: LimitMode
  /** Null keeps the weight. */
  readonly weight: number | null
  readonly by: string
}

export function* setLimit(_tx: Tx, command: SetLimit): Steps<{ follow: Follow }> {
  const follow = nothing()
  const [[row]] = yield* ask(lockLimits([command.key]))
  yield* finish(
    setOperatorLimit(
      command.key,
      row?.mode ?? command.mode,
      command.value,
      command.weight ?? row?.weight ?? 1,
      command.by,
    ),
  )
  mayAdmit(follow, command.key, Number.POSITIVE_INFINITY)
  return { follow }
}
