// Limits as people look at them: how many of their slots are taken, who waits in line, and how many stand before whom. Every
// count stops at a bound.
import { COUNT_MAX } from '../count-max.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'
import { unitsIn } from './limits.ts'

const LIMIT_COLUMNS = ['limit_owner', 'limit_global', 'limit_a', 'limit_b'] as const

export interface SlotRow {
  readonly key: string
  readonly mode: 'whole_run' | 'while_held'
  readonly code_value: number | null
  readonly operator_value: number | null
  readonly policy: 'queue' | 'reject'
  readonly weight: number
  readonly updated_by: string | null
  readonly used: number
  readonly waiters: number
}
const SLOT = `l.key, l.mode, l.code_value, l.operator_value, l.policy, l.weight, l.updated_by,
  ${LIMIT_COLUMNS.map(
    (column) =>
      `(select coalesce(sum(x.units), 0) from (select ${unitsIn(column)} as units from runs r where r.${column} = l.key and r.slot_state > 0 and (r.slot_state = 3 or r.slot_state = case when l.mode = 'whole_run' then 1 else 2 end) limit ${COUNT_MAX}) x)`,
  ).join(' + ')} as used,
  ${LIMIT_COLUMNS.map(
    (column) =>
      `(select count(*) from (select 1 as one from runs r where r.${column} = l.key and r.status = 'waiting' and r.wait_on = 'slot' limit ${COUNT_MAX}) x)`,
  ).join(' + ')} as waiters`
const allSlots = sql<SlotRow>('lines.slots', `select ${SLOT} from limits l order by l.key limit $1`)
export const slots = (most: number): Statement<SlotRow> => statement(allSlots, most)
const someSlots = sql<SlotRow>(
  'lines.slots_of',
  `select ${SLOT} from {rows $1 as b: key text} join limits l on l.key = b.key order by l.key`,
)
export const slotsOf = (keys: readonly string[]): Statement<SlotRow> =>
  statement(someSlots, rows([...new Set(keys)].map((key) => ({ key }))))

export interface LineRow {
  readonly id: string
  readonly workflow: string
  readonly created_at: number
  readonly resumed: number
  readonly units: number
}
const DUE_IN_LINE = `r.status = 'waiting' and r.wait_on = 'slot' and (r.ready_at is null or r.ready_at <= {now}) and coalesce(r.reason, '') <> 'no_executor'`
const slotLine = sql<LineRow>(
  'lines.slot_line',
  `select x.id, x.workflow, x.created_at, x.resumed, x.units from (${LIMIT_COLUMNS.map(
    (column) =>
      `select r.id, r.workflow, r.created_at, r.resumed, r.rank, ${unitsIn(column)} as units from runs r where r.${column} = $1 and ${DUE_IN_LINE}`,
  ).join(' union all ')}) x order by x.resumed desc, x.rank, x.id limit $2`,
)
/** Who waits in line for a key, in the order of admission. */
export const lineOf = (key: string, most: number): Statement<LineRow> =>
  statement(slotLine, key, most)

const ahead = sql<{ key: string; n: number }>(
  'lines.ahead_in_line',
  `select b.key, ${LIMIT_COLUMNS.map(
    (column) =>
      `(select count(*) from (select 1 as one from runs r where r.${column} = b.key and ${DUE_IN_LINE} and (r.resumed > $2 or (r.resumed = $2 and (r.rank, r.id) < ($3, $4))) limit ${COUNT_MAX}) x)`,
  ).join(' + ')} as n from {rows $1 as b: key text}`,
)
/** How many stand in line for each key before a run of this place. */
export const aheadInLine = (
  keys: readonly string[],
  resumed: number,
  rank: number,
  id: string,
): Statement<{ key: string; n: number }> =>
  statement(ahead, rows(keys.map((key) => ({ key }))), resumed, rank, id)

/** The value of a limit: an operator's beats the code's; null for any number. */
export const valueInForce = (slot: Pick<SlotRow, 'operator_value' | 'code_value'>): number | null =>
  slot.operator_value ?? slot.code_value
