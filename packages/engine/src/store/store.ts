// What a store is to the rest: it runs transactions. Each driver is one implementation.
import type { Statement, Steps, Tx } from './sql.ts'

export interface Store {
  readonly kind: 'sqlite' | 'postgres'
  /**
   * Runs one transaction to its commit; throws a Fault when the outside failed, and then nothing was written, or
   * `unknown_outcome`. How it goes about that is its manner.
   */
  run<T>(transaction: (tx: Tx) => Steps<T>, manner?: Manner): Promise<T>
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

/** Sees every ask before it is sent: tests count and cut here. */
export type Tap = (statements: readonly Statement[]) => void
