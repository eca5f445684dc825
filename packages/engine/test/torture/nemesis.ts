// Strikes in the order of the seed, several at once where they do not get into each other's hands, until it is told to stop.
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../src/kernel/json.ts'
import { orderOf } from './order.ts'
import type { StrikeKind, Victims } from './strikes.ts'
import { handsOn, strikeKinds, strikes } from './strikes.ts'

export interface Struck {
  readonly kind: StrikeKind
  readonly hits: number
  /** It met nobody, or could not be done. */
  readonly misses: number
}

export interface Nemesis {
  readonly struck: readonly Struck[]
  /** What strikes now. */
  readonly now: readonly StrikeKind[]
  /** Why strikes could not be done: a fault of the torture. */
  readonly faults: readonly string[]
  /** Strikes no more, and returns when all has healed. */
  stop(): Promise<void>
}

const AT_ONCE = 3

export const startNemesis = (
  seed: number,
  pace: readonly [number, number],
  victims: Victims,
  /** By default all that there are for such a database. */
  kinds: readonly StrikeKind[] = strikeKinds('nodes' in victims.postgres),
): Nemesis => {
  const hits = new Map<StrikeKind, number>()
  const misses = new Map<StrikeKind, number>()
  const now = new Map<Promise<void>, StrikeKind>()
  const hands = new Map<string, Promise<void>>()
  const faults: string[] = []
  const stopping = new AbortController()
  const count = (counts: Map<StrikeKind, number>, kind: StrikeKind): void =>
    void counts.set(kind, (counts.get(kind) ?? 0) + 1)

  const strikeOn = async (): Promise<void> => {
    for (const strike of orderOf(seed, kinds, pace)) {
      await pause(strike.afterMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      const { kind } = strike
      const busy = handsOn(kind)
      // the order stays that of the seed: the next one waits for this one
      if (busy !== null) await hands.get(busy)
      while (now.size >= AT_ONCE) await Promise.race(now.keys())
      if (stopping.signal.aborted) return
      const done = strikes[kind](victims, strike)
        .then(
          (hit) => count(hit ? hits : misses, kind),
          (error: unknown) => {
            count(misses, kind)
            faults.push(`${kind}: ${messageOf(error)}`)
          },
        )
        .finally(() => now.delete(done))
      now.set(done, kind)
      if (busy !== null) hands.set(busy, done)
    }
  }
  const striking = strikeOn()
  return {
    get struck() {
      return kinds.map((kind) => ({
        kind,
        hits: hits.get(kind) ?? 0,
        misses: misses.get(kind) ?? 0,
      }))
    },
    get now() {
      return [...now.values()]
    },
    faults,
    async stop() {
      stopping.abort()
      await striking
      await Promise.all(now.keys())
    },
  }
}
