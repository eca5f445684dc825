// A guest over a WebSocket whom no executor of ours would be: it says that it has room and takes nothing, lets offers lapse or
// rejects them, and speaks over connections that it has replaced itself. What it is offered must reach others all the same.
import type { Definition } from '../../src/model/definition.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import type { Socket } from '../../src/protocol/socket.ts'
import { Fault } from '../../src/kernel/errors.ts'
import type { Random } from '../../src/kernel/random.ts'
import type { Wires } from './wires.ts'
import type { Node, World } from './world.ts'
import { pick } from './world.ts'

const RENEW_MS = 1_000

export class Lurker {
  readonly #world: World
  readonly #wires: Wires
  readonly #node: Node
  readonly #random: Random
  readonly #definitions: readonly Definition[]
  #session = ''
  #number = 0
  #claim = 0
  #ids = 0
  #renewAt = 0
  /** The newest of its connections, and the one before. */
  #now: Socket | null = null
  #before: Socket | null = null
  #leaving = false

  constructor(world: World, wires: Wires, definitions: readonly Definition[]) {
    this.#world = world
    this.#wires = wires
    this.#node = world.born('lurker', { offset: 0 })
    this.#random = world.chance('lurker')
    this.#definitions = definitions
  }

  start(): void {
    void this.#lurk()
  }

  /** It wants nothing more. Its session and its connections stand, and what it was offered lapses. */
  leave(): void {
    this.#leaving = true
    this.#say(this.#now, 'session:busy', {})
  }

  async #lurk(): Promise<void> {
    for (;;) {
      await this.#world.sleep(this.#node, 150 + pick(this.#random, 800))
      if (this.#leaving && this.#now === null) return
      if (this.#now === null) await this.#connect(this.#number === 0 ? 1 : this.#number + 1)
      if (this.#world.now >= this.#renewAt) {
        this.#renewAt = this.#world.now + RENEW_MS
        this.#say(this.#now, 'session:renew', { draining: false, status: null, letGo: [] })
      }
      if (this.#leaving) continue
      const luck = this.#random.next()
      if (luck < 0.55) this.#ready()
      else if (luck < 0.75) await this.#connect(this.#number + 1)
      else if (luck < 0.85) await this.#connect(Math.max(2, this.#number))
      else this.#say(this.#before, 'session:ready', this.#room(this.#claim))
    }
  }

  #ready(): void {
    this.#claim += 1
    this.#say(this.#now, 'session:ready', this.#room(this.#claim))
  }

  #room(claim: number): object {
    return { claim, most: 3, except: [], waitMs: 1_500 }
  }

  #say(over: Socket | null, type: string, body: object): void {
    over?.send(JSON.stringify({ type, id: ++this.#ids, body }))
  }

  /** Takes its session over by a connection with this number, or begins one. */
  async #connect(number: number): Promise<void> {
    if (number === 1) this.#session = this.#node.ports.ids.next('ses')
    let socket: Socket
    try {
      socket = await this.#wires.dial(this.#node)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return
    }
    const registration = ++this.#ids
    socket.hear({
      text: (text) => this.#hear(socket, number, registration, JSON.parse(text) as Heard),
      binary: () => undefined,
      alive: () => undefined,
      closed: () => {
        if (this.#now === socket) this.#now = null
        if (this.#before === socket) this.#before = null
      },
    })
    socket.send(
      JSON.stringify({
        type: 'session:register',
        id: registration,
        body: {
          connection: number,
          protocol: PROTOCOL_VERSION,
          session: this.#session,
          build: 'sim',
          host: 'lurker',
          pid: 1,
          queues: [],
          labels: [],
          capacity: 3,
          definitions: this.#definitions,
        },
      }),
    )
  }

  #hear(socket: Socket, number: number, registration: number, { type, id, body }: Heard): void {
    if (type === 'session:ended') this.#number = 0
    if (type === 'run:offer' && this.#random.next() < 0.3)
      this.#say(socket, 'run:reject', { offer: body['offer'], reason: 'lurking' })
    if (id !== registration || type !== 'reply') return
    if (body['ok'] === true) {
      this.#number = number
      this.#before = this.#now
      this.#now = socket
    } else if (body['code'] === 'session_ended') this.#number = 0
    else if (body['code'] === 'connection_superseded')
      this.#number = Number((body['detail'] as { readonly connection: number }).connection)
  }
}

interface Heard {
  readonly type: string
  readonly id: number | null
  readonly body: Readonly<Record<string, unknown>>
}
