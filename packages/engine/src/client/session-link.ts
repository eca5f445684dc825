// What keeps a session connected: one connection after another, each with the next number, since the server hears the newest
// only. What is asked waits a while for a connection; what was asked over one that broke is asked again by whoever asked.
import { errorOf, Fault, LeaseholdError } from '../kernel/errors.ts'
import type { Growth } from '../kernel/growing-delay.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Ports } from '../kernel/ports.ts'
import { jittered } from '../kernel/random.ts'
import { sleep } from '../kernel/timers.ts'
import type { RegisterAnswer, RegisterRequest } from '../model/work.ts'
import type { AskedType } from '../protocol/socket-messages.ts'
import type { Socket } from '../protocol/socket.ts'
import { closeCodes } from '../protocol/socket.ts'
import type { Conversation, Pushed } from './socket-conversation.ts'
import { converse } from './socket-conversation.ts'

export interface LinkOptions {
  readonly ports: Pick<Ports, 'timers' | 'random' | 'log'>
  readonly dial: (signal: AbortSignal) => Promise<Socket>
  readonly pulseMs: number
  /** How long opening a connection, or an answer, may take. */
  readonly timeoutMs: number
  readonly pushed: (message: Pushed) => void
  /** The server has ended the session, or will not have it any more; said once. */
  readonly ended: (why: string) => void
}

const RETRY: Growth = { firstMs: 200, maxMs: 5_000 }

interface Waiter {
  readonly resolve: (conversation: Conversation) => void
  readonly reject: (error: unknown) => void
}

export class SessionLink {
  readonly #request: RegisterRequest
  readonly #options: LinkOptions
  readonly #closing = new AbortController()
  #live: Conversation | null = null
  #number = 0
  #over: Refusal | null = null
  #waiters = new Set<Waiter>()

  constructor(request: RegisterRequest, options: LinkOptions) {
    this.#request = request
    this.#options = options
  }

  /** Opens the first connection, which registers the session; only where the answer is ok is there a link. */
  async open(): Promise<RegisterAnswer> {
    const answer = await this.#connect()
    if (!answer.ok) this.end()
    return answer
  }

  async ask(
    type: AskedType,
    body: string,
    timeoutMs = this.#options.timeoutMs,
  ): Promise<Readonly<Record<string, unknown>>> {
    if (this.#over) throw errorOf(this.#over)
    const live = this.#live ?? (await this.#connected())
    return live.ask(type, body, timeoutMs)
  }

  /** Ends it for good; the session itself is not ended by it. */
  end(): void {
    this.#end(
      refuse('session_ended', `the connection of ${this.#request.session} was closed`, {
        session: this.#request.session,
      }),
    )
  }

  #end(why: Refusal): void {
    if (this.#over) return
    this.#over = why
    this.#closing.abort()
    this.#live?.close(errorOf(why))
    this.#live = null
    for (const { reject } of this.#waiters) reject(errorOf(why))
    this.#waiters.clear()
  }

  #lost(message: string): void {
    if (this.#over) return
    const { session } = this.#request
    this.#end(refuse('session_ended', message, { session }))
    this.#options.ended(message)
  }

  #connected(): Promise<Conversation> {
    const { ports, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        resolve(conversation) {
          cancel()
          resolve(conversation)
        },
        reject(error) {
          cancel()
          reject(error)
        },
      }
      const cancel = ports.timers.after(timeoutMs, () => {
        this.#waiters.delete(waiter)
        reject(new Fault('peer_unreachable', `${this.#request.session} has no connection`))
      })
      this.#waiters.add(waiter)
    })
  }

  /** One connection and its first message; throws where none could be made. */
  async #connect(): Promise<RegisterAnswer> {
    const { ports, dial, pulseMs, timeoutMs, pushed } = this.#options
    const connection = ++this.#number
    const socket = await this.#dialed(dial, timeoutMs)
    const conversation = converse(socket, {
      timers: ports.timers,
      log: ports.log,
      pulseMs,
      pushed: (message) => {
        if (message.type === 'session:ended') this.#lost(message.body.message)
        else pushed(message)
      },
      ended: (code, reason) => {
        if (this.#live !== conversation) return
        this.#live = null
        if (code === closeCodes.session_ended) this.#lost(reason)
        if (this.#over) return
        ports.log.info('socket.lost', { session: this.#request.session, code, reason })
        void this.#again()
      },
    })
    try {
      const answer = (await conversation.ask(
        'session:register',
        JSON.stringify({ ...this.#request, connection }),
        timeoutMs,
      )) as unknown as RegisterAnswer
      if (!answer.ok || this.#over) {
        conversation.close(new Fault('peer_unreachable', 'the connection is not needed'))
        return answer
      }
      this.#live = conversation
      for (const { resolve } of this.#waiters) resolve(conversation)
      this.#waiters.clear()
      return answer
    } catch (error) {
      conversation.cut()
      throw error
    }
  }

  async #dialed(dial: LinkOptions['dial'], timeoutMs: number): Promise<Socket> {
    const over = new AbortController()
    const leave = (): void => over.abort()
    const cancel = this.#options.ports.timers.after(timeoutMs, leave)
    this.#closing.signal.addEventListener('abort', leave, { once: true })
    try {
      return await dial(over.signal)
    } finally {
      cancel()
      this.#closing.signal.removeEventListener('abort', leave)
    }
  }

  /** Connects anew until there is a connection or the server says that the session is over. */
  async #again(): Promise<void> {
    const { timers, random, log } = this.#options.ports
    const { session } = this.#request
    for (let tries = 1; !this.#over; tries++) {
      await sleep(timers, jittered(random, growingDelayMs(tries, RETRY)), this.#closing.signal)
      if (this.#over) return
      try {
        const answer = await this.#connect()
        if (answer.ok) {
          log.info('socket.connected', { session, connection: this.#number, tries })
          return
        }
        // a number that has been used is no judgement of the session
        if (answer.code !== 'connection_superseded') return this.#lost(answer.message)
        this.#number = Math.max(this.#number, Number(answer.detail['connection'] ?? 0))
      } catch (error) {
        // a server that will not let it in may let it in again: its token may be put right
        const isRefused = error instanceof LeaseholdError && !(error instanceof Fault)
        log[isRefused || tries === 3 ? 'warn' : 'debug']('socket.not_connected', {
          session,
          tries,
          error,
        })
      }
    }
  }
}
