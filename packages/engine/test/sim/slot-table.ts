// Who holds a slot, and who may be admitted, by the table of the contract (SLOT-02), written a second time on purpose.
import type { Change, RunRow, Shadow } from './shadow.ts'

export type Mode = 'whole_run' | 'while_held'

export const holdsSlot = (status: string, waitOn: string | null, mode: Mode): boolean => {
  if (status === 'queued' || status === 'running') return true
  if (status === 'canceling') return mode === 'while_held'
  if (status !== 'waiting' && status !== 'paused') return false
  if (mode === 'while_held') return false
  return waitOn !== 'child' && waitOn !== 'slot'
}

/** The limits that a run is under, each with its mode. */
export const limitsOf = (run: RunRow, shadow: Shadow): { key: string; mode: Mode }[] => {
  const keys: { key: string; mode: Mode }[] = []
  if (run.limit_owner !== null) keys.push({ key: run.limit_owner, mode: 'whole_run' })
  if (run.limit_global !== null) keys.push({ key: run.limit_global, mode: 'whole_run' })
  for (const key of [run.limit_a, run.limit_b])
    if (key !== null)
      keys.push({ key, mode: (shadow.limits.get(key)?.mode ?? 'while_held') as Mode })
  return keys
}

/** What a run takes of one of its limits. */
export const unitsOf = (run: RunRow, key: string): number =>
  key === run.limit_a ? run.units_a : key === run.limit_b ? run.units_b : 1

/** Units that are held of each limit, kept from one commit to the next. */
export class Usage {
  readonly units = new Map<string, number>()

  /** Takes in a commit; answers the limits of which more is held than before and than the limit allows. */
  take(change: Change, shadow: Shadow): { key: string; used: number; limit: number }[] {
    const grown = new Map<string, number>()
    for (const { before, after } of change.runs) {
      if (after.limit_owner === null && after.limit_global === null && after.limit_a === null) {
        if (!before || (before.limit_owner === null && before.limit_a === null)) continue
      }
      if (before) this.#count(before, -1, shadow, grown)
      this.#count(after, 1, shadow, grown)
    }
    const over: { key: string; used: number; limit: number }[] = []
    for (const [key, by] of grown) {
      const limit = shadow.limits.get(key)?.value ?? null
      const used = this.units.get(key) ?? 0
      if (by > 0 && limit !== null && used > limit) over.push({ key, used, limit })
    }
    return over
  }

  #count(run: RunRow, sign: number, shadow: Shadow, grown: Map<string, number>): void {
    for (const { key, mode } of limitsOf(run, shadow)) {
      if (!holdsSlot(run.status, run.wait_on, mode)) continue
      this.units.set(key, (this.units.get(key) ?? 0) + sign * unitsOf(run, key))
      grown.set(key, (grown.get(key) ?? 0) + sign * unitsOf(run, key))
    }
  }
}
