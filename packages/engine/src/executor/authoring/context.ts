// What authors meet, as types: a workflow and a task, and the durable verbs that a workflow function is handed.
// `driver.ts` and `verbs.ts` do the work.
import type { Duration } from '../../kernel/duration.ts'
import type { Facts } from '../../kernel/log.ts'
import type { RetryPolicy } from '../../model/retry.ts'
import type { Definition, LimitDeclaration } from '../../model/definition.ts'
import type { Isolation } from './isolation.ts'
import type { Schema } from './schema.ts'

/** What a step's body receives. */
export interface StepArgument {
  /** Aborts when the try runs into its limit, the run is canceled, or the executor must let go. */
  readonly signal: AbortSignal
  /** 1 for the first try of the step. */
  readonly tryNumber: number
  /** The same for every try of this step of this run: send it to services that can tell a repeat. */
  readonly idempotencyKey: string
  /** (generation, attempt): rises with every attempt, so that a service can refuse a stale holder. */
  readonly fence: { readonly generation: number; readonly attempt: number }
  progress(done: number, total?: number, note?: string): void
  /** Appends to a stream of the run that clients read live. */
  append(stream: string, value: unknown): void
}

export interface StepOptions<O = unknown> {
  /** Default: the workflow's `stepRetry`, else 3 tries, 1 s doubling to 5 min. */
  readonly retry?: RetryPolicy
  /** Limit of one try. Default: none. */
  readonly timeout?: Duration
  /** Checks the result before it is recorded; one that does not fit fails the step as `invalid_output`. */
  readonly output?: Schema<unknown, O>
  /** Whether an error is worth another try. Default: all but `FatalError`. */
  readonly retryIf?: (error: unknown) => boolean
}

export type SignalResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly timedOut: true }

export interface ApprovalOptions {
  /** The question, as people will read it. */
  readonly prompt: string
  /** JSON that is shown beside the question. */
  readonly data?: unknown
  /** Who may decide; empty means anyone. */
  readonly deciders?: readonly string[]
  /** Default 24 h. */
  readonly deadline?: Duration
}

export type Decision<T = unknown> =
  | {
      readonly decision: 'approved' | 'denied'
      readonly by: string
      readonly reason: string | null
      /** Milliseconds since the epoch, on the store's clock. */
      readonly at: number
      /** What the decider added. */
      readonly payload: T | null
    }
  | { readonly decision: 'lapsed' }

export interface ChildOptions {
  /** Name of this child among the run's steps. Default: the workflow's name. */
  readonly as?: string
  /** Default: this run's owner. */
  readonly owner?: string
  /** Default: the queue of the child's workflow. */
  readonly queue?: string
  /** Labels that its executor must have, beside those of its workflow. */
  readonly labels?: readonly string[]
  /** -100 to 100, higher first. Default 0. */
  readonly priority?: number
  /** Names the child among its owner's runs of this workflow; one in use is refused as `key_reused`. */
  readonly key?: string
  /** What becomes of the child when this run ends. Awaited: `cancel`; else `detach`. */
  readonly onParentEnd?: 'cancel' | 'detach'
}

export interface MapOptions<T> {
  /** Names an item among the others, whatever its place. Default: its index. */
  readonly key?: (item: T, index: number) => string
  /** Items in work at once. Default 16. */
  readonly concurrency?: number
}

export type Settled<O> =
  { readonly ok: true; readonly value: O } | { readonly ok: false; readonly error: Error }

type Branches = Readonly<Record<string, (ctx: Context) => Promise<unknown>>>
type Value<F> = F extends (ctx: Context) => Promise<infer T> ? T : never

