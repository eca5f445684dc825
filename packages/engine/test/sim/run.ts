// Many worlds until so many faults have been counted, or something does not hold. Worlds are played in chunks by their
// index, and a batch ends with a chunk: how many players share the chunks changes nothing but the time it takes.
import { seedOf } from '../../src/kernel/random.ts'
import type { Kind } from './faults.ts'
import type { Plan } from './play.ts'
import { drawPlan, play } from './play.ts'
import type { Point } from './sometimes.ts'

/** What came of some worlds; it goes from one process to another as JSON. */
export interface Tally {
  readonly worlds: number
  /** Worlds without faults; such as let two strike at once, and such in which two did. */
  readonly calm: number
  readonly pairs: number
  readonly together: number
  readonly faults: number
  /** Of those, delays and duplicates. */
  readonly soft: number
  readonly byKind: Readonly<Partial<Record<Kind, number>>>
  /** How often each point was come to. */
  readonly points: Readonly<Partial<Record<Point, number>>>
  readonly commits: number
  readonly completed: number
  readonly virtualMs: number
  /** Of the histories of all worlds. */
  readonly hash: string
  readonly failed: {
    readonly world: number
    readonly rule: string
    readonly message: string
  } | null
}

/** Plays one chunk of a seed's worlds, here or in another process. */
export type Player = (seed: number, chunk: number) => Promise<Tally>

const CHUNK = 2

const nothing: Tally = {
  worlds: 0,
  calm: 0,
  pairs: 0,
  together: 0,
  faults: 0,
  soft: 0,
  byKind: {},
  points: {},
  commits: 0,
  completed: 0,
  virtualMs: 0,
  hash: '',
  failed: null,
}

export const planOf = (seed: number, world: number): Plan => drawPlan(seedOf(`${seed}/${world}`))

const played = async (seed: number, world: number): Promise<Tally> => {
  const plan = planOf(seed, world)
  const verdict = await play(plan)
  const { rule, message } = verdict
  return {
    worlds: 1,
    calm: Object.keys(plan.rates).length === 0 ? 1 : 0,
    pairs: plan.pairs ? 1 : 0,
    together: verdict.together > 0 ? 1 : 0,
    faults: verdict.faults,
    soft: verdict.soft,
    byKind: Object.fromEntries(verdict.byKind),
    points: Object.fromEntries(verdict.sometimes),
    commits: verdict.commits,
    completed: verdict.completed,
    virtualMs: verdict.virtualMs,
    hash: verdict.hash,
    failed: rule === null ? null : { world, rule, message: message ?? rule },
  }
}

type Counts<K extends string> = Readonly<Partial<Record<K, number>>>

const summed = <K extends string>(a: Counts<K>, b: Counts<K>): Counts<K> => {
  const sum: Partial<Record<K, number>> = { ...a }
  for (const key of Object.keys(b) as K[]) sum[key] = (sum[key] ?? 0) + (b[key] ?? 0)
  return sum
}

const joined = (a: Tally, b: Tally): Tally => ({
  worlds: a.worlds + b.worlds,
  calm: a.calm + b.calm,
  pairs: a.pairs + b.pairs,
  together: a.together + b.together,
  faults: a.faults + b.faults,
  soft: a.soft + b.soft,
  byKind: summed(a.byKind, b.byKind),
  points: summed(a.points, b.points),
  commits: a.commits + b.commits,
  completed: a.completed + b.completed,
  virtualMs: a.virtualMs + b.virtualMs,
  hash: seedOf(a.hash + b.hash)
    .toString(16)
    .padStart(8, '0'),
  failed: a.failed ?? b.failed,
})

/** The worlds of one chunk, in this process. */
export const playChunk: Player = async (seed, chunk) => {
  let sum = nothing
  for (let i = 0; i < CHUNK && sum.failed === null; i++)
    sum = joined(sum, await played(seed, chunk * CHUNK + i))
  return sum
}

/** Plays the worlds of a seed, shared among these players; `seen` is told of the sum after each chunk. */
export const run = async (
  seed: number,
  faults: number,
  players: readonly Player[] = [playChunk],
  seen: (sum: Tally) => void = () => undefined,
): Promise<Tally> => {
  const done = new Map<number, Tally>()
  let given = 0
  let merged = 0
  let sum = nothing
  const isOver = (): boolean => sum.failed !== null || sum.faults >= faults
  const shared = players.map(async (player) => {
    while (!isOver()) {
      const chunk = given++
      done.set(chunk, await player(seed, chunk))
      for (let next = done.get(merged); next && !isOver(); next = done.get(merged)) {
        done.delete(merged)
        merged += 1
        sum = joined(sum, next)
        seen(sum)
      }
    }
  })
  await Promise.all(shared)
  return sum
}
