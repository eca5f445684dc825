// A service outside the engine that is as unreliable as real ones: the first request under each key is answered with 503.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Service {
  readonly url: string
  /** Requests that were answered with 503. */
  readonly refused: () => number
  close(): void
}

export const startService = async (): Promise<Service> => {
  const seen = new Set<string>()
  let refused = 0
  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key'] ?? '')
    const known = seen.has(key)
    seen.add(key)
    if (!known) refused += 1
    response.writeHead(known ? 200 : 503, {
      'content-type': 'application/json',
      connection: 'close',
    })
    response.end(
      known ? JSON.stringify({ standing: key.length % 7 === 0 ? 'new here' : 'known' }) : '{}',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    refused: () => refused,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
