// Which faults a world has, how strongly, and what counts. A fault counts when it hit an operation in flight or something
// held; delays and duplicates count for half of all at most. Each kind draws from a chance of its own, so that a kind
// that is off, or one fault that is left out, moves no other kind.
import type { Random } from '../../src/kernel/random.ts'
import type { World } from './world.ts'
import { oneOf, pick } from './world.ts'

export const kinds = [
  'store.error_before',
  'store.error_after',
  'store.latency',
  'store.read_only',
  'store.full',
  'orchestrator.crash_before',
  'orchestrator.crash_after',
  'orchestrator.restart',
  'orchestrator.stall',
  'net.drop_request',
  'net.drop_answer',
  'net.drop_push',
  'net.delay',
  'net.duplicate',
  'net.partition',
  'executor.crash',
  'executor.stop',
  'executor.stall',
  'executor.freeze',
  'executor.overlap',
  'executor.forget',
  'clock.jump',
  'clock.offset',
  'hub.silent',
  'people.cancel',
  'people.take_from',
  'people.repeat',
] as const
export type Kind = (typeof kinds)[number]

/** Kinds that count for half of all faults at most. */
const soft: ReadonlySet<Kind> = new Set([
  'store.latency',
  'net.delay',
  'net.duplicate',
  'people.repeat',
])

/** Chance of each kind where it is on: of each operation, or of each moment of fate for what befalls processes. */
const usual: Readonly<Record<Kind, number>> = {
  'store.error_before': 0.2,
  'store.error_after': 0.2,
  'store.latency': 0.1,
  'store.read_only': 0.015,
  'store.full': 0.015,
  'orchestrator.crash_before': 0.008,
  'orchestrator.crash_after': 0.012,
  'orchestrator.restart': 0.025,
  'orchestrator.stall': 0.02,
  'net.drop_request': 0.2,
  'net.drop_answer': 0.25,
  'net.drop_push': 0.5,
  'net.delay': 0.15,
  'net.duplicate': 0.2,
  'net.partition': 0.03,
  'executor.crash': 0.05,
  'executor.stop': 0.04,
  'executor.stall': 0.05,
  'executor.freeze': 0.035,
  'executor.overlap': 0.025,
  'executor.forget': 0.03,
  'clock.jump': 0.03,
  'clock.offset': 0.5,
  'hub.silent': 1,
  'people.cancel': 0.15,
  'people.take_from': 0.25,
  'people.repeat': 0.3,
}

/** Kinds that strike operations hard: a world with faults has most of them. */
const dense: readonly Kind[] = [
  'store.error_before',
  'store.error_after',
  'net.drop_request',
  'net.drop_answer',
]

export type Rates = Partial<Record<Kind, number>>

/** One world in ten has no faults; a third has two kinds at once at a high rate; the rest draws which are on. */
export const drawRates = (random: Random): Rates => {
  const roll = random.next()
  if (roll < 0.1) return {}
  const rates: Rates = {}
  const count = 6 + pick(random, 12)
  const strength = 0.5 + 0.8 * random.next()
  for (let i = 0; i < count; i++) {
    const kind = oneOf(random, kinds)
    rates[kind] = usual[kind] * strength * (0.5 + random.next())
  }
  for (const kind of dense) if (random.next() < 0.8) rates[kind] ??= 0.05 + 0.25 * random.next()
  if (roll < 0.43)
    for (let i = 0; i < 2; i++) {
      const kind = oneOf(random, kinds)
      rates[kind] = Math.min(0.45, usual[kind] * 2)
    }
  return rates
}

export class Faults {
  /** No faults any more: the world heals. */
  over = false
  counted = 0
  drawn = 0
  readonly byKind = new Map<Kind, number>()
  readonly #world: World
  readonly #rates: Rates
  readonly #skip: ReadonlySet<number>
  readonly #chances = new Map<Kind, Random>()
  #soft = 0

  constructor(world: World, rates: Rates, skip: ReadonlySet<number>) {
    this.#world = world
    this.#rates = rates
    this.#skip = skip
  }

  has(kind: Kind): boolean {
    return !this.over && this.#rates[kind] !== undefined
  }

  chance(kind: Kind): Random {
    let chance = this.#chances.get(kind)
    if (!chance) this.#chances.set(kind, (chance = this.#world.chance(`fault ${kind}`)))
    return chance
  }

  /** Whether this fault strikes here; counted at once where something is in flight or held. */
  hits(kind: Kind, inFlight = true): boolean {
    const rate = this.#rates[kind]
    if (rate === undefined || this.over) return false
    if (this.chance(kind).next() >= rate) return false
    return this.#strikes(kind, inFlight)
  }

  #strikes(kind: Kind, inFlight: boolean): boolean {
    this.drawn += 1
    if (this.#skip.has(this.drawn)) return false
    const index = this.drawn
    this.#world.say(() => `fault ${index}: ${kind}`)
    if (inFlight) this.count(kind)
    return true
  }

  count(kind: Kind): void {
    this.byKind.set(kind, (this.byKind.get(kind) ?? 0) + 1)
    if (soft.has(kind)) {
      if (this.#soft >= this.counted - this.#soft) return
      this.#soft += 1
    }
    this.counted += 1
  }
}
