// The client for people's programs: what it can be asked, and what it answers.
import type { AnswerOf, SentBodyOf, SentQueryOf } from '../protocol/route.ts'
import type { RouteName, Routes } from '../protocol/routes.ts'
import type { Call } from './call.ts'

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
