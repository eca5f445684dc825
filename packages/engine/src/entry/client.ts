// `leasehold/client`: calls a server from any process; brings neither a database nor an executor.
export { connect } from '../client/connect.ts'
export type {
  Approval,
  Client,
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
export type { ConnectOptions } from '../client/connect.ts'
export { LeaseholdError } from '../kernel/errors.ts'
export type { ErrorCode } from '../kernel/codes.ts'
