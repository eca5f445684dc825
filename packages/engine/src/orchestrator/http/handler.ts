// The server as one function from request to response, made from the route table: who may, what fits its schema, once for
// each command, and every refusal as a problem document. It opens no socket and knows no platform.
import { Hono } from 'hono'
import { setMaxListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AttemptGrant } from '../../kernel/attempt-token.ts'
import { codes } from '../../kernel/codes.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Family } from '../../kernel/meters.ts'
import type { Outcome, Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { isName } from '../../model/definition.ts'
import type { ExecutorPort } from '../../model/work.ts'
import { docsPage } from '../../protocol/docs-page.ts'
import { openApi } from '../../protocol/openapi.ts'
import { PROBLEM_TYPE, problemOf } from '../../protocol/problem.ts'
import type { Method, Route } from '../../protocol/route.ts'
import type { RouteName } from '../../protocol/routes.ts'
import type { Socket } from '../../protocol/socket.ts'
import { SOCKET_PATH } from '../../protocol/socket.ts'
import { textOfHeader } from '../../protocol/header-text.ts'
import { ACTOR_HEADER, KEY_HEADER, REPLAYED_HEADER, routes } from '../../protocol/routes.ts'
import { adoptionsOf } from './adoptions.ts'
import { executorAnswers } from './answer-executors.ts'
import { attemptGate, attemptTokenOf } from './attempt-gate.ts'
import { deliveryAnswers } from './answer-deliveries.ts'
import { operationsAnswers } from './answer-operations.ts'
import { runAnswers } from './answer-runs.ts'
import { scheduleAnswers } from './answer-schedules.ts'
import { spawnAnswers } from './answer-spawns.ts'
import { triggerAnswers } from './answer-triggers.ts'
import type { AnswersTo, Asked, Shared } from './answers.ts'
import type { Command, Transition } from './commands.ts'
import { doOnce } from './commands.ts'
import type { Engine } from '../engine.ts'
import { eventStream, streamHead } from './event-stream.ts'
import { executorPort } from '../executor-port.ts'
import { executorSockets } from '../sockets/executor-sockets.ts'
import { faultsOf, invalid } from '../faults.ts'
import type { PathFault } from '../faults.ts'
import type { Token } from './gate.ts'
import { gate } from './gate.ts'
import { inputCheck } from './input-check.ts'
import type { Share } from './request-body.ts'
import { readBody, readBytes } from './request-body.ts'
import { shardAnswers } from '../shards/shard-answers.ts'
import type { Shards } from '../shards/shards.ts'

export interface HandlerOptions {
  /** Without tokens only this machine may call, by its own names. */
  readonly tokens?: readonly Token[]
  /** What senders of deliveries sign with, by the names that triggers have for it. */
  readonly hookSecrets?: Readonly<Record<string, string>>
  /** Path of the dashboard's one page; served at `/` when the file exists. */
  readonly dashboard?: string
  /** Makes the sweep that takes back what dead sessions held look at once. */
  readonly reapSoon?: () => void
  /** Hears of mistakes of our own, after they were answered. */
  readonly onDefect?: (error: unknown) => void
  /** Figures of the process around the engine, for `/metrics`. */
  readonly figures?: () => readonly Family[]
  /** The databases of one store, of which the engine is the first. Default: it is a store by itself. */
  readonly shards?: Shards
  /** How often an executor over WebSocket is asked whether it is there. Default 5 s. */
  readonly pulseMs?: number
}

export interface Handler {
  fetch(request: Request): Promise<Response>
  /** Null where a WebSocket may be opened; else what to answer instead. */
  mayConnect(request: Request): Response | null
  /** Serves an executor on a socket that was opened. */
  connect(socket: Socket): void
  /** Ends every such socket here and now. */
  cut(): void
  /** From now on everything but health is refused as `draining`; what is in flight goes on. */
  drain(): void
  /** Ends what waits: long polls answer, streams end. */
  stop(): void
  readonly inFlight: number
}

const BULK_MAX = 64 * 1024 ** 2
const ENVELOPE = 64 * 1024
/** Bytes of deliveries that are received at once; of the largest that one may be, four fit whatever the setting. */
const DELIVERIES_MAX = 64 * 1024 ** 2
const NONE = new Uint8Array()
const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE']
const WRONG_NAME =
  "is not a name of 1 to 200 characters ('.' and '..' are none), plain or as UTF-8'' and its percent-encoded bytes"

/** The server of an engine without its socket: give requests to `fetch`, and call `stop` at the end. */
export const makeHandler = (engine: Engine, options: HandlerOptions = {}): Handler => {
  const { ports, settings } = engine
  const stopping = new AbortController()
  // one listener for each request that waits
  setMaxListeners(0, stopping.signal)
  const enter = gate(options.tokens ?? [])
  let draining = false
  let inFlight = 0
  const port = executorPort(engine, { process: 'remote', embedded: false })
  const sockets = executorSockets({
    engine,
    port,
    draining: () => draining,
    onDefect: (error) => options.onDefect?.(error),
    ...(options.pulseMs === undefined ? {} : { pulseMs: options.pulseMs }),
  })
  const { shards } = options
  const engines = shards?.engines ?? [engine]
  const shared = {
    engines,
    checkInput: inputCheck(ports.log),
    secrets: new Map(Object.entries(options.hookSecrets ?? {})),
    reapSoon: options.reapSoon ?? (() => undefined),
    figures: options.figures ?? (() => []),
    health: { draining: () => draining, inFlight: () => inFlight + sockets.inFlight },
  }
  const answersOf = (of: Engine, through: ExecutorPort): AnswersTo<RouteName> =>
    allAnswers({ ...shared, engine: of, port: through, adoptions: adoptionsOf(of) })
  const answers: AnswersTo<RouteName> =
    shards === undefined
      ? answersOf(engine, port)
      : shardAnswers({
          shards,
          answers: engines.map((each) =>
            answersOf(each, executorPort(each, { process: 'remote', embedded: false })),
          ),
          whole: answersOf(engine, shards.port),
          figures: shared.figures,
        })

  const refused = (
    request: Request,
    route: Pick<Route, 'role' | 'raw'>,
    proven = false,
  ): Refusal | null =>
    (route.raw === true ? null : enter(request, route.role, proven)) ??
    (draining && (route.raw === true || route.role !== 'public')
      ? refuse('draining', 'this server is shutting down; try another one, or again in a moment')
      : null)

  const receiving: Share = {
    most: Math.max(DELIVERIES_MAX, 4 * settings.hookBodyMaxBytes),
    held: 0,
  }
  /** Each shard makes tokens for attempts of its own runs. */
  const proven = (token: string): AttemptGrant | null => {
    for (const each of engines) {
      const grant = each.grants.proven(token)
      if (grant !== null) return grant
    }
    return null
  }

  const readAs = async (route: Route, request: Request) => {
    if (route.raw === true) {
      const read = await readBytes(request, settings.hookBodyMaxBytes, receiving)
      return read.ok ? { ...read, text: '', value: {} } : read
    }
    const read = await readBody(
      request,
      route.size === 'bulk' ? BULK_MAX : Math.ceil(settings.payloadMaxBytes * 1.2) + ENVELOPE,
    )
    return read.ok ? { ...read, bytes: NONE } : read
  }

  const commandOf = (request: Request, name: RouteName, text: string): Command | null | Refusal => {
    const route: Route = routes[name]
    const sent = request.headers.get(KEY_HEADER)
    if (sent === null || route.method !== 'POST' || route.hot === true || route.raw === true)
      return null
    const key = textOfHeader(sent)
    if (!isName(key)) return invalid([{ path: KEY_HEADER, message: WRONG_NAME }], 'header')
    return {
      key,
      route: name,
      hash: engine.context.hash(`${new URL(request.url).pathname}\n${text}`),
    }
  }

  const respond = async (
    name: RouteName,
    request: Request,
    params: Record<string, string>,
  ): Promise<Response> => {
    const route: Route = routes[name]
    const token = attemptTokenOf(request)
    const grant = token === null ? null : proven(token)
    const no = refused(request, route, grant !== null)
    if (no) return problemResponse(no)
    const body = await readAs(route, request)
    if (!body.ok) return problemResponse(body)
    const parsed = parse(route, request, params, body.value)
    if ('ok' in parsed) return problemResponse(parsed)
    const sent = { ...(parsed.query as object), ...(parsed.body as object) }
    const beyond = grant && attemptGate(grant, name, sent)
    if (beyond) return problemResponse(beyond)
    const actor = textOfHeader(
      (route.raw === true ? null : request.headers.get(ACTOR_HEADER)) ?? 'api',
    )
    if (!isName(actor))
      return problemResponse(invalid([{ path: ACTOR_HEADER, message: WRONG_NAME }], 'header'))
    const command = commandOf(request, name, body.text)
    if (command !== null && 'ok' in command) return problemResponse(command)
    let replayed = false
    let leave: ReturnType<typeof linked> | undefined
    const asked: Asked<Route> = {
      ...parsed,
      actor,
      grant,
      raw: { bytes: body.bytes, header: (each) => request.headers.get(each) },
      get signal() {
        leave ??= linked(stopping.signal, request.signal)
        return leave.signal
      },
      lastEventId: request.headers.get('last-event-id'),
      command,
      once: (transition) => asked.onceAt(engine, transition),
      async onceAt<T>(at: Engine, transition: Transition<T>): Promise<Outcome<T>> {
        const done = await doOnce(at, command, transition)
        replayed = done.replayed
        return done.answer
      },
      stream: (source) =>
        request.method === 'HEAD'
          ? streamHead()
          : eventStream(source, ports.timers, stopping.signal),
    }
    const answer = answers[name] as unknown as (asked: Asked<Route>) => Promise<unknown>
    const reply = await answer(asked).finally(() => leave?.release())
    const more = replayed ? { [REPLAYED_HEADER]: 'true' } : {}
    if (reply instanceof Response) return reply
    const outcome = reply as Outcome<object>
    if (outcome.ok === false) return problemResponse(outcome, more)
    const { ok: _ok, ...bare } = outcome
    return jsonResponse(route.hot === true ? outcome : bare, 200, more)
  }

  const guarded = async (answer: () => Promise<Response>): Promise<Response> => {
    inFlight += 1
    try {
      return await answer()
    } catch (error) {
      if (error instanceof LeaseholdError) return problemResponse(error)
      ports.log.error('request.defect', { error })
      options.onDefect?.(error)
      return defectResponse()
    } finally {
      inFlight -= 1
    }
  }

  const measured = async (route: RouteName, answer: () => Promise<Response>): Promise<Response> => {
    const began = ports.time.mono()
    const response = await answer()
    engine.meters.requests.observe(
      { route, status: String(response.status) },
      (ports.time.mono() - began) / 1_000,
    )
    return response
  }

  const app = new Hono()
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name]
    app.on(route.method, route.path, (c) =>
      measured(name, () =>
        guarded(() => respond(name, c.req.raw, c.req.param() as Record<string, string>)),
      ),
    )
  }
  app.get(SOCKET_PATH, (c) =>
    guarded(async () =>
      problemResponse(
        enter(c.req.raw, 'executor') ??
          refuse('invalid_request', 'executors speak here over a WebSocket; ask for an upgrade'),
      ),
    ),
  )
  app.get('/', (c) => guarded(() => dashboard(c.req.raw)))
  app.get('/openapi.json', (c) =>
    guarded(async () => {
      const no = enter(c.req.raw, 'public')
      return no ? problemResponse(no) : jsonResponse(document())
    }),
  )
  app.get('/docs', (c) =>
    guarded(async () => {
      const no = enter(c.req.raw, 'public')
      return no ? problemResponse(no) : htmlResponse(docsPage(document()))
    }),
  )
  app.notFound((c) => {
    const { method, path } = c.req
    const allowed = METHODS.filter((each) => app.router.match(each, path)[0].length > 0).flatMap(
      (each) => (each === 'GET' ? ['GET', 'HEAD'] : [each]),
    )
    if (allowed.length === 0)
      return problemResponse(
        refuse('unknown_route', `there is no ${method} ${path}; see /openapi.json for the routes`, {
          method,
          path,
        }),
      )
    const allow = [...allowed, 'OPTIONS'].join(', ')
    if (method === 'OPTIONS')
      return new Response(null, { status: 204, headers: { ...COMMON, allow } })
    return problemResponse(
      refuse('method_not_allowed', `there is no ${method} ${path}; it takes ${allow}`, {
        method,
        path,
        allowed,
      }),
      { allow },
    )
  })

  const dashboard = async (request: Request): Promise<Response> => {
    const no = enter(request, 'public')
    if (no) return problemResponse(no)
    const page =
      options.dashboard === undefined
        ? null
        : await readFile(options.dashboard, 'utf8').catch(() => null)
    return page === null
      ? problemResponse(refuse('unknown_route', 'this server has no dashboard; see /docs'))
      : htmlResponse(page)
  }

  return {
    fetch: async (request) => app.fetch(request),
    drain() {
      draining = true
    },
    stop() {
      stopping.abort()
      sockets.stop()
    },
    mayConnect(request) {
      if (new URL(request.url).pathname !== SOCKET_PATH)
        return problemResponse(
          refuse('unknown_route', `a WebSocket is opened at ${SOCKET_PATH}, and nowhere else`),
        )
      const no =
        refused(request, { role: 'executor' }) ?? (shards === undefined ? null : NO_SOCKETS)
      return no && problemResponse(no)
    },
    connect: (socket) => sockets.connect(socket),
    cut: () => sockets.cut(),
    get inFlight() {
      return inFlight + sockets.inFlight
    },
  }
}

