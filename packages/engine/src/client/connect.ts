// A client over HTTP, from any process. Ids are minted before the first try, so a call whose answer was lost is repeated and
// done once.
import { LeaseholdError } from '../kernel/errors.ts'
import type { Growth } from '../kernel/growing-delay.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import type { Ids } from '../kernel/ids.ts'
import { mintIds } from '../kernel/ids.ts'
import { AROUND, encode } from '../kernel/json.ts'
import type { MembersOf } from '../kernel/known-members.ts'
import { mustKnowMembers } from '../kernel/known-members.ts'
import type { Random } from '../kernel/random.ts'
import { jittered, systemRandom } from '../kernel/random.ts'
import type { Time } from '../kernel/time.ts'
import { systemTime } from '../kernel/time.ts'
import type { Timers } from '../kernel/timers.ts'
import { sleep, systemTimers } from '../kernel/timers.ts'
import type { RouteName } from '../protocol/routes.ts'
import type { Call, Fetch, Peer } from './call.ts'
import { call, isPassing, JsonText } from './call.ts'
import type {
  BulkAnswer,
  Client,
  LogLine,
  OutputOf,
  Result,
  RunSummary,
  StartedRun,
  WorkflowType,
} from './client.ts'
import { follow } from './follow.ts'
import { peerOf } from './peer.ts'
import { wholeAudit } from './whole-audit.ts'

export interface ConnectOptions {
  /** The server's root, such as `http://127.0.0.1:7400`. */
  readonly url: string
  /** What the server asks for. Default: none; a server without tokens answers only its own machine. */
  readonly token?: string
  /** Who acts, as the events of the runs will name it. Default `client`. */
  readonly actor?: string
  /** Default: the platform's. */
  readonly fetch?: Fetch
  readonly timers?: Timers
  readonly random?: Random
  readonly time?: Time
  /** How long a call is repeated while the server does not answer. Default 30 s. */
  readonly retryForMs?: number
}

const CONNECT_OPTIONS: MembersOf<ConnectOptions> = {
  url: true,
  token: true,
  actor: true,
  fetch: true,
  timers: true,
  random: true,
  time: true,
  retryForMs: true,
}
const RETRY: Growth = { firstMs: 100, maxMs: 5_000 }
const RETRY_FOR_MS = 30_000
const LONG_POLL_MS = 30_000
const POLL_SLACK_MS = 15_000
const BULK_PART = 1_000

/** Throws `not_serializable` with the path of what JSON cannot carry, before anything is sent. */
const textOf = (body: unknown): JsonText =>
  body instanceof JsonText
    ? body
    : new JsonText(encode(body, Number.POSITIVE_INFINITY, AROUND) ?? 'null')

/** An item that cannot be sent is a fault of its own alone. */
const textOrRefusal = (item: unknown): JsonText | BulkAnswer => {
  try {
    return textOf(item)
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error
    return { ok: false, code: error.code, message: error.message, detail: error.detail }
  }
}

/** A run that is continued is not over: its stream goes on with the run that continues it. */
const isOver = ({ endedAt, reason }: RunSummary): boolean =>
  endedAt !== null && reason !== 'continued'

