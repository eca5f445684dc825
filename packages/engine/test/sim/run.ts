// Many worlds, one after the other: until so many faults have been counted, or something does not hold.
import { seedOf } from '../../src/kernel/random.ts'
import type { Kind } from './faults.ts'
import type { Plan, Verdict } from './play.ts'
import { drawPlan, play } from './play.ts'
import type { Point } from './sometimes.ts'

export interface Batch {
  readonly worlds: number
  readonly faults: number
  readonly byKind: ReadonlyMap<Kind, number>
  readonly commits: number
  readonly completed: number
  readonly virtualMs: number
  readonly sometimes: ReadonlySet<Point>
  /** Of the histories of all worlds. */
  readonly hash: string
  readonly failed: { readonly world: number; readonly plan: Plan; readonly verdict: Verdict } | null
}

export const planOf = (seed: number, world: number): Plan => drawPlan(seedOf(`${seed}/${world}`))

/** Plays the worlds of a seed from this one on. */
export const run = async (
  seed: number,
  faults: number,
  from = 0,
  seen: (world: number, verdict: Verdict) => void = () => undefined,
): Promise<Batch> => {
  const byKind = new Map<Kind, number>()
  const sometimes = new Set<Point>()
  let counted = 0
  let commits = 0
  let completed = 0
  let virtualMs = 0
  let world = from
  let hash = ''
  let failed: Batch['failed'] = null
  while (counted < faults && failed === null) {
    const plan = planOf(seed, world)
    const verdict = await play(plan)
    seen(world, verdict)
    counted += verdict.faults
    commits += verdict.commits
    completed += verdict.completed
    virtualMs += verdict.virtualMs
    for (const [kind, count] of verdict.byKind) byKind.set(kind, (byKind.get(kind) ?? 0) + count)
    for (const point of verdict.sometimes) sometimes.add(point)
    hash = seedOf(hash + verdict.hash).toString(16)
    if (verdict.rule !== null) failed = { world, plan, verdict }
    world += 1
  }
  return {
    worlds: world - from,
    faults: counted,
    byKind,
    commits,
    completed,
    virtualMs,
    sometimes,
    hash,
    failed,
  }
}
