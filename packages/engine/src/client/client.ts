// The client for people's programs: starts runs and waits for them, from any process. Ids are minted before the first try,
// so a call whose answer was lost is repeated and done once.
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
import type { AnswerOf, SentBodyOf, SentQueryOf } from '../protocol/route.ts'
import type { RouteName, Routes } from '../protocol/routes.ts'
import type { Call, Fetch, Peer } from './call.ts'
import { call, isPassing, JsonText } from './call.ts'
import { follow } from './follow.ts'
import { peerOf } from './peer.ts'

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

/** What a workflow's type says of itself; a type import of a workflow fits. */
export interface WorkflowType {
  readonly name: string
  readonly types?: { readonly input: unknown; readonly output: unknown }
}
export type InputOf<W extends WorkflowType> = NonNullable<W['types']>['input']
export type OutputOf<W extends WorkflowType> = NonNullable<W['types']>['output']

export type StartOptions = Omit<SentBodyOf<Routes['startRun']>, 'workflow' | 'input'>

export interface StartedRun<W extends WorkflowType = WorkflowType> {
  readonly id: string
  /** False: the key or the id had been used with equal input, and this is that run. */
  readonly started: boolean
  readonly status: RunSummary['status']
  /** Carries the type alone. */
  readonly of?: W
}

export type RunSummary = AnswerOf<Routes['listRuns']>['runs'][number]
export type RunDetail = AnswerOf<Routes['getRun']>
export type LogLine = AnswerOf<Routes['readLogs']>['lines'][number]
export type Explanation = AnswerOf<Routes['explainRun']>
export type Approval = AnswerOf<Routes['listApprovals']>['approvals'][number]
export type Schedule = AnswerOf<Routes['listSchedules']>['schedules'][number]
export type ScheduleDetail = AnswerOf<Routes['getSchedule']>
export type Trigger = AnswerOf<Routes['listTriggers']>['triggers'][number]
export type TriggerDetail = AnswerOf<Routes['getTrigger']>
export type BulkAnswer = AnswerOf<Routes['startRuns']>['answers'][number]

interface EndedAs {
  readonly run: string
  readonly ended: true
  readonly reason: string | null
  readonly note: string | null
  readonly endedAt: number
}
export type Result<O> =
  | (EndedAs & { readonly status: 'succeeded'; readonly output: O })
  | (EndedAs & { readonly status: 'failed'; readonly error: unknown })
  | (EndedAs & { readonly status: 'canceled' })
  /** The time was over first. */
  | { readonly run: string; readonly ended: false; readonly status: RunSummary['status'] }

/**
 * A change of a run: `attempt`, `entry`, `event`, or `run`, which closes each group and carries the position. After a `run`
 * with the reason `continued` come the changes of the run that continues it.
 */
export interface RunEvent {
  readonly event: string
  /** The run's rev up to which everything has been seen, or null inside a group. */
  readonly position: string | null
  readonly data: unknown
}

export interface FollowOptions {
  /** Resume after this position. */
  readonly after?: string
  readonly signal?: AbortSignal
}

