// How SQLite's rows are read, and what is no value of its column: SQLite keeps anything anywhere, so a row that somebody
// changed by hand may hold bytes or a text where a number belongs. Such a row fails where that cell is read, by its name.
import type Database from 'better-sqlite3'
import { unreadable } from '../kernel/stored.ts'
import { sqliteText } from './dialect.ts'
import { keep } from './keep.ts'
import type { Sql, Values } from './sql.ts'

/** A statement that was prepared, with how its rows are read; `rows` is null where it gives none. */
export interface Prepared {
  readonly statement: Database.Statement
  readonly rows: ((bound: object) => readonly unknown[]) | null
}

/** Above so many columns a row is cheaper as one JSON text than as values, each of which costs a call (57: 4 µs for 10). */
const WIDE = 12

export const prepared = (db: Database.Database, sql: Sql<unknown>): Prepared => {
  const text = sqliteText(sql.text)
  const statement = keep(db.prepare(text))
  if (!statement.reader) return { statement, rows: null }
  const columns = statement.columns()
  const { sound, rowOf, failing } = shapeOf(columns, sql.of)
  statement.raw(true)
  const read = (bound: object): unknown[] =>
    (statement.all(bound) as Values[]).map((values) =>
      sound(values) ? rowOf(values) : failing(values),
    )
  if (columns.length <= WIDE || !statement.readonly) return { statement, rows: read }
  const list = columns.map(({ name }) => `"${name}"`).join(', ')
  const packed = keep(db.prepare(`select json_array(${list}) from (${text})`)).pluck()
  return {
    statement,
    rows(bound) {
      let found: Values[]
      try {
        found = (packed.all(bound) as string[]).map((row) => JSON.parse(row) as Values)
      } catch (error) {
        // JSON has no bytes, which somebody has put there
        if ((error as Error).message !== 'JSON cannot hold BLOB values') throw error
        return read(bound)
      }
      // some bytes are JSON of SQLite's own
      return found.every(sound) ? found.map(rowOf) : read(bound)
    },
  }
}

type Kind = 'text' | 'number' | 'any'
const WHAT: Readonly<Record<Kind, string>> = {
  text: 'a text',
  number: 'a number',
  any: 'a text or a number',
}

const kindOf = ({ type }: Database.ColumnDefinition): Kind =>
  type === null
    ? 'any'
    : /^text$/i.test(type)
      ? 'text'
      : /int|^double/i.test(type)
        ? 'number'
        : 'any'

const fits = (kind: Kind, value: unknown): boolean =>
  value === null ||
  (kind === 'text'
    ? typeof value === 'string'
    : kind === 'number'
      ? typeof value === 'number'
      : typeof value === 'string' || typeof value === 'number')

interface Shape {
  /** Whether each value is one that its column may hold. */
  sound(values: Values): boolean
  rowOf(values: Values): unknown
  failing(values: Values): unknown
}

const shapeOf = (
  columns: readonly Database.ColumnDefinition[],
  of: ((values: Values) => unknown) | undefined,
): Shape => {
  const names = columns.map(({ name }) => name)
  const kinds = columns.map(kindOf)
  const empty = Object.fromEntries(names.map((name) => [name, null]))
  // rows that are copies of one have one shape, which costs half of what the driver's own objects do
  const named = (values: Values): Record<string, unknown> => {
    const row: Record<string, unknown> = { ...empty }
    for (let i = 0; i < names.length; i++) row[names[i] as string] = values[i]
    return row
  }
  return {
    sound(values) {
      for (let i = 0; i < kinds.length; i++) if (!fits(kinds[i] as Kind, values[i])) return false
      return true
    },
    rowOf: of ?? named,
    failing: (values) => failing(columns, kinds, values, named(values)),
  }
}

/** The row, whose cells that are no values of their columns fail whoever reads them, and nobody else. */
const failing = (
  columns: readonly Database.ColumnDefinition[],
  kinds: readonly Kind[],
  values: Values,
  row: Record<string, unknown>,
): Record<string, unknown> => {
  columns.forEach(({ name, column, table }, i) => {
    const kind = kinds[i] as Kind
    if (fits(kind, values[i])) return
    const known = columns.flatMap((each, at) =>
      each.table === table && fits(kinds[at] as Kind, values[at])
        ? [`${each.name} ${JSON.stringify(values[at])}`]
        : [],
    )
    // its id, or what stands for one
    const shown = known.slice(0, known[0]?.startsWith('id ') ? 1 : 2).join(' and ')
    const whose = shown === '' ? '' : ` of the row with ${shown}`
    const what = `the column ${column ?? name}${whose}${table === null ? '' : ` in the table ${table}`}`
    Object.defineProperty(row, name, {
      enumerable: true,
      get: () => {
        throw unreadable(what, `it holds ${found(values[i])}, where ${WHAT[kind]} belongs`)
      },
    })
  })
  return row
}

const found = (value: unknown): string =>
  Buffer.isBuffer(value)
    ? `bytes (${value.length})`
    : `the text ${JSON.stringify(String(value).slice(0, 40))}`
