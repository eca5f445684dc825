// Opens a WebSocket to a server with `ws`. Who is not let in hears why, as over HTTP.
import { WebSocket } from 'ws'
import { Fault } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { errorFromProblem, readProblem } from '../protocol/problem.ts'
import type { Socket } from '../protocol/socket.ts'
import { MESSAGE_MAX } from '../protocol/socket.ts'
import { socketOf } from '../protocol/web-socket.ts'

/** Opens a socket; rejects with a Fault, or with what the server said no by. */
export type Dial = (
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<Socket>

/** A claim's answer has the inputs and journals of all its runs. */
const ANSWER_MAX = 8 * MESSAGE_MAX
const PROBLEM_MAX = 64 * 1024

export const dial: Dial = (url, headers, signal) =>
  new Promise((resolve, reject) => {
    const web = new WebSocket(url, {
      headers,
      perMessageDeflate: false,
      maxPayload: ANSWER_MAX,
    })
    const leave = (): void => web.terminate()
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    const settle = (act: () => void): void => {
      signal.removeEventListener('abort', leave)
      act()
    }
    const unreachable = (why: string, cause?: unknown): Fault =>
      new Fault('peer_unreachable', `${url} did not open a WebSocket: ${why}`, { cause })
    web.once('open', () => settle(() => resolve(socketOf(web))))
    web.once('error', (error) => settle(() => reject(unreachable(messageOf(error), error))))
    web.once('unexpected-response', (_request, response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
        if (text.length > PROBLEM_MAX) response.destroy()
      })
      const over = (): void =>
        settle(() => {
          const problem = readProblem(parsed(text))
          reject(
            problem
              ? errorFromProblem(problem)
              : unreachable(
                  `it answered with status ${response.statusCode}, and is not a Leasehold server, an older one, or behind a proxy that lets no WebSocket through`,
                ),
          )
          web.terminate()
        })
      response.on('close', over)
    })
  })

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
