// `leasehold/postgres`: runs started, signaled, canceled and retried in transactions of the user's own, and the parts of an
// engine on a PostgreSQL database, for programs that put them together themselves.
export { inTransaction } from '../orchestrator/user-transaction.ts'
export type {
  InTransactionOptions,
  OwnTransaction,
  UserConnection,
} from '../orchestrator/user-transaction.ts'
export { shardOfId, shardOfOwner } from '../model/shard.ts'
export type { Shard } from '../model/shard.ts'
export type { RunStatement } from '../store/user-transaction-postgres.ts'
export { openOnPostgres } from '../orchestrator/open-postgres.ts'
export type { OpenPostgresOptions } from '../orchestrator/open-postgres.ts'
export type { Opened } from '../orchestrator/open.ts'
export { databaseRenewals } from '../embedded/database-renewals.ts'
export { makeExecutor } from '../executor/executor.ts'
export { systemScratch } from '../executor/preparing/scratch.ts'
export { systemPorts } from '../kernel/ports.ts'
