// Admission: the first waiters in line for these limits get their slots. The limits of all that were picked are locked in
// key order, then the runs in id order; what is held is counted under those locks, so no admission exceeds a limit. What
// another transaction has locked is passed over.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { moved } from '../model/run.ts'
import { limitKeys, limitUses } from '../model/slots.ts'
import { follows } from '../store/consequences.ts'
import { lockRuns, runOf, writeRuns } from '../store/move.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish, wrote } from '../store/sql.ts'
import { firstInLine, limitsByKey, lockFreeLimits, usedUnits } from '../store/tables/limits.ts'
import { valueOf } from './start.ts'

export interface Admitted {
  readonly count: number
  /** Limits found full, or locked by another transaction, whose waiters the next look passes over. */
  readonly full: readonly string[]
  /** Of these, the ones that were locked. */
  readonly busy: readonly string[]
  /** Whether there may be more to admit. */
  readonly more: boolean
  readonly follow: Follow
}

const PICK = 100

export function* admit(
  tx: Tx,
  keys: readonly string[],
  passOver: readonly string[] = [],
): Steps<Admitted> {
  const follow = nothing()
  const [picked] = yield* ask(firstInLine(keys, passOver, PICK))
  if (picked.length === 0) return { count: 0, full: passOver, busy: [], more: false, follow }
  const all = [...new Set(picked.flatMap((row) => limitKeys(runOf(row))))]
  const [limitRows, thereRows, lockedRows] = yield* ask(
    lockFreeLimits(all),
    limitsByKey(all),
    lockRuns(
      picked.map((row) => row.id),
      'skip',
    ),
  )
  const mayCount = new Set(limitRows.map((row) => row.key))
  const busy = thereRows.map((row) => row.key).filter((key) => !mayCount.has(key))
  const limits = new Map(limitRows.map((row) => [row.key, row]))
  const counted = limitRows.filter((row) => valueOf(row) !== null)
  const [used] = yield* ask(usedUnits(counted))
  const units = new Map(used.map((row) => [row.key, row.units]))
  const locked = new Map(lockedRows.map((row) => [row.id, runOf(row)]))
  const full = new Set([...passOver, ...busy])
  const admitted: Run[] = []
  for (const { id } of picked) {
    const run = locked.get(id)
    if (
      !run ||
      run.status !== 'waiting' ||
      run.waitOn !== 'slot' ||
      (run.readyAt !== null && run.readyAt > tx.now)
    )
      continue
    const mine = limitUses(run)
    // one that asks for more than there ever is keeps nobody else waiting
    if (mine.some((use) => use.units > Math.max(1, valueOf(limits.get(use.key)) ?? use.units)))
      continue
    const blocked = mine.filter(
      (use) =>
        full.has(use.key) ||
        !room(valueOf(limits.get(use.key)), units.get(use.key) ?? 0, use.units),
    )
    if (blocked.length > 0) {
      // a light run behind a heavy one waits: first come, first served within a key
      for (const { key } of blocked) full.add(key)
      continue
    }
    for (const use of mine) units.set(use.key, (units.get(use.key) ?? 0) + use.units)
    const next = moved(run, 'admit', 'queued', tx.now)
    admitted.push(next)
    follows(follow, run, next)
  }
  const [written] = yield* finish(writeRuns(admitted))
  wrote(written, admitted.length, 'admit')
  return {
    count: admitted.length,
    full: [...full],
    busy,
    more: (picked.length === PICK && admitted.length > 0) || full.size > passOver.length,
    follow,
  }
}

const room = (value: number | null, used: number, wanted: number): boolean =>
  value === null || used + wanted <= value
