// Which sinks there are: each server says again and again which it has. One that no server has had for long was removed, and
// what was open for it gets a receipt that says so.
import type { Sink } from '../model/delivery.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import {
  annulOfRemoved,
  narrowSinks,
  putSinks,
  removeUnseenSinks,
} from '../store/tables/deliveries.ts'
import { receiptsFor } from './deliver.ts'

/** Says which sinks this server has. `first`: as it starts, which is when a kind that one no longer takes is removed. */
export function* keepSinks(_tx: Tx, sinks: readonly Sink[], first: boolean): Steps<void> {
  const items = sinks.flatMap(({ name, type, kinds }) =>
    kinds.map((kind) => ({ name, kind, type })),
  )
  if (first) yield* ask(narrowSinks(items.map(({ name, kind }) => ({ name, kind }))))
  yield* finish(putSinks(items))
}

const MOST = 500

/** Removes sinks that nobody has had for `ms`, and annuls what was open for sinks that are not there. */
export function* removeSinks(
  _tx: Tx,
  ms: number,
): Steps<{ removed: readonly string[]; annulled: number }> {
  const [removed] = yield* ask(removeUnseenSinks(ms))
  const [annulled] = yield* ask(annulOfRemoved(MOST))
  yield* finish(receiptsFor(annulled, () => 'sink_removed'))
  return { removed: [...new Set(removed.map(({ name }) => name))], annulled: annulled.length }
}
