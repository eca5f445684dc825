// What one transaction did, as its own statements and their answers tell: the checkers look at nothing else of the engine.
import type { Param, Sql, Statement, Steps, Tx } from '../../src/store/sql.ts'

type Row = Readonly<Record<string, unknown>>

export interface Touch {
  readonly name: string
  readonly table: string
  readonly params: readonly Param[]
  readonly rows: readonly Row[]
}

export interface Commit {
  /** The store's clock, as the transaction read it. */
  readonly now: number
  /** Every write, in order. */
  readonly writes: Touch[]
  /** Rows locked, in order: `limits.lock` and the like. */
  readonly locks: Touch[]
  /** Set when its last statement has been run. */
  whole: boolean
}

interface Kind {
  readonly table: string | null
  readonly locks: boolean
}

const known = new Map<Sql<unknown>, Kind>()

const kindOf = (sql: Sql<unknown>): Kind => {
  let kind = known.get(sql)
  if (!kind) {
    const table = /\b(?:insert into|update|delete from) (\w+)/i.exec(sql.text)?.[1] ?? null
    known.set(sql, (kind = { table, locks: /\{lock \w+/.test(sql.text) }))
  }
  return kind
}

/** Passes a transaction through and notes what it writes and locks. */
export function* watched<T>(steps: Steps<T>, commit: Commit): Steps<T> {
  let step = steps.next()
  while (!step.done) {
    const { statements } = step.value
    let results: readonly (readonly unknown[])[]
    try {
      results = yield step.value
    } catch (error) {
      step = steps.throw(error)
      continue
    }
    statements.forEach((each, i) => note(each, (results[i] ?? []) as readonly Row[], commit))
    step = steps.next(results)
  }
  commit.whole = true
  return step.value
}

const note = ({ sql, params }: Statement, rows: readonly Row[], commit: Commit): void => {
  const kind = kindOf(sql)
  if (kind.table !== null) commit.writes.push({ name: sql.name, table: kind.table, params, rows })
  else if (kind.locks && rows.length > 0)
    commit.locks.push({ name: sql.name, table: '', params, rows })
}

export const emptyCommit = (tx: Tx): Commit => ({
  now: tx.now,
  writes: [],
  locks: [],
  whole: false,
})
