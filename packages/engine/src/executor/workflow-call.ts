// Calls a workflow's function with its input checked, and checks what it returns.
import { changed } from '../model/launch.ts'
import { besideOf } from '../model/shard.ts'
import type { RegisterOk } from '../model/work.ts'
import { codecOf } from './authoring/codec.ts'
import type { Work } from './core.ts'
import type { Returned } from './driving/driver.ts'
import type { ExecutorOptions } from './options.ts'
import { payloadOf } from './authoring/payload.ts'
import type { Prepared } from './preparing/preparing.ts'
import { contextOf } from './preparing/preparing.ts'
import { checkedFor } from './authoring/schema.ts'
import { Continuation, makeContext } from './authoring/verbs.ts'

type Called = Pick<Work, 'claimed' | 'driver' | 'workflow' | 'prepared'> & {
  readonly log: Pick<Work['log'], 'log'>
}

export const callWorkflow = async (
  { aroundStep, ports }: Pick<ExecutorOptions, 'aroundStep' | 'ports'>,
  { generation, limits }: Pick<RegisterOk, 'generation' | 'limits'>,
  work: Called,
  context: Prepared['context'],
): Promise<Returned> => {
  const { claimed, driver, workflow } = work
  const codec = codecOf(workflow.options.codec)
  const input: unknown = await checkedFor(
    driver,
    workflow.options.input,
    codec.decode(claimed.input),
    `the input of ${workflow.name}`,
    'invalid_input',
  ).catch((error: unknown) => {
    driver.fail('invalid_input', error)
    throw error
  })
  const ctx = makeContext({
    driver,
    ports,
    log: work.log,
    codec,
    begun: { step: null },
    prepared: work.prepared,
    generation,
    stepRetry: workflow.options.stepRetry ?? {},
    payloadMaxBytes: limits.payloadMaxBytes,
    limitGraceMs: limits.limitGraceMs,
    ...(aroundStep ? { around: aroundStep } : {}),
  })
  const value: unknown = await workflow.handler(ctx, input)
  // the attempt has ended meanwhile: what comes back now is not its result, and is not even looked at (EX-12)
  if (driver.over) return { kind: 'value', output: null }
  if (context && !(await isCurrent(work, input, context.captured)))
    return { kind: 'value', output: null }
  if (value instanceof Continuation)
    return {
      kind: 'continue',
      input: value.input,
      runId: besideOf(claimed.run, ports.ids.next('run')),
    }
  const what = `the result of ${workflow.name}`
  const typed = workflow.options.output
    ? await checkedFor(driver, workflow.options.output, value, what, 'invalid_output')
    : value
  return { kind: 'value', output: payloadOf(codec, typed, limits.payloadMaxBytes, what) }
}

/** Whether the context is what was captured; where it is not, the attempt ends `stale` and what came of it is no result. */
const isCurrent = async (
  { driver, workflow }: Called,
  input: unknown,
  captured: string,
): Promise<boolean> => {
  // what the function left behind is looked at when this is known: it is not suspended on it meanwhile
  driver.inPlace(1)
  const current = await contextOf(workflow, input, driver.signal)
    .then((read) => read ?? captured)
    .finally(() => driver.inPlace(-1))
  if (current === captured) return true
  driver.stop('stale', changed(captured, current))
  return false
}
