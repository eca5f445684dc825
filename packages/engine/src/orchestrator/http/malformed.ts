// What comes over a connection and is no HTTP, is too much or comes too late: it is answered with a problem document where
// nothing has been said yet on that connection, and the connection is closed.
import { STATUS_CODES } from 'node:http'
import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { problemResponse } from './handler.ts'

export const refuseMalformed = (server: Server): void => {
  // what is written while an answer is on its way would be read as a part of it
  const answering = new WeakMap<Duplex, number>()
  server.on('request', ({ socket }, response) => {
    answering.set(socket, (answering.get(socket) ?? 0) + 1)
    response.once('close', () => answering.set(socket, (answering.get(socket) ?? 1) - 1))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || (answering.get(socket) ?? 0) > 0)
      socket.destroy()
    else void answerOn(socket, problemResponse(whyNot(error)))
  })
}

const whyNot = ({ code, message }: NodeJS.ErrnoException): Refusal =>
  code === 'HPE_HEADER_OVERFLOW'
    ? refuse(
        'headers_too_large',
        'the head of the request is larger than this server reads; send fewer or shorter headers',
      )
    : code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? refuse('request_timeout', 'the request did not arrive in time; send it again')
      : refuse('invalid_request', `what arrived is not HTTP: ${message}; send a request`, {
          faults: [{ path: 'request', message: 'is not HTTP' }],
        })

/** Writes a response on a connection that has no request, and ends it. */
export const answerOn = async (stream: Duplex, response: Response): Promise<void> => {
  const body = await response.text()
  const head = [
    `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`,
    'connection: close',
    `content-length: ${Buffer.byteLength(body)}`,
    ...[...response.headers].map(([name, value]) => `${name}: ${value}`),
  ]
  stream.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
