// An executor that was started, as a process of a world of spawners: it comes, works and ends when it is idle; or it never comes, comes
// late, hangs, dies, or lives on and says nothing.
import type { StartedExecutor } from '../../src/executor/spawning/spawner.ts'
import { Fault } from '../../src/kernel/errors.ts'
import type { Random } from '../../src/kernel/random.ts'
import type { SpawnPolicy } from '../../src/model/spawn.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { definition } from '../support/engine.ts'
import type { Clock, Node, World } from './world.ts'
import { oneOf, pick } from './world.ts'

/** What an executor does that is started. */
const manners = [
  'works',
  'works',
  'works',
  'never',
  'dies at once',
  'late',
  'hangs',
  'dies',
  'deaf',
] as const
type Manner = (typeof manners)[number]

/** A server that is up. */
export interface Up {
  readonly node: Node
  readonly engine: Engine
  readonly port: ExecutorPort
}

export interface Around {
  readonly world: World
  readonly clock: Clock
  readonly policy: SpawnPolicy
  readonly renewMs: number
  /** Processes that live, by session. */
  readonly alive: Map<string, Executor>
  asks<T>(from: Node, ask: (server: Up) => Promise<T>): Promise<T>
  isOver(): boolean
  /** Counts a fault. */
  counts(): void
}

export const never = <T>(): Promise<T> => new Promise(() => undefined)

export class Executor implements StartedExecutor {
  readonly gone: Promise<string>
  readonly node: Node
  #exit: (how: string) => void = () => undefined
  #told = false
  readonly #session: string
  readonly #manner: Manner
  readonly #random: Random
  readonly #around: Around

  constructor(session: string, around: Around) {
    const { world } = around
    this.#around = around
    this.#session = session
    this.node = world.born(session, around.clock)
    this.#random = world.chance(`executor ${session}`)
    this.#manner = around.isOver() ? 'works' : oneOf(this.#random, manners)
    if (this.#manner !== 'works') around.counts()
    this.gone = new Promise((resolve) => (this.#exit = resolve))
    around.alive.set(session, this)
    void this.#live().catch((error: unknown) => {
      if (!(error instanceof Fault)) world.violate('defect', String((error as Error).stack))
    })
  }

  exit(how: string): void {
    if (!this.#around.alive.delete(this.#session)) return
    this.node.alive = false
    this.#exit(how)
  }
  tell(): void {
    this.#told = true
    // what hangs hears nothing, and one that has not come has nothing to let go
    if (this.#manner === 'never') this.exit('SIGTERM')
  }
  kill(): void {
    this.exit('SIGKILL')
  }
  /** The pipe to its spawner has ended. */
  untied(): void {
    this.tell()
  }

  async #live(): Promise<void> {
    const { node } = this
    const { world, asks, policy } = this.#around
    const startedAt = world.now
    await world.sleep(node, 50 + pick(this.#random, this.#manner === 'late' ? 8_000 : 500))
    if (this.#manner === 'dies at once') return this.exit('exited with 1')
    if (this.#manner === 'hangs' || this.#manner === 'never') return never()
    for (;;) {
      // it gives up by itself: who started it may be gone
      if (world.now - startedAt >= policy.startByMs || this.#told) return this.exit('exited with 6')
      const answer = await asks(node, ({ port }) => port.register(this.#request())).catch(
        () => null,
      )
      if (answer?.ok === true) break
      await world.sleep(node, 200)
    }
    await this.#work()
  }

  #request() {
    const { slots } = this.#around.policy
    return {
      protocol: PROTOCOL_VERSION,
      session: this.#session,
      build: 'sim',
      host: 'sim',
      pid: 1,
      queues: [],
      labels: [],
      capacity: slots,
      definitions: [definition('w')],
    }
  }

  async #work(): Promise<void> {
    const { node } = this
    const { world, asks, renewMs } = this.#around
    const session = this.#session
    const until = world.now + 500 + pick(this.#random, 6_000)
    let idleSince = world.now
    let claim = 1
    let renewedAt = world.now
    for (;;) {
      if (world.now > until && this.#manner === 'dies') return this.exit('SIGKILL')
      // it lives and says nothing more, and heeds nothing
      if (world.now > until && this.#manner === 'deaf') return never()
      if (this.#told || world.now - idleSince > 1_500) break
      await world.sleep(node, 100)
      try {
        if (world.now - renewedAt > renewMs) {
          const request = { session, draining: false, status: null, letGo: [] }
          const answer = await asks(node, ({ port }) => port.renew(request))
          if (!answer.ok) return this.exit('exited with 1')
          renewedAt = world.now
        }
        const request = { session, claim, most: 1, except: [], waitMs: 0 }
        const answer = await asks(node, ({ port }) => port.claim(request))
        claim += 1
        if (!answer.ok) return this.exit('exited with 1')
        for (const { run, attempt } of answer.runs) {
          idleSince = world.now
          await world.sleep(node, pick(this.#random, 1_500))
          const end = { kind: 'complete', output: null } as const
          await asks(node, ({ port }) => port.write(session, { run, attempt, entries: [], end }))
        }
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        await world.sleep(node, 100)
      }
    }
    for (let tries = 0; tries < 5; tries++)
      try {
        await asks(node, ({ port }) => port.close({ session, reason: 'stopped' }))
        break
      } catch (error) {
        if (!(error instanceof Fault)) throw error
      }
    this.exit('exited with 0')
  }
}
