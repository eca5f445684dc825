// The network between the processes: every request and every answer can be lost, late, doubled or cut off, and what
// arrives is a copy by way of JSON.
import { Defect, Fault, LeaseholdError } from '../../src/kernel/errors.ts'
import type { ExecutorPort, RenewRequest, Told } from '../../src/model/work.ts'
import type { Socket } from '../../src/protocol/socket.ts'
import type { Faults } from './faults.ts'
import type { Node, World } from './world.ts'
import { pick } from './world.ts'

export type Verb = (...args: never[]) => Promise<unknown>

/** What the orchestrator answers while it is up. */
export interface Server {
  readonly node: Node
  readonly verbs: Readonly<Record<string, Verb>>
  listen(session: string, tell: (told: Told) => void): () => void
  /** Serves an executor on a socket that was opened. */
  connect(socket: Socket): void
  /** Hears of what renewals over sockets let go of. */
  listed(request: RenewRequest): void
}

/** How long a caller waits for an answer before it asks again. */
const TIMEOUT_MS = 150

/** Requests or answers of one process that are cut off until an instant. */
interface Cut {
  requests: number
  answers: number
  counted: boolean
}

export class Net {
  /** The orchestrator that answers now, or nobody. */
  server: Server | null = null
  /** Requests that failed on their way or at the store, so that their caller must make them again. */
  failed = 0
  /** Ends a caller's process, where that is an executor's; answers whether it was. */
  kill: (caller: Node) => boolean = () => false
  /** Told of each process of the server that has ended. */
  readonly broken = new Set<(server: Node) => void>()
  readonly #world: World
  readonly #faults: Faults
  readonly #pending = new Set<{ readonly to: Node; readonly fail: () => void }>()
  readonly #cuts = new Map<string, Cut>()
  readonly #listeners = new Map<
    string,
    { readonly node: Node; readonly hear: (told: Told) => void }
  >()

  constructor(world: World, faults: Faults) {
    this.#world = world
    this.#faults = faults
  }

  get inFlight(): number {
    return this.#pending.size
  }

  /** Cuts a process off: its requests, its answers, or both. */
  partition(name: string, requestsMs: number, answersMs: number): void {
    const now = this.#world.now
    this.#cuts.set(name, { requests: now + requestsMs, answers: now + answersMs, counted: false })
  }

  heal(): void {
    this.#cuts.clear()
  }