const allAnswers = (shared: Shared): AnswersTo<RouteName> => ({
  ...runAnswers(shared),
  ...scheduleAnswers(shared),
  ...triggerAnswers(shared),
  ...operationsAnswers(shared),
  ...deliveryAnswers(shared),
  ...executorAnswers(shared),
  ...spawnAnswers(shared),
})

/** Work is offered to those who serve one database: of several each would offer what the others do not know of. */
const NO_SOCKETS = refuse(
  'invalid_request',
  'a store of several databases has no WebSockets for executors yet; let them come over HTTP, with via http',
)

let made: Record<string, unknown> | undefined
/** The OpenAPI document, made when it is first asked for. */
const document = (): Record<string, unknown> => (made ??= openApi())

const parse = (
  route: Route,
  request: Request,
  params: Record<string, string>,
  body: unknown,
): Pick<Asked<Route>, 'params' | 'query' | 'body'> | Refusal => {
  const faults: PathFault[] = []
  const check = (schema: Route['body'], value: unknown, root: string): unknown => {
    if (schema === undefined) return {}
    const read = schema.safeParse(value)
    if (read.success) return read.data
    faults.push(...faultsOf(read.error, root))
    return {}
  }
  const query: Record<string, string> = {}
  for (const [key, text] of new URL(request.url).searchParams)
    query[key] = query[key] === undefined ? text : `${query[key]},${text}`
  const read = {
    params: check(route.params, params, 'path'),
    query: check(route.query, query, 'query'),
    body: check(route.body, body, '$'),
  }
  return faults.length > 0 ? invalid(faults, 'request') : (read as ReturnType<typeof parse>)
}

