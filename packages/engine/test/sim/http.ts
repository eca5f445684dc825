// The wire of some worlds: the real client of executors on one side, the real handler on the other, and the simulator's
// network in between. Pushes go beside it, since a stream of events is a matter of its own.
import type { Fetch } from '../../src/client/call.ts'
import { httpExecutorPort } from '../../src/client/executor-port.ts'
import type { ExecutorPort, RenewRequest } from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Net } from './net.ts'
import { netPort } from './net.ts'
import { PULSE_MS } from './wires.ts'
import type { Node, World } from './world.ts'

interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

interface Came {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

/** How long a caller waits for an answer, over what it asked the engine to wait. */
const TIMEOUT_MS = 150

/** The port of an executor whose calls go through the handler. */
export const httpPort = (net: Net, node: Node): ExecutorPort => {
  const through: Fetch = async (url, init) => {
    const sent: Sent = {
      url,
      method: init.method ?? 'GET',
      headers: init.headers as Readonly<Record<string, string>>,
      body: typeof init.body === 'string' ? init.body : null,
    }
    const asked = JSON.parse(sent.body ?? '{}') as { readonly waitMs?: number }
    const came = await net.call<Came>(node, 'http', [sent], (asked.waitMs ?? 0) + TIMEOUT_MS)
    return new Response(came.body, {
      status: came.status,
      headers: came.headers.map(([name, value]) => [name, value]),
    })
  }
  return {
    ...httpExecutorPort({ url: 'http://127.0.0.1:7400', fetch: through, ports: node.ports }),
    listen: netPort(net, node).listen,
  }
}

/** The real handler of an engine. */
export const handlerOf = (world: World, engine: Engine): Handler =>
  makeHandler(engine, {
    onDefect: (error) => world.violate('defect', String((error as Error).stack ?? error)),
    pulseMs: PULSE_MS,
  })

/** Answers such calls; `listed` hears of what renewals let go of. */
export const httpVerb =
  (handler: Handler, listed: (request: RenewRequest) => void): ((sent: Sent) => Promise<Came>) =>
  async ({ url, method, headers, body }) => {
    const asked = body === null ? null : (JSON.parse(body) as Partial<RenewRequest>)
    if (asked?.letGo) listed(asked as RenewRequest)
    const response = await handler.fetch(
      new Request(url, { method, headers, ...(body === null ? {} : { body }) }),
    )
    return {
      status: response.status,
      headers: [...response.headers],
      body: await response.text(),
    }
  }
