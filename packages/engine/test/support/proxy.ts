// A TCP proxy whose connections can be cut, delayed, held back, half closed, or left open and dead: what networks do to a
// database and to a server.
import { once } from 'node:events'
import net from 'node:net'

export interface Proxy {
  readonly port: number
  /** Where new connections lead; whoever stands there may come back at another port. */
  to: number
  /** Ends all connections at once, as a reset. */
  cut(): void
  /** Tells every client that no more comes, while what they send is still passed on. */
  halfClose(): void
  /**
   * From here on: `pass` forwards, `hold` keeps what comes until it passes again, as a network does that heals before anyone
   * has given up, `swallow` keeps connections open and forwards nothing, `refuse` takes no new ones.
   */
  mode: 'pass' | 'hold' | 'swallow' | 'refuse'
  /** How much later what comes is forwarded, in ms. */
  delayMs: number
  /** Sees what a client sends before it is forwarded; true cuts the connection after it has been forwarded. */
  cutAfter: ((data: Buffer) => boolean) | null
  /** Sees what is answered. */
  answered: ((data: Buffer) => void) | null
  close(): Promise<void>
}

export const openProxy = async (to: number, host = '127.0.0.1'): Promise<Proxy> => {
  const sockets = new Set<net.Socket>()
  const clients = new Set<net.Socket>()
  const lines = new Set<() => void>()
  const keep = (socket: net.Socket): void => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }

  /** What waits to be forwarded in one direction, in its order; null ends it. */
  const lineTo = (into: net.Socket): ((data: Buffer | null) => void) => {
    const waiting: { readonly at: number; readonly data: Buffer | null }[] = []
    let timer: NodeJS.Timeout | null = null
    const forward = (): void => {
      timer = null
      for (let first = waiting[0]; first && mode === 'pass'; first = waiting[0]) {
        const early = first.at - performance.now()
        if (early > 0) return void (timer = setTimeout(forward, early))
        waiting.shift()
        if (first.data === null) into.end()
        else if (into.writable) into.write(first.data)
      }
    }
    lines.add(forward)
    into.on('close', () => {
      lines.delete(forward)
      if (timer) clearTimeout(timer)
    })
    return (data) => {
      waiting.push({ at: performance.now() + proxy.delayMs, data })
      if (timer === null) forward()
    }
  }

  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    if (mode === 'refuse') return void client.resetAndDestroy()
    const target = net.connect({ port: proxy.to, host, allowHalfOpen: true })
    keep(client)
    keep(target)
    clients.add(client)
    // where nobody listens the client is to hear of it as it would without us
    target.once('error', () => client.resetAndDestroy())
    const toTarget = lineTo(target)
    const toClient = lineTo(client)
    client.on('data', (data) => {
      if (mode === 'swallow') return
      if (proxy.cutAfter?.(data) !== true) return toTarget(data)
      // the server gets it and acts on it; its answer finds nobody
      client.destroy()
      target.end(data)
      target.resume()
    })
    target.on('data', (data) => {
      proxy.answered?.(data)
      if (mode !== 'swallow') toClient(data)
    })
    client.on('end', () => toTarget(null))
    target.on('end', () => toClient(null))
    client.on('close', () => {
      clients.delete(client)
      target.end()
    })
    target.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  let mode: Proxy['mode'] = 'pass'
  const proxy: Proxy = {
    port: (server.address() as net.AddressInfo).port,
    to,
    get mode() {
      return mode
    },
    set mode(next) {
      mode = next
      if (next === 'pass') for (const forward of lines) forward()
    },
    delayMs: 0,
    cutAfter: null,
    answered: null,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    halfClose() {
      for (const client of clients) client.end()
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      proxy.cut()
      await closed
    },
  }
  return proxy
}
