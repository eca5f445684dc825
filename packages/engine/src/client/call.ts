// One call of a route over HTTP: a request made from the route table, and an answer or an error by its code. What the
// network does is a fault; what the server says no to is the error that it names.
import type { ErrorCode } from '../kernel/codes.ts'
import { Fault } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import type { Timers } from '../kernel/timers.ts'
import { headerText } from '../protocol/header-text.ts'
import { errorFromProblem, readProblem } from '../protocol/problem.ts'
import type { AnswerOf, Route } from '../protocol/route.ts'
import type { RouteName, Routes } from '../protocol/routes.ts'
import { ACTOR_HEADER, KEY_HEADER, pathOf, routes } from '../protocol/routes.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Peer {
  /** The server's root, such as `http://127.0.0.1:7400`. */
  readonly url: string
  readonly token: string | null
  /** Who acts, for the events of the runs. */
  readonly actor: string | null
  readonly fetch: Fetch
  readonly timers: Timers
}

export interface Call {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  /** Sent as `Idempotency-Key`. */
  readonly key?: string
  readonly lastEventId?: string
  readonly signal?: AbortSignal
  /** How long the whole answer may take. Default 30 s. */
  readonly timeoutMs?: number
}

const TIMEOUT_MS = 30_000

/** Calls a route; throws a Fault `peer_unreachable` where no answer of a Leasehold server came, else the error by its code. */
export const call = async <N extends RouteName>(
  peer: Peer,
  name: N,
  what: Call,
): Promise<AnswerOf<Routes[N]>> => {
  const over = new AbortController()
  const abort = (): void => over.abort()
  const cancel = peer.timers.after(what.timeoutMs ?? TIMEOUT_MS, abort)
  what.signal?.addEventListener('abort', abort, { once: true })
  if (what.signal?.aborted === true) abort()
  try {
    const request = requestOf(peer, name, what, over.signal)
    const { response, text } = await reached(peer, name, async () => {
      const response = await peer.fetch(...request)
      return { response, text: await response.text() }
    })
    return answerOf(response, text, name) as AnswerOf<Routes[N]>
  } finally {
    cancel()
    what.signal?.removeEventListener('abort', abort)
  }
}

/** Opens a route of server-sent events; the caller reads its body and ends it by `signal`. */
export const open = async (
  peer: Peer,
  name: RouteName,
  what: Call,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> => {
  const request = requestOf(peer, name, what, signal)
  const response = await reached(peer, name, () => peer.fetch(...request))
  if (response.ok && response.body !== null) return response.body as ReadableStream<Uint8Array>
  throw errorOfResponse(response, await reached(peer, name, () => response.text()), name)
}

const reached = async <T>(peer: Peer, name: RouteName, ask: () => Promise<T>): Promise<T> => {
  try {
    return await ask()
  } catch (error) {
    throw new Fault(
      'peer_unreachable',
      `no server answers at ${peer.url} (${name}): ${whyNot(peer.url, error)}`,
      { cause: error, detail: { url: peer.url } },
    )
  }
}

/** Some ports are kept from every `fetch`, that of browsers too, since other protocols listen there. */
const whyNot = (url: string, error: unknown): string => {
  const why = messageOf((error as { cause?: unknown } | null)?.cause ?? error)
  return why === 'bad port'
    ? `fetch never connects to port ${new URL(url).port}, which is kept for another protocol; let the server listen on another one`
    : why
}

const requestOf = (
  peer: Peer,
  name: RouteName,
  what: Call,
  signal: AbortSignal,
): [string, RequestInit] => {
  const route: Route = routes[name]
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(what.query ?? {})) {
    if (value === undefined || value === null) continue
    query.set(key, Array.isArray(value) ? value.join(',') : String(value as string | number))
  }
  const search = query.size === 0 ? '' : `?${query.toString()}`
  return [
    `${peer.url.replace(/\/+$/, '')}${pathOf(route, what.params)}${search}`,
    {
      method: route.method,
      signal,
      headers: {
        accept: route.stream === true ? 'text/event-stream' : 'application/json',
        ...(what.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(peer.token === null ? {} : { authorization: `Bearer ${peer.token}` }),
        ...(peer.actor === null ? {} : { [ACTOR_HEADER]: headerText(peer.actor) }),
        ...(what.key === undefined ? {} : { [KEY_HEADER]: headerText(what.key) }),
        ...(what.lastEventId === undefined ? {} : { 'last-event-id': what.lastEventId }),
      },
      ...(what.body === undefined ? {} : { body: bodyText(what.body) }),
    },
  ]
}

/** A body may come as text that is JSON already. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}
const bodyText = (body: unknown): string =>
  body instanceof JsonText ? body.text : JSON.stringify(body)

const answerOf = (response: Response, text: string, name: RouteName): unknown => {
  if (!response.ok) throw errorOfResponse(response, text, name)
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new Fault('unknown_outcome', `the answer to ${name} is not JSON`, { cause: error })
  }
}

const errorOfResponse = (response: Response, text: string, name: RouteName): Error => {
  const problem = readProblem(parsed(text))
  if (problem) return errorFromProblem(problem)
  const { status } = response
  const unknownCall = status === 404 || status === 405 || status === 501
  return new Fault(
    'peer_unreachable',
    unknownCall
      ? `what answers at this address does not know ${name} (status ${status}); it is another program, or an older version`
      : `${name} was answered with status ${status} by something that is not a Leasehold server`,
    { retryable: !unknownCall && status >= 500, detail: { status, unknownCall } },
  )
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Whether the same request may be repeated: nothing was done, or repeating it does no harm. */
export const isPassing = (error: unknown): boolean => {
  if (error instanceof Fault) return error.retryable
  const code = (error as { code?: ErrorCode } | null)?.code
  return code === 'draining'
}
