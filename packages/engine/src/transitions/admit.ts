// Admission: the first waiters in line for these limits get their slots. The limits of all that were picked are locked in
// key order, then the runs in id order; what is held is counted under those locks, so no admission exceeds a limit. What
// another transaction has locked is passed over.
import type { Follow } from '../model/follow.ts'
import { merge, nothing } from '../model/follow.ts'
import type { Run } from '../model/run.ts'
import { moved } from '../model/run.ts'
import { limitUses } from '../model/slots.ts'
import { follows } from '../store/consequences.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import { writeAdmitted } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish, within, wrote } from '../store/sql.ts'
import { countedLimits, firstInLine, lockFreeLimits } from '../store/tables/limits.ts'

/** Of each key, how many of its line may move: a hint of what was freed, since what is really free is counted under the locks. */
export type Freed = ReadonlyMap<string, number>

export interface Admitted {
  readonly count: number
  /** Limits found full, or locked by another transaction, whose waiters the next look passes over. */
  readonly full: readonly string[]
  /** Of these, the ones that were locked. */
  readonly busy: readonly string[]
  /** Some that were picked can be admitted neither now nor when a key has room: those behind them are to be looked at. */
  readonly stuck: boolean
  /** Whether there may be more to admit. */
  readonly more: boolean
  readonly follow: Follow
}

/** How many of a line are looked at in one transaction. */
export const PICK = 100

const NOBODY = { count: 0, busy: [], stuck: false, more: false } as const

export function* admit(tx: Tx, freed: Freed, passOver: readonly string[] = []): Steps<Admitted> {
  const follow = nothing()
  const lines = [...freed].filter(([key, most]) => most > 0 && !passOver.includes(key))
  if (lines.length === 0) return { ...NOBODY, full: passOver, follow }
  const found = yield* ask(
    ...lines.map(([key, most]) => firstInLine(key, passOver, Math.min(most, PICK))),
  )
  const picked = [...new Map(found.flat().map((row) => [row.id, row])).values()]
    .sort((a, b) => b.resumed - a.resumed || a.rank - b.rank || (a.id < b.id ? -1 : 1))
    .slice(0, PICK)
  if (picked.length === 0) return { ...NOBODY, full: passOver, follow }
  const all = [
    ...new Set(
      picked.flatMap((row) =>
        [row.limit_owner, row.limit_global, row.limit_a, row.limit_b].filter((key) => key !== null),
      ),
    ),
  ]
  const [free, lockedRows, counted] = yield* ask(
    lockFreeLimits(all),
    lockRuns(
      picked.map((row) => row.id),
      'skip',
    ),
    countedLimits(all),
  )
  const mayCount = new Set(free.map((row) => row.key))
  const busy = counted.map((row) => row.key).filter((key) => !mayCount.has(key))
  const values = new Map(counted.map((row) => [row.key, row.value]))
  const units = new Map(counted.map((row) => [row.key, row.units]))
  const locked = new Map(lockedRows.map((row) => [row.id, runOf(row)]))
  const full = new Set([...passOver, ...busy])
  const admitted: Run[] = []
  let stuck = false
  for (const { id } of picked) {
    const run = locked.get(id)
    const mine = run ? limitUses(run) : []
    if (
      !run ||
      run.status !== 'waiting' ||
      run.waitOn !== 'slot' ||
      (run.readyAt !== null && run.readyAt > tx.now) ||
      // one that asks for more than there ever is keeps nobody else waiting
      mine.some((use) => use.units > Math.max(1, values.get(use.key) ?? use.units))
    ) {
      stuck = true
      continue
    }
    const blocked = mine.filter(
      (use) =>
        full.has(use.key) || !room(values.get(use.key) ?? null, units.get(use.key) ?? 0, use.units),
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
  const [written] = yield* finish(writeAdmitted(admitted))
  wrote(written, admitted.length, 'admit')
  return {
    count: admitted.length,
    full: [...full],
    busy,
    stuck,
    more:
      (picked.length === PICK && admitted.length > 0) ||
      (full.size > passOver.length && lines.some(([key]) => !full.has(key))),
    follow,
  }
}

/** What one pass looks at. */
export interface Look {
  readonly lines: Freed
  readonly full: readonly string[]
  /** Whether it looks past those who cannot be admitted. */
  readonly wide: boolean
}

export const firstLook = (lines: Freed): Look => ({ lines, full: [], wide: false })

/** What is to be looked at after this pass; null when nobody more can be admitted. */
export const nextLook = (
  { lines, wide }: Look,
  { full, stuck, more }: Pick<Admitted, 'full' | 'stuck' | 'more'>,
): Look | null => {
  if (stuck && !wide)
    return { lines: new Map([...lines.keys()].map((key) => [key, PICK])), full, wide: true }
  return more ? { lines, full, wide } : null
}

export interface HandedOn {
  /** What was not looked at to its end. */
  readonly left: Freed
  readonly follow: Follow
}

/** Admits for what this same transaction has freed, where it has the whole store to itself. */
export function* handOn(tx: Tx, freed: Freed): Steps<HandedOn> {
  const follow = nothing()
  let look: Look | null = firstLook(freed)
  for (let passes = 0; look && passes < PASSES; passes++) {
    const pass: Admitted = yield* within(admit(tx, look.lines, look.full))
    merge(follow, pass.follow)
    look = nextLook(look, pass)
  }
  return { left: look?.lines ?? new Map(), follow }
}

/** So many passes hold up one commit; what they leave is looked at after it. */
const PASSES = 5

/** A limit without a value always has room. */
const room = (value: number | null, used: number, wanted: number): boolean =>
  value === null || used + wanted <= value
