// What befalls processes and clocks, moment by moment; in some worlds two things at once.
import type { Random } from '../../src/kernel/random.ts'
import type { Driver } from './driver.ts'
import type { Faults, Kind } from './faults.ts'
import type { Host, Hosts } from './hosts.ts'
import type { Net } from './net.ts'
import type { Orchestrator } from './orchestrator.ts'
import type { World } from './world.ts'
import { oneOf, pick } from './world.ts'

const MOMENT_MS = 200
/** How often two kinds strike at once, in worlds where they do: of each moment. */
const PAIR = 0.08
/** How often the clock jumps while a transaction waits for the store, in worlds in which it jumps. */
const JUMP_WITHIN = 0.2
/** A sweep cannot tell a jump so small from a pass that took long. */
const UNNOTICED_MS = 2_000
/** A pass may be late by as much again as its interval. */
const BETWEEN_LOOKS_MS = 2_000

/** What befalls a process as a whole. */
const STRIKES = [
  'executor.crash',
  'executor.stop',
  'executor.stall',
  'executor.freeze',
  'executor.overlap',
  'executor.forget',
  'net.partition',
  'orchestrator.restart',
  'orchestrator.stall',
  'store.read_only',
  'store.full',
  'clock.jump',
] as const satisfies readonly Kind[]
type Strike = (typeof STRIKES)[number]

export class Fate {
  /** How the store's clock was moved: when, by how much, and how far off it was before. */
  readonly #jumps: { readonly at: number; readonly ms: number; readonly before: number }[] = []
  readonly #world: World
  readonly #faults: Faults
  readonly #net: Net
  readonly #hosts: Hosts
  readonly #orchestrator: Orchestrator
  readonly #leaseMs: number
  readonly #pairs: boolean
  readonly #chance: Random
  readonly #struck: (driver: Driver) => void
  #furthest = 0

  constructor(
    world: World,
    faults: Faults,
    net: Net,
    hosts: Hosts,
    orchestrator: Orchestrator,
    leaseMs: number,
    pairs: boolean,
    struck: (driver: Driver) => void,
  ) {
    this.#world = world
    this.#faults = faults
    this.#net = net
    this.#hosts = hosts
    this.#orchestrator = orchestrator
    this.#leaseMs = leaseMs
    this.#pairs = pairs
    this.#chance = world.chance('pairs')
    this.#struck = struck
  }

