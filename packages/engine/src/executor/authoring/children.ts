// Children of a run: `ctx.run` waits for one, `ctx.spawn` goes on.
import type { MembersOf } from '../../kernel/known-members.ts'
import { mustKnowMembers } from '../../kernel/known-members.ts'
import { besideOf } from '../../model/shard.ts'
import type { ChildStart } from '../../model/work.ts'
import { codecOf } from './codec.ts'
import type { ChildOptions, Workflow } from './context.ts'
import type { FailureData } from './failure.ts'
import { ChildFailedError } from './failure.ts'
import { mustBeWorkflow } from './given.ts'
import { payloadOf } from './payload.ts'
import type { Schema } from './schema.ts'
import { checkedFor } from './schema.ts'
import type { Scope } from './scope.ts'

const CHILD_OPTIONS: MembersOf<ChildOptions> = {
  as: true,
  owner: true,
  queue: true,
  labels: true,
  priority: true,
  key: true,
  onParentEnd: true,
}

export const runChild = async <I, O>(
  scope: Scope,
  workflow: Workflow<I, O>,
  input: I,
  options: ChildOptions,
): Promise<O> => {
  const key = keyOf(scope, workflow, options, 'run')
  const child = await childOf(scope, workflow, input, options, true)
  const received = await scope.waitFor(key, 'child', () => ({ key, kind: 'child', child }))
  const { value } = scope.valueOf<{
    value: {
      run: string
      status: string
      reason: string | null
      note: string | null
      output?: unknown
      error: FailureData | null
    }
  }>(received)
  if (value.status !== 'succeeded') throw new ChildFailedError(value)
  if (value.output === undefined) return undefined as O
  return scope.revived(value.output, codecOf(workflow.options.codec)) as O
}

export const spawnChild = async <I, O>(
  scope: Scope,
  workflow: Workflow<I, O>,
  input: I,
  options: ChildOptions,
): Promise<string> => {
  const key = keyOf(scope, workflow, options, 'spawn')
  const child = await childOf(scope, workflow, input, options, false)
  const received = await scope.ask(key, 'spawn', (_live, branch) => {
    branch.state = 'body'
    scope.env.driver.ready({
      key,
      kind: 'spawn',
      output: JSON.stringify(child.id),
      error: null,
      spawn: { as: key, ...child },
    })
  })
  return scope.valueOf<string>(received)
}

/** The key of a child, once it is one that can be started. */
const keyOf = (
  scope: Scope,
  workflow: { readonly name: string },
  options: ChildOptions,
  verb: 'run' | 'spawn',
): string => {
  mustBeWorkflow(workflow, `ctx.${verb}`)
  mustKnowMembers(options, CHILD_OPTIONS, `the child ${workflow.name}`, 'invalid_request')
  return scope.keyFor(options.as ?? workflow.name, verb)
}

const childOf = async <I, O>(
  scope: Scope,
  workflow: Workflow<I, O>,
  input: I,
  options: ChildOptions,
  awaited: boolean,
): Promise<ChildStart> => {
  const what = `the input of ${workflow.name}`
  const schema = workflow.options.input as Schema<unknown, I> | undefined
  // without a schema it is taken in this very turn: what the caller changes later is not handed over
  const typed = schema
    ? await checkedFor(scope.env.driver, schema, input, what, 'invalid_input')
    : input
  return {
    // beside its parent, also where there are several databases
    id: besideOf(scope.env.driver.claimed.run, scope.env.ports.ids.next('run')),
    workflow: workflow.name,
    input: payloadOf(codecOf(workflow.options.codec), typed, scope.env.payloadMaxBytes, what),
    ...(options.owner === undefined ? {} : { owner: options.owner }),
    ...(options.queue === undefined ? {} : { queue: options.queue }),
    ...(options.labels === undefined ? {} : { labels: options.labels }),
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    ...(options.key === undefined ? {} : { key: options.key }),
    awaited,
    onParentEnd: options.onParentEnd ?? (awaited ? 'cancel' : 'detach'),
  }
}
