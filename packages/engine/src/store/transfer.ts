// All that a SQLite file holds, put into an empty PostgreSQL database: one transaction there, so that what is cut off leaves
// nothing behind. Each table is read back and compared row by row before it commits.
import type Database from 'better-sqlite3'
import type { ClientBase } from 'pg'
import { checksum } from '../kernel/digest.ts'
import { Fault } from '../kernel/errors.ts'
import { keep } from './keep.ts'

export interface Transferred {
  /** Rows by table that were moved now. */
  readonly tables: Readonly<Record<string, number>>
  /** True: it had been done before, by a process that could not say so any more. */
  readonly before: boolean
}

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
}
type Row = Record<string, string | number | null>

/** Of the server itself, which a file has of its own: replaced by the file's. */
const OWN = ['meta', 'sweeps', 'turns']
const MOST_ROWS = 500
const MOST_BYTES = 4_000_000
const quoted = (name: string): string => `"${name}"`

/**
 * Throws `not_a_database` where the database holds something or a row does not come back as it was, and `store_transferred`
 * where the file was moved to another one before.
 */
export const transfer = async (
  from: Database.Database,
  file: string,
  to: ClientBase,
  tell: (table: string, rows: number) => void,
): Promise<Transferred> => {
  const source = checksum(metaOf(from, 'input_key') ?? '')
  await to.query('begin')
  try {
    const columns = await columnsOf(to)
    const names = [...new Set(columns.map(({ table }) => table))].filter(
      (name) => name !== 'migrations',
    )
    // no server writes to it meanwhile, nor is one started on it
    await to.query(`lock table ${names.map(quoted).join(', ')} in access exclusive mode`)
    const { rows: marks } = await to.query<{ value: string }>(
      `select value from meta where name = 'moved_from'`,
    )
    const before = marks[0]?.value === source
    const tables: Record<string, number> = {}
    if (!before) {
      mustBeHere(from, file)
      mustHaveAll(from, names)
      await mustBeEmpty(to, names)
      for (const table of names) {
        const own = columns.filter((column) => column.table === table)
        await to.query(`delete from ${quoted(table)}`)
        await copy(from, to, table, own)
        tables[table] = await compare(from, to, table, own)
        tell(table, tables[table])
      }
      await to.query(`insert into meta (name, value) values ('moved_from', $1)`, [source])
    }
    await to.query('commit')
    return { tables, before }
  } catch (error) {
    await to.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Says in the file where its content is now: nothing opens it any more. */
export const markTransferred = (from: Database.Database, to: string): void =>
  void keep(
    from.prepare(`insert into meta (name, value) values ('moved_to', ?) on conflict do nothing`),
  ).run(to)

/** Throws `store_transferred` for a file whose content is elsewhere now. */
export const mustBeHere = (from: Database.Database, file: string): void => {
  const to = metaOf(from, 'moved_to')
  if (to !== null)
    throw new Fault(
      'store_transferred',
      `what ${file} held was moved to ${to}; name that database instead (LEASEHOLD_DATABASE)`,
      { retryable: false },
    )
}

const metaOf = (db: Database.Database, name: string): string | null =>
  (keep(db.prepare('select value from meta where name = ?')).pluck().get(name) as
    string | undefined) ?? null

const columnsOf = async (to: ClientBase): Promise<Column[]> => {
  const { rows } = await to.query<Column>(
    `select c.table_name as table, c.column_name as name, c.data_type as type from information_schema.columns c
       join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name and t.table_type = 'BASE TABLE'
      where c.table_schema = current_schema() and c.is_generated = 'NEVER' order by c.table_name, c.ordinal_position`,
  )
  return rows
}

const mustHaveAll = (from: Database.Database, names: readonly string[]): void => {
  const mine = keep(
    from.prepare(
      `select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'migrations' order by name`,
    ),
  )
    .pluck()
    .all() as string[]
  const missing = mine.filter((name) => !names.includes(name))
  if (missing.length > 0)
    throw new Fault(
      'not_a_database',
      `the file has tables that the database has not (${missing.join(', ')}); bring both to the same schema first`,
      { retryable: false },
    )
}

const mustBeEmpty = async (to: ClientBase, names: readonly string[]): Promise<void> => {
  const full: string[] = []
  for (const name of names.filter((each) => !OWN.includes(each))) {
    const { rowCount } = await to.query(`select 1 from ${quoted(name)} limit 1`)
    if (rowCount !== 0) full.push(name)
  }
  if (full.length > 0)
    throw new Fault(
      'not_a_database',
      `the database is not empty (${full.join(', ')}); name one that nothing has used yet, or another schema of it`,
      { retryable: false },
    )
}

const listOf = (columns: readonly Column[]): string =>
  columns.map(({ name }) => quoted(name)).join(', ')

const copy = async (
  from: Database.Database,
  to: ClientBase,
  table: string,
  columns: readonly Column[],
): Promise<void> => {
  const typed = columns.map(({ name, type }) => `${quoted(name)} ${type}`).join(', ')
  const text = `insert into ${quoted(table)} (${listOf(columns)}) select * from json_to_recordset($1::json) as b(${typed})`
  let batch: string[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return
    await to.query(text, [`[${batch.join(',')}]`])
    batch = []
    bytes = 0
  }
  for (const row of keep(
    from.prepare(`select ${listOf(columns)} from ${quoted(table)}`),
  ).iterate()) {
    const json = JSON.stringify(row)
    batch.push(json)
    bytes += json.length
    if (batch.length >= MOST_ROWS || bytes >= MOST_BYTES) await flush()
  }
  await flush()
}

/** Reads both sides in the order of the table's key, which both compare by bytes; answers how many rows there are. */
const compare = async (
  from: Database.Database,
  to: ClientBase,
  table: string,
  columns: readonly Column[],
): Promise<number> => {
  const { rows: keys } = await to.query<{ name: string }>(
    `select k.column_name as name from information_schema.table_constraints c
       join information_schema.key_column_usage k on k.constraint_schema = c.constraint_schema and k.constraint_name = c.constraint_name
      where c.table_schema = current_schema() and c.table_name = $1 and c.constraint_type = 'PRIMARY KEY' order by k.ordinal_position`,
    [table],
  )
  const order = keys.map(({ name }) => quoted(name)).join(', ')
  const text = `select ${listOf(columns)} from ${quoted(table)} order by ${order}`
  await to.query(`declare there no scroll cursor for ${text}`)
  let there: Row[] = []
  let count = 0
  for (const row of keep(from.prepare(text)).iterate() as IterableIterator<Row>) {
    if (there.length === 0) there = (await to.query<Row>(`fetch ${MOST_ROWS} from there`)).rows
    const found = there.shift()
    const differs = columns.find(({ name, type }) => !same(row[name], found?.[name], type))
    if (!found || differs)
      throw new Fault(
        'not_a_database',
        `row ${count + 1} of ${table} did not come back as it was${differs ? ` (${differs.name})` : ''}; nothing was moved`,
        { retryable: false },
      )
    count += 1
  }
  const more = there.length > 0 ? there : (await to.query<Row>('fetch 1 from there')).rows
  await to.query('close there')
  if (more.length > 0)
    throw new Fault(
      'not_a_database',
      `${table} has more rows there than the file has; nothing was moved`,
      {
        retryable: false,
      },
    )
  return count
}

const same = (
  here: string | number | null | undefined,
  there: string | number | null | undefined,
  type: string,
): boolean => {
  if (here === null || there === null || here === undefined || there === undefined)
    return here === there
  return type === 'text' ? here === there : Number(here) === Number(there)
}
