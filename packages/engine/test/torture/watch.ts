// Looks at the rows past the engine while it all happens. What cannot be seen, since the database is away, is undefined.
import type pg from 'pg'
import { limitOf } from './checker.ts'
import type { Place } from './place.ts'

export interface Watch {
  active(): Promise<number | undefined>
  sessions(): Promise<number | undefined>
  /** Limits of which more is held at this instant than they let in, as sentences. */
  overfull(): Promise<string[]>
  /** Runs that nobody ends but people, whose start may not have been acknowledged to those who asked for it. */
  owed(): Promise<{ readonly run: string; readonly workflow: string }[]>
  close(): Promise<void>
}

/** One statement is one instant. */
const HELD = `
  select l.key, sum(case when r.slot_state in (1, 3) then 1 else 0 end) as whole,
         sum(case when r.slot_state in (2, 3) then 1 else 0 end) as held
    from runs r, lateral (values (r.limit_owner), (r.limit_global), (r.limit_a), (r.limit_b)) as l (key)
   where l.key is not null and r.slot_state > 0 group by l.key`

const OWED = `
  select r.id as run, r.workflow from runs r where r.ended_at is null and (r.workflow = 'never' or
    (r.workflow = 'waits' and not exists (select 1 from signals s where s.run = r.id)))`

export const makeWatch = (place: Place): Watch => {
  let client: pg.Client | null = null
  const asked = async <T extends pg.QueryResultRow>(text: string): Promise<T[] | undefined> => {
    try {
      client ??= await place.operator()
      return (await client.query<T>(text)).rows
    } catch {
      void client?.end().catch(() => undefined)
      client = null
      return undefined
    }
  }
  const count = async (table: 'runs' | 'sessions'): Promise<number | undefined> =>
    (
      await asked<{ n: number }>(`select count(*)::int as n from ${table} where ended_at is null`)
    )?.[0]?.n
  return {
    active: () => count('runs'),
    sessions: () => count('sessions'),
    async overfull() {
      const rows = (await asked<{ key: string; whole: string; held: string }>(HELD)) ?? []
      return rows.flatMap(({ key, whole, held }) => {
        const limit = limitOf(key)
        const units = Number(limit?.whole === true ? whole : held)
        return limit && units > limit.value
          ? [`${key} lets in ${limit.value}, and ${units} hold it`]
          : []
      })
    },
    owed: async () => (await asked<{ run: string; workflow: string }>(OWED)) ?? [],
    close: async () => client?.end().catch(() => undefined),
  }
}
