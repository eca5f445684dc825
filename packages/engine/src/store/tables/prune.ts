// Retention: what may go, and its going, all rows of a run in one transaction.
import type { Shard } from '../../model/shard.ts'
import { markOf } from '../../model/shard.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

interface RootRow {
  readonly id: string
  readonly ended_at: number
  readonly ready: number
}
/** The id of the run that runs at the end of another (`withTail`), on the shard whose ids end in `$5`. */
const handlerOf = (run: string): string =>
  `substr(${run}.id, 1, length(${run}.id) - length($5)) || '_end' || $5`

const roots = sql<RootRow>(
  'prune.roots',
  `select r.id, r.ended_at, case when exists (select 1 from runs m where m.root = r.id and m.root <> m.id and (m.ended_at is null or m.ended_at >= {now} - $2))
                      or exists (select 1 from runs e where e.id = ${handlerOf('r')} and (e.ended_at is null or e.ended_at >= {now} - $2))
                      or exists (select 1 from runs m join runs e on e.id = ${handlerOf('m')}
                          where m.root = r.id and m.root <> m.id and (e.ended_at is null or e.ended_at >= {now} - $2)) then 0 else 1 end as ready
     from runs r where r.root = r.id and r.ended_at is not null and r.ended_at < {now} - $2 and (r.ended_at, r.id) > ($1, $4)
    order by r.ended_at, r.id limit $3`,
)
/**
 * Roots (runs that continue one belong to it) that are past the age, by their end and after a cursor, each with whether
 * its whole family is. Younger ones are never read, however many there are.
 */
export const endedRoots = (
  after: { readonly at: number; readonly id: string },
  ageMs: number,
  most: number,
  shard: Shard,
): Statement<RootRow> => statement(roots, after.at, ageMs, most, after.id, markOf(shard.number))

const members = sql<{ id: string; root: string }>(
  'prune.members',
  `select r.id, b.run as root from {rows $1 as b: run text} join runs r on r.id = b.run
   union select r.id, b.run from {rows $1 as b: run text} join runs r on r.root = b.run and r.root <> r.id`,
)
/** The members of these families, each with its root. */
export const familyOf = (ids: readonly string[]): Statement<{ id: string; root: string }> =>
  statement(members, rows(ids.map((run) => ({ run }))))

const TABLES = [
  'steps',
  'attempts',
  'attempt_logs',
  'waits',
  'signals',
  'approvals',
  'receipts',
  'notices',
  'events',
  'streams',
] as const
const deletions = [
  ...TABLES.map((table) =>
    sql<object>(
      `prune.${table}`,
      `delete from ${table} where run in (select b.run from {rows $1 as b: run text})`,
    ),
  ),
  sql<object>(
    'prune.runs',
    'delete from runs where id in (select b.run from {rows $1 as b: run text}) returning id',
  ),
]
/** Removes these runs with all their rows and keys; the last statement answers the runs removed. */
export const removeRuns = (ids: readonly string[]): Statement<object>[] =>
  deletions.map((text) => statement(text, rows(ids.map((run) => ({ run })))))
