// What stands in the database when all is over, read past the engine.
import type pg from 'pg'

export interface Run {
  readonly id: string
  readonly workflow: string
  readonly status: string
  readonly reason: string | null
  readonly note: string | null
  readonly session: string | null
  readonly attempt: number
  readonly parent: string | null
  readonly parentKey: string | null
  readonly series: string
  readonly createdAt: number
  readonly endedAt: number | null
  readonly limits: readonly string[]
  readonly input: unknown
  readonly output: unknown
}

export interface Attempt {
  readonly run: string
  readonly attempt: number
  readonly session: string
  readonly leasedAt: number
  readonly endedAt: number
  readonly end: string
  readonly reason: string | null
  /** Of the run, by the write that ended the attempt. */
  readonly rev: number
}

export interface Entry {
  readonly run: string
  readonly n: number
  readonly key: string
  readonly kind: string
  readonly attempt: number
  readonly rev: number
  readonly output: unknown
  readonly failed: boolean
}

export interface Event {
  readonly run: string
  readonly rev: number
  readonly at: number
  readonly kind: string
  readonly data: unknown
}

export interface Rows {
  readonly runs: ReadonlyMap<string, Run>
  readonly attempts: readonly Attempt[]
  readonly entries: readonly Entry[]
  readonly events: readonly Event[]
  readonly signals: readonly { readonly run: string; readonly id: string }[]
  readonly approvals: readonly {
    readonly id: string
    readonly run: string
    readonly state: string
  }[]
  readonly openWaits: readonly { readonly run: string; readonly key: string }[]
  readonly orders: readonly { readonly id: string; readonly kind: string; readonly run: string }[]
  readonly sessions: readonly { readonly id: string; readonly state: string }[]
  journalOf(run: string): readonly Entry[]
  attemptsOf(run: string): readonly Attempt[]
  childrenOf(run: string): readonly Run[]
}

type Tables = Pick<
  Rows,
  'attempts' | 'entries' | 'events' | 'signals' | 'approvals' | 'openWaits' | 'orders' | 'sessions'
> & { readonly runs: readonly Run[] }

/** The rows with the ways to find them. */
export const rowsOf = (tables: Tables): Rows => {
  const journals = grouped(tables.entries, ({ run }) => run)
  const attempts = grouped(tables.attempts, ({ run }) => run)
  const children = grouped(tables.runs, ({ parent }) => parent)
  return {
    ...tables,
    runs: new Map(tables.runs.map((run) => [run.id, run])),
    journalOf: (run) => journals.get(run) ?? [],
    attemptsOf: (run) => attempts.get(run) ?? [],
    childrenOf: (run) => children.get(run) ?? [],
  }
}

const grouped = <T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> => {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}

export const readRows = async (client: pg.Client): Promise<Rows> => {
  const all = async <T>(text: string): Promise<T[]> =>
    (await client.query<T & pg.QueryResultRow>(text)).rows
  return rowsOf({
    runs: (
      await all<
        Omit<Run, 'limits' | 'input' | 'output'> &
          Record<'input' | 'output', string | null> & { limits: string }
      >(
        `select id, workflow, status, reason, note, session, attempt, parent, parent_key as "parentKey", series,
           created_at::float as "createdAt", ended_at::float as "endedAt", input, output,
           array_to_json(array_remove(array[limit_owner, limit_global, limit_a, limit_b], null))::text as limits
         from runs order by id`,
      )
    ).map((run) => ({
      ...run,
      limits: JSON.parse(run.limits) as string[],
      input: parsed(run.input),
      output: parsed(run.output),
    })),
    attempts: await all(
      `select run, attempt, session, leased_at::float as "leasedAt", ended_at::float as "endedAt", "end", reason, rev::float as rev
         from attempts order by run, attempt`,
    ),
    entries: (
      await all<Omit<Entry, 'output'> & { output: string | null }>(
        `select run, n, key, kind, attempt, rev::float as rev, output, error is not null as failed from steps order by run, n`,
      )
    ).map((entry) => ({ ...entry, output: parsed(entry.output) })),
    events: (
      await all<Omit<Event, 'data'> & { data: string | null }>(
        `select run, rev::float as rev, at::float as at, kind, data from events order by run, rev, seq`,
      )
    ).map((event) => ({ ...event, data: parsed(event.data) })),
    signals: await all('select run, id from signals'),
    approvals: await all('select id, run, state from approvals'),
    openWaits: await all(
      `select w.run, w.key from waits w join runs r on r.id = w.run where w.state = 'open' and r.ended_at is not null`,
    ),
    orders: await all('select id, kind, run from orders'),
    sessions: await all('select id, state from sessions where ended_at is null'),
  })
}

const parsed = (text: string | null): unknown =>
  text === null ? null : (JSON.parse(text) as unknown)