export interface Client {
  /** Starts a run; the input is checked by the workflow's type here and by its schema on the server. */
  start<W extends WorkflowType>(
    workflow: W | W['name'],
    input: InputOf<W>,
    options?: StartOptions,
  ): Promise<StartedRun<W>>
  /** Starts many; each item is answered on its own, a refusal where it was bad. */
  startMany<W extends WorkflowType>(
    workflow: W | W['name'],
    items: readonly ({ readonly input: InputOf<W> } & StartOptions)[],
  ): Promise<readonly BulkAnswer[]>
  /** All that is known of a run; throws `not_found`. */
  get(run: string): Promise<RunDetail>
  list(query?: SentQueryOf<Routes['listRuns']>): Promise<AnswerOf<Routes['listRuns']>>
  /** How many runs there are of each status. */
  counts(): Promise<AnswerOf<Routes['countRuns']>['counts']>
  /** Why a run does not run, the binding condition first. */
  explain(run: string): Promise<Explanation>
  /** A page of recorded outcomes, in the order in which the function received them. */
  journal(
    run: string,
    query?: SentQueryOf<Routes['readJournal']>,
  ): Promise<AnswerOf<Routes['readJournal']>>
  /** Waits for the end; without `timeoutMs` for as long as it takes. */
  result<W extends WorkflowType>(
    run: string | StartedRun<W>,
    options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
  ): Promise<Result<OutputOf<W>>>
  /** Changes of a run, and of those that continue it, until the last has ended. */
  events(run: string, options?: FollowOptions): AsyncIterable<RunEvent>
  /** Changes of all runs, for as long as the caller wants them. */
  allEvents(options?: { readonly signal?: AbortSignal }): AsyncIterable<RunEvent>
  /** What a run appends to one of its streams, until it has ended; one that continues it has streams of its own. */
  stream(
    run: string,
    name: string,
    options?: FollowOptions,
  ): AsyncIterable<{ readonly seq: number; readonly at: number; readonly data: unknown }>
  /** A page of what its attempts have written, after a line: its number in `attempt`, or `attempt:number`. */
  logs(run: string, query?: SentQueryOf<Routes['readLogs']>): Promise<AnswerOf<Routes['readLogs']>>
  /** What its attempts write, line by line, until nothing more comes. */
  followLogs(
    run: string,
    options?: { readonly attempt?: number; readonly after?: string; readonly signal?: AbortSignal },
  ): AsyncIterable<LogLine>
  /** Sends a named message, kept until it is taken; with an `id` of the sender's a repeat is dropped. */
  signal(
    run: string,
    name: string,
    payload?: unknown,
    options?: { readonly id?: string },
  ): Promise<AnswerOf<Routes['signalRun']>>
  /** At once where nobody holds the run, else by its holder within a grace. */
  cancel(run: string, reason?: string): Promise<AnswerOf<Routes['cancelRun']>>
  /** At once where nobody holds the run, else at the next end of a step. */
  pause(run: string, why?: string): Promise<AnswerOf<Routes['pauseRun']>>
  resume(run: string): Promise<AnswerOf<Routes['resumeRun']>>
  /** Starts a run that has ended again, as a new one: from the beginning, or keeping what stands before the step `from`. */
  retry(
    run: string,
    options?: { readonly from?: string; readonly version?: string },
  ): Promise<AnswerOf<Routes['retryRun']>>
  /** Takes a run from its holder, so that another can claim it at once. */
  handBack(run: string, reason?: string): Promise<AnswerOf<Routes['handBackRun']>>
  /** Moves a run that nobody holds to another version of its workflow. */
  moveTo(run: string, version: string): Promise<AnswerOf<Routes['moveRun']>>
  approvals(
    query?: SentQueryOf<Routes['listApprovals']>,
  ): Promise<AnswerOf<Routes['listApprovals']>>
  /** Decides an approval, once; `already_decided` tells of the first decision. Its id is `run:key`. */
  approve(
    approval: string,
    options?: { readonly reason?: string; readonly payload?: unknown },
  ): Promise<AnswerOf<Routes['decideApproval']>>
  deny(
    approval: string,
    options?: { readonly reason?: string; readonly payload?: unknown },
  ): Promise<AnswerOf<Routes['decideApproval']>>
  schedules(): Promise<readonly Schedule[]>
  /** A schedule with its next ten ticks, and what became of the newest; throws `not_found`. */
  schedule(name: string): Promise<ScheduleDetail>
  /** Makes a schedule that starts runs by a cron expression in a time zone; throws `schedule_exists`. */
  createSchedule(schedule: SentBodyOf<Routes['createSchedule']>): Promise<ScheduleDetail>
  /** Changes what is named of a schedule; the rest stays. */
  changeSchedule(
    name: string,
    change: SentBodyOf<Routes['changeSchedule']>,
  ): Promise<ScheduleDetail>
  /** It has no ticks until it is resumed. */
  pauseSchedule(name: string, why?: string): Promise<ScheduleDetail>
  /** From the next tick after now: those of the pause are not missed. */
  resumeSchedule(name: string): Promise<ScheduleDetail>
  /** Starts its run now, beside its ticks. */
  runSchedule(name: string): Promise<AnswerOf<Routes['runSchedule']>>
  /** Its runs go on. */
  deleteSchedule(name: string): Promise<AnswerOf<Routes['deleteSchedule']>>
  triggers(): Promise<readonly Trigger[]>
  /** A trigger with its newest deliveries; throws `not_found`. */
  trigger(name: string): Promise<TriggerDetail>
  /** Makes a trigger, which starts runs by what others send to `/hooks/<name>`, or makes it what is said now. */
  setTrigger(name: string, trigger: SentBodyOf<Routes['setTrigger']>): Promise<TriggerDetail>
  /** What a trigger would make of a payload; nothing is started. */
  tryTrigger(
    name: string,
    delivery: SentBodyOf<Routes['tryTrigger']>,
  ): Promise<AnswerOf<Routes['tryTrigger']>>
  /** Its deliveries are refused until it is resumed. */
  pauseTrigger(name: string, why?: string): Promise<TriggerDetail>
  resumeTrigger(name: string): Promise<TriggerDetail>
  /** Its runs go on. */
  deleteTrigger(name: string): Promise<AnswerOf<Routes['deleteTrigger']>>
  executors(): Promise<AnswerOf<Routes['listExecutors']>['executors']>
  /** Executors that were started because a queue waited, newest first, each with why. */
  spawns(query?: SentQueryOf<Routes['listSpawns']>): Promise<AnswerOf<Routes['listSpawns']>>
  slots(): Promise<AnswerOf<Routes['listSlots']>['slots']>
  slot(key: string): Promise<AnswerOf<Routes['getSlot']>>
  /** An operator's value of a limit, which beats the code's; null gives it back to the code. */
  setSlot(
    key: string,
    value: number | null,
    options?: Omit<SentBodyOf<Routes['setSlot']>, 'value'>,
  ): Promise<AnswerOf<Routes['setSlot']>>
  queues(): Promise<AnswerOf<Routes['listQueues']>['queues']>
  /** What waits in a queue, for how long, and which slots are free: what an autoscaler goes by. */
  queue(name: string): Promise<AnswerOf<Routes['getQueue']>>
  pauses(): Promise<AnswerOf<Routes['listPauses']>['pauses']>
  /** Stops claims from a queue or of a workflow, until an instant or until `resumeLine`. */
  pauseLine(line: SentBodyOf<Routes['pauseLine']>): Promise<AnswerOf<Routes['pauseLine']>>
  resumeLine(kind: 'queue' | 'workflow', name: string): Promise<AnswerOf<Routes['resumeLine']>>
  workflows(): Promise<AnswerOf<Routes['listWorkflows']>['workflows']>
  /** The version on which new runs start. */
  setCurrentVersion(
    workflow: string,
    version: string,
  ): Promise<AnswerOf<Routes['setCurrentVersion']>>
  /** What people are to see and nothing waits for, newest first. */
  notices(query?: SentQueryOf<Routes['listNotices']>): Promise<AnswerOf<Routes['listNotices']>>
  /** Orders that failed by their content so often that they were set aside, the oldest first. */
  ordersSetAside(): Promise<AnswerOf<Routes['listOrders']>['orders']>
  /** Tries an order anew that was set aside. */
  retryOrder(order: string): Promise<AnswerOf<Routes['retryOrder']>>
  /** Drops an order that was set aside: what it asked for does not happen. */
  dropOrder(order: string): Promise<AnswerOf<Routes['dropOrder']>>
  /** Where notices are sent, and how far each is behind. */
  sinks(): Promise<AnswerOf<Routes['listSinks']>>
  /** Notices on their way to sinks, and what came of each, newest first. */
  deliveries(
    query?: SentQueryOf<Routes['listDeliveries']>,
  ): Promise<AnswerOf<Routes['listDeliveries']>>
  /** Tries a dead delivery anew. */
  retryDelivery(delivery: string): Promise<AnswerOf<Routes['retryDelivery']>>
  /** Drops a delivery that is due or dead: it is not sent. */
  dropDelivery(delivery: string): Promise<AnswerOf<Routes['dropDelivery']>>
  sweeps(): Promise<AnswerOf<Routes['listSweeps']>['sweeps']>
  /** The invariants over every run there is, page by page. */
  audit(): Promise<Pick<AnswerOf<Routes['audit']>, 'healthy' | 'invariants'>>
  /** Calls any route of the table, repeated while the server does not answer. */
  call<N extends RouteName>(name: N, what?: Call): Promise<AnswerOf<Routes[N]>>
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
const AUDIT_SHOWN = 10

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
    async audit() {
      const found = new Map<string, AnswerOf<Routes['audit']>['invariants'][number]>()
      let after: string | null | undefined
      while (after !== null) {
        const page: AnswerOf<Routes['audit']> = await ask('audit', {
          query: after === undefined ? {} : { after },
        })
        for (const each of page.invariants) {
          const known = found.get(each.name)
          // a run of the first answer comes again in its page
          const sample = [...new Set([...(known?.sample ?? []), ...each.sample])]
          found.set(each.name, {
            ...each,
            figure: Math.max(known?.figure ?? 0, each.figure, sample.length),
            sample: sample.slice(0, AUDIT_SHOWN),
          })
        }
        after = page.next
      }
      const invariants = [...found.values()]
      return { healthy: invariants.every(({ figure }) => figure === 0), invariants }
    },
    call: ask,
  }
}
