// The durable verbs of a workflow function, on top of its driver: each is a branch that asks for the outcome of a name.
import type { Duration } from '../../kernel/duration.ts'
import { milliseconds } from '../../kernel/duration.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import { shown } from '../../kernel/json.ts'
import type { MembersOf } from '../../kernel/known-members.ts'
import { mustKnowMembers } from '../../kernel/known-members.ts'
import type { Facts } from '../../kernel/log.ts'
import { readable } from '../../kernel/log.ts'
import { drawOf, numberOf, uuidOf } from '../../kernel/random.ts'
import { runChild, spawnChild } from './children.ts'
import { plainCodec } from './codec.ts'
import type {
  ApprovalOptions,
  ChildOptions,
  Context,
  Decision,
  MapOptions,
  Settled,
  StepArgument,
  StepOptions,
  Task,
  Workflow,
} from './context.ts'
import type { VerbsEnvironment } from './environment.ts'
import { mustBeBranches, mustBeFunction, mustBeTask } from './given.ts'
import { eachOf } from './mapping.ts'
import { payloadOf } from './payload.ts'
import { askPeople, takeSignal } from './questions.ts'
import { compete } from './racing.ts'
import type { Schema } from './schema.ts'
import type { Bodies } from './scope.ts'
import { Scope } from './scope.ts'
import { mustTry, progressText, runStep } from './step.ts'

/** What `return ctx.continueAs(input)` comes to. */
export class Continuation {
  readonly input: string | null
  constructor(input: string | null) {
    this.input = input
  }
}

const STEP_OPTIONS: MembersOf<StepOptions> = {
  retry: true,
  timeout: true,
  output: true,
  retryIf: true,
}
const TASK_STEP_OPTIONS = { as: true } as const

/** The context of one scope. */
class RunContext implements Context {
  readonly #scope: Scope
  #draws = 0

  constructor(env: VerbsEnvironment, prefix: string) {
    this.#scope = new Scope(env, prefix, makeContext)
  }

  #draw(): Uint8Array {
    const { seed } = this.#scope.env.driver.claimed
    return drawOf(`${seed}#${this.#scope.prefix}`, ++this.#draws)
  }

  get info(): Context['info'] {
    const { run, workflow, version, attempt, owner } = this.#scope.env.driver.claimed
    return { run, workflow, version, attempt, owner }
  }

  get abort(): AbortSignal {
    return this.#scope.env.driver.signal
  }

