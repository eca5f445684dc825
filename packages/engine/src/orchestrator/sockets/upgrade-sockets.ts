// WebSockets on a server of HTTP. Who may not come in is told so as over HTTP, before there is a socket.
import type { IncomingMessage, Server } from 'node:http'
import { WebSocketServer } from 'ws'
import { refuse } from '../../kernel/outcome.ts'
import { MESSAGE_MAX } from '../../protocol/socket.ts'
import { socketOf } from '../../protocol/web-socket.ts'
import type { Handler } from '../http/handler.ts'
import { problemResponse } from '../http/handler.ts'
import { answerOn } from '../http/malformed.ts'

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
    const no = request ? handler.mayConnect(request) : problemResponse(WITHOUT_ADDRESS)
    if (no) void answerOn(stream, no)
    else
      sockets.handleUpgrade(incoming, stream, head, (socket) => handler.connect(socketOf(socket)))
  })
}

const WITHOUT_ADDRESS = refuse(
  'invalid_request',
  'the request is not well formed: its Host and its path make no address; correct them',
  { faults: [{ path: 'request', message: 'has no address' }] },
)

const requestOf = ({ url = '/', headers }: IncomingMessage): Request | null => {
  if (headers.host === undefined) return null
  const at = `http://${headers.host}${url}`
  if (!URL.canParse(at)) return null
  const { host, origin, authorization } = headers
  return new Request(at, {
    headers: Object.entries({ host, origin, authorization }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    ),
  })
}
