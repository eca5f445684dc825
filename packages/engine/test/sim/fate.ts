// What befalls processes and clocks, moment by moment.
import type { Faults } from './faults.ts'
import type { Driver } from './driver.ts'
import type { Host, Hosts } from './hosts.ts'
import type { Net } from './net.ts'
import type { Orchestrator } from './orchestrator.ts'
import type { World } from './world.ts'
import { pick } from './world.ts'

const MOMENT_MS = 200
/** A sweep cannot tell a jump so small from a pass that took long. */
const UNNOTICED_MS = 2_000
/** A pass may be late by as much again as its interval. */
const BETWEEN_LOOKS_MS = 2_000

export class Fate {
  /** How the store's clock was moved: when, by how much, and how far off it was before. */
  readonly #jumps: { readonly at: number; readonly ms: number; readonly before: number }[] = []
  readonly #world: World
  readonly #faults: Faults
  readonly #net: Net
  readonly #hosts: Hosts
  readonly #orchestrator: Orchestrator
  readonly #leaseMs: number
  #furthest = 0

  constructor(
    world: World,
    faults: Faults,
    net: Net,
    hosts: Hosts,
    orchestrator: Orchestrator,
    leaseMs: number,
  ) {
    this.#world = world
    this.#faults = faults
    this.#net = net
    this.#hosts = hosts
    this.#orchestrator = orchestrator
    this.#leaseMs = leaseMs
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
    const faults = this.#faults
    const orchestrator = this.#orchestrator
    const now = this.#world.now
    const busy = this.#net.inFlight > 0
    const draw = (kind: Parameters<Faults['chance']>[0], n: number): number =>
      pick(faults.chance(kind), n)
    this.#host('executor.crash', (_host, driver) =>
      this.#hosts.end(
        driver,
        100 + draw('executor.crash', draw('executor.crash', 4) === 0 ? 9_000 : 2_000),
      ),
    )
    this.#host('executor.stop', (host) =>
      this.#hosts.stop(
        host,
        500 + draw('executor.stop', 2_000),
        100 + draw('executor.stop', 1_000),
      ),
    )
    this.#host('executor.stall', (_host, driver) => {
      driver.node.stalledUntil = now + 200 + draw('executor.stall', this.#leaseMs / 2)
    })
    this.#host('executor.freeze', (_host, driver) => {
      driver.node.stalledUntil = now + this.#leaseMs * 1.2 + draw('executor.freeze', this.#leaseMs)
    })
    this.#host('executor.overlap', (host) =>
      this.#hosts.overlap(host, 500 + draw('executor.overlap', 5_000)),
    )
    this.#host(
      'executor.forget',
      (_host, driver) => {
        if (driver.forget()) this.#faults.count('executor.forget')
      },
      false,
    )
    this.#host(
      'net.partition',
      (host) => {
        const ms = 300 + draw('net.partition', this.#leaseMs * 1.5)
        const way = draw('net.partition', 3)
        this.#net.partition(host.name, way === 1 ? 0 : ms, way === 2 ? 0 : ms)
      },
      false,
    )
    if (orchestrator.up) {
      if (faults.hits('orchestrator.restart', busy))
        orchestrator.crash(200 + draw('orchestrator.restart', 2_500))
      else if (faults.hits('orchestrator.stall', busy) && orchestrator.node)
        orchestrator.node.stalledUntil = now + 300 + draw('orchestrator.stall', 4_000)
      if (faults.hits('store.read_only', false))
        orchestrator.refuse('store_read_only', 300 + draw('store.read_only', 3_000))
      if (faults.hits('store.full', false))
        orchestrator.refuse('store_full', 300 + draw('store.full', 3_000))
      if (faults.hits('clock.jump', busy)) this.#jump()
    }
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
    const since = this.#jumps.filter((jump) => jump.at >= at - BETWEEN_LOOKS_MS)
    const small = since.reduce((sum, { ms }) => (ms > 0 && ms <= UNNOTICED_MS ? sum + ms : sum), 0)
    const net =
      this.#orchestrator.clock.offset - (since[0]?.before ?? this.#orchestrator.clock.offset)
    const far = since.some(({ ms }) => Math.abs(ms) > UNNOTICED_MS)
    if (Math.abs(net) > UNNOTICED_MS) return small
    return far ? Number.POSITIVE_INFINITY : Math.max(small, net)
  }

  /** Puts the store's clock where it was furthest ahead, so that instants of that time come. */
  settle(): void {
    this.#by(this.#furthest - this.#orchestrator.clock.offset)
  }

  #host(
    kind: Parameters<Faults['chance']>[0],
    act: (host: Host, driver: Driver) => void,
    counts = true,
  ): void {
    if (!this.#faults.has(kind)) return
    const alive = this.#hosts.all.filter((host) => host.driver?.node.alive)
    const host = alive[pick(this.#faults.chance(kind), Math.max(1, alive.length))]
    if (!host?.driver) return
    if (this.#faults.hits(kind, counts && host.driver.busy)) act(host, host.driver)
  }
}
