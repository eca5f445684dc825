// One connection to a server, from an executor's side: each question gets its one answer by its id, and what the server says
// by itself is passed on. When the connection ends, nothing that was asked over it is waited for any longer.
import type { ErrorCode } from '../kernel/codes.ts'
import { codes } from '../kernel/codes.ts'
import { Fault } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { startPulse } from '../kernel/pulse.ts'
import type { Timers } from '../kernel/timers.ts'
import { errorFromProblem } from '../protocol/problem.ts'
import type { AskedType, FromServer } from '../protocol/socket-messages.ts'
import { fromServer } from '../protocol/socket-messages.ts'
import type { Socket } from '../protocol/socket.ts'

/** What the server says unasked. */
export type Pushed = Extract<FromServer, { type: 'run:offer' | 'run:told' | 'session:ended' }>

export interface ConversationOptions {
  readonly timers: Timers
  readonly log: Log
  readonly pulseMs: number
  readonly pushed: (message: Pushed) => void
  /** It is over; said once. */
  readonly ended: (code: number, reason: string) => void
}

export interface Conversation {
  /** Resolves with the body of the reply; rejects with the error that came, or a Fault where none did. `text` is the body as JSON. */
  ask(type: AskedType, text: string, timeoutMs: number): Promise<Readonly<Record<string, unknown>>>
  /** Ends it; what was asked and not answered is rejected with this. */
  close(why: Error): void
  cut(): void
}

interface Asked {
  readonly resolve: (body: Readonly<Record<string, unknown>>) => void
  readonly reject: (error: unknown) => void
  readonly cancel: () => void
}

/** Above this the server does not read what it is sent. */
const CUT_ABOVE = 128 * 1024 ** 2

export const converse = (
  socket: Socket,
  { timers, log, pulseMs, pushed, ended }: ConversationOptions,
): Conversation => {
  const asked = new Map<number, Asked>()
  let ids = 0
  let over = false

  const end = (
    code: number,
    reason: string,
    why: Error = new Fault('peer_unreachable', `the connection ended before the answer: ${reason}`),
  ): void => {
    if (over) return
    over = true
    pulse.stop()
    for (const { cancel, reject } of asked.values()) {
      cancel()
      reject(why)
    }
    asked.clear()
    ended(code, reason)
  }
  const cut = (why: string): void => {
    socket.cut()
    end(1006, why)
  }
  const pulse = startPulse(
    timers,
    pulseMs,
    () => socket.ping(),
    () => cut('the server has shown no sign of life'),
  )
  const take = (id: number): Asked | undefined => {
    const found = asked.get(id)
    asked.delete(id)
    found?.cancel()
    return found
  }

  socket.hear({
    alive: () => pulse.alive(),
    closed: (code, reason) => end(code, reason === '' ? `it was closed with ${code}` : reason),
    binary: () => log.warn('socket.unreadable', { expected: 'JSON as text' }),
    text(text) {
      pulse.alive()
      if (over) return
      const message = read(text)
      if (message === undefined) return log.warn('socket.unreadable', { text: text.slice(0, 200) })
      if (message.type === 'reply') return take(message.id)?.resolve(message.body)
      if (message.type !== 'error') return pushed(message)
      const { code, message: sentence, detail } = message.body
      if (message.id === null) return log.warn('socket.refused', { code, sentence })
      take(message.id)?.reject(
        errorFromProblem({
          code: Object.hasOwn(codes, code) ? (code as ErrorCode) : 'unknown_outcome',
          message: sentence,
          detail,
        }),
      )
    },
  })

  return {
    ask: (type, text, timeoutMs) =>
      new Promise((resolve, reject) => {
        if (over) return reject(new Fault('peer_unreachable', 'the connection has ended'))
        const id = ++ids
        const cancel = timers.after(timeoutMs, () =>
          take(id)?.reject(new Fault('peer_unreachable', `${type} was not answered in time`)),
        )
        asked.set(id, { resolve, reject, cancel })
        socket.send(`{"type":"${type}","id":${id},"body":${text}}`)
        if (socket.buffered > CUT_ABOVE) cut('the server does not read what it is sent')
      }),
    close(why) {
      socket.close(1000, '')
      end(1000, 'it was closed', why)
    },
    cut: () => cut('it was given up'),
  }
}

const read = (text: string): FromServer | undefined => {
  try {
    const found = fromServer.safeParse(JSON.parse(text))
    return found.success ? found.data : undefined
  } catch {
    return undefined
  }
}