/** A client of one server. It opens nothing until it is called, and there is nothing to close. */
export const connect = (options: ConnectOptions): Client => {
  mustKnowMembers(options, CONNECT_OPTIONS, 'connect')
  const {
    timers = systemTimers,
    random = systemRandom,
    time = systemTime,
    retryForMs = RETRY_FOR_MS,
  } = options
  const ids: Ids = mintIds(time, random)
  const peer: Peer = peerOf({
    url: options.url,
    token: options.token ?? null,
    actor: options.actor ?? 'client',
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    timers,
  })

  const repeat = async <T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    const until = time.mono() + retryForMs
    for (let failures = 1; ; failures++) {
      try {
        return await ask()
      } catch (error) {
        const pause = jittered(random, growingDelayMs(failures, RETRY))
        if (!isPassing(error) || signal?.aborted === true || time.mono() + pause > until)
          throw error
        await sleep(timers, pause, signal)
      }
    }
  }
  const ask = async <N extends RouteName>(name: N, given: Call = {}) => {
    const what = given.body === undefined ? given : { ...given, body: textOf(given.body) }
    return repeat(() => call(peer, name, what), what.signal)
  }
  /** A command with its key, minted once for all its tries. */
  const tell = <N extends RouteName>(name: N, what: Call) =>
    ask(name, { ...what, key: ids.next('cmd') })
  const of = (id: string) => ({ params: { id } })
  const nameOf = (workflow: WorkflowType | string): string =>
    typeof workflow === 'string' ? workflow : workflow.name
  const decide =
    (decision: 'approved' | 'denied') =>
    (approval: string, { reason, payload }: { reason?: string; payload?: unknown } = {}) =>
      tell('decideApproval', {
        ...of(approval),
        body: { decision, reason: reason ?? null, payload },
      })

  const followed = (name: RouteName, what: Call, given: AbortSignal | undefined, ends: boolean) => {
    const over = new AbortController()
    const signal = given === undefined ? over.signal : given
    return follow(peer, name, what, {
      random,
      signal,
      isLast: ({ event, data }) =>
        ends && (event === 'end' || (event === 'run' && isOver(data as RunSummary))),
    })
  }

  return {
    async start(workflow, input, given = {}) {
      const id = given.id ?? ids.next('run')
      return ask('startRun', { body: { ...given, id, workflow: nameOf(workflow), input } })
    },

    async startMany(workflow, items) {
      const all = items.map((item) => ({
        ...item,
        id: item.id ?? ids.next('run'),
        workflow: nameOf(workflow),
      }))
      const texts = all.map(textOrRefusal)
      const fit = texts.filter((text) => text instanceof JsonText)
      const answered: BulkAnswer[] = []
      for (let i = 0; i < fit.length; i += BULK_PART) {
        const part = fit.slice(i, i + BULK_PART).map(({ text }) => text)
        const body = new JsonText(`{"items":[${part.join(',')}]}`)
        answered.push(...(await ask('startRuns', { body })).answers)
      }
      let next = 0
      return texts.map((text) =>
        text instanceof JsonText ? (answered[next++] as BulkAnswer) : text,
      )
    },

    get: (run) => ask('getRun', of(run)),
    list: (query = {}) => ask('listRuns', { query }),
    counts: async () => (await ask('countRuns')).counts,
    explain: (run) => ask('explainRun', of(run)),
    journal: (run, query = {}) => ask('readJournal', { ...of(run), query }),

    async result<W extends WorkflowType>(
      run: string | StartedRun<W>,
      { timeoutMs, signal }: { timeoutMs?: number; signal?: AbortSignal } = {},
    ): Promise<Result<OutputOf<W>>> {
      const id = typeof run === 'string' ? run : run.id
      const until = timeoutMs === undefined ? Number.POSITIVE_INFINITY : time.mono() + timeoutMs
      for (;;) {
        const waitMs = Math.max(0, Math.round(Math.min(LONG_POLL_MS, until - time.mono())))
        const found = await ask('resultOfRun', {
          ...of(id),
          query: { waitMs },
          timeoutMs: waitMs + POLL_SLACK_MS,
          ...(signal === undefined ? {} : { signal }),
        })
        if (found.ended) return found as unknown as Result<OutputOf<W>>
        if (time.mono() >= until || signal?.aborted === true)
          return { run: found.run, ended: false, status: found.status }
      }
    },

    async *events(run, { after, signal } = {}) {
      const what = after === undefined ? of(run) : { ...of(run), lastEventId: after }
      for await (const { event, id, data } of followed('followRun', what, signal, true))
        yield { event, position: id, data }
    },

    async *allEvents({ signal } = {}) {
      for await (const { event, id, data } of followed('followRuns', {}, signal, false))
        yield { event, position: id, data }
    },

    async *stream(run, name, { after, signal } = {}) {
      const what = {
        params: { id: run, name },
        ...(after === undefined ? {} : { lastEventId: after }),
      }
      for await (const { event, data } of followed('followStream', what, signal, true)) {
        if (event === 'item') yield data as { seq: number; at: number; data: unknown }
      }
    },

    logs: (run, query = {}) => ask('readLogs', { ...of(run), query }),

    async *followLogs(run, { signal, ...query } = {}) {
      for await (const { event, data } of followed(
        'followLogs',
        { ...of(run), query },
        signal,
        true,
      )) {
        if (event === 'line') yield data as LogLine
      }
    },

    signal: (run, name, payload, { id } = {}) =>
      tell('signalRun', { ...of(run), body: { name, payload, id: id ?? ids.next('sig') } }),
    cancel: (run, reason) => tell('cancelRun', { ...of(run), body: { reason: reason ?? null } }),
    pause: (run, why) => tell('pauseRun', { ...of(run), body: { why: why ?? null } }),
    resume: (run) => tell('resumeRun', { ...of(run), body: {} }),
    retry: (run, { from, version } = {}) =>
      tell('retryRun', {
        ...of(run),
        body: { id: ids.next('run'), from: from ?? null, version: version ?? null },
      }),
    handBack: (run, reason) =>
      tell('handBackRun', { ...of(run), body: { reason: reason ?? null } }),
    moveTo: (run, version) => tell('moveRun', { ...of(run), body: { version } }),
    approvals: (query = {}) => ask('listApprovals', { query }),
    approve: decide('approved'),
    deny: decide('denied'),
    schedules: async () => (await ask('listSchedules')).schedules,
    schedule: (name) => ask('getSchedule', { params: { name } }),
    createSchedule: (schedule) =>
      tell('createSchedule', { body: { ...schedule, id: schedule.id ?? ids.next('sch') } }),
    changeSchedule: (name, change) => tell('changeSchedule', { params: { name }, body: change }),
    pauseSchedule: (name, why) =>
      tell('pauseSchedule', { params: { name }, body: { why: why ?? null } }),
    resumeSchedule: (name) => tell('resumeSchedule', { params: { name }, body: {} }),
    runSchedule: (name) => tell('runSchedule', { params: { name }, body: { id: ids.next('run') } }),
    deleteSchedule: (name) => ask('deleteSchedule', { params: { name } }),
    triggers: async () => (await ask('listTriggers')).triggers,
    trigger: (name) => ask('getTrigger', { params: { name } }),
    setTrigger: (name, trigger) => ask('setTrigger', { params: { name }, body: trigger }),
    tryTrigger: (name, delivery) => ask('tryTrigger', { params: { name }, body: delivery }),
    pauseTrigger: (name, why) =>
      tell('pauseTrigger', { params: { name }, body: { why: why ?? null } }),
    resumeTrigger: (name) => tell('resumeTrigger', { params: { name }, body: {} }),
    deleteTrigger: (name) => ask('deleteTrigger', { params: { name } }),
    executors: async () => (await ask('listExecutors')).executors,
    slots: async () => (await ask('listSlots')).slots,
    slot: (key) => ask('getSlot', { params: { key } }),
    setSlot: (key, value, more = {}) =>
      ask('setSlot', { params: { key }, body: { ...more, value } }),
    queues: async () => (await ask('listQueues')).queues,
    queue: (name) => ask('getQueue', { params: { queue: name } }),
    pauses: async () => (await ask('listPauses')).pauses,
    pauseLine: (line) => tell('pauseLine', { body: line }),
    resumeLine: (kind, name) => ask('resumeLine', { params: { kind, name } }),
    workflows: async () => (await ask('listWorkflows')).workflows,
    setCurrentVersion: (workflow, version) =>
      tell('setCurrentVersion', { params: { name: workflow }, body: { version } }),
    notices: (query = {}) => ask('listNotices', { query }),
    ordersSetAside: async () => (await ask('listOrders')).orders,
    retryOrder: (order) => tell('retryOrder', { params: { id: order }, body: {} }),
    dropOrder: (order) => ask('dropOrder', { params: { id: order } }),
    sinks: () => ask('listSinks'),
    deliveries: (query = {}) => ask('listDeliveries', { query }),
    retryDelivery: (delivery) => tell('retryDelivery', { params: { id: delivery }, body: {} }),
    dropDelivery: (delivery) => ask('dropDelivery', { params: { id: delivery } }),
    spawns: (query = {}) => ask('listSpawns', { query }),
    sweeps: async () => (await ask('listSweeps')).sweeps,
    audit: () => wholeAudit((query) => ask('audit', { query })),
    call: ask,
  }
}
