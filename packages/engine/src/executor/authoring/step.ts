// One step: its body, its tries and its limit. A try counts when its failure is recorded; one that was cut short because
// the attempt had to end does not.
import { inWords, milliseconds } from '../../kernel/duration.ts'
import { FatalError, LeaseholdError, RetryAfterError } from '../../kernel/errors.ts'
import { messageOf } from '../../kernel/json.ts'
import { mustName } from '../../model/definition.ts'
import { backoffMs, retryFaults, RETRY_IN_PLACE_MS, triesLeft } from '../../model/retry.ts'
import type { LiveWait, WaitRecord } from '../../model/work.ts'
import { Abort } from '../driving/abort.ts'
import type { StepArgument, StepOptions } from './context.ts'
import { failureOf } from './failure.ts'
import { payloadOf } from './payload.ts'
import { checked } from './schema.ts'
import type { VerbsEnvironment } from './environment.ts'

interface StepRun<O> {
  readonly env: VerbsEnvironment
  readonly key: string
  readonly name: string
  readonly options: StepOptions<O>
  readonly body: (argument: StepArgument) => Promise<O> | O
  readonly live: LiveWait | undefined
  readonly branch: { state: 'asked' | 'body' | 'wait' }
}

const TRIES = 3

/** Refuses, before a body begins, options by which no try could be made or judged. */
export const mustTry = (name: string, { retry, timeout }: StepOptions): void => {
  const faults = retryFaults(retry ?? {}, 'retry')
  if (faults.length > 0)
    throw new LeaseholdError('invalid_config', `step ${name}: ${faults.join('; ')}`)
  if (timeout !== undefined) milliseconds(timeout, `timeout of the step ${name}`)
}

/** Begins the step's next try, or stands at the retry that was recorded for it. */
export const runStep = <O>(step: StepRun<O>): void => {
  const { env, key, live, branch } = step
  const { driver } = env
  if (live?.kind === 'retry' && live.state === 'open') {
    branch.state = 'wait'
    return
  }
  branch.state = 'body'
  driver.whenDurable(key, () => void attempt(step, (live?.kind === 'retry' ? live.tries : 0) + 1))
}

const attempt = async <O>(step: StepRun<O>, tryNumber: number): Promise<void> => {
  const { env, key, options } = step
  const { driver, ports } = env
  driver.bodyBegins()
  const aborting = new Abort(driver.aborting)
  const trying = { over: false }
  let timedOut = false
  let revoked = false
  const limitMs =
    options.timeout === undefined
      ? null
      : milliseconds(options.timeout, `timeout of the step ${step.name}`)
  let timeoutError: LeaseholdError | null = null
  let cancelLimit: (() => void) | null = null
  if (limitMs !== null)
    cancelLimit = ports.timers.after(limitMs, () => {
      timedOut = true
      trying.over = true
      const late = new LeaseholdError(
        'step_timeout',
        `the step ${step.name} ran into its limit of ${inWords(limitMs)}`,
        { step: step.name, limitMs },
      )
      timeoutError = late
      aborting.abort(late)
      // a body that does not heed its signal keeps its slot; the run goes on elsewhere with a higher fence
      cancelLimit = ports.timers.after(env.limitGraceMs, () => {
        revoked = true
        const { retry } = judged(step, late, tryNumber)
        // a branch that has lost its race fails nobody, and keeps its slot all the same
        if (retry || driver.isClosed(key))
          driver.revoke(
            retry,
            `the step ${step.name} had not settled ${inWords(env.limitGraceMs)} after its limit`,
          )
        else driver.fail('step_timeout', late)
      })
    })
  let result: { output: string | null } | { thrown: unknown }
  try {
    const argument = argumentOf(step, tryNumber, aborting, trying)
    const call = (): unknown => {
      env.begun.step = step.name
      try {
        return step.body(argument)
      } finally {
        env.begun.step = null
      }
    }
    const { around } = env
    const value = await (around
      ? around(
          {
            run: driver.claimed.run,
            workflow: driver.claimed.workflow,
            key,
            name: step.name,
            tryNumber,
          },
          call,
        )
      : call())
    const what = `the result of the step ${step.name}`
    const typed = options.output
      ? await checked(options.output, value, what, 'invalid_output')
      : value
    result = { output: payloadOf(env.codec, typed, env.payloadMaxBytes, what) }
  } catch (thrown) {
    result = { thrown }
  }
  trying.over = true
  cancelLimit?.()
  aborting.settle()
  if (revoked || driver.over) return driver.bodySettles()
  if ('output' in result && !timedOut) {
    driver.ready({ key, kind: 'step', output: result.output, error: null })
    return driver.bodySettles()
  }
  if (driver.job.reason !== null && !timedOut) return driver.bodySettles() // cut short: not a failure of the step
  const thrown = timedOut ? timeoutError : (result as { thrown: unknown }).thrown
  const { retry, failure } = judged(step, thrown, tryNumber)
  if (!retry) {
    driver.ready({ key, kind: 'step', output: null, error: JSON.stringify(failureOf(failure)) })
    return driver.bodySettles()
  }
  await retryLater(step, retry, tryNumber)
}

