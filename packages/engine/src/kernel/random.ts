// Chance, as a port. The seeded one gives the same numbers for the same seed on every machine.
import { randomFillSync } from 'node:crypto'

export interface Random {
  /** A number in [0, 1). */
  next(): number
}

const pool = new Uint32Array(2048)
let at = pool.length

/** Chance from the operating system, drawn 2,048 numbers at a time since a draw costs microseconds. */
export const systemRandom: Random = {
  next() {
    if (at === pool.length) {
      randomFillSync(pool)
      at = 0
    }
    return (pool[at++] ?? 0) / 2 ** 32
  },
}

/** A 32-bit number from a text (FNV-1a), to seed from names. */
export const seedOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i)
    hash = Math.imul(hash, 0x01000193)
  }
  return hash >>> 0
}

/** The same numbers for the same seed: mulberry32, by Tommy Ettinger (public domain). */
export const seededRandom = (seed: number): Random => {
  let state = seed >>> 0
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
    },
  }
}

/** `ms` moved by up to a fifth either way, so that many callers do not come back at once. */
export const jittered = (random: Random, ms: number): number =>
  Math.round(ms * (0.8 + 0.4 * random.next()))
