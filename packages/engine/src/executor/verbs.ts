// The durable verbs of a workflow function, on top of its driver: each is a branch that asks for the outcome of a name.
import type { Duration } from '../kernel/duration.ts'
import { milliseconds } from '../kernel/duration.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import { decode, shown } from '../kernel/json.ts'
import type { Facts } from '../kernel/log.ts'
import { readable } from '../kernel/log.ts'
import { storedObject } from '../kernel/stored.ts'
import type { Random } from '../kernel/random.ts'
import { seededRandom, seedOf } from '../kernel/random.ts'
import type { ChildStart, EntryKind, LiveWait } from '../model/work.ts'
import type {
  ApprovalOptions,
  ChildOptions,
  Context,
  Decision,
  MapOptions,
  Settled,
  SignalResult,
  StepArgument,
  StepOptions,
} from './context.ts'
import type { Driver, Received } from './driver.ts'
import type { Codec } from './codec.ts'
import { codecOf, plainCodec } from './codec.ts'
import type { VerbsEnvironment } from './environment.ts'
import type { FailureData } from './failure.ts'
import { ChildFailedError, failureOf, StepError } from './failure.ts'
import type { Schema } from './schema.ts'
import { checked } from './schema.ts'
import { payloadOf } from './payload.ts'
import { mustTry, progressText, runStep } from './step.ts'
import type { Task, Workflow } from './context.ts'

/** What `return ctx.continueAs(input)` comes to. */
export class Continuation {
  readonly input: string | null
  constructor(input: string | null) {
    this.input = input
  }
}

/** Names of scopes and of what stands in them, together; the id of an approval, a run's and a key's, fits a path with it. */
const KEY_MAX = 1_999

const escaped = (name: string): string => name.replace(/[%/:]/g, encodeURIComponent)

const never = (): Promise<never> => new Promise(() => undefined)

type Branches = Readonly<Record<string, (ctx: Context) => Promise<unknown>>>

/** The context of one scope; names used in it are its own. */
class RunContext implements Context {
  readonly #env: VerbsEnvironment
  readonly #scope: string
  readonly #used = new Set<string>()
  #chance: Random | null = null

  constructor(env: VerbsEnvironment, scope: string) {
    this.#env = env
    this.#scope = scope
  }

  get #random(): Random {
    const { run } = this.#env.driver.claimed
    return (this.#chance ??= seededRandom(seedOf(`${run}#${this.#scope}`)))
  }

