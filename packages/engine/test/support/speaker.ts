// One end of a socket that says what a test gives it, word by word, and keeps all that it hears.
import { sleep, systemTimers } from '../../src/kernel/timers.ts'
import type { Timers } from '../../src/kernel/timers.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import type { FromServer } from '../../src/protocol/socket-messages.ts'
import { fromServer } from '../../src/protocol/socket-messages.ts'
import type { Wire } from './sockets.ts'
import { socketPair } from './sockets.ts'
import { definition, registration } from './store.ts'

export interface Speaker {
  readonly wire: Wire
  readonly heard: FromServer[]
  /** The code and reason with which the connection was closed; null while it stands. */
  closed: { readonly code: number; readonly reason: string } | null
  say(text: string): void
  /** Sends a message and resolves with what answers it. */
  ask(type: string, body: unknown): Promise<FromServer>
  /** By default with one workflow, `w`. */
  register(session: string, connection?: number, workflows?: readonly string[]): Promise<FromServer>
  /** The next message of this type that was not taken yet. */
  next<T extends FromServer['type']>(type: T): Promise<Extract<FromServer, { type: T }>>
  untilClosed(): Promise<{ readonly code: number; readonly reason: string }>
}

/** Turns of the event loop until something is there. */
export const until = async <T>(find: () => T | null | undefined | false): Promise<T> => {
  for (;;) {
    const found = find()
    if (found !== null && found !== undefined && found !== false) return found
    await sleep(systemTimers, 0)
  }
}

export const speaker = (handler: Handler, timers: Timers): Speaker => {
  const { dialer, server, wire } = socketPair(timers)
  let ids = 0
  const taken = new Set<FromServer>()
  const made: Speaker = {
    wire,
    heard: [],
    closed: null,
    say: (text) => dialer.send(text),
    ask(type, body) {
      const id = ++ids
      dialer.send(JSON.stringify({ type, id, body }))
      return until(() => {
        const found = made.heard.find(
          (each) => (each.type === 'reply' || each.type === 'error') && each.id === id,
        )
        if (found) taken.add(found)
        return found
      })
    },
    register: (session, connection = 1, workflows = ['w']) =>
      made.ask('session:register', {
        connection,
        ...registration(session, {
          definitions: workflows.map((name) => definition(name)),
        }),
      }),
    async next(type) {
      const found = await until(() =>
        made.heard.find((each) => each.type === type && !taken.has(each)),
      )
      taken.add(found)
      return found as never
    },
    untilClosed: () => until(() => made.closed),
  }
  dialer.hear({
    text: (text) => void made.heard.push(fromServer.parse(JSON.parse(text))),
    binary: () => undefined,
    alive: () => undefined,
    closed(code, reason) {
      made.closed = { code, reason }
    },
  })
  handler.connect(server)
  return made
}
