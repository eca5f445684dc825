// The three ways in of executors, on one store: directly, over HTTP, and over a WebSocket.
import type { Fetch } from '../../src/client/call.ts'
import { httpExecutorPort } from '../../src/client/executor-port.ts'
import { socketExecutorPort } from '../../src/client/socket-executor-port.ts'
import { Fault } from '../../src/kernel/errors.ts'
import type { Log } from '../../src/kernel/log.ts'
import { noLog } from '../../src/kernel/log.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { Timers } from '../../src/kernel/timers.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Wire } from './sockets.ts'
import { socketPair } from './sockets.ts'
import type { TestStore } from './store.ts'

export const ways = ['direct', 'HTTP', 'WebSocket'] as const
export type Way = (typeof ways)[number]

const url = 'http://localhost'

export interface SocketWay {
  readonly port: ExecutorPort
  /** Every connection that was opened, in order. */
  readonly wires: Wire[]
  /** The server that is dialed: another replica may take its place; null where nobody answers. */
  server: Handler | null
}

/** The way over a WebSocket to a server that may change. */
export const socketWay = (timers: Timers, server: Handler, log: Log = noLog): SocketWay => {
  const wires: Wire[] = []
  const way: SocketWay = {
    server,
    wires,
    port: socketExecutorPort({
      url,
      ports: { timers, random: seededRandom(3), log },
      dial: async () => {
        if (way.server === null) throw new Fault('peer_unreachable', 'nobody answers')
        const pair = socketPair(timers)
        wires.push(pair.wire)
        way.server.connect(pair.server)
        return pair.dialer
      },
    }),
  }
  return way
}

/** Each way leads to a server of its own on the store of the test. */
export const wayInto = (t: TestStore, way: Way): ExecutorPort => {
  if (way === 'direct') return t.port
  const handler = makeHandler(t.engine, t.shards === null ? {} : { shards: t.shards })
  const timers = t.clock.timers()
  if (way === 'WebSocket') return socketWay(timers, handler).port
  const direct: Fetch = (input, init) => handler.fetch(new Request(input, init))
  return httpExecutorPort({
    url,
    fetch: direct,
    ports: { timers, random: seededRandom(3), log: noLog },
  })
}
