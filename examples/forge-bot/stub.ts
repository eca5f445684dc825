// A forge that runs offline: issues with comments and labels, as GitHub's REST API has them. It refuses the first request to
// write anything, takes the second and loses its answer, as services do now and then.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Forge {
  readonly url: string
  comments(issue: string): readonly string[]
  labels(issue: string): readonly string[]
  /** Requests that it refused, and answers that it lost. */
  readonly failed: { refused: number; lost: number }
  close(): void
}

export const startForge = async (token: string): Promise<Forge> => {
  const comments = new Map<string, string[]>()
  const labels = new Map<string, string[]>()
  const failed = { refused: 0, lost: 0 }
  const server = createServer((request, response) => {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { pathname } = new URL(request.url ?? '/', 'http://forge')
      const [, issue, what] =
        /^\/repos\/([^/]+\/[^/]+\/issues\/\d+)\/(comments|labels)$/.exec(pathname) ?? []
      if (request.headers.authorization !== `Bearer ${token}`)
        return answer(401, { message: 'Bad credentials' })
      if (issue === undefined) return answer(404, { message: 'Not Found' })
      const mine = comments.get(issue) ?? []
      const shown = mine.map((body, i) => ({ body, html_url: `${issue}#${i + 1}` }))
      if (request.method === 'GET' && what === 'comments') return answer(200, shown)
      if (failed.refused === 0) {
        failed.refused += 1
        return answer(502, { message: 'Server Error' })
      }
      const sent = JSON.parse(Buffer.concat(parts).toString()) as {
        body: string
        labels: string[]
      }
      if (what === 'labels') {
        labels.set(issue, sent.labels)
        return answer(200, sent.labels)
      }
      comments.set(issue, [...mine, sent.body])
      if (failed.lost === 0) {
        failed.lost += 1
        return request.socket.destroy()
      }
      answer(201, { body: sent.body, html_url: `${issue}#${mine.length + 1}` })
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    comments: (issue) => comments.get(issue) ?? [],
    labels: (issue) => labels.get(issue) ?? [],
    failed,
    close: () => void server.close(),
  }
}
