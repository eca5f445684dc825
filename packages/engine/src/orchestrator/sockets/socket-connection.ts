// One connection of an executor: its first message registers its session or takes it over, every other is answered once,
// and whatever does not fit is answered with an error and does no harm.
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { Pulse } from '../../kernel/pulse.ts'
import { startPulse } from '../../kernel/pulse.ts'
import type { Cancel } from '../../kernel/timers.ts'
import type { RegisterRequest, RenewRequest, Told } from '../../model/work.ts'
import type { FromExecutor, FromServer } from '../../protocol/socket-messages.ts'
import { askedTypes, fromExecutor } from '../../protocol/socket-messages.ts'
import type { Socket } from '../../protocol/socket.ts'
import { closeCodes } from '../../protocol/socket.ts'
import { connect } from '../../transitions/connect.ts'
import type { Engine } from '../engine.ts'
import { incompatibleProtocol } from '../executor-port.ts'
import type { OfferingPort } from '../executor-port.ts'
import { faultsOf, invalid } from '../faults.ts'
import type { NewestConnections } from './newest-connections.ts'
import { superseded } from './newest-connections.ts'
import type { Offer } from '../claims/offers.ts'
import { standingDirectives } from '../standing-directives.ts'
import { writeEach } from '../write-each.ts'

/** Above this an executor reads too slowly to be given more. */
const OFFER_BELOW = 1024 ** 2
/** Above this it does not read at all. */
const CLOSE_ABOVE = 128 * 1024 ** 2
/** How long a connection may say nothing before its first message. */
const REGISTER_MS = 10_000
/** Messages in work at once; more are refused until some are done. */
const AT_ONCE = 1_000

export interface ConnectionOf {
  readonly engine: Engine
  readonly port: OfferingPort
  readonly draining: () => boolean
  readonly onDefect: (error: unknown) => void
  readonly pulseMs: number
  readonly check: NewestConnections['check']
  readonly registered: (session: string) => void
  readonly gone: (session: string | null) => void
}

type Message<T extends FromExecutor['type']> = Extract<FromExecutor, { type: T }>
/** What is answered, and whether the connection ends with it. */
interface Answer {
  readonly body: object
  readonly last?: { readonly code: number; readonly reason: string }
}

export class SocketConnection {
  inFlight = 0
  /** The number of this connection among those of its session. */
  number = 0
  readonly #socket: Socket
  readonly #of: ConnectionOf
  readonly #pulse: Pulse
  readonly #offers = new Set<string>()
  #session: string | null = null
  #registering = false
  #waiting: AbortController | null = null
  #leaving = false
  #over = false
  #unlisten: () => void = () => undefined
  #stopWaiting: Cancel

