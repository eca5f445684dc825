// Cuts transactions of a store: at the n-th statement from now (the process dies, nothing of the transaction is kept), or
// after the commit (the process dies before anybody hears of it).
import type { Ask, Steps, Tx } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { audit } from '../../src/queries/audit.ts'
import type { Row, TestStore } from './store.ts'

export class Crash extends Error {
  override readonly name = 'Crash'
}

export interface Cutter {
  /** Dies at the n-th statement from now, counted from 1. */
  at(statement: number): void
  /** Dies after the n-th commit from now. */
  afterCommit(commit: number): void
  off(): void
  /** Statements that were sent since `at` was called. */
  readonly sent: number
}

/** Makes every transaction of the store send one statement an ask, and cuts where it is told. */
export const cutter = (store: Store): Cutter => {
  let left = Number.POSITIVE_INFINITY
  let commits = Number.POSITIVE_INFINITY
  let sent = 0
  function* cut<T>(steps: Steps<T>): Steps<T> {
    let step = steps.next()
    while (!step.done) {
      const rows: (readonly unknown[])[] = []
      for (const statement of step.value.statements) {
        left -= 1
        if (left === 0) throw new Crash('the process died at this statement')
        sent += 1
        const one: Ask = { statements: [statement], last: false }
        const [found] = yield one
        rows.push(found ?? [])
      }
      step = steps.next(rows)
    }
    // and between the last statement and the commit
    left -= 1
    if (left === 0) throw new Crash('the process died before the commit')
    return step.value
  }
  const run = store.run.bind(store)
  ;(store as { run: Store['run'] }).run = async (transaction) => {
    const answer = await run((tx: Tx) => cut(transaction(tx)))
    commits -= 1
    if (commits === 0) throw new Crash('the process died after the commit')
    return answer
  }
  return {
    at: (statement) => {
      left = statement
      sent = 0
    },
    afterCommit: (commit) => (commits = commit),
    off: () => {
      left = Number.POSITIVE_INFINITY
      commits = Number.POSITIVE_INFINITY
    },
    get sent() {
      return sent
    },
  }
}

const TABLES = [
  'runs',
  'steps',
  'attempts',
  'waits',
  'signals',
  'approvals',
  'sessions',
  'limits',
  'orders',
  'receipts',
  'notices',
  'deliveries',
  'sinks',
  'events',
  'streams',
  'schedules',
  'ticks',
  'triggers',
  'arrivals',
]

/** Everything that the store has, to be compared. */
export const dump = (t: TestStore): Record<string, Row[]> =>
  Object.fromEntries(
    TABLES.map((table) => [table, t.sql(`select * from ${table} order by 1, 2, 3`)]),
  )

/** The invariants that do not hold, each with what breaks it. */
export const broken = async (t: TestStore): Promise<string[]> => {
  const all = await t.engine.read((tx) => audit(tx, t.engine.settings))
  return all
    .filter(({ figure }) => figure > 0)
    .map(({ name, what, sample }) => `${name} (${what}): ${sample.join(', ')}`)
}
