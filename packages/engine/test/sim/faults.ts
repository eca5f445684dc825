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
/** What befalls processes of isolated attempts, in worlds that have some; drawn apart, so that it moves no other. */
export const processKinds = [
  'process.kill',
  'process.hang',
  'process.deaf',
  'process.leaves',
] as const
/** What befalls real executors in some worlds; drawn apart too. */
export const coordinatorKinds = ['net.hang', 'executor.unsaved', 'context.change'] as const
export type Kind =
  (typeof kinds)[number] | (typeof processKinds)[number] | (typeof coordinatorKinds)[number]

/** Kinds that count for half of all faults at most. */
const soft: ReadonlySet<Kind> = new Set([
  'store.latency',
  'net.delay',
  'net.duplicate',
  'people.repeat',
])

/** Chance of each kind where it is on: of each operation, or of each moment of fate for what befalls processes. */
const usual: Readonly<Record<(typeof kinds)[number], number>> = {
  'store.error_before': 0.3,
  'store.error_after': 0.3,
  'store.latency': 0.12,
  'store.read_only': 0.015,
  'store.full': 0.015,
  'orchestrator.crash_before': 0.008,
  'orchestrator.crash_after': 0.012,
  'orchestrator.restart': 0.025,
  'orchestrator.stall': 0.02,
  'net.drop_request': 0.35,
  'net.drop_answer': 0.3,
  'net.drop_push': 0.5,
  'net.delay': 0.2,
  'net.duplicate': 0.25,
  'net.partition': 0.035,
  'executor.crash': 0.05,
  'executor.stop': 0.04,
  'executor.stall': 0.06,
  'executor.freeze': 0.04,
  'executor.overlap': 0.03,
  'executor.forget': 0.03,
  'clock.jump': 0.03,
  'clock.offset': 0.5,
  'hub.silent': 1,
  'people.cancel': 0.15,
  'people.take_from': 0.25,
  'people.repeat': 0.3,
}

/** Kinds that strike operations, which a world with faults has most of, with their highest chance in calm weather. */
const dense: readonly (readonly [(typeof kinds)[number], number])[] = [
  ['store.error_before', 0.32],
  ['store.error_after', 0.28],
  ['net.drop_request', 0.32],
  ['net.drop_answer', 0.32],
  ['net.drop_push', 0.5],
  ['net.delay', 0.35],
  ['net.duplicate', 0.25],
  ['store.latency', 0.12],
]

/** Kinds that befall a process as a whole, or people: rare beside those, and worth more. */
const heavy: readonly (typeof kinds)[number][] = kinds.filter((kind) =>
  /^(executor|orchestrator|clock|people)|partition|read_only|full/.test(kind),
)

export type Rates = Partial<Record<Kind, number>>

/** What befalls a world: which kinds and how strongly, and whether two strike at once now and then. */
export interface Weather {
  readonly rates: Rates
  readonly pairs: boolean
  /** What strikes operations comes in gusts: between them work gets far enough for something to be lost. */
  readonly gusts: boolean
}

const isDense: ReadonlySet<Kind> = new Set(dense.map(([kind]) => kind))
/** What is left of the chance of those kinds between two gusts. */
const LULL = 0.2

/** One world in eight has no faults, so that a batch of few worlds still has its one in ten; in more than a third two strike at once; each draws which are on. */
export const drawWeather = (random: Random): Weather => {
  const roll = random.next()
  if (roll < 0.12) return { rates: {}, pairs: false, gusts: false }
  const rates: Rates = {}
  const count = 6 + pick(random, 12)
  const strength = 0.5 + 0.8 * random.next()
  for (let i = 0; i < count; i++) {
    const kind = oneOf(random, kinds)
    rates[kind] = usual[kind] * strength * (0.5 + random.next())
  }
  for (let i = 3 + pick(random, 7); i > 0; i--) {
    const kind = oneOf(random, heavy)
    rates[kind] ??= usual[kind] * (0.5 + random.next())
  }
  const storm = random.next() < 0.25 ? 0.3 + 0.4 * random.next() : 1 + 0.6 * random.next()
  for (const [kind, most] of dense)
    if (random.next() < 0.85) rates[kind] = storm * most * (0.4 + 0.6 * random.next())
  return { rates, pairs: roll < 0.46, gusts: random.next() < 0.6 }
}

