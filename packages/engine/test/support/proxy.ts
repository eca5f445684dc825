// A TCP proxy whose connections can be cut, held back, or left open and dead: what networks do to a database.
import { once } from 'node:events'
import net from 'node:net'

export interface Proxy {
  readonly port: number
  /** Ends all connections at once, as a reset. */
  cut(): void
  /** From here on: `pass` forwards, `swallow` keeps connections open and forwards nothing, `refuse` takes no new ones. */
  mode: 'pass' | 'swallow' | 'refuse'
  /** Sees what a client sends before it is forwarded; true cuts the connection after it has been forwarded. */
  cutAfter: ((data: Buffer) => boolean) | null
  close(): Promise<void>
}

export const openProxy = async (port: number, host = '127.0.0.1'): Promise<Proxy> => {
  const sockets = new Set<net.Socket>()
  const keep = (socket: net.Socket): void => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  const server = net.createServer((client) => {
    if (proxy.mode === 'refuse') return void client.destroy()
    keep(client)
    const target = net.connect({ port, host })
    keep(target)
    client.on('data', (data) => {
      if (proxy.mode !== 'pass') return
      if (proxy.cutAfter?.(data) !== true) return void target.write(data)
      // the server gets it and acts on it; its answer finds nobody
      client.destroy()
      target.end(data)
      target.resume()
    })
    target.on('data', (data) => {
      if (proxy.mode === 'pass') client.write(data)
    })
    client.on('close', () => target.end())
    target.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: Proxy = {
    port: (server.address() as net.AddressInfo).port,
    mode: 'pass',
    cutAfter: null,
    cut() {
      for (const socket of sockets) socket.destroy()
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
