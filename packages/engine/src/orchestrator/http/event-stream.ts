// A response of server-sent events from an async source: one message as soon as the reader wants one, a comment while
// nothing happens so that proxies and dead readers show, and an end when the source ends or fails, the reader leaves or the
// server stops. After the end nothing is sent any more.
import type { Timers } from '../../kernel/timers.ts'
import type { Message } from '../../protocol/sse.ts'
import { STILL_HERE, messageText } from '../../protocol/sse.ts'

export const STILL_HERE_MS = 15_000

export type Source = (signal: AbortSignal) => AsyncGenerator<Message, void, undefined>

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

/** What a HEAD is answered with: nobody reads a body then, so that no source is asked and nothing is left to be ended. */
export const streamHead = (): Response => new Response(null, { headers: HEADERS })

export const eventStream = (source: Source, timers: Timers, stop: AbortSignal): Response => {
  const ended = new AbortController()
  const end = (): void => ended.abort()
  stop.addEventListener('abort', end, { once: true })
  if (stop.aborted) end()
  const encoder = new TextEncoder()
  const messages = source(ended.signal)
  let quiet: (() => void) | null = null
  let closed = false
  const leave = (): void => {
    closed = true
    quiet?.()
    stop.removeEventListener('abort', end)
    end()
  }
  const finish = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    if (closed) return
    leave()
    controller.close()
  }
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const beat = (): void => {
        if (closed) return
        controller.enqueue(encoder.encode(STILL_HERE))
        quiet = timers.after(STILL_HERE_MS, beat)
      }
      beat()
      ended.signal.addEventListener('abort', () => finish(controller), { once: true })
      if (ended.signal.aborted) finish(controller)
    },
    async pull(controller) {
      const next = await messages.next().catch((error: unknown) => {
        // the reader's connection is ended by it; a reader that wants more comes again
        leave()
        throw error
      })
      if (closed) return
      if (next.done === true) finish(controller)
      else controller.enqueue(encoder.encode(messageText(next.value)))
    },
    async cancel() {
      leave()
      await messages.return()
    },
  })
  return new Response(body, { headers: HEADERS })
}
