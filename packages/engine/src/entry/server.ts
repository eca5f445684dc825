// `leasehold/server`: serves a SQLite file or a PostgreSQL database over HTTP.
export { startServer } from '../orchestrator/main.ts'
export type { RunningServer, ServerConfig } from '../orchestrator/main.ts'
export type { StoreAt, StoresAt } from '../model/store-at.ts'
export { makeHandler } from '../orchestrator/http/handler.ts'
export { defaults } from '../model/settings.ts'
export { systemPorts } from '../kernel/ports.ts'
export { jsonLog } from '../kernel/log.ts'
