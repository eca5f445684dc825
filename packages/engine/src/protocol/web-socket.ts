// A WebSocket of `ws` as the socket that executors and servers speak through.
import type { WebSocket } from 'ws'
import type { Socket } from './socket.ts'
import { closeReason } from './socket.ts'

export const socketOf = (web: WebSocket): Socket => ({
  send: (text) => web.send(text, () => undefined),
  ping: () => web.ping(undefined, undefined, () => undefined),
  get buffered() {
    return web.bufferedAmount
  },
  close: (code, reason) => web.close(code, closeReason(reason)),
  cut: () => web.terminate(),
  hear({ text, binary, alive, closed }) {
    web.on('message', (data, isBinary) => {
      alive()
      if (isBinary) binary()
      else text(textOf(data))
    })
    web.on('ping', alive)
    web.on('pong', alive)
    web.on('close', (code, reason) => closed(code, reason.toString('utf8')))
    // what went wrong ends it: `close` follows, with a code that says what
    web.on('error', () => undefined)
  },
})

const textOf = (data: Buffer | ArrayBuffer | Buffer[]): string =>
  Buffer.isBuffer(data)
    ? data.toString('utf8')
    : Array.isArray(data)
      ? Buffer.concat(data).toString('utf8')
      : Buffer.from(data).toString('utf8')
