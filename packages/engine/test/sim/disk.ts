// The disk: one SQLite database in memory that outlives the orchestrators on it. It is emptied, not opened anew, between
// worlds, since opening costs more than many worlds do.
import type { SqliteStore } from '../../src/store/sqlite.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { migrateSqlite } from '../../src/store/migrate.ts'
import type { Time } from '../../src/kernel/time.ts'
import { systemTimers } from '../../src/kernel/timers.ts'

export interface Disk {
  readonly store: SqliteStore
}

let opened: { store: SqliteStore; tables: string[] } | null = null
let clock: Time = { now: () => 0, mono: () => 0 }

/** An empty, migrated database whose clock is this one. */
export const freshDisk = (time: Time): Disk => {
  clock = time
  if (!opened) {
    const store = openSqlite(
      ':memory:',
      // nobody else has it, so nothing ever waits for a lock of theirs
      { time: { now: () => clock.now(), mono: () => clock.mono() }, timers: systemTimers },
      { synchronous: 'OFF' },
    )
    migrateSqlite(store.db, 0)
    const tables = store.db
      .prepare(`select name from sqlite_master where type = 'table' and name <> 'migrations'`)
      .pluck()
      .all() as string[]
    opened = { store, tables }
  }
  const { store, tables } = opened
  if (store.db.inTransaction) store.db.exec('rollback')
  for (const table of tables) store.db.exec(`delete from ${table}`)
  return { store }
}
