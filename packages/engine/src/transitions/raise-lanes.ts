// Keeps how far the virtual time of lanes has come, so that a restart puts no new run before those that waited.
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { raiseLanes as raise } from '../store/tables/lanes.ts'

export function* raiseLanes(
  _tx: Tx,
  risen: readonly { readonly lane: string; readonly tag: number }[],
): Steps<void> {
  yield* finish(raise(risen))
}
