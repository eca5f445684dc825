// WebSockets of some worlds: the real client and the real server, and between them wires on the virtual clock. What is sent
// arrives in its order or not at all: a wire breaks, or falls silent without a word to either end. What the server says over
// them is looked at: what it offers (RAIL-12), and whom it still hears (RAIL-13).
import type Database from 'better-sqlite3'
import { socketExecutorPort } from '../../src/client/socket-executor-port.ts'
import { Fault } from '../../src/kernel/errors.ts'
import type { ExecutorPort, RenewRequest } from '../../src/model/work.ts'
import type { Hearing, Socket } from '../../src/protocol/socket.ts'
import type { Faults } from './faults.ts'
import type { Net } from './net.ts'
import type { Node, World } from './world.ts'
import { pick } from './world.ts'

export const PULSE_MS = 500
const TIMEOUT_MS = 400
/** How often a wire breaks where a request or an answer would be dropped: all that is in flight on it goes with it. */
const BREAKS = 0.12

interface Message {
  readonly type: string
  readonly id: number
  readonly body: Readonly<Record<string, unknown>>
}

/** A wire, as the server's end of it is seen. */
interface Wire {
  session: string | null
  number: number
  over: boolean
  /** Messages that came over it when it was not the newest any more, and registrations under a number that was taken. */
  readonly late: Map<number, string>
}

interface Offered {
  readonly wire: Wire
  readonly until: number
}

export class Wires {
  readonly #world: World
  readonly #net: Net
  readonly #faults: Faults
  readonly #newest: Database.Statement
  readonly #offers = new Map<string, { readonly offer: string } & Offered>()
  readonly #standing = new Map<Node, Set<() => void>>()

  constructor(world: World, net: Net, faults: Faults, db: Database.Database) {
    this.#world = world
    this.#net = net
    this.#faults = faults
    this.#newest = db.prepare('select connection from sessions where id = ?').pluck()
    net.broken.add((server) => {
      for (const cut of this.#standing.get(server) ?? []) cut()
      this.#standing.delete(server)
    })
  }

  /** The port of an executor that speaks over such wires. */
  port(node: Node): ExecutorPort {
    return socketExecutorPort({
      url: 'http://127.0.0.1:7400',
      ports: node.ports,
      dial: () => this.dial(node),
      pulseMs: PULSE_MS,
      timeoutMs: TIMEOUT_MS,
    })
  }

  /** Opens a wire to the server that is up; nobody answers where there is none, or where the node is cut off. */
  async dial(node: Node): Promise<Socket> {
    const { server } = this.#net
    await this.#world.sleep(node, 2)
    if (server === null || !server.node.alive || this.#net.isCut(node, 'requests'))
      throw new Fault('peer_unreachable', 'nobody answers')
    return this.#open(node, server)
  }

  #open(node: Node, server: NonNullable<Net['server']>): Socket {
    const world = this.#world
    const wire: Wire = { session: null, number: 0, over: false, late: new Map() }
    const own = { node, hearing: null as Hearing | null, over: false, from: 0, silent: false }
    const far = { ...own, node: server.node }
    type End = typeof own
    const ends = (end: End, code: number, reason: string): void => {
      if (end.over) return
      end.over = true
      if (end === far) wire.over = true
      end.hearing?.closed(code, reason)
    }
    const arrives = (at: End, act: (hearing: Hearing) => void): void => {
      if (at.silent) return
      if (this.#net.isCut(node, at === far ? 'requests' : 'answers')) {
        // nothing that follows can arrive before what was lost
        at.silent = true
        return
      }
      at.from = Math.max(at.from, world.now + this.#latency())
      world.at(at.from, at.node, () => {
        if (!at.over && at.hearing) act(at.hearing)
      })
    }
    const cut = (): void => {
      wire.over = true
      for (const end of [own, far])
        world.at(world.now + 1, end.node, () => ends(end, 1006, 'it was cut'))
    }
    const half = (near: End, other: End): Socket => {
      const leave = (code: number, reason: string): void => {
        arrives(other, () => ends(other, code, reason))
        world.at(world.now, near.node, () => ends(near, code, reason))
        if (near === far) wire.over = true
      }
      return {
        send: (text) => {
          if (near.over || !near.node.alive) return
          if (near === far) this.#says(wire, JSON.parse(text) as Message)
          if (this.#breaks(near === own)) return cut()
          arrives(other, (heard) => {
            if (other === far) this.#hears(wire, JSON.parse(text) as Message, server.listed)
            heard.text(text)
          })
        },
        ping: () =>
          arrives(other, (heard) => {
            heard.alive()
            arrives(near, (back) => back.alive())
          }),
        buffered: 0,
        close: leave,
        cut: () => leave(1006, ''),
        hear: (hearing) => (near.hearing = hearing),
      }
    }
    const all = this.#standing.get(server.node) ?? new Set()
    this.#standing.set(server.node, all.add(cut))
    server.connect(half(far, own))
    return half(own, far)
  }

  #latency(): number {
    return this.#faults.hits('net.delay') ? 20 + pick(this.#faults.chance('net.delay'), 500) : 1
  }

  #breaks(request: boolean): boolean {
    const kind = request ? 'net.drop_request' : 'net.drop_answer'
    if (!this.#faults.hits(kind, false) || this.#faults.chance(kind).next() >= BREAKS) return false
    this.#faults.count(kind)
    return true
  }

  /** The server hears it. */
  #hears(wire: Wire, { type, id, body }: Message, listed: (request: RenewRequest) => void): void {
    const newest = (session: unknown): number => Number(this.#newest.get(session) ?? 0)
    if (type === 'session:register') {
      const number = Number(body['connection'])
      wire.session = String(body['session'])
      wire.number = number
      if (number > 1 && newest(wire.session) >= number)
        wire.late.set(id, `is registered again as ${number}, though its newest is`)
      return
    }
    if (wire.session === null) return
    if (newest(wire.session) > wire.number)
      wire.late.set(id, `is heard over connection ${wire.number}, though its newest is`)
    if (type === 'session:renew')
      listed({ ...body, session: wire.session } as unknown as RenewRequest)
    if (type === 'run:accept' || type === 'run:reject')
      for (const [run, { offer }] of this.#offers)
        if (offer === body['offer']) this.#offers.delete(run)
  }

  /** The server says it. */
  #says(wire: Wire, { type, id, body }: Message): void {
    const world = this.#world
    const late = wire.late.get(id)
    if (type === 'reply' && late !== undefined && body['ok'] !== false)
      world.violate(
        'RAIL-13',
        `${wire.session} ${late} ${String(this.#newest.get(wire.session ?? ''))}`,
      )
    if (type !== 'run:offer') return
    const { offer, runs, ttlMs } = body as { offer: string; runs: string[]; ttlMs: number }
    for (const run of runs) {
      const before = this.#offers.get(run)
      if (before && !before.wire.over && before.until > world.now)
        world.violate(
          'RAIL-12',
          `${run} is offered to ${wire.session} while ${before.wire.session} is being offered it`,
        )
      this.#offers.set(run, { offer, wire, until: world.now + ttlMs })
    }
  }
}
