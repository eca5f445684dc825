// The audit: every safety invariant that rows can show, each with a figure that is 0 when the store is healthy.
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { auditStatements } from '../store/tables/audits.ts'

export interface Invariant {
  readonly name: string
  readonly what: string
  /** How many break it, at most 1,001. */
  readonly figure: number
  readonly sample: readonly string[]
}

const SHOWN = 10

export function* audit(_tx: Tx, settings: Settings): Steps<Invariant[]> {
  // what a sweep heals counts only when several sweeps have not
  const all = auditStatements(3 * settings.sweepMs)
  const broken = yield* ask(...all.map((each) => each.broken))
  return all.map(({ name, what }, i) => {
    const ids = (broken[i] ?? []).map((row) => row.id)
    return { name, what, figure: ids.length, sample: ids.slice(0, SHOWN) }
  })
}