  start(): void {
    if (this.#faults.hits('hub.silent')) this.#orchestrator.silent = true
    this.#next()
  }

  #next(): void {
    this.#world.at(this.#world.now + MOMENT_MS, null, () => {
      if (this.#faults.over) return
      this.#moment()
      this.#next()
    })
  }

  #moment(): void {
    for (const kind of STRIKES)
      if (this.#faults.has(kind)) this.#at(kind, (inFlight) => this.#faults.hits(kind, inFlight))
    if (!this.#pairs || this.#chance.next() >= PAIR) return
    const first = oneOf(this.#chance, STRIKES)
    const second = oneOf(
      this.#chance,
      STRIKES.filter((kind) => kind !== first),
    )
    for (const kind of [first, second])
      this.#at(kind, (inFlight) => this.#faults.strikes(kind, inFlight))
  }

  /** Finds whom it would befall, and lets it where it strikes. */
  #at(kind: Strike, strikes: (inFlight: boolean) => boolean): void {
    const ofHost = kind.startsWith('executor.') || kind === 'net.partition'
    const host = ofHost ? this.#someHost(kind) : null
    if (ofHost ? host === null : !this.#orchestrator.up) return
    if (strikes(this.#counts(kind, host))) this.#befall(kind, host)
  }

  #someHost(kind: Strike): Host | null {
    const chance = this.#faults.chance(kind)
    const alive = this.#hosts.all.filter((host) => host.driver?.node.alive)
    // mostly one that drives something, since nothing is lost with the others
    const among = pick(chance, 4) === 0 ? alive : alive.filter((host) => host.driver?.busy)
    return among[pick(chance, Math.max(1, among.length))] ?? null
  }

  /** Whether it counts at once: something is held or in flight there. The rest counts when it is met. */
  #counts(kind: Strike, host: Host | null): boolean {
    if (kind === 'store.read_only' || kind === 'store.full') return false
    if (kind === 'net.partition' || kind === 'executor.forget') return false
    return host === null ? this.#net.inFlight > 0 : host.driver?.busy === true
  }

  #befall(kind: Strike, host: Host | null): void {
    const orchestrator = this.#orchestrator
    const leaseMs = this.#leaseMs
    const now = this.#world.now
    const draw = (n: number): number => pick(this.#faults.chance(kind), n)
    const driver = host?.driver
    switch (kind) {
      case 'orchestrator.restart':
        return orchestrator.crash(200 + draw(2_500))
      case 'orchestrator.stall':
        if (orchestrator.node) orchestrator.node.stalledUntil = now + 300 + draw(4_000)
        return
      case 'store.read_only':
        return orchestrator.refuse('store_read_only', 300 + draw(3_000))
      case 'store.full':
        return orchestrator.refuse('store_full', 300 + draw(3_000))
      case 'clock.jump':
        return this.#jump()
      default:
    }
    if (!host || !driver?.node.alive) return
    this.#struck(driver)
    switch (kind) {
      case 'executor.crash':
        return this.#hosts.end(driver, draw(2) === 0 ? 3_000 + draw(6_000) : 100 + draw(2_000))
      case 'executor.stop':
        return this.#hosts.stop(host, 500 + draw(2_000), 100 + draw(1_000))
      case 'executor.stall':
        driver.node.stalledUntil = now + 200 + draw(leaseMs / 2)
        return
      case 'executor.freeze':
        driver.node.stalledUntil = now + leaseMs * 1.2 + draw(leaseMs)
        return
      case 'executor.overlap':
        return this.#hosts.overlap(host, 500 + draw(5_000))
      case 'executor.forget':
        if (driver.forget()) this.#faults.count('executor.forget')
        return
      case 'net.partition': {
        const ms = 300 + draw(leaseMs * 2.2)
        const way = draw(3)
        return this.#net.partition(host.name, way === 1 ? 0 : ms, way === 2 ? 0 : ms)
      }
    }
  }

  /** What was decided before a transaction meets another clock in it. */
  waits(ms: number): void {
    const kind = 'clock.jump'
    if (!this.#faults.has(kind) || this.#faults.chance(kind).next() >= JUMP_WITHIN) return
    this.#world.at(this.#world.now + ms / 2, null, () => {
      if (!this.#faults.over && this.#faults.strikes(kind, true)) this.#jump()
    })
  }

  #jump(): void {
    const chance = this.#faults.chance('clock.jump')
    const far = [150, 1_200, 5_000, 60_000, 3_600_000][pick(chance, 5)] ?? 150
    const ms = Math.round(far * (0.5 + chance.next())) * (chance.next() < 0.5 ? -1 : 1)
    this.#by(ms)
  }

  #by(ms: number): void {
    const { clock } = this.#orchestrator
    this.#jumps.push({ at: this.#world.now, ms, before: clock.offset })
    clock.offset += ms
    this.#world.say(() => `the store's clock jumps by ${ms} ms`)
    this.#furthest = Math.max(this.#furthest, clock.offset)
  }

  /**
   * By how much the store's clock has gone ahead since shortly before then in jumps that nobody could notice. One that was
   * far off and came back between two looks of a sweep is beyond what a lease on that clock can bear.
   */
  unnoticedSince(at: number): number {
    const { upSince, sawJump } = this.#orchestrator
    // what came before the server was up it has not seen, and it has counted every lease anew since; so it has where it saw one
    const from = Math.max(at - BETWEEN_LOOKS_MS, upSince, Math.min(at, sawJump))
    const since = this.#jumps.filter((jump) => jump.at >= from)
    const small = since.reduce((sum, { ms }) => (ms > 0 && ms <= UNNOTICED_MS ? sum + ms : sum), 0)
    const net =
      this.#orchestrator.clock.offset - (since[0]?.before ?? this.#orchestrator.clock.offset)
    const far = since.some(({ ms }) => Math.abs(ms) > UNNOTICED_MS)
    if (Math.abs(net) > UNNOTICED_MS) return small
    return far ? Number.POSITIVE_INFINITY : Math.max(small, net)
  }

  /** Whether the store's clock has been moved at all; where two strike at once it may be, though it is not drawn. */
  get jumped(): boolean {
    return this.#jumps.some(({ ms }) => ms !== 0)
  }

  /** By how much the store's clock has been ahead at most. */
  get furthest(): number {
    return this.#furthest
  }

  /** Puts the store's clock where it was furthest ahead, so that instants of that time come. */
  settle(): void {
    this.#by(this.#furthest - this.#orchestrator.clock.offset)
  }
}
