// Chance, as a port. The seeded one gives the same numbers for the same seed on every machine.
import { randomFillSync } from 'node:crypto'
import { digest } from './digest.ts'

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

/**
 * The n-th draw of 128 bits of what `seed` names, the same everywhere: SHA-256 of seed and number, so that draws of two seeds
 * meet no more often than chance would have it.
 */
export const drawOf = (seed: string, n: number): Uint8Array =>
  digest(`${seed}#${n}`).subarray(0, 16)

/** A number in [0, 1) from such a draw: its first 53 bits. */
export const numberOf = (draw: Uint8Array): number => {
  const view = new DataView(draw.buffer, draw.byteOffset, draw.byteLength)
  return (view.getUint32(0) * 2 ** 21 + (view.getUint32(4) >>> 11)) / 2 ** 53
}

/** A UUID of version 4 in form from such a draw (RFC 9562, 5.4). */
export const uuidOf = (draw: Uint8Array): string => {
  const bytes = Uint8Array.from(draw)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Buffer.from(bytes).toString('hex')
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => hex.slice(from, to))
    .join('-')
}

/** `ms` moved by up to a fifth either way, so that many callers do not come back at once. */
export const jittered = (random: Random, ms: number): number =>
  Math.round(ms * (0.8 + 0.4 * random.next()))