  #keyFor(name: string, what: string): string {
    if (this.#env.driver.over)
      throw new LeaseholdError(
        'late_call',
        `${what} was called after the function had ended; use the context only while it runs`,
      )
    if (this.#env.begun.step !== null)
      throw new LeaseholdError(
        'nested_step',
        `${what} ${JSON.stringify(name)} was called inside the body of the step ${JSON.stringify(this.#env.begun.step)}; call it from the function, beside that step`,
        { step: this.#env.begun.step },
      )
    mustKeep(name, `the name of ${what}`)
    const key = this.#scope + escaped(name)
    if (key.length > KEY_MAX)
      throw new LeaseholdError(
        'invalid_request',
        `${what} ${JSON.stringify(name)} has ${key.length} characters with the names of the scopes around it; the limit is ${KEY_MAX}`,
        { limit: KEY_MAX },
      )
    if (this.#used.has(key))
      throw new LeaseholdError(
        'duplicate_name',
        `the name ${JSON.stringify(name)} is used twice in ${this.#scope === '' ? 'the run' : `the scope ${this.#scope}`}; give each its own, as in ${JSON.stringify(`${name}-2`)}, or use ctx.map or ctx.scope`,
        { name, scope: this.#scope },
      )
    this.#used.add(key)
    return key
  }

  /** Asks for an outcome; `look` says what to do while the journal holds none. */
  #ask(
    key: string,
    kind: EntryKind,
    look: (live: LiveWait | undefined, branch: { state: 'asked' | 'body' | 'wait' }) => void,
  ): Promise<Received> {
    if (this.#env.driver.isClosed(key)) return never()
    return new Promise((resolve) => {
      const branch = {
        key,
        kind,
        state: 'asked' as 'asked' | 'body' | 'wait',
        receive: resolve,
        look: (live: LiveWait | undefined) => look(live, branch),
      }
      this.#env.driver.ask(branch)
    })
  }

  #valueOf<T>(received: Received, codec: Codec = plainCodec): T {
    if (received.error !== null)
      throw new StepError(
        storedObject(received.error, 'the error of a step') as unknown as FailureData,
      )
    return codec.decode(received.output) as T
  }
  /** A value inside a wait's outcome, as its writer's codec means it. */
  #revived(value: unknown, codec: Codec = this.#env.codec): unknown {
    return codec === plainCodec ? value : codec.decode(JSON.stringify(value))
  }

  /** A branch that stands at a wait until it is satisfied or lapses. */
  #waitFor(
    key: string,
    kind: 'time' | 'signal' | 'approval' | 'child',
    record: () => Parameters<Driver['record']>[0],
  ): Promise<Received> {
    return this.#ask(key, kind, (live, branch) => {
      branch.state = 'wait'
      if (!live) this.#env.driver.record(record())
      else if (live.state === 'satisfied')
        this.#env.driver.ready({
          key,
          kind,
          output: JSON.stringify({ came: true, value: decode(live.result) ?? null }),
          error: null,
        })
      else if (live.state === 'lapsed')
        this.#env.driver.ready({ key, kind, output: JSON.stringify({ came: false }), error: null })
    })
  }

  #childStart(
    workflow: { readonly name: string; readonly options: { readonly codec?: 'json' | 'rich' } },
    input: unknown,
    options: ChildOptions,
    awaited: boolean,
  ): ChildStart {
    return {
      id: this.#env.ports.ids.next('run'),
      workflow: workflow.name,
      input: payloadOf(
        codecOf(workflow.options.codec),
        input,
        this.#env.payloadMax,
        `the input of ${workflow.name}`,
      ),
      ...(options.owner === undefined ? {} : { owner: options.owner }),
      ...(options.queue === undefined ? {} : { queue: options.queue }),
      ...(options.labels === undefined ? {} : { labels: options.labels }),
      ...(options.priority === undefined ? {} : { priority: options.priority }),
      ...(options.key === undefined ? {} : { key: options.key }),
      awaited,
      onParentEnd: options.onParentEnd ?? (awaited ? 'cancel' : 'detach'),
    }
  }

  #inScope<O>(
    names: readonly string[],
    body: (ctx: Context) => Promise<O>,
  ): { prefix: string; run: () => Promise<O> } {
    for (const name of names) mustKeep(name, `a name within ${names[0]}`)
    const prefix = `${this.#scope}${names.map(escaped).join(':')}/`
    return { prefix, run: () => body(makeContext(this.#env, prefix)) }
  }

  async #compete(
    name: string,
    branches: Branches,
    decide: 'first' | 'success',
  ): Promise<{ winner: string; value: unknown }> {
    const key = this.#keyFor(name, decide === 'first' ? 'race' : 'any')
    if (Object.keys(branches).length === 0)
      throw new LeaseholdError(
        'invalid_request',
        `${name} has no branches, so that none could ever win; give it one at least`,
      )
    const scopes = Object.entries(branches).map(([branch, body]) => ({
      branch,
      ...this.#inScope([name, branch], body),
    }))
    const failures: unknown[] = []
    return new Promise((resolve, reject) => {
      let decided = false
      const settle = (winner: string, ok: boolean, value: unknown): void => {
        if (decided) return
        if (!ok && decide === 'success') {
          failures.push(value)
          if (failures.length < scopes.length) return
        }
        decided = true
        const closes = scopes
          .filter(({ branch }) => branch !== winner)
          .flatMap(({ prefix }) => this.#env.driver.closeScope(prefix))
        void this.#ask(key, 'race', (_live, branch) => {
          branch.state = 'body'
          this.#env.driver.ready({
            key,
            kind: 'race',
            output: JSON.stringify({ winner }),
            error: null,
            closes,
          })
        }).then(() => {
          if (ok) resolve({ winner, value })
          else
            reject(
              decide === 'success'
                ? new AggregateError(failures, `no branch of ${name} succeeded`)
                : value,
            )
        })
      }
      for (const { branch, run } of scopes)
        run().then(
          (value) => settle(branch, true, value),
          (error: unknown) => settle(branch, false, error),
        )
    })
  }

  /** `all`: every item is tried; else none is begun once one has failed. */
  async #eachOf<T, O>(
    name: string,
    items: readonly T[],
    body: (ctx: Context, item: T, index: number) => Promise<O>,
    options: MapOptions<T>,
    all: boolean,
  ): Promise<Settled<O>[]> {
    this.#keyFor(name, 'map')
    const { concurrency = 16 } = options
    // what is no number would begin nothing and look like an empty list
    if (typeof concurrency !== 'number' || !(concurrency >= 1))
      throw new LeaseholdError(
        'invalid_config',
        `the concurrency of the map ${name} is ${String(concurrency)}; expected a number of 1 or more`,
      )
    const keys = items.map((item, i) => String(options.key ? options.key(item, i) : i))
    const twice =
      keys.find((key, i) => keys.indexOf(key) !== i && keys.length < 2_000) ??
      (new Set(keys).size === keys.length ? undefined : 'a key')
    if (twice !== undefined)
      throw new LeaseholdError(
        'duplicate_name',
        `two items of the map ${name} have the key ${twice}; give each its own`,
        { name, key: twice },
      )
    const results: Settled<O>[] = []
    let next = 0
    let failed = false
    const drive = async (): Promise<void> => {
      for (;;) {
        const i = next++
        if (i >= items.length || (failed && !all)) return
        const { run } = this.#inScope([name, keys[i] ?? ''], (ctx) => body(ctx, items[i] as T, i))
        try {
          results[i] = { ok: true, value: await run() }
        } catch (error) {
          failed = true
          results[i] = {
            ok: false,
            error: error instanceof Error ? error : new StepError(failureOf(error)),
          }
        }
      }
    }
    await Promise.all(
      Array.from({ length: Math.max(1, Math.min(concurrency, items.length)) }, drive),
    )
    return results
  }

  get info(): Context['info'] {
    const { run, workflow, version, attempt, owner } = this.#env.driver.claimed
    return { run, workflow, version, attempt, owner }
  }

  get abort(): AbortSignal {
    return this.#env.driver.signal
  }

  async step<I, O>(first: string | Task<I, O>, second: unknown, third?: unknown): Promise<O> {
    const isTask = typeof first !== 'string'
    const name = isTask ? ((third as { as?: string } | undefined)?.as ?? first.options.name) : first
    const options: StepOptions<O> = isTask
      ? first.options
      : ((third as StepOptions<O> | undefined) ?? {})
    const body = isTask
      ? (argument: StepArgument) => first.body(second as I, argument)
      : (second as (argument: StepArgument) => Promise<O> | O)
    mustTry(name, options)
    const key = this.#keyFor(name, 'step')
    const received = await this.#ask(key, 'step', (live, branch) =>
      runStep({ env: this.#env, key, name, options, body, live, branch }),
    )
    return this.#valueOf<O>(received, this.#env.codec)
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    const ms = milliseconds(duration, `sleep ${name}`)
    const key = this.#keyFor(name, 'sleep')
    await this.#waitFor(key, 'time', () => ({ key, kind: 'time', dueInMs: ms }))
  }

  async sleepUntil(name: string, instant: Date | number): Promise<void> {
    const at = typeof instant === 'number' ? instant : instant.getTime()
    if (!Number.isFinite(at) || Math.abs(at) > 8.64e15)
      throw new LeaseholdError(
        'invalid_duration',
        `sleepUntil ${name} has ${String(instant)}; expected a date, or milliseconds since 1970`,
      )
    const key = this.#keyFor(name, 'sleepUntil')
    await this.#waitFor(key, 'time', () => ({ key, kind: 'time', dueAt: Math.ceil(at) }))
  }

  async signal<T>(
    name: string,
    options: { as?: string; timeout?: Duration; schema?: Schema<unknown, T> } = {},
  ): Promise<never> {
    const ms =
      options.timeout === undefined
        ? undefined
        : milliseconds(options.timeout, `timeout of the signal ${name}`)
    mustKeep(name, 'the name of a signal')
    const key = this.#keyFor(options.as ?? name, 'signal')
    const received = await this.#waitFor(key, 'signal', () => ({
      key,
      kind: 'signal',
      name,
      ...(ms === undefined ? {} : { dueInMs: ms }),
    }))
    const { came, value } = this.#valueOf<{ came: boolean; value?: unknown }>(received)
    const typed = came
      ? await checked(options.schema, this.#revived(value), `the signal ${name}`, 'invalid_input')
      : undefined
    if (ms === undefined) return typed as never
    return (came
      ? { ok: true, value: typed }
      : { ok: false, timedOut: true }) as SignalResult<T> as never
  }

  async approval<T>(name: string, options: ApprovalOptions): Promise<Decision<T>> {
    mustAsk(name, options)
    // without one the server's own setting holds
    const deadline =
      options.deadline === undefined
        ? {}
        : { dueInMs: milliseconds(options.deadline, `deadline of the approval ${name}`) }
    const data = payloadOf(
      plainCodec,
      options.data,
      this.#env.payloadMax,
      `the data of the approval ${name}`,
    )
    const key = this.#keyFor(name, 'approval')
    const received = await this.#waitFor(key, 'approval', () => ({
      key,
      kind: 'approval',
      ...deadline,
      approval: { prompt: options.prompt, data, deciders: [...(options.deciders ?? [])] },
    }))
    const { came, value } = this.#valueOf<{ came: boolean; value?: unknown }>(received)
    return (came ? value : { decision: 'lapsed' }) as Decision<T>
  }

  async run<I, O>(workflow: Workflow<I, O>, input: I, options: ChildOptions = {}): Promise<O> {
    const key = this.#keyFor(options.as ?? workflow.name, 'run')
    // without a schema it is taken in this very turn: what the caller changes later is not handed over
    const schema = workflow.options.input as Schema<unknown, I> | undefined
    const what = `the input of ${workflow.name}`
    const typed = schema ? await checked(schema, input, what, 'invalid_input') : input
    const child = this.#childStart(workflow, typed, options, true)
    const received = await this.#waitFor(key, 'child', () => ({ key, kind: 'child', child }))
    const { value } = this.#valueOf<{
      value: {
        run: string
        status: string
        reason: string | null
        note: string | null
        output: unknown
        error: FailureData | null
      }
    }>(received)
    if (value.status !== 'succeeded') throw new ChildFailedError(value)
    return this.#revived(value.output ?? undefined, codecOf(workflow.options.codec)) as O
  }

  async spawn<I, O>(
    workflow: Workflow<I, O>,
    input: I,
    options: ChildOptions = {},
  ): Promise<string> {
    const key = this.#keyFor(options.as ?? workflow.name, 'spawn')
    const schema = workflow.options.input as Schema<unknown, I> | undefined
    const what = `the input of ${workflow.name}`
    const typed = schema ? await checked(schema, input, what, 'invalid_input') : input
    const child = this.#childStart(workflow, typed, options, false)
    const received = await this.#ask(key, 'spawn', (_live, branch) => {
      branch.state = 'body'
      this.#env.driver.ready({
        key,
        kind: 'spawn',
        output: JSON.stringify(child.id),
        error: null,
        spawn: { as: key, ...child },
      })
    })
    return this.#valueOf<string>(received)
  }

  continueAs(input?: unknown): Promise<never> {
    const text = payloadOf(this.#env.codec, input, this.#env.payloadMax, 'the input of continueAs')
    return Promise.resolve(new Continuation(text) as never)
  }

  setState(value: unknown): void {
    const text = payloadOf(plainCodec, value, this.#env.payloadMax, 'the state of the run')
    this.#env.driver.setState(text)
  }

  async map<T, O>(
    name: string,
    items: readonly T[],
    body: (ctx: Context, item: T, index: number) => Promise<O>,
    options: MapOptions<T> = {},
  ): Promise<O[]> {
    const results = await this.#eachOf(name, items, body, options, false)
    const failed = results.find((result) => !result.ok)
    if (failed && !failed.ok) throw failed.error
    return results.map((result) => (result as { readonly value: O }).value)
  }

  mapSettled<T, O>(
    name: string,
    items: readonly T[],
    body: (ctx: Context, item: T, index: number) => Promise<O>,
    options: MapOptions<T> = {},
  ): Promise<Settled<O>[]> {
    return this.#eachOf(name, items, body, options, true)
  }

  async scope<O>(name: string, body: (ctx: Context) => Promise<O>): Promise<O> {
    this.#keyFor(name, 'scope')
    return this.#inScope([name], body).run()
  }

  async all(name: string, branches: Branches): Promise<never> {
    this.#keyFor(name, 'all')
    const values = await Promise.all(
      Object.entries(branches).map(
        async ([branch, body]) =>
          [branch, await this.#inScope([name, branch], body).run()] as const,
      ),
    )
    return Object.fromEntries(values) as never
  }

  race(name: string, branches: Branches): Promise<never> {
    return this.#compete(name, branches, 'first') as never
  }

  any(name: string, branches: Branches): Promise<never> {
    return this.#compete(name, branches, 'success') as never
  }

  patched(name: string): boolean {
    return this.#env.driver.mark(`${this.#keyFor(name, 'patched')}?`, 'patch')
  }

  now(): number {
    return this.#env.driver.now()
  }

  random(): number {
    return this.#random.next()
  }

  uuid(): string {
    const digits = Array.from({ length: 32 }, (_, i) =>
      i === 12
        ? '4'
        : i === 16
          ? '89ab'[Math.floor(this.#random.next() * 4)]
          : Math.floor(this.#random.next() * 16).toString(16),
    ).join('')
    return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`
  }

  log(message: string, facts: Facts = {}): void {
    if (!this.#env.driver.replaying)
      this.#env.ports.log.info('run.log', {
        ...readable(facts),
        run: this.#env.driver.claimed.run,
        attempt: this.#env.driver.claimed.attempt,
        message,
      })
  }

  progress(done: number, total?: number, note?: string): void {
    this.#env.driver.progress(progressText(done, total, note))
  }
}

const AWAITED = [
  'step',
  'sleep',
  'sleepUntil',
  'signal',
  'approval',
  'run',
  'spawn',
  'map',
  'mapSettled',
  'scope',
  'all',
  'race',
  'any',
] as const
const OTHERS = [
  'continueAs',
  'setState',
  'patched',
  'now',
  'random',
  'uuid',
  'log',
  'progress',
] as const

type Verb = (this: RunContext, ...args: unknown[]) => unknown

/**
 * A verb taken off its context still works, as in `const { step } = ctx`. Whoever awaits its promise hears of its failure;
 * that nobody does, or not yet, must not end the process, which drives other runs too. A step that is never awaited
 * fails its own run when the function returns.
 */
const bind = (name: string, awaited: boolean): void => {
  const { prototype } = RunContext
  const verb = Reflect.get(prototype, name) as Verb
  const call = function (this: RunContext, ...args: unknown[]): unknown {
    const result = verb.apply(this, args)
    if (awaited) (result as Promise<unknown>).catch(() => undefined)
    return result
  }
  Object.defineProperty(prototype, name, {
    get(this: RunContext) {
      return call.bind(this)
    },
  })
}
for (const name of AWAITED) bind(name, true)
for (const name of OTHERS) bind(name, false)

export const makeContext = (env: VerbsEnvironment, scope = ''): Context =>
  new RunContext(env, scope)

/** Who may decide is never guessed: a text in place of a list would let in everybody whose name is a part of it. */
const mustAsk = (name: string, { prompt, deciders = [] }: ApprovalOptions): void => {
  if (typeof prompt !== 'string')
    throw new LeaseholdError(
      'invalid_request',
      `the prompt of the approval ${name} is ${shown(prompt)}; expected a text`,
    )
  if (!Array.isArray(deciders))
    throw new LeaseholdError(
      'invalid_request',
      `the deciders of the approval ${name} are ${shown(deciders)}; expected a list of names`,
    )
  for (const decider of deciders) mustKeep(decider, `a decider of the approval ${name}`)
}

const mustKeep = (name: unknown, what: string): void => {
  if (typeof name !== 'string' || name === '' || name.length > 200 || UNFIT.test(name))
    throw new LeaseholdError(
      'invalid_request',
      `${what} is ${shown(name)}, which cannot be kept; expected 1 to 200 characters without control characters`,
    )
}

// control characters and lone surrogates: what one of the stores cannot keep in a name
const UNFIT =
  /[\u0000-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/
