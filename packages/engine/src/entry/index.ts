// `leasehold`: what authors import, and the whole engine inside one process.
export { embedded } from './embedded.ts'
export type { Embedded, EmbeddedOptions } from './embedded.ts'
export { FatalError, LeaseholdError, RetryAfterError, StaleAttemptError } from '../kernel/errors.ts'
export { ChildFailedError, StepError } from '../executor/failure.ts'
export { task, workflow } from '../executor/workflow.ts'
export type {
  AnyWorkflow,
  Task,
  TaskOptions,
  Workflow,
  WorkflowOptions,
} from '../executor/context.ts'
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
} from '../executor/context.ts'
export type { RetryPolicy } from '../model/retry.ts'
export type { LimitDeclaration } from '../model/definition.ts'
export type { Settings } from '../model/settings.ts'
export type { Duration } from '../kernel/duration.ts'
export type { ErrorCode } from '../kernel/codes.ts'