/** A signal that is aborted with either of the two, and how to let go of them. */
const linked = (stop: AbortSignal, request: AbortSignal) => {
  const both = new AbortController()
  const release = (): void => {
    stop.removeEventListener('abort', abort)
    request.removeEventListener('abort', abort)
  }
  const abort = (): void => {
    release()
    both.abort()
  }
  stop.addEventListener('abort', abort, { once: true })
  request.addEventListener('abort', abort, { once: true })
  if (stop.aborted || request.aborted) abort()
  return { signal: both.signal, release }
}

const COMMON = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }

const jsonResponse = (
  value: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: { ...COMMON, 'content-type': 'application/json; charset=utf-8', ...headers },
  })

/** What is said of a mistake of ours, which is logged where it is met. */
export const defectResponse = (): Response =>
  problemResponse({
    code: 'internal_error',
    message: 'the server met a mistake of its own; its log has the details',
    detail: {},
  })

/** A refusal or fault as a response. */
export const problemResponse = (
  { code, message, detail }: Pick<Refusal, 'message' | 'detail'> & { code: LeaseholdError['code'] },
  headers: Readonly<Record<string, string>> = {},
): Response =>
  jsonResponse(problemOf(code, message, detail), codes[code].status, {
    'content-type': PROBLEM_TYPE,
    ...(code === 'unauthorized' ? { 'www-authenticate': 'Bearer' } : {}),
    ...(codes[code].status === 429 || codes[code].status === 503 ? { 'retry-after': '1' } : {}),
    ...headers,
  })

/** A page that brings all that it needs, and may fetch from here alone. */
const htmlResponse = (page: string): Response =>
  new Response(page, {
    headers: {
      ...COMMON,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  })
