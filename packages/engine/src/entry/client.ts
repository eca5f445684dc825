// `leasehold/client`: calls a server from any process; brings neither a database nor an executor.
export { connect } from '../client/client.ts'
export type {
  Approval,
  Client,
  ConnectOptions,
  Explanation,
  Result,
  RunDetail,
  RunEvent,
  RunSummary,
  Schedule,
  ScheduleDetail,
  Trigger,
  TriggerDetail,
  StartOptions,
  StartedRun,
} from '../client/client.ts'
export { LeaseholdError } from '../kernel/errors.ts'
export type { ErrorCode } from '../kernel/codes.ts'
