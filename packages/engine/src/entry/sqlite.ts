// `leasehold/sqlite`: the parts of the embedded engine, for programs that put them together themselves.
export { openOnSqlite } from '../orchestrator/open.ts'
export type { Opened, OpenOptions } from '../orchestrator/open.ts'
export type { TransactionVerbs } from '../orchestrator/user-transaction.ts'
export { makeExecutor } from '../executor/executor.ts'
export { systemScratch } from '../executor/preparing/scratch.ts'
export { systemPorts } from '../kernel/ports.ts'
