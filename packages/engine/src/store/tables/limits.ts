// Limits and pauses. A limit's value is one row, an operator's beats the code's; its holders are counted from runs.
import { byBytes } from '../../kernel/byte-order.ts'
import type { RunStatus } from '../../model/run.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

export interface LimitRow {
  readonly key: string
  readonly mode: 'whole_run' | 'while_held'
  readonly code_value: number | null
  readonly operator_value: number | null
  readonly policy: 'queue' | 'reject'
  readonly weight: number
  readonly tag: number
  readonly updated_by: string | null
}
const LIMIT =
  'l.key, l.mode, l.code_value, l.operator_value, l.policy, l.weight, l.tag, l.updated_by'

const LIMIT_COLUMNS = ['limit_owner', 'limit_global', 'limit_a', 'limit_b'] as const

/** Some run keeps its slot while it waits, and goes on without lining up: it has to be counted for as long. */
const IS_HELD_WHOLE = `(${LIMIT_COLUMNS.map(
  (column) =>
    `exists (select 1 from runs r where r.${column} = limits.key and r.slot_state > 0 and r.limit_modes = 'w')`,
).join(' or ')})`

const ensure = sql<{ key: string }>(
  'limits.ensure',
  `insert into limits (key, mode, code_value, policy, updated_at)
   select b.key, b.mode, b.value, b.policy, {now} from {rows $1 as b: key text, mode text, value int, policy text} where true
   on conflict (key) do update set mode = case when excluded.mode = 'while_held' and ${IS_HELD_WHOLE} then limits.mode else excluded.mode end, code_value = excluded.code_value, policy = excluded.policy
     where limits.mode <> excluded.mode or limits.code_value is distinct from excluded.code_value or limits.policy <> excluded.policy returning key`,
)
/**
 * Makes the rows of these limits, with the value of the code. Where two workflows declare one key with two modes, it is
 * `whole_run` for as long as a run is under it that was started so: the other kind of run lines up by either.
 */
export const ensureLimits = (
  limits: readonly { key: string; mode: string; value: number | null; policy: string }[],
): Statement<{ key: string }> =>
  // in the order in which they are locked
  statement(ensure, rows([...limits].sort((a, b) => byBytes(a.key, b.key))))

const lock = sql<LimitRow>(
  'limits.lock',
  `select ${LIMIT} from {rows $1 as b: key text} join limits l on l.key = b.key order by l.key {lock l}`,
)
/** Locks these limits in the order of their keys. */
export const lockLimits = (keys: readonly string[]): Statement<LimitRow> =>
  statement(lock, rows([...new Set(keys)].map((key) => ({ key }))))

const lockSkipping = sql<LimitRow>(
  'limits.lock_skipping',
  `select ${LIMIT} from {rows $1 as b: key text} join limits l on l.key = b.key order by l.key {lock l skip}`,
)
/** As above; one that another transaction has locked is left out. */
export const lockFreeLimits = (keys: readonly string[]): Statement<LimitRow> =>
  statement(lockSkipping, rows([...new Set(keys)].map((key) => ({ key }))))

const byKey = sql<LimitRow>(
  'limits.by_key',
  `select ${LIMIT} from {rows $1 as b: key text} join limits l on l.key = b.key`,
)
export const limitsByKey = (keys: readonly string[]): Statement<LimitRow> =>
  statement(byKey, rows(keys.map((key) => ({ key }))))

const tags = sql<{ key: string }>(
  'limits.tags',
  `update limits set tag = b.tag from {rows $1 as b: key text, tag double precision} where limits.key = b.key returning limits.key`,
)
export const writeTags = (
  items: readonly { key: string; tag: number }[],
): Statement<{ key: string }> => statement(tags, rows(items))

const operator = sql<{ key: string }>(
  'limits.operator',
  `insert into limits (key, mode, operator_value, weight, updated_at, updated_by) select $1, $2, $3, $4, {now}, $5 where true
   on conflict (key) do update set operator_value = excluded.operator_value, weight = excluded.weight, updated_at = excluded.updated_at, updated_by = excluded.updated_by returning key`,
)
export const setOperatorLimit = (
  key: string,
  mode: string,
  value: number | null,
  weight: number,
  by: string | null,
): Statement<{ key: string }> => statement(operator, key, mode, value, weight, by)

/** What a run takes of the limit that stands in this column. */
export const unitsIn = (column: (typeof LIMIT_COLUMNS)[number]): string =>
  column === 'limit_a' ? 'r.units_a' : column === 'limit_b' ? 'r.units_b' : '1'

/** What is held of a limit `l`, whose key stands in one column of a run, but any of the four. */
const HELD = LIMIT_COLUMNS.map(
  (column) =>
    `(select coalesce(sum(x.units), 0) from (select ${unitsIn(column)} as units from runs r where r.${column} = l.key and r.slot_state > 0 and (r.slot_state = 3 or r.slot_state = case l.mode when 'whole_run' then 1 else 2 end)) x)`,
).join(' + ')

export interface CountedLimit {
  readonly key: string
  /** Null for one without a value, of which nothing is counted. */
  readonly value: number | null
  readonly units: number
}
const counted = sql<CountedLimit>(
  'limits.counted',
  `select l.key, coalesce(l.operator_value, l.code_value) as value,
      case when coalesce(l.operator_value, l.code_value) is null then 0 else ${HELD} end as units
     from {rows $1 as b: key text} join limits l on l.key = b.key`,
)
/** The value of each of these limits, and what is held of it. */
export const countedLimits = (keys: readonly string[]): Statement<CountedLimit> =>
  statement(counted, rows(keys.map((key) => ({ key }))))

