// Whose turn each sweep is, among the servers of one database.
import type { Statement } from '../sql.ts'
import { forEach, sql, statement } from '../sql.ts'

const make = sql<{ sweep: string }>(
  'turns.make',
  `insert into turns (sweep, holder, until) select b.sweep, '', 0 from {rows $1 as b: sweep text} where true on conflict do nothing returning sweep`,
)
/** Makes the rows of these sweeps, in nobody's hand, where they are not there. */
export const makeTurns = (sweeps: readonly string[]): Statement<{ sweep: string }> =>
  forEach(
    make,
    sweeps.map((sweep) => ({ sweep })),
  )

const take = sql<{ sweep: string }>(
  'turns.take',
  // one that ends later than any that is given now was given by a clock that was ahead
  `with pick as materialized (
     select t.sweep from {rows $1 as b: sweep text} join turns t on t.sweep = b.sweep
      where t.holder = $2 or t.until <= {now} or t.until > {now} + $3 order by t.sweep {lock t skip})
   update turns set holder = $2, until = {now} + $3 from pick where turns.sweep = pick.sweep returning turns.sweep`,
)
/** Gives those turns to this holder for so long that are its own already or nobody's any more. */
export const takeTurns = (
  sweeps: readonly string[],
  holder: string,
  ms: number,
): Statement<{ sweep: string }> =>
  forEach(
    take,
    sweeps.map((sweep) => ({ sweep })),
    holder,
    ms,
  )

const give = sql<{ sweep: string }>(
  'turns.give',
  'update turns set until = 0 where holder = $1 returning sweep',
)
/** Gives all turns of this holder back. */
export const giveTurns = (holder: string): Statement<{ sweep: string }> => statement(give, holder)
