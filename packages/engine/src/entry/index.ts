// `leasehold`: what authors import, and the whole engine inside one process. The engine is loaded when it is opened, so that
// an executor that imports workflows loads neither a database nor a server.
import type {
  Embedded,
  EmbeddedOnDatabase,
  EmbeddedOptions,
  EmbeddedEngine,
} from '../embedded/engine.ts'

/** Opens the file, takes back what an earlier process held, and drives runs until `close`. */
export function embedded(options: EmbeddedOptions): Promise<Embedded>
/** Opens the database, beside any number of other processes, and drives runs until `close`. */
export function embedded(options: EmbeddedOnDatabase): Promise<EmbeddedEngine>
export async function embedded(
  options: EmbeddedOptions | EmbeddedOnDatabase,
): Promise<EmbeddedEngine> {
  const { openEmbedded, openOnDatabase, placeOf } = await import('../embedded/engine.ts')
  return placeOf(options) === 'file'
    ? openEmbedded(options as EmbeddedOptions)
    : openOnDatabase(options as EmbeddedOnDatabase)
}

export type {
  Embedded,
  EmbeddedOnDatabase,
  EmbeddedOptions,
  EmbeddedEngine,
} from '../embedded/engine.ts'
export { FatalError, LeaseholdError, RetryAfterError, StaleAttemptError } from '../kernel/errors.ts'
export { ChildFailedError, StepError } from '../executor/authoring/failure.ts'
export { task, workflow } from '../executor/authoring/workflow.ts'
export type {
  AnyWorkflow,
  Task,
  TaskOptions,
  Workflow,
  WorkflowOptions,
} from '../executor/authoring/context.ts'
export type {
  ApprovalOptions,
  ChildOptions,
  Context,
  Decision,
  MapOptions,
  Settled,
  SignalResult,
  StepArgument,
  StepOptions,
} from '../executor/authoring/context.ts'
export type { RetryPolicy } from '../model/retry.ts'
export type { LimitDeclaration } from '../model/definition.ts'
export type { Settings } from '../model/settings.ts'
export type { Duration } from '../kernel/duration.ts'
export type { ErrorCode } from '../kernel/codes.ts'
