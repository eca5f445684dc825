// The machines that executors run on: they start them, lose them, stop them politely, and report what they saw end.
import { LeaseholdError } from '../../src/kernel/errors.ts'
import { Contexts } from './contexts.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { Faults } from './faults.ts'
import { httpPort } from './http.ts'
import { Machine } from './machine.ts'
import type { Net } from './net.ts'
import { netPort } from './net.ts'
import type { Driver } from './driver.ts'
import { RealExecutor } from './real-executor.ts'
import type { Hooks, Setup } from './scripted-executor.ts'
import { ScriptedExecutor } from './scripted-executor.ts'
import type { Wires } from './wires.ts'
import type { Clock, Node, World } from './world.ts'
import { pick } from './world.ts'

export interface Host {
  readonly name: string
  readonly clock: Clock
  readonly machine: Machine
  driver: Driver | null
}

export class Hosts {
  readonly all: Host[] = []
  /** Processes beside those that their hosts know: an older life that has not ended yet. */
  readonly older = new Set<Driver>()
  /** Sessions whose process has ended, with the true time of it. */
  readonly dead = new Map<string, number>()
  readonly #world: World
  readonly #net: Net
  readonly #hooks: Omit<Hooks, 'die'>
  readonly #launcher: Node
  readonly #make: (host: Host, node: Node, hooks: Hooks) => Driver

  constructor(
    world: World,
    net: Net,
    faults: Faults,
    setup: Omit<Setup, 'without'>,
    hooks: Omit<Hooks, 'die'>,
    count: number,
    kind: {
      readonly real: boolean
      readonly http: boolean
      /** Calls go over these. */
      readonly wires: Wires | null
      readonly isolated: boolean
      readonly contexts: boolean
      readonly rare: string | null
    },
  ) {
    this.#world = world
    this.#net = net
    this.#hooks = hooks
    const { wires } = kind
    const overHttp = kind.http ? httpPort : netPort
    const port = (to: Net, node: Node): ExecutorPort => wires?.port(node) ?? overHttp(to, node)
    const contexts = kind.contexts ? new Contexts(world, faults) : null
    this.#make = (host, node, own) => {
      const without = host === this.all[0] ? null : kind.rare
      const all: Setup = { ...setup, without }
      return kind.real
        ? new RealExecutor(world, node, port(net, node), all, own, {
            faults,
            machine: kind.isolated ? host.machine : null,
            contexts,
          })
        : new ScriptedExecutor(world, node, port(net, node), all, own)
    }
    this.#launcher = world.born('launcher', { offset: 0 })
    const chance = faults.chance('clock.offset')
    for (let i = 0; i < count; i++) {
      const offset = faults.hits('clock.offset', false) ? pick(chance, 7_200_000) - 3_600_000 : 0
      const clock = { offset }
      const name = `executor-${i}`
      const machine = new Machine(world, faults, name, clock)
      this.all.push({ name, clock, machine, driver: null })
    }
  }

  boot(host: Host): void {
    if (host.driver?.node.alive) return
    const node = this.#world.born(host.name, host.clock)
    const hooks: Hooks = { ...this.#hooks, die: () => this.end(driver, 300) }
    const driver = this.#make(host, node, hooks)
    host.driver = driver
    driver.start()
  }

  /** The process ends at once. Its host starts another, and the launcher may report what it saw. */
  end(driver: Driver, downMs: number): void {
    if (!driver.node.alive) return
    driver.node.alive = false
    driver.ended?.()
    this.older.delete(driver)
    this.#ended(driver)
    const host = this.all.find((each) => each.driver === driver)
    if (host) this.#world.at(this.#world.now + downMs, null, () => this.boot(host))
  }

  #ended(driver: Driver): void {
    const { session } = driver
    if (session === '') return
    this.dead.set(session, this.#world.now)
    const random = this.#launcher.ports.random
    if (random.next() < 0.6) void this.#report(session, pick(random, 1_500))
  }

  async #report(session: string, afterMs: number): Promise<void> {
    await this.#world.sleep(this.#launcher, afterMs)
    for (let i = 0; i < 4; i++)
      try {
        await this.#net.call(this.#launcher, 'exited', [session])
        return
      } catch (error) {
        if (!(error instanceof LeaseholdError)) throw error
        await this.#world.sleep(this.#launcher, 300)
      }
  }

  /** SIGTERM: the process lets go and exits, at the latest after its grace. */
  stop(host: Host, graceMs: number, downMs: number): void {
    const { driver } = host
    if (!driver?.node.alive) return
    const exit = (): void => this.end(driver, downMs)
    void driver.stop().then(() => this.#world.at(this.#world.now, driver.node, exit))
    this.#world.at(this.#world.now + graceMs, driver.node, exit)
  }

  /** A new process starts while the old one still runs; the old one ends later. */
  overlap(host: Host, ms: number): void {
    const { driver } = host
    if (!driver?.node.alive) return
    this.older.add(driver)
    host.driver = null
    this.boot(host)
    this.#world.at(this.#world.now + ms, null, () => this.end(driver, 0))
  }

  get living(): Driver[] {
    return [
      ...this.all.flatMap((host) => (host.driver?.node.alive ? [host.driver] : [])),
      ...this.older,
    ]
  }
}
