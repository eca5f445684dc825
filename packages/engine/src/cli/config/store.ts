// The store that a configuration names.
import type { StoresAt } from '../../model/store-at.ts'
import type { Config } from './config.ts'

/** The store that the configuration names, or the databases that are joined as one. */
export const storeOf = ({
  file,
  database,
  databases,
  databaseListen: listen,
  databaseConnections: connections,
  databaseMigrationLockMs: migrationLockMs,
  databaseSchema: schema,
}: Config): StoresAt => {
  const common = { connections, migrationLockMs, schema }
  if (databases.length > 0) return databases.map((each) => ({ database: each, ...common }))
  return database === null ? { file } : { database, listen, ...common }
}
