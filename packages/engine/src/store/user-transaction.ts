// A user's own transaction on the engine's own SQLite connection (RUN-21): what it asks of the engine is one order each,
// which ordinary transitions apply after the commit. Rolled back, it never was.
import type Database from 'better-sqlite3'
import { LeaseholdError } from '../kernel/errors.ts'
import { keep } from './keep.ts'
import { faultOf, isBusy } from './sqlite-faults.ts'
import type { OrderKind } from './tables/orders.ts'

export interface PlacedOrder {
  readonly id: string
  readonly kind: Exclude<OrderKind, 'child_ended'>
  readonly run: string
  readonly payload: object
}

const PUT = 'insert into orders (id, kind, run, payload, created_at) values (?, ?, ?, ?, ?)'

/** How long is waited for a lock that another program holds on the file; the caller's code is not asynchronous, so it stands still. */
const LOCKED_MS = 2_000

/** Runs `work` in one immediate transaction; it must not be async, since nothing may come between its statements. */
export const inUserTransaction = <T>(
  db: Database.Database,
  now: number,
  work: (db: Database.Database, place: (order: PlacedOrder) => void) => T,
): T => {
  const put = keep(db.prepare(PUT))
  const run = db.transaction((): T => {
    const result = work(
      db,
      (order) => void put.run(order.id, order.kind, order.run, JSON.stringify(order.payload), now),
    )
    if (result instanceof Promise)
      throw new LeaseholdError(
        'invalid_request',
        'the callback of a transaction returned a promise; on SQLite it must be synchronous, and nothing was written',
      )
    return result
  })
  db.pragma(`busy_timeout = ${LOCKED_MS}`)
  try {
    return run.immediate()
  } catch (error) {
    // what the caller's own statements throw is the caller's
    throw isBusy(error) ? faultOf(error) : error
  } finally {
    if (db.open) db.pragma('busy_timeout = 0')
  }
}