  constructor(socket: Socket, of: ConnectionOf) {
    this.#socket = socket
    this.#of = of
    const { timers } = of.engine.ports
    this.#pulse = startPulse(
      timers,
      of.pulseMs,
      () => socket.ping(),
      () => {
        of.engine.ports.log.warn('socket.silent', { session: this.#session })
        this.cut()
      },
    )
    this.#stopWaiting = timers.after(REGISTER_MS, () =>
      this.#close(
        closeCodes.not_registered,
        `no session:register came within ${REGISTER_MS / 1_000} s`,
      ),
    )
    socket.hear({
      text: (text) => this.#hear(text),
      binary: () => this.#close(closeCodes.not_text, 'messages are JSON as text'),
      alive: () => this.#pulse.alive(),
      closed: () => this.#end(),
    })
  }

  /** A newer connection of the session stands. */
  superseded(newest: number): void {
    const { message } = superseded(this.#session ?? '', this.number, newest)
    this.#close(closeCodes.connection_superseded, message)
  }

  /** Closes it where it is not the newest any more, or its session has ended. */
  async mayStay(): Promise<void> {
    if (this.#session === null || this.#over) return
    const standing = await this.#of.check(this.#session, this.number)
    if (!standing.ok && !this.#over) this.#refused(standing)
  }

  /** The server stops: what waits ends, and the connection with the last answer. */
  leave(): void {
    this.#leaving = true
    this.#waiting?.abort()
    this.#maybeLeave()
  }

  cut(): void {
    this.#socket.cut()
    this.#end()
  }

  #maybeLeave(): void {
    if (this.#leaving && this.inFlight === 0)
      this.#close(closeCodes.going_away, 'the server is shutting down')
  }

  #close(code: number, reason: string): void {
    if (this.#over) return
    this.#socket.close(code, reason)
    this.#end()
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#pulse.stop()
    this.#stopWaiting()
    this.#unlisten()
    this.#waiting?.abort()
    for (const offer of this.#offers) this.#of.port.offers.end(offer)
    this.#offers.clear()
    this.#of.gone(this.#session)
  }

  #say(message: FromServer): void {
    if (this.#over) return
    this.#socket.send(JSON.stringify(message))
    const { buffered } = this.#socket
    if (buffered <= CLOSE_ABOVE) return
    this.#of.engine.ports.log.warn('socket.not_read', { session: this.#session, buffered })
    this.#close(closeCodes.does_not_read, `${buffered} bytes wait to be read`)
    this.#socket.cut()
  }

  #error(
    id: number | null,
    { code, message, detail }: Pick<LeaseholdError, 'code' | 'message' | 'detail'>,
  ): void {
    this.#say({ type: 'error', id, body: { code, message, detail } })
  }

  /** The session's newest connection is another, or it has ended: it is told so, and nothing more is heard of this one. */
  #refused({ code, message }: Refusal): void {
    if (code === 'session_ended') this.#say({ type: 'session:ended', body: { message } })
    this.#close(
      code === 'session_ended' ? closeCodes.session_ended : closeCodes.connection_superseded,
      message,
    )
  }

  #hear(text: string): void {
    this.#pulse.alive()
    if (this.#over) return
    const read = readMessage(text)
    if (!read.ok) return this.#error(read.id, read.refusal)
    const { message } = read
    if (this.inFlight >= AT_ONCE)
      return this.#error(
        message.id,
        refuse('draining', `${AT_ONCE} messages of this connection are in work; wait for some`),
      )
    if (this.#of.draining() || this.#leaving)
      return this.#error(
        message.id,
        refuse('draining', 'this server is shutting down; try another one, or again in a moment'),
      )
    void this.#work(message)
  }

  async #work(message: FromExecutor): Promise<void> {
    this.inFlight += 1
    try {
      const { body, last } = await this.#answer(message)
      this.#say({ type: 'reply', id: message.id, body: { ...body } })
      if (last) this.#close(last.code, last.reason)
    } catch (error) {
      if (error instanceof LeaseholdError) {
        this.#error(message.id, error)
        if (error.code === 'connection_superseded' || error.code === 'session_ended')
          this.#refused({
            ok: false,
            code: error.code,
            message: error.message,
            detail: error.detail,
          })
      } else {
        this.#of.engine.ports.log.error('message.defect', { type: message.type, error })
        this.#of.onDefect(error)
        this.#error(
          message.id,
          new LeaseholdError(
            'internal_error',
            'the server met a mistake of its own; its log has the details',
          ),
        )
      }
    } finally {
      this.inFlight -= 1
      this.#maybeLeave()
    }
  }

  async #answer(message: FromExecutor): Promise<Answer> {
    if (message.type === 'session:register') return this.#register(message)
    const session = this.#session
    if (session === null)
      throw errorOf(
        refuse(
          'invalid_request',
          `${message.type} came before session:register; the first message of a connection registers its session`,
        ),
      )
    const standing = await this.#of.check(session, this.number)
    if (!standing.ok) throw errorOf(standing)
    const { port } = this.#of
    switch (message.type) {
      case 'session:ready':
        // a repeat is answered with what the first took
        return message.body.claim <= standing.claim
          ? { body: await port.claim({ ...message.body, session, waitMs: 0 }) }
          : this.#ready(session, message)
      case 'session:busy':
        this.#waiting?.abort()
        return { body: { ok: true } }
      case 'session:renew':
        return { body: await port.renew({ ...message.body, session } as RenewRequest) }
      case 'session:close':
        return { body: await port.close({ ...message.body, session }) }
      case 'run:accept': {
        const { offer, ...claim } = message.body
        const mine = offer !== null && this.#offers.delete(offer) ? offer : null
        return { body: await port.offers.accept(mine, { ...claim, session }) }
      }
      case 'run:reject': {
        const { offer, reason } = message.body
        if (this.#offers.delete(offer)) port.offers.end(offer)
        this.#of.engine.ports.log.debug('offer.rejected', { session, offer, reason })
        return { body: { ok: true } }
      }
      case 'run:checkpoint':
        return { body: { answers: await writeEach(port, session, message.body.writes) } }
      case 'run:journal': {
        const { run, after } = message.body
        return { body: { entries: await port.journal(session, run, after) } }
      }
      case 'run:logs':
        return { body: { ...(await port.logs(message.body.session, message.body.parts)) } }
    }
  }

  async #register({ body: { connection, ...body } }: Message<'session:register'>): Promise<Answer> {
    const { engine, port, registered } = this.#of
    if (this.#session !== null || this.#registering)
      throw errorOf(
        refuse('invalid_request', 'this connection has its session; register another on its own'),
      )
    this.#registering = true
    try {
      const request = body as RegisterRequest
      const incompatible = incompatibleProtocol(request)
      if (incompatible) return refusedAnswer(incompatible, closeCodes.incompatible_protocol)
      // a later connection takes over what is there: definitions are announced once
      const answer =
        connection === 1
          ? await port.register(request)
          : { ok: true as const, session: request.session }
      if (!answer.ok) return refusedAnswer(answer, closeCodes.session_ended)
      const connected = await engine.store.run((tx) =>
        connect(tx, request.session, connection, `${request.host}:${request.pid}`),
      )
      if (!connected.ok)
        return refusedAnswer(
          connected,
          connected.code === 'session_ended'
            ? closeCodes.session_ended
            : closeCodes.connection_superseded,
        )
      if (this.#over) return { body: answer }
      this.#session = request.session
      this.number = connection
      this.#stopWaiting()
      registered(request.session)
      await this.#tell(request.session)
      return { body: answer }
    } finally {
      this.#registering = false
    }
  }

  /** What the session is told from here on, and what stood while nobody listened. */
  async #tell(session: string): Promise<void> {
    const tell = (told: Told): void => this.#say({ type: 'run:told', body: told })
    this.#unlisten = this.#of.port.listen(session, tell)
    for (const told of await standingDirectives(this.#of.engine, session)) tell(told)
  }

  async #ready(session: string, { body }: Message<'session:ready'>): Promise<Answer> {
    const { port, engine } = this.#of
    this.#waiting?.abort()
    const waiting = new AbortController()
    this.#waiting = waiting
    const none = (): Answer => ({
      body: { ok: true, offer: null, now: engine.ports.time.now() },
    })
    if (this.#socket.buffered > OFFER_BELOW) return none()
    const made = (offer: Offer): void => {
      if (this.#over) return port.offers.end(offer.id)
      this.#offers.add(offer.id)
      this.#say({
        type: 'run:offer',
        body: { offer: offer.id, claim: offer.claim, runs: [...offer.runs], ttlMs: offer.ttlMs },
      })
    }
    try {
      const found = await port.offers.find({ ...body, session }, waiting.signal, made)
      if (found === null) return none()
      return { body: 'id' in found ? { ok: true, offer: found.id } : found }
    } finally {
      if (this.#waiting === waiting) this.#waiting = null
    }
  }
}

const refusedAnswer = (refusal: Refusal, code: number): Answer => ({
  body: refusal,
  last: { code, reason: refusal.message },
})

const errorOf = ({ code, message, detail }: Refusal): LeaseholdError =>
  new LeaseholdError(code, message, detail)

type Read =
  | { readonly ok: true; readonly message: FromExecutor }
  | { readonly ok: false; readonly id: number | null; readonly refusal: Refusal }

const readMessage = (text: string): Read => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return notRead(null, `is not JSON: ${(error as Error).message}`)
  }
  const read = fromExecutor.safeParse(value)
  if (read.success) return { ok: true, message: read.data }
  const { id, type } = (value ?? {}) as { readonly id?: unknown; readonly type?: unknown }
  const known = typeof id === 'number' && Number.isInteger(id) && id >= 1 ? id : null
  if (typeof type !== 'string' || !askedTypes.includes(type))
    return notRead(
      known,
      `has the type ${JSON.stringify(type)?.slice(0, 100)}; expected one of ${askedTypes.join(', ')}`,
    )
  return { ok: false, id: known, refusal: invalid(faultsOf(read.error), 'message') }
}

const notRead = (id: number | null, what: string): Read => ({
  ok: false,
  id,
  refusal: invalid([{ path: '$', message: what }], 'message'),
})
