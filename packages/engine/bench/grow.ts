// History: the ended runs of a store copied until there are many, by the database itself, with their attempts and steps.
import Database from 'better-sqlite3'
import path from 'node:path'
import pg from 'pg'

/** How many ended runs each round copies. */
const PART = 1_000
/** Old ids: they stand before all that are minted. */
const ID = {
  sqlite: `printf('run_0%015x', $id)`,
  postgres: `'run_0' || lpad(to_hex($id), 15, '0')`,
}

/** What the copies differ in, as SQL by column; `g` is the round, `k` the number of the copied run. */
export type Differing = Readonly<Record<string, string>>

/** Copies ended runs until some `count` more are there. No engine may be open on a file. */
export const grow = async (
  place: string,
  count: number,
  differing: Differing = {},
): Promise<void> => {
  const on = place.startsWith('postgres:') ? await onPostgres(place) : onSqlite(place)
  const id = ID[on.kind].replace('$id', `g * ${PART} + k`)
  const copied = (column: string): string =>
    ['id', 'root', 'series', 'run'].includes(column) ? id : (differing[column] ?? `c."${column}"`)
  const source = (table: string, by: string): string =>
    `${table} c join (select id as ended, row_number() over (order by id) - 1 as k from runs
       where status = 'succeeded' and id > 'run_1' order by id limit ${PART}) o on o.ended = c.${by}`
  try {
    for (const [table, by] of [
      ['runs', 'id'],
      ['attempts', 'run'],
      ['steps', 'run'],
    ] as const) {
      const columns = await on.columns(table)
      const into = columns.map((column) => `"${column}"`).join(', ')
      const values = columns.map(copied).join(', ')
      await on.run(
        `insert into ${table} (${into}) select ${values} from ${source(table, by)} cross join ${on.rounds(Math.ceil(count / PART))}`,
      )
    }
    await on.settle()
  } finally {
    await on.close()
  }
}

interface Raw {
  readonly kind: 'sqlite' | 'postgres'
  columns(table: string): Promise<readonly string[]>
  rounds(count: number): string
  run(text: string): Promise<void>
  /** Writes out what is in memory and looks at the tables, as a server left alone for a while has done. */
  settle(): Promise<void>
  close(): Promise<void>
}

const onSqlite = (place: string): Raw => {
  const db = new Database(path.join(place, 'engine.db'))
  return {
    kind: 'sqlite',
    columns: (table) =>
      Promise.resolve(
        (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name),
      ),
    rounds: (count) =>
      `(with recursive r(g) as (select 0 union all select g + 1 from r where g < ${count - 1}) select g from r)`,
    run: (text) => Promise.resolve(void db.exec(text)),
    settle: () => Promise.resolve(void db.pragma('wal_checkpoint(TRUNCATE)')),
    close: () => Promise.resolve(void db.close()),
  }
}

const onPostgres = async (url: string): Promise<Raw> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    kind: 'postgres',
    async columns(table) {
      const { rows } = await client.query<{ name: string }>(
        `select column_name as name from information_schema.columns
           where table_name = $1 and table_schema = current_schema() and is_generated = 'NEVER' order by ordinal_position`,
        [table],
      )
      return rows.map(({ name }) => name)
    },
    rounds: (count) => `generate_series(0, ${count - 1}) as g`,
    run: async (text) => void (await client.query(text)),
    async settle() {
      await client.query('vacuum analyze')
      await client.query('checkpoint')
    },
    close: () => client.end(),
  }
}
