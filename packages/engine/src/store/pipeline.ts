// Several prepared statements under one Sync, in one write: PostgreSQL's extended protocol, as `pg` lets a query class
// of one's own speak it. Its pipeline mode sends a Sync for each statement, which costs a fifth to a third of a drain.
import type { Connection, Submittable } from 'pg'
import type { Sql, Values } from './sql.ts'

/** A text as PostgreSQL reads it, under the name by which connections keep it prepared; its columns once it has run. */
export interface Plan {
  readonly name: string
  readonly text: string
  readonly of: Sql<unknown>['of']
  columns: Columns | null
}

export interface Columns {
  readonly names: readonly string[]
  readonly read: readonly ((text: string) => string | number)[]
  readonly empty: Readonly<Record<string, unknown>>
}

export interface Send {
  readonly plan: Plan
  readonly values: readonly (string | null)[]
}

/** Of a failed send: the statement it failed at, or null where the connection itself was lost. */
export interface PipelineError {
  readonly error: Error
  readonly at: string | null
}

const preparedOf = new WeakMap<Connection, Set<string>>()

export class Pipeline implements Submittable {
  readonly #sends: readonly Send[]
  readonly #named: boolean
  readonly #done: (error: PipelineError | null, rows: unknown[][]) => void
  readonly #rows: unknown[][]
  #at = 0
  #over = false
  #fresh = new Map<number, string>()
  #connection: Connection | null = null
  /** The tag of the last command that completed: a `commit` may answer ROLLBACK. */
  tag = ''

  constructor(
    sends: readonly Send[],
    named: boolean,
    done: (error: PipelineError | null, rows: unknown[][]) => void,
  ) {
    this.#sends = sends
    this.#named = named
    this.#done = done
    this.#rows = sends.map(() => [])
  }

  submit(connection: Connection): void {
    this.#connection = connection
    const { stream } = connection
    const prepared = preparedOf.get(connection) ?? new Set<string>()
    preparedOf.set(connection, prepared)
    stream.cork()
    try {
      this.#sends.forEach(({ plan, values }, i) => {
        const { text, columns } = plan
        const name = this.#named ? plan.name : ''
        if (name === '' || !prepared.has(name)) {
          // it may be there from a send that failed after it; to close one that is not there is no error
          if (name !== '') connection.close({ type: 'S', name }, true)
          connection.parse({ name, text, types: [] }, true)
          if (name !== '') prepared.add(name)
          this.#fresh.set(i, name)
        }
        if (columns === null) connection.describe({ type: 'S', name }, true)
        connection.bind({ statement: name, values: values as string[] }, true)
        connection.execute({ rows: '0' } as never, true)
      })
      connection.sync()
    } finally {
      stream.uncork()
    }
  }

  handleRowDescription(message: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    const send = this.#sends[this.#at]
    if (!send || send.plan.columns) return
    send.plan.columns = {
      names: message.fields.map(({ name }) => name),
      read: message.fields.map(({ dataTypeID }) => READ.get(dataTypeID) ?? asText),
      empty: Object.fromEntries(message.fields.map(({ name }) => [name, null])),
    }
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    const { columns, of } = (this.#sends[this.#at] as Send).plan
    const { names, read, empty } = columns as Columns
    const values: (string | number | null)[] = Array.from({ length: fields.length })
    for (let i = 0; i < fields.length; i++) {
      const text = fields[i] as string | null
      values[i] = text === null ? null : (read[i] as Columns['read'][number])(text)
    }
    this.#rows[this.#at]?.push(of ? of(values as Values) : rowOf(names, empty, values))
  }

  handleCommandComplete({ text }: { text: string }): void {
    const plan = this.#sends[this.#at]?.plan
    if (plan && plan.columns === null) plan.columns = NONE
    this.tag = text
    this.#at += 1
  }

  handleEmptyQuery(): void {
    this.#at += 1
  }

  handlePortalSuspended(): void {
    this.#at += 1
  }

  handleReadyForQuery(): void {
    if (this.#over) return
    this.#over = true
    this.#done(null, this.#rows)
  }

  handleError(error: Error): void {
    if (this.#over) return
    this.#over = true
    const prepared = this.#connection && preparedOf.get(this.#connection)
    for (const [i, name] of this.#fresh) if (i >= this.#at) prepared?.delete(name)
    // after a FATAL the server hangs up
    const lost = (error as { severity?: string }).severity !== 'ERROR'
    this.#done({ error, at: lost ? null : (this.#sends[this.#at]?.plan.name ?? 'sync') }, [])
  }

  /** Gives the answer up: the connection is of no more use. */
  abandon(error: Error): void {
    this.#connection?.stream.destroy(error)
    this.handleError(error)
  }
}

const NONE: Columns = { names: [], read: [], empty: {} }

const rowOf = (
  names: readonly string[],
  empty: Readonly<Record<string, unknown>>,
  values: readonly unknown[],
): unknown => {
  const row: Record<string, unknown> = { ...empty }
  for (let i = 0; i < names.length; i++) row[names[i] as string] = values[i]
  return row
}

const asText = (text: string): string => text
const asNumber = (text: string): number => Number(text)
/** As SQLite has them: numbers are numbers, true is 1. Types by their object ids, from the catalog `pg_type`. */
const READ: ReadonlyMap<number, (text: string) => string | number> = new Map([
  [16, (text) => (text === 't' ? 1 : 0)],
  ...[20, 21, 23, 26, 700, 701, 1700].map((type) => [type, asNumber] as const),
])