/** Records the failed try; then waits here when the next one is near, else stands at the recorded retry. */
const retryLater = async <O>(
  step: StepRun<O>,
  record: WaitRecord,
  tryNumber: number,
): Promise<void> => {
  const { env, branch } = step
  const { driver, ports } = env
  const delay = record.dueInMs ?? 0
  driver.inPlace(1)
  driver.bodySettles()
  const recorded = await driver.failedTry(record)
  if (!recorded) return driver.inPlace(-1)
  if (delay > RETRY_IN_PLACE_MS) {
    branch.state = 'wait'
    return driver.inPlace(-1)
  }
  ports.timers.after(delay, () => {
    driver.inPlace(-1)
    if (!driver.over) driver.whenDurable(step.key, () => void attempt(step, tryNumber + 1))
  })
}

/** What follows a failed try: a retry, or the failure of the step. What goes wrong in the judging is a failure as well. */
const judged = <O>(
  step: StepRun<O>,
  thrown: unknown,
  tryNumber: number,
): { readonly retry: WaitRecord | null; readonly failure: unknown } => {
  try {
    return { retry: retryRecord(step, thrown, tryNumber), failure: thrown }
  } catch (error) {
    if (step.options.retryIf === undefined) return { retry: null, failure: error }
    return {
      retry: null,
      failure: new Error(
        `retryIf of the step ${step.name} threw (${messageOf(error)}) when asked about: ${messageOf(thrown)}`,
        { cause: thrown },
      ),
    }
  }
}

/** The retry that follows this failure, or null when none is left or the error is not to be tried again. */
const retryRecord = <O>(
  step: StepRun<O>,
  thrown: unknown,
  tryNumber: number,
): WaitRecord | null => {
  const policy = { ...step.env.stepRetry, ...step.options.retry }
  if (thrown instanceof FatalError || isOwn(thrown) || !triesLeft(policy, TRIES, tryNumber))
    return null
  if (step.options.retryIf && !step.options.retryIf(thrown)) return null
  const delay = Math.max(
    backoffMs(policy, tryNumber, step.env.ports.random.next()),
    thrown instanceof RetryAfterError ? milliseconds(thrown.afterMs, 'RetryAfterError') : 0,
  )
  return {
    key: step.key,
    kind: 'retry',
    tries: tryNumber,
    error: JSON.stringify(failureOf(thrown)),
    dueInMs: delay,
  }
}

/** Errors that trying again cannot mend. */
const isOwn = (thrown: unknown): boolean =>
  thrown instanceof LeaseholdError &&
  [
    'not_serializable',
    'payload_too_large',
    'invalid_output',
    'duplicate_name',
    'nested_step',
    'invalid_duration',
  ].includes(thrown.code)

const NOTE_MAX = 1_000

export const progressText = (done: number, total?: number, note?: string): string =>
  JSON.stringify({
    done,
    total: total ?? null,
    note: note === undefined ? null : String(note).slice(0, NOTE_MAX),
  })

/** What a body may call is bound to its try: one that lives on after its end, or after its limit, adds nothing to the next. */
const argumentOf = <O>(
  { env, key }: StepRun<O>,
  tryNumber: number,
  aborting: Abort,
  trying: { readonly over: boolean },
): StepArgument => ({
  get signal() {
    return aborting.signal
  },
  tryNumber,
  idempotencyKey: `${env.driver.claimed.run}:${key}`,
  fence: { generation: env.generation, attempt: env.driver.claimed.attempt },
  progress(done, total, note) {
    if (!trying.over) env.driver.progress(progressText(done, total, note))
  },
  append(stream, value) {
    if (!trying.over)
      env.driver.append(
        mustName(stream, 'the name of the stream'),
        payloadOf(env.codec, value, env.payloadMaxBytes, `the item of the stream ${stream}`),
      )
  },
})
