// What a store is to the rest: it runs transactions. Each driver is one implementation.
import type { Statement, Steps, Tx } from './sql.ts'

export interface Store {
  readonly kind: 'sqlite' | 'postgres'
  /**
   * Runs one transaction to its commit; throws a Fault when the outside failed, and then nothing was written, or
   * `unknown_outcome`. An `urgent` one does not wait behind the rest for a connection.
   */
  run<T>(transaction: (tx: Tx) => Steps<T>, urgent?: 'urgent'): Promise<T>
  /** As `run`, for transactions that only read. */
  read<T>(transaction: (tx: Tx) => Steps<T>): Promise<T>
  /** Round trips made so far, for the tests that assert them. */
  readonly roundTrips: number
  close(): Promise<void>
}

/** Sees every ask before it is sent: tests count and cut here. */
export type Tap = (statements: readonly Statement[]) => void