export interface Context {
  readonly info: {
    readonly run: string
    readonly workflow: string
    readonly version: string
    readonly attempt: number
    readonly owner: string
  }
  /** Aborts when the attempt must end. */
  readonly abort: AbortSignal
  /** Runs `body` once and records its result under `name`; on replay the recorded result is given back. */
  step<O>(
    name: string,
    body: (step: StepArgument) => Promise<O> | O,
    options?: StepOptions<O>,
  ): Promise<O>
  step<I, O>(task: Task<I, O>, input: I, options?: { readonly as?: string }): Promise<O>
  /** Waits without an executor, for a time on the store's clock. */
  sleep(name: string, duration: Duration): Promise<void>
  /** As `sleep`, until an instant: a date, or milliseconds since the epoch. */
  sleepUntil(name: string, instant: number | Date): Promise<void>
  /** Takes the next signal of this name; one that came before is kept. */
  signal<T = unknown>(
    name: string,
    options?: { readonly as?: string; readonly schema?: Schema<unknown, T> },
  ): Promise<T>
  /** With a time-out, the result says whether the signal or the time came first. */
  signal<T = unknown>(
    name: string,
    options: {
      readonly as?: string
      readonly timeout: Duration
      readonly schema?: Schema<unknown, T>
    },
  ): Promise<SignalResult<T>>
  /** Asks people; the decision comes once, or the deadline passes. */
  approval<T = unknown>(name: string, options: ApprovalOptions): Promise<Decision<T>>
  /** Runs a child to its end and gives its output; throws `ChildFailedError` when it does not succeed. */
  run<I, O>(workflow: Workflow<I, O>, input: I, options?: ChildOptions): Promise<O>
  /** Starts a child and goes on; gives its run id. */
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options?: ChildOptions): Promise<string>
  /** `return ctx.continueAs(input)` ends this run and starts its successor in one transaction. */
  continueAs(input: unknown): Promise<never>
  /** Shown by the API at once; a run has one state. */
  setState(value: unknown): void
  /** Runs `body` for each item in a scope of its own; results keep the order of the items. The first error ends it. */
  map<T, O>(
    name: string,
    items: readonly T[],
    body: (ctx: Context, item: T, index: number) => Promise<O>,
    options?: MapOptions<T>,
  ): Promise<O[]>
  /** As `map`, and every item is tried: each result says whether it succeeded. */
  mapSettled<T, O>(
    name: string,
    items: readonly T[],
    body: (ctx: Context, item: T, index: number) => Promise<O>,
    options?: MapOptions<T>,
  ): Promise<Settled<O>[]>
  /** Names used inside `body` are its own. */
  scope<O>(name: string, body: (ctx: Context) => Promise<O>): Promise<O>
  /** All branches; the first error ends it. */
  all<B extends Branches>(name: string, branches: B): Promise<{ [K in keyof B]: Value<B[K]> }>
  /** The first branch to end, however it ends; the others' waits are closed. */
  race<B extends Branches>(
    name: string,
    branches: B,
  ): Promise<{ [K in keyof B]: { readonly winner: K; readonly value: Value<B[K]> } }[keyof B]>
  /** The first branch to succeed; throws an AggregateError when none does. */
  any<B extends Branches>(
    name: string,
    branches: B,
  ): Promise<{ [K in keyof B]: { readonly winner: K; readonly value: Value<B[K]> } }[keyof B]>
  /** True for runs that reach this place first with the changed code; false for those that passed it before. */
  patched(name: string): boolean
  /** What `prepare` of the workflow gave for this attempt. */
  prepared<T = unknown>(): T
  /** Milliseconds on the store's clock as of the last outcome received: the same on replay. */
  now(): number
  /** The same on replay: seeded by run and scope. */
  random(): number
  /** The same on replay; version 4 in form. */
  uuid(): string
  /** Written once, not again on replay. */
  log(message: string, facts?: Facts): void
  /** Shown by the API and the command line; a run has one. */
  progress(done: number, total?: number, note?: string): void
}

/** What `prepare` of a workflow receives beside the input. */
export interface Preparation {
  /** Aborts when the preparation runs into its limit, the run is canceled, or the executor must let go. */
  readonly signal: AbortSignal
  readonly run: string
  readonly attempt: number
  /** An empty directory of this attempt alone, removed when its work has settled and its end is stored. */
  readonly directory: string
}