  async step<I, O>(first: string | Task<I, O>, second: unknown, third?: unknown): Promise<O> {
    const isTask = typeof first !== 'string'
    if (isTask) mustBeTask(first)
    mustKnowMembers(
      third ?? {},
      isTask ? TASK_STEP_OPTIONS : STEP_OPTIONS,
      `the step ${shown(isTask ? first.options.name : first)}`,
      'invalid_request',
    )
    const name = isTask ? ((third as { as?: string } | undefined)?.as ?? first.options.name) : first
    const options: StepOptions<O> = isTask
      ? first.options
      : ((third as StepOptions<O> | undefined) ?? {})
    const body = isTask
      ? (argument: StepArgument) => first.body(second as I, argument)
      : (second as (argument: StepArgument) => Promise<O> | O)
    mustBeFunction(body, `the body of the step ${shown(name)}`, 'invalid_request')
    mustTry(name, options)
    const key = this.#scope.keyFor(name, 'step')
    const received = await this.#scope.ask(key, 'step', (live, branch) =>
      runStep({ env: this.#scope.env, key, name, options, body, live, branch }),
    )
    return this.#scope.valueOf<O>(received, this.#scope.env.codec)
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    const ms = milliseconds(duration, `sleep ${name}`)
    const key = this.#scope.keyFor(name, 'sleep')
    await this.#scope.waitFor(key, 'time', () => ({ key, kind: 'time', dueInMs: ms }))
  }

  async sleepUntil(name: string, instant: Date | number): Promise<void> {
    const at = instant instanceof Date ? instant.getTime() : instant
    if (typeof at !== 'number' || !Number.isFinite(at) || Math.abs(at) > 8.64e15)
      throw new LeaseholdError(
        'invalid_duration',
        `sleepUntil ${shown(name)} has ${instant instanceof Date ? String(instant) : shown(instant)}; expected a date, or milliseconds since 1970`,
      )
    const key = this.#scope.keyFor(name, 'sleepUntil')
    await this.#scope.waitFor(key, 'time', () => ({ key, kind: 'time', dueAt: Math.ceil(at) }))
  }

  signal<T>(
    name: string,
    options: { as?: string; timeout?: Duration; schema?: Schema<unknown, T> } = {},
  ): Promise<never> {
    return takeSignal(this.#scope, name, options) as never
  }

  approval<T>(name: string, options: ApprovalOptions): Promise<Decision<T>> {
    return askPeople(this.#scope, name, options)
  }

  run<I, O>(workflow: Workflow<I, O>, input: I, options: ChildOptions = {}): Promise<O> {
    return runChild(this.#scope, workflow, input, options)
  }

  spawn<I, O>(workflow: Workflow<I, O>, input: I, options: ChildOptions = {}): Promise<string> {
    return spawnChild(this.#scope, workflow, input, options)
  }

  continueAs(input?: unknown): Promise<never> {
    const text = payloadOf(
      this.#scope.env.codec,
      input,
      this.#scope.env.payloadMaxBytes,
      'the input of continueAs',
    )
    return Promise.resolve(new Continuation(text) as never)
  }

  setState(value: unknown): void {
    const text = payloadOf(
      plainCodec,
      value,
      this.#scope.env.payloadMaxBytes,
      'the state of the run',
    )
    this.#scope.env.driver.setState(text)
  }

  async map<T, O>(
    name: string,
    items: readonly T[],
    body: (ctx: Context, item: T, index: number) => Promise<O>,
    options: MapOptions<T> = {},
  ): Promise<O[]> {
    const results = await eachOf(this.#scope, name, items, body, options, false)
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
    return eachOf(this.#scope, name, items, body, options, true)
  }

  async scope<O>(name: string, body: (ctx: Context) => Promise<O>): Promise<O> {
    mustBeFunction(body, `the body of the scope ${shown(name)}`, 'invalid_request')
    this.#scope.keyFor(name, 'scope')
    return this.#scope.inner([name], body).run()
  }

  async all(name: string, branches: Bodies): Promise<never> {
    mustBeBranches(branches, shown(name))
    this.#scope.keyFor(name, 'all')
    const scopes = Object.entries(branches).map(([branch, body]) => ({
      branch,
      ...this.#scope.inner([name, branch], body),
    }))
    try {
      const values = await Promise.all(
        scopes.map(async ({ branch, run }) => [branch, await run()] as const),
      )
      return Object.fromEntries(values) as never
    } catch (error) {
      // at the same place on replay, where the same outcome fails it: no entry has to say so
      for (const { prefix } of scopes) this.#scope.env.driver.endScope(prefix)
      throw error
    }
  }

  race(name: string, branches: Bodies): Promise<never> {
    return compete(this.#scope, name, branches, 'first') as never
  }

  any(name: string, branches: Bodies): Promise<never> {
    return compete(this.#scope, name, branches, 'success') as never
  }

  patched(name: string): boolean {
    return this.#scope.env.driver.mark(`${this.#scope.keyFor(name, 'patched')}?`, 'patch')
  }

  prepared<T>(): T {
    return this.#scope.env.prepared as T
  }

  now(): number {
    return this.#scope.env.driver.now()
  }

  random(): number {
    return numberOf(this.#draw())
  }

  uuid(): string {
    return uuidOf(this.#draw())
  }

  log(message: string, facts: Facts = {}): void {
    if (!this.#scope.env.driver.replaying) this.#scope.env.log.log(message, readable(facts))
  }

  progress(done: number, total?: number, note?: string): void {
    this.#scope.env.driver.progress(progressText(done, total, note))
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
  'prepared',
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
