// The clauses in which the two databases differ, and no more:
//   {now}                    the store's clock, integer milliseconds
//   {lock r} {lock r skip}   lock the rows read (empty on SQLite, which has one writer)
//   {rows $1 as b: a text, n int}   a batch: the columns of the items in $1
//   {clustered}              a table kept in the order of its primary key (schema only)
//   {hot}                    a table whose rows change often while there are few of them (schema only)

const ROWS = /\{rows (\$\d+) as (\w+):\s*([^}]*)\}/g

const columns = (list: string): { name: string; type: string }[] =>
  list.split(',').map((column) => {
    const [name = '', ...type] = column.trim().split(/\s+/)
    return { name, type: type.join(' ') }
  })

/** The column lists of a text's batches. SQLite reads each through a table of its name, which the driver provides. */
export const rowSources = (text: string): string[][] =>
  [...text.matchAll(ROWS)].map(([, , , list = '']) => columns(list).map(({ name }) => name))

export const rowSourceName = (names: readonly string[]): string => `rows(${names.join(',')})`

/**
 * SQLite has no clock that a test could set: `{now}` is the parameter after the last, which the driver binds. It would
 * prepare a statement anew for each run if its limit were a bare parameter (45 µs for a whole run's columns). A batch is
 * read from the driver's memory: 40 columns of an item cost 40 µs more as JSON.
 */
export const sqliteText = (text: string): string => {
  const last = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map((found) => Number(found[1])))
  return text
    .replace(
      ROWS,
      (_all, param: string, alias: string, list: string) =>
        `"${rowSourceName(columns(list).map(({ name }) => name))}"(${param}) as ${alias}`,
    )
    .replace(/\{lock \w+( skip)?\}/g, '')
    .replace(/\{clustered\}/g, ' without rowid')
    .replace(/\{hot\}/g, '')
    .replace(/\{now\}/g, `?${last + 1}`)
    .replace(/\blimit (\$\d+)/g, 'limit ($1 + 0)')
    .replace(/\$(\d+)/g, '?$1')
}

/** The parameter that carries the time where `{now}` is bound; 0 for a text that does not ask for it. */
export const clockParam = (text: string): number =>
  text.includes('{now}')
    ? Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map((found) => Number(found[1]))) + 1
    : 0

/**
 * PostgreSQL writes a new row for each change. With room on its page it stands beside the old one and no index learns of it
 * (a checkpoint changes nothing that is indexed): a third of each page is kept free, which makes steps a third faster. What
 * is left behind is cleared away after a fiftieth of the table has changed, where a fifth is the default: claims read the
 * front of the line, where it lies thickest.
 */
const HOT =
  ' with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05)'

/**
 * True of each row of a batch, and taken by PostgreSQL for true of one in two hundred. A batch that is expected to be of one
 * row leads each join, and what it names is looked up by an index. As large as it may be, a plan that was made while a table
 * was small would read the whole of it, sorted, long after it has grown.
 */
const few = (alias: string, list: string): string => {
  const text = `coalesce(${alias}.${columns(list)[0]?.name}::text, '')`
  return `${text} || '' = ${text}`
}

/** With `clock`, `{now}` is a parameter after the last, as on SQLite, instead of the database's own clock. */
export const postgresText = (text: string, clock = false): string =>
  text
    .replace(
      ROWS,
      (_all, param: string, alias: string, list: string) =>
        `(select * from json_to_recordset(${param}::json) as ${alias}(${list}) where ${few(alias, list)}) as ${alias}`,
    )
    .replace(
      /\{lock (\w+)( skip)?\}/g,
      (_all, table: string, skip: string | undefined) =>
        `for no key update of ${table}${skip ? ' skip locked' : ''}`,
    )
    .replace(/\{clustered\}/g, '')
    .replace(/\{hot\}/g, HOT)
    .replace(
      /\{now\}/g,
      clock
        ? `$${clockParam(text)}::bigint`
        : `(date_part('epoch', statement_timestamp()) * 1000)::bigint`,
    )
