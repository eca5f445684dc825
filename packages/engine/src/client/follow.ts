// Following server-sent events: messages as they come, over as many connections as it takes. A connection that has been
// silent for three of the server’s comments is given up, and the next one resumes where the last message stood.
import type { Growth } from '../kernel/growing-delay.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import type { Random } from '../kernel/random.ts'
import { jittered } from '../kernel/random.ts'
import { sleep } from '../kernel/timers.ts'
import type { Message } from '../protocol/sse.ts'
import { messageReader } from '../protocol/sse.ts'
import type { RouteName } from '../protocol/routes.ts'
import type { Call, Peer } from './call.ts'
import { isPassing, open } from './call.ts'

const SILENCE_MS = 45_000
const RETRY: Growth = { firstMs: 200, maxMs: 5_000 }

export interface Following {
  readonly random: Random
  readonly signal: AbortSignal
  /** Whether a message is the last one, after which nothing is followed any more. */
  readonly isLast: (message: Message) => boolean
  /** Hears of every connection that failed and will be tried again. */
  readonly onLost?: (error: unknown) => void
}

/** Yields messages until the last one or an abort; throws where the server says no. */
export async function* follow(
  peer: Peer,
  name: RouteName,
  what: Call,
  { random, signal, isLast, onLost }: Following,
): AsyncGenerator<Message, void, undefined> {
  let last = what.lastEventId
  let failures = 0
  while (!signal.aborted) {
    try {
      const from: Call = last === undefined ? what : { ...what, lastEventId: last }
      for await (const message of connection(peer, name, from, signal)) {
        failures = 0
        if (message.id !== null) last = message.id
        yield message
        if (isLast(message)) return
      }
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error)) throw error
      onLost?.(error)
    }
    failures += 1
    await sleep(peer.timers, jittered(random, growingDelayMs(failures, RETRY)), signal)
  }
}

/** The messages of one connection, until it ends or falls silent. */
async function* connection(
  peer: Peer,
  name: RouteName,
  what: Call,
  signal: AbortSignal,
): AsyncGenerator<Message, void, undefined> {
  const over = new AbortController()
  const abort = (): void => over.abort()
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  let cancel = peer.timers.after(SILENCE_MS, abort)
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    reader = (await open(peer, name, what, over.signal)).getReader()
    const left = new Promise<{ done: true }>((resolve) => {
      const leave = (): void => resolve({ done: true })
      over.signal.addEventListener('abort', leave, { once: true })
      if (over.signal.aborted) leave()
    })
    const decoder = new TextDecoder()
    const read = messageReader()
    for (;;) {
      const part = await Promise.race([reader.read().catch(() => ({ done: true as const })), left])
      if (part.done || part.value === undefined) return
      cancel()
      cancel = peer.timers.after(SILENCE_MS, abort)
      yield* read(decoder.decode(part.value, { stream: true }))
    }
  } finally {
    cancel()
    signal.removeEventListener('abort', abort)
    abort()
    await reader?.cancel().catch(() => undefined)
  }
}