  /** The server's process has ended: who waits for its answer sees the connection break. */
  broke(server: Node): void {
    const waiting = Array.from(this.#pending)
    for (const pending of waiting) if (pending.to === server) pending.fail()
    for (const tell of this.broken) tell(server)
  }

  async call<T>(
    from: Node,
    verb: string,
    args: readonly unknown[],
    timeoutMs = TIMEOUT_MS,
  ): Promise<T> {
    const world = this.#world
    const faults = this.#faults
    // a process that has just ended says nothing more, though its last turn is not over
    if (!from.alive) return new Promise<T>(() => undefined)
    const sent = JSON.stringify(args)
    const fate = this.server ? faults.next('net') : null
    if (fate === 'before') {
      const killed = this.kill(from)
      faults.count(killed ? 'executor.crash' : 'net.drop_request')
      if (killed) return new Promise<T>(() => undefined)
    }
    return new Promise<T>((resolve, reject) => {
      let settled = false
      const pending = { to: this.server?.node ?? from, fail: (): void => fail('broke') }
      const settle = (act: () => void): void => {
        if (settled) return
        settled = true
        this.#pending.delete(pending)
        stopWaiting()
        act()
      }
      const fail = (how: string): void =>
        settle(() => {
          this.failed += 1
          world.say(() => `${from.name} ${verb}: the connection ${how} ${sent.slice(0, 160)}`)
          world.at(world.now + 1, from, () =>
            reject(new Fault('peer_unreachable', `${verb}: the connection ${how}`)),
          )
        })
      const stopWaiting = world.at(world.now + timeoutMs, from, () => fail('timed out'))
      if (!this.server) return fail('was refused')
      this.#pending.add(pending)
      const lost = fate === 'before' || faults.hits('net.drop_request')
      if (this.isCut(from, 'requests') || lost) return
      world.at(world.now + this.#latency(), this.server.node, () => {
        const unheard = fate !== null
        this.#arrive(from, verb, sent, unheard ? () => undefined : settle, resolve, reject)
        // it dies while its request is at work, where it is one that can
        const died = fate === 'after' && this.kill(from)
        if (unheard) faults.count(died ? 'executor.crash' : 'net.drop_answer')
      })
      if (faults.hits('net.duplicate'))
        world.at(world.now + this.#latency() + this.#lateness(), this.server.node, () =>
          this.#arrive(
            from,
            verb,
            sent,
            () => undefined,
            () => undefined,
            () => undefined,
          ),
        )
    })
  }

  #arrive(
    from: Node,
    verb: string,
    sent: string,
    settle: (act: () => void) => void,
    resolve: (answer: never) => void,
    reject: (error: unknown) => void,
  ): void {
    const server = this.server
    if (!server) return
    const act = server.verbs[verb]
    if (!act) throw new Defect(`the server has no verb ${verb}`)
    const back = (then: () => void): void => {
      if (!server.node.alive) return
      if (this.isCut(from, 'answers') || this.#faults.hits('net.drop_answer')) return
      this.#world.at(this.#world.now + this.#latency(), from, () => settle(then))
    }
    const answer = act(...(JSON.parse(sent) as never[]))
    answer.then(
      (value) => {
        const text = JSON.stringify(value)
        back(() => resolve(JSON.parse(text) as never))
      },
      (error: unknown) => {
        if (!(error instanceof LeaseholdError))
          this.#world.violate('defect', `${verb}: ${(error as Error).stack ?? String(error)}`)
        this.failed += 1
        back(() => reject(error))
      },
    )
  }

  /** How late the copy of a request comes: now and then after its session has lived a lease longer, or has ended. */
  #lateness(): number {
    const chance = this.#faults.chance('net.duplicate')
    return pick(chance, [300, 2_000, 9_000][pick(chance, 3)] ?? 0)
  }

  #latency(): number {
    const faults = this.#faults
    return faults.hits('net.delay') ? 50 + pick(faults.chance('net.delay'), 2_500) : 1
  }

  /** Whether a process is cut off on this way now. */
  isCut(from: Node, way: 'requests' | 'answers'): boolean {
    const cut = this.#cuts.get(from.name)
    if (!cut || cut[way] <= this.#world.now) return false
    if (!cut.counted) {
      cut.counted = true
      this.#faults.count('net.partition')
    }
    return true
  }

  /** Pushes of the server reach the node for as long as both live; a restart of the server is heard after a moment. */
  listen(node: Node, session: string, hear: (told: Told) => void): () => void {
    this.#listeners.set(session, { node, hear })
    const stop = this.server ? this.#attach(this.server, session) : () => undefined
    return () => {
      this.#listeners.delete(session)
      stop()
    }
  }

  /** A server has come up: it answers from now on, and who listened to the last one listens to it. */
  open(server: Server): void {
    this.server = server
    for (const session of this.#listeners.keys()) this.#attach(server, session)
  }

  #attach(server: Server, session: string): () => void {
    return server.listen(session, (told) => {
      const listener = this.#listeners.get(session)
      if (!listener?.node.alive || !server.node.alive) return
      if (this.isCut(listener.node, 'answers') || this.#faults.hits('net.drop_push')) return
      const text = JSON.stringify(told)
      this.#world.at(this.#world.now + this.#latency(), listener.node, () =>
        listener.hear(JSON.parse(text) as Told),
      )
    })
  }
}

/** The engine as a process on the far side of the network sees it. */
export const netPort = (net: Net, node: Node): ExecutorPort => ({
  register: (request) => net.call(node, 'register', [request]),
  claim: (request) => net.call(node, 'claim', [request], request.waitMs + TIMEOUT_MS),
  journal: (session, run, after) => net.call(node, 'journal', [session, run, after]),
  write: (session, write) => net.call(node, 'write', [session, write]),
  renew: (request) => net.call(node, 'renew', [request]),
  close: (request) => net.call(node, 'close', [request]),
  logs: (session, parts) => net.call(node, 'logs', [session, parts]),
  listen: (session, tell) => net.listen(node, session, tell),
})
