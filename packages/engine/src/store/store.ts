// What a store is to the rest: it runs transactions. Each driver is one implementation.
import type { Statement, Steps, Tx } from './sql.ts'

export interface Store {
  readonly kind: 'sqlite' | 'postgres'
  /**
   * Runs one transaction to its commit; throws a Fault when the outside failed, and then nothing was written, or
   * `unknown_outcome`. How it goes about that is its manner.
   */
  run<T>(transaction: (tx: Tx) => Steps<T>, manner?: Manner, behind?: Behind<T>): Promise<T>
  /** As `run`, for transactions that only read. */
  read<T>(transaction: (tx: Tx) => Steps<T>): Promise<T>
  /** Round trips made so far, for the tests that assert them. */
  readonly roundTrips: number
  close(): Promise<void>
}

/**
 * An `urgent` transaction does not wait behind the rest for a connection. A `sweep` hardly waits for a row that another
 * transaction has locked: `store_busy` comes at once, since it will be back.
 */
export type Manner = 'urgent' | 'sweep'

/**
 * What would be the next transaction, from the answer of this one; null where nothing is to follow. On SQLite, where a
 * transaction has the whole file to itself, it joins the same commit, and what goes wrong in it undoes it alone. On
 * PostgreSQL it is not run, since it may not lock what stands before that which the first has locked. So it is a hint:
 * whoever gives it finds out whether it was done, and does what is left after the commit.
 */
export type Behind<T> = (answer: T) => ((tx: Tx) => Steps<void>) | null

/** Sees every ask before it is sent: tests count and cut here. */
export type Tap = (statements: readonly Statement[]) => void
