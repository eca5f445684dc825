// The handler on a socket. Closing it is in steps: refuse what comes, end what waits, let what is in flight finish, and cut
// what does not.
import { RequestError, getRequestListener } from '@hono/node-server'
import { createServer } from 'node:http'
import { Fault } from '../../kernel/errors.ts'
import { refuse } from '../../kernel/outcome.ts'
import { sleep } from '../../kernel/timers.ts'
import type { Engine } from '../engine.ts'
import { isLoopback } from './gate.ts'
import type { Handler, HandlerOptions } from './handler.ts'
import { defectResponse, makeHandler, problemResponse } from './handler.ts'
import { refuseMalformed } from './malformed.ts'
import { upgradeSockets } from '../sockets/upgrade-sockets.ts'

export interface ServerOptions extends HandlerOptions {
  /** 0 takes a free one. Default 7400. */
  readonly port?: number
  /** Default 127.0.0.1. Any other address than this machine's own needs tokens. */
  readonly host?: string
}

export interface Listening {
  readonly url: string
  readonly port: number
  readonly handler: Handler
  /** From now on requests are refused as `draining`. */
  drain(): void
  /** Drains, ends streams and long polls at once, and closes when nothing is in flight or `graceMs` have passed. */
  close(graceMs?: number): Promise<void>
}

const PORT = 7400
const GRACE_MS = 5_000
const IDLE_MS = 20

const whyNot = ({ code, message }: NodeJS.ErrnoException): string =>
  code === 'EADDRINUSE'
    ? 'a program listens there already (EADDRINUSE); take another port, or 0 for a free one'
    : message

/** Throws `invalid_config` where anybody could reach the server without a token. */
const mustBeGuarded = (host: string, tokens: ServerOptions['tokens'] = []): void => {
  if (isLoopback(host.includes(':') ? `[${host}]` : host) || tokens.length > 0) return
  throw new Fault(
    'invalid_config',
    `the server would listen on ${host} for anybody; configure a token first, or listen on 127.0.0.1`,
    { retryable: false },
  )
}

const cannotListen = (host: string, port: number, error: NodeJS.ErrnoException): Fault =>
  new Fault('invalid_config', `cannot listen on ${host}:${port}: ${whyNot(error)}`, {
    retryable: false,
    cause: error,
  })

/** Throws as `serve` would that cannot listen there, before a store is opened or made for it. */
export const mustListen = async ({
  port = PORT,
  host = '127.0.0.1',
  tokens,
}: Pick<ServerOptions, 'port' | 'host' | 'tokens'>): Promise<void> => {
  mustBeGuarded(host, tokens)
  if (port === 0) return
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(host, port, error)))
    probe.listen(port, host, () => probe.close(() => resolve()))
  })
}

/** Opens the socket; throws `invalid_config` where it would be open to others without a token. */
export const serve = async (engine: Engine, options: ServerOptions = {}): Promise<Listening> => {
  const { port = PORT, host = '127.0.0.1', ...rest } = options
  mustBeGuarded(host, rest.tokens)
  const handler = makeHandler(engine, rest)
  const listener = getRequestListener(handler.fetch, {
    overrideGlobalObjects: false,
    // what cannot be made a request never comes to the handler, which answers for its own mistakes
    errorHandler: (error) => {
      if (error instanceof RequestError)
        return problemResponse(
          refuse(
            'invalid_request',
            `the request is not well formed: ${error.message}; correct its Host and its path`,
            { faults: [{ path: 'request', message: error.message }] },
          ),
        )
      engine.ports.log.error('request.defect', { error })
      return defectResponse()
    },
  })
  // who leaves the Host out is told so in the same way as who sends a wrong one
  const server = createServer({ requireHostHeader: false }, (incoming, outgoing) => {
    void listener(incoming, outgoing)
  })
  refuseMalformed(server)
  upgradeSockets(server, handler)
  server.requestTimeout = 120_000
  server.headersTimeout = 30_000
  server.keepAliveTimeout = 30_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(host, port, error)))
    server.listen(port, host, resolve)
  })
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  let closing: Promise<void> | null = null

  const close = async (graceMs: number): Promise<void> => {
    handler.drain()
    handler.stop()
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve())
    })
    const { timers } = engine.ports
    const over = new AbortController()
    const late = sleep(timers, graceMs, over.signal).then((how) => {
      if (how !== 'slept') return
      server.closeAllConnections()
      handler.cut()
    })
    // a connection that is kept open is let go as soon as its last answer has been sent
    const idle = async (): Promise<void> => {
      do server.closeIdleConnections()
      while ((await sleep(timers, IDLE_MS, over.signal)) === 'slept')
    }
    const letting = idle()
    await closed
    over.abort()
    await Promise.all([late, letting])
  }

  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    handler,
    drain: () => handler.drain(),
    close: (graceMs = GRACE_MS) => (closing ??= close(graceMs)),
  }
}
