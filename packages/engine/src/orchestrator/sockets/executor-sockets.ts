// The executor port over WebSockets: all connections of this server. Of each session the newest one stands, and the others
// are closed; a look each second closes what has been superseded through another server, or whose session has ended.
import type { Cancel } from '../../kernel/timers.ts'
import type { Socket } from '../../protocol/socket.ts'
import { PULSE_MS } from '../../protocol/socket.ts'
import type { Engine } from '../engine.ts'
import type { OfferingPort } from '../executor-port.ts'
import { newestConnections } from './newest-connections.ts'
import { SocketConnection } from './socket-connection.ts'

export interface ExecutorSockets {
  /** A socket has been opened, by somebody who may. */
  connect(socket: Socket): void
  /** Ends what waits, lets what is in flight finish, and closes. */
  stop(): void
  /** Ends every connection here and now. */
  cut(): void
  readonly inFlight: number
}

export interface SocketsOptions {
  readonly engine: Engine
  readonly port: OfferingPort
  readonly draining: () => boolean
  readonly onDefect: (error: unknown) => void
  readonly pulseMs?: number
}

export const executorSockets = ({
  engine,
  port,
  draining,
  onDefect,
  pulseMs = PULSE_MS,
}: SocketsOptions): ExecutorSockets => {
  const { ports, settings } = engine
  const all = new Set<SocketConnection>()
  const newest = new Map<string, SocketConnection>()
  const connections = newestConnections(engine)
  let stopped = false
  let looking: Cancel | null = null

  const look = async (): Promise<void> => {
    try {
      await Promise.all([...newest.values()].map((each) => each.mayStay()))
    } catch (error) {
      ports.log.debug('sockets.not_looked_at', { error })
    }
    arm()
  }
  const arm = (): void => {
    looking = newest.size === 0 ? null : ports.timers.after(settings.pollMs, () => void look())
  }

  return {
    connect(socket) {
      const connection = new SocketConnection(socket, {
        engine,
        port,
        draining,
        onDefect,
        pulseMs,
        check: connections.check,
        registered(session) {
          const older = newest.get(session)
          newest.set(session, connection)
          older?.superseded(connection.number)
          if (looking === null) arm()
        },
        gone(session) {
          all.delete(connection)
          if (session !== null && newest.get(session) === connection) newest.delete(session)
        },
      })
      all.add(connection)
      if (stopped) connection.leave()
    },
    stop() {
      stopped = true
      looking?.()
      for (const each of all) each.leave()
    },
    cut() {
      for (const each of all) each.cut()
    },
    get inFlight() {
      let sum = 0
      for (const each of all) sum += each.inFlight
      return sum
    },
  }
}
