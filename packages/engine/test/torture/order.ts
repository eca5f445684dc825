// In which order what strikes whom, for how long and how soon after the one before: all of it from the seed. Each kind comes
// once in every round, so that none is left out for long.
import { seededRandom } from '../../src/kernel/random.ts'

export interface Strike<K extends string = string> {
  readonly kind: K
  /** Which of those that it can strike, from 0 to 1. */
  readonly who: number
  /** For how long, from 0 to 1. */
  readonly long: number
  /** One of several ways, from 0 to 1. */
  readonly how: number
  /** Since the one before. */
  readonly afterMs: number
}

export function* orderOf<K extends string>(
  seed: number,
  kinds: readonly K[],
  [least, most]: readonly [number, number],
): Generator<Strike<K>, never> {
  const chance = seededRandom(seed)
  for (;;) {
    const round = [...kinds]
    while (round.length > 0) {
      const [kind] = round.splice(Math.floor(chance.next() * round.length), 1) as [K]
      const [who, long, how] = [chance.next(), chance.next(), chance.next()]
      yield { kind, who, long, how, afterMs: Math.round(least + chance.next() * (most - least)) }
    }
  }
}

/** One of a list by a number from 0 to 1. */
export const oneOf = <T>(items: readonly T[], at: number): T => {
  const item = items[Math.min(items.length - 1, Math.floor(at * items.length))]
  if (item === undefined) throw new Error('there is nobody to strike')
  return item
}