/** Rates of what befalls processes, in a world that has faults at all. */
export const drawProcessFaults = (random: Random): Rates =>
  Object.fromEntries(
    processKinds.flatMap((kind) =>
      random.next() < 0.7 ? [[kind, 0.05 + 0.2 * random.next()]] : [],
    ),
  )

/** Rates of what befalls real executors, in a world that has faults at all. */
export const drawCoordinatorFaults = (random: Random): Rates => ({
  'net.hang': 0.02 + 0.1 * random.next(),
  'executor.unsaved': 0.02 + 0.1 * random.next(),
  'context.change': 0.05 + 0.2 * random.next(),
})

/** What is numbered: a request to a server that is up, and what is asked of the store. */
export type Called = 'net' | 'write' | 'read'
/** What befalls such a call: whoever makes it dies before it or after it, or does not hear what came of it. */
export const HOWS = ['before', 'after', 'unknown'] as const
export type How = (typeof HOWS)[number]
/** The ways that differ: a read leaves nothing behind, so that a death after it is one before it. */
export const howsOf = (call: Called): readonly How[] =>
  call === 'read' ? ['before', 'unknown'] : HOWS
export interface Strike {
  /** Calls of the network and of the store are numbered from 1 in their order, until faults are over. */
  readonly call: number
  readonly how: How
}

export class Faults {
  /** No faults any more: the world heals. */
  over = false
  counted = 0
  drawn = 0
  /** Of those, delays and duplicates. */
  soft = 0
  /** How often two kinds struck at the same instant, neither of them a delay or a duplicate. */
  together = 0
  /** Calls that have been numbered. */
  readonly calls: Called[] = []
  readonly #strikes: ReadonlyMap<number, How>
  readonly byKind = new Map<Kind, number>()
  readonly #world: World
  readonly #rates: Rates
  readonly #skip: ReadonlySet<number>
  readonly #gusts: Random | null
  #lull = false
  #turnsAt = 0
  readonly #chances = new Map<Kind, Random>()
  #last: { readonly kind: Kind; readonly at: number } | null = null

  constructor(
    world: World,
    { rates, gusts }: Omit<Weather, 'pairs'>,
    skip: ReadonlySet<number>,
    strikes: readonly Strike[] = [],
  ) {
    this.#world = world
    this.#strikes = new Map(strikes.map(({ call, how }) => [call, how]))
    this.#rates = rates
    this.#skip = skip
    this.#gusts = gusts ? world.chance('gusts') : null
  }

  #isLull(): boolean {
    if (this.#gusts === null) return false
    while (this.#turnsAt <= this.#world.now) {
      this.#lull = !this.#lull
      this.#turnsAt += this.#lull
        ? 1_200 + pick(this.#gusts, 1_800)
        : 3_000 + pick(this.#gusts, 4_500)
    }
    return this.#lull
  }

  /** Numbers a call, and says what is to befall it; whoever sees to that counts it when it does. */
  next(of: Called): How | null {
    if (this.over) return null
    this.calls.push(of)
    const number = this.calls.length
    const how = this.#strikes.get(number)
    if (how === undefined) return null
    this.#world.say(() => `call ${number}: ${of}, ${how}`)
    return how
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
    const isLess = isDense.has(kind) && this.#isLull()
    if (this.chance(kind).next() >= (isLess ? rate * LULL : rate)) return false
    return this.strikes(kind, inFlight)
  }

  /** A fault that is due here strikes, unless it is left out. */
  strikes(kind: Kind, inFlight: boolean): boolean {
    this.drawn += 1
    if (this.#skip.has(this.drawn)) return false
    const index = this.drawn
    this.#world.say(() => `fault ${index}: ${kind}`)
    if (inFlight) this.count(kind)
    return true
  }

  count(kind: Kind): void {
    if (soft.has(kind)) {
      if (this.soft >= this.counted - this.soft) return
      this.soft += 1
    } else {
      const { now } = this.#world
      if (this.#last?.at === now && this.#last.kind !== kind) this.together += 1
      this.#last = { kind, at: now }
    }
    this.byKind.set(kind, (this.byKind.get(kind) ?? 0) + 1)
    this.counted += 1
  }
}