const inLine = sql<{ key: string; waiters: number }>(
  'limits.in_line',
  `select b.key, ${LIMIT_COLUMNS.map(
    (column) =>
      `exists (select 1 from runs r where r.${column} = b.key and r.status = 'waiting' and r.wait_on = 'slot' and (r.ready_at is null or r.ready_at <= {now}) and coalesce(r.reason, '') <> 'no_executor')`,
  ).join(' or ')} as waiters from {rows $1 as b: key text}`,
)
/** Whether somebody already waits in line for each of these keys. */
export const anyInLine = (keys: readonly string[]): Statement<{ key: string; waiters: number }> =>
  statement(inLine, rows(keys.map((key) => ({ key }))))

/** A run that asks for more than there ever is of this key keeps nobody else waiting. */
const fitsEver = (column: (typeof LIMIT_COLUMNS)[number]): string =>
  unitsIn(column) === '1'
    ? ''
    : `and (${unitsIn(column)} = 1 or not exists (select 1 from limits l where l.key = $1 and coalesce(l.operator_value, l.code_value) < ${unitsIn(column)}))`

export interface InLine {
  readonly id: string
  readonly resumed: number
  readonly rank: number
  readonly limit_owner: string | null
  readonly limit_global: string | null
  readonly limit_a: string | null
  readonly limit_b: string | null
}
const IN_LINE = 'r.id, r.resumed, r.rank, r.limit_owner, r.limit_global, r.limit_a, r.limit_b'

const first = sql<InLine>(
  'limits.first_in_line',
  LIMIT_COLUMNS.map(
    (column) =>
      `select * from (select ${IN_LINE} from runs r where r.${column} = $1 and r.status = 'waiting' and r.wait_on = 'slot'
          and (r.ready_at is null or r.ready_at <= {now}) and coalesce(r.reason, '') <> 'no_executor' ${fitsEver(column)}
          and not exists (select 1 from {rows $3 as f: key text} where f.key in (r.limit_owner, r.limit_global, r.limit_a, r.limit_b))
        order by r.resumed desc, r.rank, r.id limit $2) ${column}`,
  ).join(' union all '),
)
/**
 * The first waiters of this key by the order of admission (resumed before new, then by rank), passing over those that a full
 * key blocks; so many of each column that it may stand in, which is one for most keys.
 */
export const firstInLine = (
  key: string,
  full: readonly string[],
  most: number,
): Statement<InLine> => statement(first, key, most, rows(full.map((each) => ({ key: each }))))

const waitingKeys = sql<{ key: string }>(
  'limits.waiting_keys',
  `select distinct x.key from (${LIMIT_COLUMNS.map(
    (column) =>
      `select r.${column} as key from runs r where r.${column} is not null and r.status = 'waiting' and r.wait_on = 'slot'`,
  ).join(' union ')}) x`,
)
/** Keys that somebody waits for. */
export const keysInLine = (): Statement<{ key: string }> => statement(waitingKeys)

export interface HolderRow {
  readonly id: string
  readonly workflow: string
  readonly status: RunStatus
  readonly session: string | null
  readonly leased_at: number | null
  readonly created_at: number
  readonly units: number
  readonly wait_on: string | null
}
const holders = sql<HolderRow>(
  'limits.holders',
  `select * from (${LIMIT_COLUMNS.map(
    (column) =>
      `select r.id, r.workflow, r.status, r.session, r.leased_at, r.created_at, ${unitsIn(column)} as units, r.wait_on from runs r
        where r.${column} = $1 and r.slot_state > 0 and (r.slot_state = 3 or r.slot_state = $2)`,
  ).join(' union all ')}) x order by x.id limit $3`,
)
/** Who holds a limit; each of the four columns is read from its own index. */
export const holdersOf = (key: string, mode: string, most: number): Statement<HolderRow> =>
  statement(holders, key, mode === 'whole_run' ? 1 : 2, most)

export interface PauseRow {
  readonly kind: 'queue' | 'workflow'
  readonly name: string
  readonly paused_by: string
  readonly why: string | null
  readonly paused_at: number
  readonly until: number | null
}
const pause = sql<{ name: string }>(
  'pauses.put',
  `insert into pauses (kind, name, paused_by, why, paused_at, until) select $1, $2, $3, $4, {now}, coalesce($5, {now} + $6) where true
   on conflict (kind, name) do update set paused_by = excluded.paused_by, why = excluded.why, paused_at = excluded.paused_at, until = excluded.until returning name`,
)
export const putPause = (
  kind: string,
  name: string,
  by: string,
  why: string | null,
  until: number | null,
  forMs: number | null = null,
): Statement<{ name: string }> => statement(pause, kind, name, by, why, until, forMs)

const unpause = sql<{ name: string }>(
  'pauses.remove',
  'delete from pauses where kind = $1 and name = $2 returning name',
)
export const removePause = (kind: string, name: string): Statement<{ name: string }> =>
  statement(unpause, kind, name)

const pauses = sql<PauseRow>(
  'pauses.all',
  'select p.kind, p.name, p.paused_by, p.why, p.paused_at, p.until from pauses p where p.until is null or p.until > {now} order by p.kind, p.name',
)
export const allPauses = (): Statement<PauseRow> => statement(pauses)
