// Calls a workflow's function with its input checked, and checks what it returns.
import type { RegisterOk } from '../model/work.ts'
import { codecOf } from './codec.ts'
import type { Work } from './core.ts'
import type { Returned } from './driver.ts'
import type { ExecutorOptions } from './options.ts'
import { payloadOf } from './payload.ts'
import { checked } from './schema.ts'
import { Continuation, makeContext } from './verbs.ts'

export const callWorkflow = async (
  { aroundStep, ports }: ExecutorOptions,
  { generation, limits }: RegisterOk,
  { claimed, driver, workflow }: Work,
): Promise<Returned> => {
  const codec = codecOf(workflow.options.codec)
  const input: unknown = await checked(
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
    codec,
    begun: { step: null },
    generation,
    stepRetry: workflow.options.stepRetry ?? {},
    payloadMax: limits.payloadMax,
    limitGraceMs: limits.limitGraceMs,
    ...(aroundStep ? { around: aroundStep } : {}),
  })
  const value: unknown = await workflow.handler(ctx, input)
  // the attempt has ended meanwhile: what comes back now is not its result, and is not even looked at (EX-12)
  if (driver.over) return { kind: 'value', output: null }
  if (value instanceof Continuation)
    return { kind: 'continue', input: value.input, runId: ports.ids.next('run') }
  const what = `the result of ${workflow.name}`
  const typed = workflow.options.output
    ? await checked(workflow.options.output, value, what, 'invalid_output')
    : value
  return { kind: 'value', output: payloadOf(codec, typed, limits.payloadMax, what) }
}
