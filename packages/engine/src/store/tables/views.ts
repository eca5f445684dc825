// What people look at: lists, counts, lines and their holders. Reads only; no statement here reads more ended runs than an
// index lets it, and every count stops at a bound.
import type { RunStatus } from '../../model/run.ts'
import type { RunRow } from '../move/run-row.ts'
import { runColumns } from '../move/run-row.ts'
import type { Param, Sql, Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'
import { unitsIn } from './limits.ts'
import type { ApprovalRow } from './waits.ts'
import { approvalColumns } from './waits.ts'

export type ViewRow = RunRow & { readonly progress: string | null }
const VIEW = `${runColumns}, r.progress`

/** Which runs a list shows, beside those that its branch is made of. */
export interface RunFilter {
  readonly statuses: readonly RunStatus[]
  readonly workflow: string | null
  readonly owner: string | null
  readonly queue: string | null
  readonly label: string | null
  readonly waitOn: string | null
  readonly reason: string | null
  readonly startedAfter: number | null
  readonly startedBefore: number | null
  readonly text: string | null
  /** Only those that no run has started: neither children nor what runs at an end. */
  readonly roots: boolean
}

/** Which index a list is read from: one branch for each kind of status asked for. */
export type Branch = 'all' | 'active' | 'failed' | 'canceled' | 'succeeded'

const known = new Map<string, Sql<never>>()
/** A text that is put together from parts is prepared once. */
const made = <R>(name: string, text: string): Sql<R> => {
  const found = known.get(text)
  if (found) return found
  const fresh = sql<R>(name, text)
  known.set(text, fresh as Sql<never>)
  return fresh
}

const SEPARATOR = '\u0001'
const BACKSLASH = '\u0002'
const QUOTE = '\u0003'
/** A text as `hasItem` looks for it. */
const item = (text: string): string =>
  `${SEPARATOR}${JSON.stringify(text).slice(1, -1).replaceAll('\\\\', BACKSLASH).replaceAll('\\"', QUOTE)}${SEPARATOR}`

/**
 * Whether a column that is a list of texts as JSON has one that is `wanted`, whole: what is escaped in it becomes characters
 * that no JSON text has, so that a quote is an end, and what stands between two texts one such character.
 */
const hasItem = (column: string, wanted: string, separator: string): string => {
  const plain = `replace(replace(${column}, '\\\\', '${BACKSLASH}'), '\\"', '${QUOTE}')`
  const parted = `(${separator} || replace(substr(${plain}, 3, length(${plain}) - 4), '","', ${separator}) || ${separator})`
  return `(case when ${column} = '[]' then 0 when replace(${parted}, ${wanted}, '') <> ${parted} then 1 else 0 end = 1)`
}

interface Parts {
  readonly where: string[]
  readonly params: Param[]
  /** Whether rows that the index gives may not match. */
  readonly filtered: boolean
}

/** The conditions of one branch, its parameters numbered from `first`. An expression keeps a second index from being preferred. */
const partsOf = (branch: Branch, filter: RunFilter, first: number): Parts => {
  const where: string[] = []
  const params: Param[] = []
  const put = (value: Param): string => `$${first + params.push(value) - 1}`
  let filtered = false
  const also = (text: string): void => {
    where.push(text)
    filtered = true
  }
  const own = branch === 'all' || branch === 'succeeded'
  if (branch === 'active') {
    where.push('r.ended_at is null')
    const active = filter.statuses.filter((each) => !ENDED.includes(each))
    if (active.length > 0 && active.length < 5) also(`r.status in (${active.map(put).join(', ')})`)
  } else if (branch === 'failed' || branch === 'canceled') where.push(`r.status = '${branch}'`)
  else if (branch === 'succeeded') also(`r.status = 'succeeded'`)
  let indexed = false
  if (filter.workflow !== null) {
    if (own) where.push(`r.workflow = ${put(filter.workflow)}`)
    else also(`coalesce(r.workflow, '') = ${put(filter.workflow)}`)
    indexed = own
  }
  if (filter.owner !== null) {
    if (own && !indexed && filter.owner !== '')
      where.push(`r.owner = ${put(filter.owner)} and r.owner <> ''`)
    else also(`coalesce(r.owner, '') = ${put(filter.owner)}`)
  }
  if (filter.roots) also('r.parent is null and r.on_end_of is null')
  if (filter.queue !== null) also(`r.queue = ${put(filter.queue)}`)
  if (filter.waitOn !== null) also(`r.wait_on = ${put(filter.waitOn)}`)
  if (filter.reason !== null) also(`r.reason = ${put(filter.reason)}`)
  if (filter.startedAfter !== null) also(`r.created_at >= ${put(filter.startedAfter)}`)
  if (filter.startedBefore !== null) also(`r.created_at < ${put(filter.startedBefore)}`)
  if (filter.label !== null) also(hasItem('r.labels', put(item(filter.label)), put(SEPARATOR)))
  if (filter.text !== null && filter.text !== '') {
    // by one and the same idea of small letters, which the database has
    const part = `lower(${put(filter.text)})`
    also(
      `(replace(lower(coalesce(r.error, '')), ${part}, '') <> lower(coalesce(r.error, '')) or replace(lower(coalesce(r.note, '')), ${part}, '') <> lower(coalesce(r.note, '')))`,
    )
  }
  return { where, params, filtered }
}

const ENDED: readonly RunStatus[] = ['succeeded', 'failed', 'canceled']

/** How many rows of one branch a page looks at, at most: where few match, a page is short and has a next one. */
export const SCAN = 10_000

/** The id below which a page of this branch does not look; no row where there are fewer, or where every row matches. */
export const scanBound = (
  branch: Branch,
  filter: RunFilter,
  below: string,
): Statement<{ id: string }> | null => {
  if (!partsOf(branch, filter, 1).filtered) return null
  const none: RunFilter = {
    ...NO_FILTER,
    ...(branch === 'all' || branch === 'succeeded'
      ? { workflow: filter.workflow, owner: filter.workflow === null ? filter.owner : null }
      : {}),
  }
  const { where, params } = partsOf(branch === 'succeeded' ? 'all' : branch, none, 2)
  return statement(
    made(
      'views.scan_bound',
      `select r.id from runs r where ${[...where, 'r.id < $1'].join(' and ')} order by r.id desc limit 1 offset ${SCAN}`,
    ),
    below,
    ...params,
  )
}

export const NO_FILTER: RunFilter = {
  statuses: [],
  workflow: null,
  owner: null,
  queue: null,
  label: null,
  waitOn: null,
  reason: null,
  startedAfter: null,
  startedBefore: null,
  text: null,
  roots: false,
}

/** Runs of one branch with ids from `from` (included) to `below`, newest first. */
export const runsPage = (
  branch: Branch,
  filter: RunFilter,
  below: string,
  from: string,
  most: number,
): Statement<ViewRow> => {
  const { where, params } = partsOf(branch, filter, 4)
  return statement(
    made(
      'views.runs',
      `select ${VIEW} from runs r where ${[...where, 'r.id < $1', 'r.id >= $2'].join(' and ')} order by r.id desc limit $3`,
    ),
    below,
    from,
    most,
    ...params,
  )
}

const byId = sql<ViewRow>(
  'views.by_id',
  `select ${VIEW} from {rows $1 as b: run text} join runs r on r.id = b.run order by r.id`,
)
export const viewsOf = (ids: readonly string[]): Statement<ViewRow> =>
  statement(byId, rows(ids.map((run) => ({ run }))))

/** Where counting stops. */
export const COUNT_MAX = 10_001

const countStatuses = sql<{ status: RunStatus; n: number }>(
  'views.counts',
  [
    ...(['queued', 'running', 'waiting', 'paused', 'canceling'] as const).map((status) => {
      const index =
        status === 'queued'
          ? `r.status = 'queued'`
          : status === 'running'
            ? `r.session is not null and r.status = 'running'`
            : status === 'canceling'
              ? `r.status = 'canceling'`
              : `r.ended_at is null and r.status = '${status}'`
      return `select '${status}' as status, count(*) as n from (select 1 as one from runs r where ${index} limit ${COUNT_MAX}) x`
    }),
    ...ENDED.map(
      (status) =>
        `select '${status}' as status, count(*) as n from (select 1 as one from runs r where r.status = '${status}' limit ${COUNT_MAX}) x`,
    ),
  ].join(' union all '),
)
export const statusCounts = (): Statement<{ status: RunStatus; n: number }> =>
  statement(countStatuses)

const childrenOf = sql<ViewRow>(
  'views.children',
  `select ${VIEW} from runs r where r.parent = $1 order by r.id limit $2`,
)
export const children = (parent: string, most: number): Statement<ViewRow> =>
  statement(childrenOf, parent, most)

const seriesOf = sql<{ id: string; status: RunStatus; created_at: number }>(
  'views.series',
  `select r.id, r.status, r.created_at from runs r where r.id = $1
   union all select * from (select r.id, r.status, r.created_at from runs r where r.series = $1 and r.series <> r.id order by r.id desc limit $2) x`,
)
/** The runs that continue one another, the first and the newest of the others. */
export const series = (
  first: string,
  most: number,
): Statement<{ id: string; status: RunStatus; created_at: number }> =>
  statement(seriesOf, first, most)

const unread = sql<{
  id: string
  seq: number
  name: string
  payload: string | null
  taken_by: string | null
}>(
  'views.signals',
  'select g.id, g.seq, g.name, g.payload, g.taken_by from signals g where g.run = $1 and g.read_at is null order by g.seq limit $2',
)
export const signalsUnread = (
  run: string,
  most: number,
): Statement<{
  id: string
  seq: number
  name: string
  payload: string | null
  taken_by: string | null
}> => statement(unread, run, most)

const ofRun = sql<ApprovalRow>(
  'views.approvals_of_run',
  `select ${approvalColumns} from approvals p where p.run = $1 order by p.created_at, p.id`,
)
export const approvalsOf = (run: string): Statement<ApprovalRow> => statement(ofRun, run)

const inbox = sql<ApprovalRow>(
  'views.inbox',
  `select ${approvalColumns} from approvals p
    where p.state = 'open' and (p.created_at, p.id) > ($1, $2) and p.created_at <= {now} - $3
      and ($4 = '' or p.run = $4)
      and ($5 = '' or p.deciders = '[]' or ${hasItem('p.deciders', '$5', '$6')})
    order by p.created_at, p.id limit $7`,
)
/** Open approvals after a place, oldest first; `decider` and `run` empty mean all. */
export const openApprovals = (
  after: { readonly at: number; readonly id: string },
  olderThanMs: number,
  run: string,
  decider: string,
  most: number,
): Statement<ApprovalRow> =>
  statement(
    inbox,
    after.at,
    after.id,
    olderThanMs,
    run,
    decider === '' ? '' : item(decider),
    SEPARATOR,
    most,
  )

const stepsSince = sql<{
  key: string
  n: number
  kind: string
  attempt: number
  rev: number
  at: number
  output: string | null
  error: string | null
}>(
  'views.steps_since',
  'select s.key, s.n, s.kind, s.attempt, s.rev, s.at, s.output, s.error from steps s where s.run = $1 and s.n > $2 and s.rev > $3 order by s.n limit $4',
)
/** Entries after number `n` that were written after `rev`. */
export const entriesSince = (run: string, n: number, rev: number, most: number) =>
  statement(stepsSince, run, n, rev, most)

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
const allSlots = sql<SlotRow>('views.slots', `select ${SLOT} from limits l order by l.key limit $1`)
export const slots = (most: number): Statement<SlotRow> => statement(allSlots, most)
const someSlots = sql<SlotRow>(
  'views.slots_of',
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
  'views.slot_line',
  `select x.id, x.workflow, x.created_at, x.resumed, x.units from (${LIMIT_COLUMNS.map(
    (column) =>
      `select r.id, r.workflow, r.created_at, r.resumed, r.rank, ${unitsIn(column)} as units from runs r where r.${column} = $1 and ${DUE_IN_LINE}`,
  ).join(' union all ')}) x order by x.resumed desc, x.rank, x.id limit $2`,
)
/** Who waits in line for a key, in the order of admission. */
export const lineOf = (key: string, most: number): Statement<LineRow> =>
  statement(slotLine, key, most)

const ahead = sql<{ key: string; n: number }>(
  'views.ahead_in_line',
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

const queuedAhead = sql<{ n: number }>(
  'views.queued_ahead',
  `select count(*) as n from (select 1 as one from runs r where r.lane = $1 and r.status = 'queued' and (r.rank, r.id) < ($2, $3) limit ${COUNT_MAX}) x`,
)
export const aheadInLane = (lane: string, rank: number, id: string): Statement<{ n: number }> =>
  statement(queuedAhead, lane, rank, id)

export interface DepthRow {
  readonly lane: string
  readonly queue: string
  readonly workflow: string
  readonly version: string
  readonly labels: string
  readonly depth: number
  readonly oldest_at: number | null
  readonly since: number | null
  readonly parked: number
  readonly parked_since: number | null
}
const depths = sql<DepthRow>(
  'views.depths',
  `select l.lane, l.queue, l.workflow, l.version, l.labels,
     (select count(*) from (select 1 as one from runs r where r.lane = l.lane and r.status = 'queued' limit ${COUNT_MAX}) x) as depth,
     (select min(x.created_at) from (select r.created_at from runs r where r.lane = l.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 1000) x) as oldest_at,
     (select min(x.since) from (select coalesce(
         (select max(y.at) from (select a.ended_at as at from attempts a where a.run = r.id and a.attempt = r.attempt
            union all select w.settled_at as at from waits w where w.run = r.id and w.state in ('satisfied', 'lapsed')) y),
         r.not_before, r.created_at) as since
       from runs r where r.lane = l.lane and r.status = 'queued' order by r.lane, r.rank, r.id limit 100) x) as since,
     coalesce(p.n, 0) as parked, p.since as parked_since
   from lanes l left join (select x.lane, count(*) as n, min(x.created_at) as since from (select r.lane, r.created_at from runs r where r.status = 'waiting' and r.wait_on = 'slot' and r.reason = 'no_executor' limit ${COUNT_MAX}) x group by x.lane) p on p.lane = l.lane
   order by l.queue, l.workflow, l.version, l.lane limit $1`,
)
/**
 * Lanes with how many runs stand in them, when the oldest of the first thousand was started, and since when the first hundred
 * wait: since they were started, were last let go, or were woken.
 */
export const laneDepths = (most: number): Statement<DepthRow> => statement(depths, most)

const answering = sql<{ id: string }>(
  'views.store_answers',
  'select m.name as id from meta m limit 1',
)
/** The least that shows that the store answers and is migrated. */
export const storeAnswers = (): Statement<{ id: string }> => statement(answering)
