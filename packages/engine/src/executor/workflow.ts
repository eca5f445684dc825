// Defining workflows and tasks. A workflow is a plain async function with a name, a declared version and its policies.
import type { Duration } from '../kernel/duration.ts'
import { milliseconds } from '../kernel/duration.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Definition, LimitDeclaration } from '../model/definition.ts'
import { mustName } from '../model/definition.ts'
import type { RetryPolicy } from '../model/retry.ts'
import { retryFaults } from '../model/retry.ts'
import { mustFit } from '../model/start.ts'
import type { Context, StepArgument } from './context.ts'
import type { Schema } from './schema.ts'
import { jsonSchemaOf } from './schema.ts'

export interface WorkflowOptions<I, O> {
  /** Unique among an executor's workflows of the same version. */
  readonly name: string
  /** Declared, never a hash of the source. Default '1'. A run stays on the version it started on. */
  readonly version?: string
  readonly input?: Schema<unknown, I>
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
  /** The whole run, waits included. */
  readonly totalLimit?: Duration
  /** One attempt. */
  readonly attemptLimit?: Duration
  /** A run that nobody claims within this ends `failed`, reason `not_started`. */
  readonly startBy?: Duration
  /** Started when a run ends other than by success, with what is known of it. */
  readonly onEnd?: string | Workflow<never, unknown>
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

/** Defines a workflow: `workflow('hello', async (ctx, input: {name: string}) => …)`, or with options. */
export const workflow = <I = unknown, O = unknown>(options: string | WorkflowOptions<I, O>, handler: (ctx: Context, input: I) => Promise<O> | O): Workflow<I, O> => {
  const full: WorkflowOptions<I, O> = typeof options === 'string' ? { name: options } : options
  const name = mustName(full.name, 'workflow name')
  const version = mustName(full.version ?? '1', `version of ${name}`)
  const faults = [...retryFaults(full.retry ?? {}, 'retry'), ...retryFaults(full.stepRetry ?? {}, 'stepRetry')]
  if (faults.length > 0) throw new LeaseholdError('invalid_config', `${name}: ${faults.join('; ')}`)
  const definition: Definition = {
    workflow: name,
    version,
    queue: mustName(full.queue ?? 'default', `queue of ${name}`),
    labels: [...new Set((full.labels ?? []).map((label) => mustName(label, `label of ${name}`)))].sort(),
    input: jsonSchemaOf(full.input, 'input'),
    output: jsonSchemaOf(full.output, 'output'),
    limits: full.limits ?? [],
    totalLimitMs: full.totalLimit === undefined ? null : milliseconds(full.totalLimit, `totalLimit of ${name}`),
    attemptLimitMs: full.attemptLimit === undefined ? null : milliseconds(full.attemptLimit, `attemptLimit of ${name}`),
    startByMs: full.startBy === undefined ? null : milliseconds(full.startBy, `startBy of ${name}`),
    retry: full.retry ?? null,
    onEnd: full.onEnd === undefined ? null : typeof full.onEnd === 'string' ? full.onEnd : full.onEnd.name,
    slotClass: full.slotClass ?? 'default',
    isolation: 'inline',
  }
  mustFit(definition)
  return { name, version, options: full, definition, handler }
}

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

export const task = <I = void, O = unknown>(options: string | TaskOptions<O>, body: (input: I, step: StepArgument) => Promise<O> | O): Task<I, O> => ({
  kind: 'task',
  options: typeof options === 'string' ? { name: options } : options,
  body,
})

/** The definitions of an executor's workflows; two of one name and version are refused. */
export const definitionsOf = (workflows: readonly AnyWorkflow[]): Definition[] => {
  const seen = new Set<string>()
  for (const { name, version } of workflows) {
    const key = `${name}@${version}`
    if (seen.has(key)) throw new LeaseholdError('duplicate_workflow', `two workflows are named ${name} in version ${version}; rename one`, { workflow: name, version })
    seen.add(key)
  }
  return workflows.map((each) => each.definition)
}
