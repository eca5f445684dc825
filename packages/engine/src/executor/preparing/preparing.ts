// What comes before a function that needs something: its context is captured, its preparation runs with a signal and a limit
// of its own, and the context is read again for the launch check. All of it is awaited whatever happens; what runs out of
// time ends the attempt, and nothing later replaces that.
import { inWords, milliseconds } from '../../kernel/duration.ts'
import { FatalError, LeaseholdError } from '../../kernel/errors.ts'
import { backoffMs, triesLeft } from '../../model/retry.ts'
import type { RetryPolicy } from '../../model/retry.ts'
import { endJob, moveJob } from '../../model/job.ts'
import { Abort } from '../driving/abort.ts'
import { codecOf } from '../authoring/codec.ts'
import type { AnyWorkflow } from '../authoring/context.ts'
import type { Core, Drive, Session, Work } from '../core.ts'
import { payloadOf } from '../authoring/payload.ts'
import { checked } from '../authoring/schema.ts'

const LIMIT = '10m'
const RETRY: RetryPolicy = { maxAttempts: 2 }

/** What the function begins with. */
export interface Prepared {
  readonly value: unknown
  /** The context as it was captured and as it is after the preparation; null where the workflow has none. */
  readonly context: { readonly captured: string; readonly current: string } | null
}

export const NOTHING: Prepared = { value: undefined, context: null }

export const needsPreparation = ({ options }: AnyWorkflow): boolean =>
  options.prepare !== undefined || options.context !== undefined

/** Prepares the attempt; null where it ends instead, which is under way then. */
export const prepare = async (
  core: Core,
  of: Session,
  job: Drive,
  work: Work,
): Promise<Prepared | null> => {
  const { driver, workflow } = work
  const { ports } = core.options
  const { timers } = ports
  moveJob(job, 'prepare', 'preparing')
  driver.preparationBegins()
  driver.says('preparing')
  const aborting = new Abort(driver.aborting)
  const limitMs = milliseconds(workflow.options.prepareLimit ?? LIMIT, 'prepareLimit')
  // the first that ends it decides; a stop that came before has decided already
  let end: (() => void) | null = null
  let cancelGrace: (() => void) | null = null
  const endBy = (reason: string, error: unknown, retryInMs?: number): void => {
    if (end !== null || job.phase === 'settling') return
    endJob(job)
    end = () => driver.fail(reason, error, retryInMs)
    aborting.abort(error)
    // a preparation that does not heed its signal keeps its slot; the run goes on elsewhere with a higher fence
    cancelGrace = timers.after(of.answer.limits.limitGraceMs, () => end?.())
  }
  work.timedOut = () => {
    const late = Object.assign(new Error('Timed out'), { code: 'attempt_deadline' })
    endBy('attempt_deadline', late, work.retryInMs(late))
  }
  const cancelLimit = timers.after(limitMs, () => {
    const late = new LeaseholdError('prepare_timeout', 'Timed out while preparing.', {
      limit: inWords(limitMs),
    })
    endBy('prepare_timeout', late, retryOf(core, work, late))
  })
  try {
    const prepared = await made(core, of, work, aborting)
    return end === null && !driver.over && job.reason === null ? prepared : null
  } catch (error) {
    if (error instanceof LeaseholdError) endBy(error.code, error)
    else endBy('prepare_failed', error, retryOf(core, work, error))
    return null
  } finally {
    cancelLimit()
    ;(cancelGrace as (() => void) | null)?.()
    aborting.settle()
    work.timedOut = null
    driver.bodySettles()
    ;(end as (() => void) | null)?.()
  }
}

const made = async (core: Core, of: Session, work: Work, aborting: Abort): Promise<Prepared> => {
  const { claimed, workflow } = work
  const { options } = workflow
  const input: unknown = await checked(
    options.input,
    codecOf(options.codec).decode(claimed.input),
    `the input of ${workflow.name}`,
    'invalid_input',
  )
  const captured = await contextOf(workflow, input, aborting.signal)
  if (options.prepare) {
    const { run, attempt } = claimed
    const { scratch } = core.options
    const label = { session: of.id, run, attempt }
    if (scratch) work.directory = await scratch.make(label)
    work.prepared = await options.prepare(input, {
      signal: aborting.signal,
      attempt,
      run,
      get directory() {
        if (work.directory !== null) return work.directory
        throw new LeaseholdError(
          'invalid_config',
          `the preparation of ${workflow.name} asks for a directory, and its executor has none; give the executor a scratch directory`,
        )
      },
    })
    work.held = options.release !== undefined
    // noted before anything is done with it: a start on this host releases it where this process is killed
    if (work.held && scratch) {
      const prepared = payloadOf(
        codecOf(options.codec),
        work.prepared,
        of.answer.limits.payloadMaxBytes,
        `what the preparation of ${workflow.name} returns`,
      )
      await scratch.note(label, { workflow: workflow.name, version: workflow.version, prepared })
    }
  }
  const current = await contextOf(workflow, input, aborting.signal)
  return {
    value: work.prepared,
    context: captured === null || current === null ? null : { captured, current },
  }
}

/** The workflow's context as it is now; null where it has none. */
export const contextOf = async (
  { name, options }: AnyWorkflow,
  input: unknown,
  signal: AbortSignal,
): Promise<string | null> => {
  if (!options.context) return null
  const text: unknown = await options.context(input, { signal })
  if (typeof text === 'string') return text
  throw new LeaseholdError(
    'invalid_output',
    `the context of ${name} is ${text === null ? 'null' : `of type ${typeof text}`}; expected a text that changes when the context does`,
  )
}

/** Milliseconds before the next try of a preparation that failed; two tries where nothing else is said. */
const retryOf = (
  { options }: Core,
  { claimed, workflow }: Work,
  error: unknown,
): number | undefined => {
  if (error instanceof FatalError) return undefined
  const policy = { ...RETRY, ...workflow.options.prepareRetry }
  const failed = claimed.failures + 1
  return triesLeft(policy, 2, failed)
    ? backoffMs(policy, failed, options.ports.random.next())
    : undefined
}
