// The audit: every safety invariant that rows can show, each with a figure that is 0 when the store is healthy.
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { auditPage, auditPageEnd, auditStatements } from '../store/tables/audits.ts'

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

const PAGE = 1_000

export interface AuditPage {
  readonly invariants: Invariant[]
  /** Where the next page begins; null when every run has been looked at. */
  readonly next: string | null
}

/** The invariants that any run of history can break, of a page of runs after an id. */
export function* auditHistory(_tx: Tx, after: string): Steps<AuditPage> {
  const all = auditPage(after, PAGE)
  const [[end], ...broken] = yield* ask(
    auditPageEnd(after, PAGE),
    ...all.map((each) => each.broken),
  )
  return {
    invariants: all.map(({ name, what }, i) => {
      const ids = (broken[i] ?? []).map((row) => row.id)
      return { name, what, figure: ids.length, sample: ids.slice(0, SHOWN) }
    }),
    next: (end?.n ?? 0) < PAGE ? null : (end?.last ?? null),
  }
}
