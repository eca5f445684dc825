// WebSockets on a server of HTTP. Who may not come in is told so as over HTTP, before there is a socket.
import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { MESSAGE_MAX } from '../protocol/socket.ts'
import { socketOf } from '../protocol/web-socket.ts'
import type { Handler } from './handler.ts'

export const upgradeSockets = (server: Server, handler: Handler): void => {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // a compressed message may be small on the wire and anything once it is unpacked
    perMessageDeflate: false,
    maxPayload: MESSAGE_MAX,
  })
  server.on('upgrade', (incoming, stream, head) => {
    stream.on('error', () => stream.destroy())
    const request = requestOf(incoming)
    const no = request ? handler.mayConnect(request) : new Response(null, { status: 400 })
    if (no) void refuse(stream, no)
    else
      sockets.handleUpgrade(incoming, stream, head, (socket) => handler.connect(socketOf(socket)))
  })
}

const requestOf = ({ url = '/', headers }: IncomingMessage): Request | null => {
  const at = `http://${headers.host ?? 'localhost'}${url}`
  if (!URL.canParse(at)) return null
  const { host, origin, authorization } = headers
  return new Request(at, {
    headers: Object.entries({ host, origin, authorization }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    ),
  })
}

const refuse = async (stream: Duplex, response: Response): Promise<void> => {
  const body = await response.text()
  const head = [
    `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`,
    'connection: close',
    `content-length: ${Buffer.byteLength(body)}`,
    ...[...response.headers].map(([name, value]) => `${name}: ${value}`),
  ]
  stream.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
