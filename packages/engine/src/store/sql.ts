// A statement is a named text with positional parameters; a transaction is a generator that asks for statements and
// gets their rows. The driver runs it: synchronously on SQLite, one round trip an ask on PostgreSQL.
import { Defect } from '../kernel/errors.ts'

export type Param = string | number | null | Batch

/** Rows as one parameter, which `{rows}` opens. As text it is their JSON; the SQLite driver reads the items themselves. */
export interface Batch {
  readonly items: readonly object[]
  toString(): string
}

/** One SQL text for both databases; `R` is the shape of its rows. */
export interface Sql<R> {
  readonly name: string
  readonly text: string
  /** Makes a row of its values in the order of its columns, where rows are so many that naming them one by one costs. */
  readonly of?: (values: Values) => R
}

export type Values = readonly (string | number | null)[]

export interface Statement<R = unknown> {
  readonly sql: Sql<R>
  readonly params: readonly Param[]
  /** It would do nothing, since it has nothing to do it for: it is not sent, and has no rows. */
  readonly idle?: boolean
}

export interface Ask {
  readonly statements: readonly Statement[]
  /** Nothing is asked after this one, so that the driver may commit in the same round trip. */
  readonly last: boolean
}

/** The steps of one transaction; its value is the transaction's answer. */
export type Steps<T> = Generator<Ask, T, readonly (readonly unknown[])[]>

/**
 * A row that must be new was there. It is thrown into the transaction at the ask that it came of, to say what it means:
 * nothing was written, and nothing more can be asked.
 */
export class UniqueViolation extends Error {
  readonly table: string
  constructor(table: string, cause: unknown) {
    super(`a row of ${table} that must be new was there already`, { cause })
    this.name = 'UniqueViolation'
    this.table = table
  }
}

/** What a transaction may know of the outside: the store's clock, read in the same round trip as its first ask. */
export interface Tx {
  readonly now: number
  /** Which text of a statement that has two is to be asked: each is the twin of the other. */
  readonly kind: 'sqlite' | 'postgres'
}

type RowsOf<S extends readonly Statement[]> = {
  [I in keyof S]: S[I] extends Statement<infer R> ? R[] : never
}

export const sql = <R>(name: string, text: string, of?: (values: Values) => R): Sql<R> => ({
  name,
  text: text.replace(/\s*\n\s*/g, ' ').trim(),
  ...(of ? { of } : {}),
})

/** `statement(sql, …params)`: the text with its values. */
export const statement = <R>(text: Sql<R>, ...params: readonly Param[]): Statement<R> => ({
  sql: text,
  params: params.some(isUnfit) ? params.map(keepable) : params,
})

// What one of the databases cannot keep in a text: NUL and lone surrogates. Names are refused for them long before, and
// payloads carry them escaped; what is left are sentences for people.
const UNFIT = /[\u0000\ud800-\udfff]/u
const isUnfit = (value: unknown): value is string => typeof value === 'string' && UNFIT.test(value)
const keepable = <T>(value: T): T | string =>
  isUnfit(value) ? value.replace(new RegExp(UNFIT, 'gu'), '\ufffd') : value

/** A statement that does its work for each item of a batch, and none without one. */
export const forEach = <R>(
  text: Sql<R>,
  items: readonly object[],
  ...params: readonly Param[]
): Statement<R> => ({
  sql: text,
  params: [rows(items), ...params],
  ...(items.length === 0 ? { idle: true } : {}),
})

/** Runs statements in order, in one round trip, inside the transaction; answers the rows of each. */
export function* ask<const S extends readonly Statement[]>(...statements: S): Steps<RowsOf<S>> {
  return (yield* sent(statements, false)) as RowsOf<S>
}

/** As `ask`, and the transaction commits with it. */
export function* finish<const S extends readonly Statement[]>(...statements: S): Steps<RowsOf<S>> {
  return (yield* sent(statements, true)) as RowsOf<S>
}

function* sent(statements: readonly Statement[], last: boolean): Steps<readonly unknown[][]> {
  const busy = statements.filter(({ idle }) => idle !== true)
  const found = busy.length === 0 ? [] : [...(yield { statements: busy, last })]
  return statements.map(({ idle }) => (idle === true ? [] : (found.shift() as unknown[])))
}

/** Steps of another transition as part of this one, which asks on after them. */
export function* within<T>(steps: Steps<T>): Steps<T> {
  let step = steps.next()
  while (!step.done) step = steps.next(yield { statements: step.value.statements, last: false })
  return step.value
}

/** A batch as the one parameter that `{rows}` opens. */
export const rows = (items: readonly object[]): Batch => {
  const kept = items.some((item) => Object.values(item).some(isUnfit))
    ? items.map((item) =>
        Object.fromEntries(Object.entries(item).map(([name, value]) => [name, keepable(value)])),
      )
    : items
  return { items: kept, toString: () => JSON.stringify(kept) }
}

/** Where the fence was read under the lock, a write that misses its row is our own mistake. */
export const wrote = (found: readonly unknown[], expected: number, what: string): void => {
  if (found.length !== expected)
    throw new Defect(`${what} wrote ${found.length} rows of ${expected}`)
}