export interface WorkflowOptions<I, O> {
  /** Unique among an executor's workflows of the same version. */
  readonly name: string
  /** Declared, never a hash of the source. Default '1'. A run stays on the version it started on. */
  readonly version?: string
  /** Checks the input: at the start as far as JSON Schema can say it, and whenever the function begins. */
  readonly input?: Schema<unknown, I>
  /** Checks what the function returns before it is stored. */
  readonly output?: Schema<unknown, O>
  /** Default 'default'. */
  readonly queue?: string
  /** Labels that an executor must have. */
  readonly labels?: readonly string[]
  /** Two at most, beside the owner's limit and the global one. */
  readonly limits?: readonly LimitDeclaration[]
  /** How often a failed run is driven anew. Default: once. */
  readonly retry?: RetryPolicy
  /** Default for its steps. Default: 3 tries, 1 s doubling to 5 min. */
  readonly stepRetry?: RetryPolicy
  /** The whole run, waits included; past it the run ends `failed`, reason `time_limit`. Default: none. */
  readonly totalLimit?: Duration
  /** One attempt; past it the attempt fails, reason `attempt_deadline`. Default: none. */
  readonly attemptLimit?: Duration
  /** A run that nobody claims within this ends `failed`, reason `not_started`. */
  readonly startBy?: Duration
  /** Started when a run ends other than by success, with what is known of it. */
  readonly onEnd?: string | Workflow<never, unknown>
  /**
   * Makes what the function needs, for each attempt anew and before it is called: fetched inputs, a checkout, an install.
   * What it returns is `ctx.prepared()`.
   */
  readonly prepare?: (input: I, preparation: Preparation) => unknown
  /**
   * Gives back what `prepare` took outside its directory, such as a container or a device: once the work has settled, whatever
   * became of it, and again at the next start of an executor on this host where its process was killed. It may be called
   * twice. Where it fails, the executor takes nothing new until somebody has seen to it. What `prepare` returned is JSON then.
   */
  readonly release?: (
    prepared: unknown,
    releasing: { readonly signal: AbortSignal; readonly run: string; readonly attempt: number },
  ) => Promise<void> | void
  /** Limit of the preparation; past it the attempt ends `failed`, reason `prepare_timeout`. Default 10 min. */
  readonly prepareLimit?: Duration
  /** Attempts of a run whose preparation fails. Default: two. */
  readonly prepareRetry?: RetryPolicy
  /**
   * A text that stands for what the work is based on, as a revision or the head of a branch. It is captured when the attempt
   * begins and read again before the function is called and before its result is stored; one that has changed ends the run
   * `failed`, reason `stale`.
   */
  readonly context?: (
    input: I,
    reading: { readonly signal: AbortSignal },
  ) => Promise<string> | string
  /** `rich` also carries Date, Map, Set, BigInt, URL and typed arrays. Default: plain JSON. */
  readonly codec?: 'json' | 'rich'
  /**
   * Where each attempt runs: `inline`, in the executor's own process, or in a `process` of its own, which is killed with all
   * that it started when it does not end as it should; it may have a `sandbox`. Default `inline`.
   */
  readonly isolation?: Isolation
  /** Executor slot class. Default 'default'. */
  readonly slotClass?: string
}

export interface Workflow<I = unknown, O = unknown> {
  readonly name: string
  readonly version: string
  readonly options: WorkflowOptions<I, O>
  readonly definition: Definition
  readonly handler: (ctx: Context, input: I) => Promise<O> | O
  /** Carries the types alone; never set. */
  readonly types?: { readonly input: I; readonly output: O }
}

// any: a list of workflows holds functions of every input
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyWorkflow = Workflow<any, any>

export interface TaskOptions<O> {
  readonly name: string
  readonly output?: Schema<unknown, O>
  readonly retry?: RetryPolicy
  /** Limit of one try. */
  readonly timeout?: Duration
}

/** A step's body with its name and policies, to be used in several workflows. */
export interface Task<I = unknown, O = unknown> {
  readonly kind: 'task'
  readonly options: TaskOptions<O>
  readonly body: (input: I, step: StepArgument) => Promise<O> | O
}
