// Defining workflows and tasks. A workflow is a plain async function with a name, a declared version and its policies.
import { milliseconds } from '../../kernel/duration.ts'
import { errorOf, LeaseholdError } from '../../kernel/errors.ts'
import type { MembersOf } from '../../kernel/known-members.ts'
import { mustKnowMembers } from '../../kernel/known-members.ts'
import type { Definition } from '../../model/definition.ts'
import { eachOnce, mustName } from '../../model/definition.ts'
import { retryFaults } from '../../model/retry.ts'
import { mustFit } from '../../model/start.ts'
import type {
  AnyWorkflow,
  Context,
  StepArgument,
  Task,
  TaskOptions,
  Workflow,
  WorkflowOptions,
} from './context.ts'
import { mustBeFunction } from './given.ts'
import { mustIsolate } from './isolation.ts'
import { jsonSchemaOf } from './schema.ts'

const WORKFLOW_OPTIONS: MembersOf<WorkflowOptions<unknown, unknown>> = {
  name: true,
  version: true,
  input: true,
  output: true,
  queue: true,
  labels: true,
  limits: true,
  retry: true,
  stepRetry: true,
  totalLimit: true,
  attemptLimit: true,
  startBy: true,
  onEnd: true,
  prepare: true,
  release: true,
  prepareLimit: true,
  prepareRetry: true,
  context: true,
  codec: true,
  isolation: true,
  slotClass: true,
}
const TASK_OPTIONS: MembersOf<TaskOptions<unknown>> = {
  name: true,
  output: true,
  retry: true,
  timeout: true,
}

/** As the process drives it that is there for one attempt of it alone: in that very process. */
export const inside = (workflow: AnyWorkflow): AnyWorkflow => ({
  ...workflow,
  definition: { ...workflow.definition, isolation: 'inline', slotClass: 'default' },
})

/** Defines a workflow: `workflow('hello', async (ctx, input: {name: string}) => …)`, or with options. */
export const workflow = <I = unknown, O = unknown>(
  options: string | WorkflowOptions<I, O>,
  handler: (ctx: Context, input: I) => Promise<O> | O,
): Workflow<I, O> => {
  const full = optionsOf<WorkflowOptions<I, O>>(options, 'workflow')
  const name = mustName(full.name, 'workflow name')
  mustKnowMembers(full, WORKFLOW_OPTIONS, `the workflow ${name}`)
  mustBeFunction(handler, `the function of the workflow ${name}`)
  for (const hook of ['prepare', 'release', 'context'] as const)
    if (full[hook] !== undefined) mustBeFunction(full[hook], `${hook} of ${name}`)
  const version = mustName(full.version ?? '1', `version of ${name}`)
  const faults = [
    ...retryFaults(full.retry ?? {}, 'retry'),
    ...retryFaults(full.stepRetry ?? {}, 'stepRetry'),
    ...retryFaults(full.prepareRetry ?? {}, 'prepareRetry'),
  ]
  if (faults.length > 0) throw new LeaseholdError('invalid_config', `${name}: ${faults.join('; ')}`)
  if (full.prepareLimit !== undefined) milliseconds(full.prepareLimit, `prepareLimit of ${name}`)
  const onEnd = full.onEnd ?? null
  const definition: Definition = {
    workflow: name,
    version,
    queue: mustName(full.queue ?? 'default', `queue of ${name}`),
    // what is no list is refused with all else that does not fit
    labels: Array.isArray(full.labels ?? [])
      ? [...new Set(full.labels ?? [])].sort()
      : (full.labels ?? []),
    input: jsonSchemaOf(full.input, 'input'),
    output: jsonSchemaOf(full.output, 'output'),
    limits: full.limits ?? [],
    totalLimitMs:
      full.totalLimit === undefined ? null : milliseconds(full.totalLimit, `totalLimit of ${name}`),
    attemptLimitMs:
      full.attemptLimit === undefined
        ? null
        : milliseconds(full.attemptLimit, `attemptLimit of ${name}`),
    startByMs: full.startBy === undefined ? null : milliseconds(full.startBy, `startBy of ${name}`),
    retry: full.retry ?? null,
    onEnd: typeof onEnd === 'object' && onEnd !== null ? onEnd.name : onEnd,
    slotClass: full.slotClass ?? 'default',
    isolation: mustIsolate(name, full.isolation).kind,
  }
  mustFit(definition)
  return { name, version, options: full, definition, handler }
}

/** A step's body with its name and policies: `task('send', async (to: string) => …)`, run by `ctx.step(send, to)`. */
export const task = <I = void, O = unknown>(
  options: string | TaskOptions<O>,
  body: (input: I, step: StepArgument) => Promise<O> | O,
): Task<I, O> => {
  const full = optionsOf<TaskOptions<O>>(options, 'task')
  mustName(full.name, 'task name')
  mustKnowMembers(full, TASK_OPTIONS, `the task ${full.name}`)
  mustBeFunction(body, `the body of the task ${full.name}`)
  return { kind: 'task', options: full, body }
}

// programs without types can hand over anything
const optionsOf = <T extends { readonly name: string }>(options: string | T, what: string): T => {
  if (typeof options === 'object' && options !== null) return options
  return { name: mustName(options, `${what} name`) } as T
}

/** The definitions of an executor's workflows; two of one name and version are refused. */
export const definitionsOf = (workflows: readonly AnyWorkflow[]): Definition[] => {
  const definitions = workflows.map((each) => each.definition)
  const once = eachOnce(definitions)
  if (!once.ok) throw errorOf(once)
  return definitions
}
