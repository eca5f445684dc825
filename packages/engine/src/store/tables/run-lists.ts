// Lists of runs, and how many there are: each read from the index of its branch. A page looks at so many rows at most, no more
// ended runs than an index lets it, and every count stops at a bound.
import type { RunStatus } from '../../model/run.ts'
import { COUNT_MAX } from '../count-max.ts'
import { hasItem, item, SEPARATOR } from '../has-item.ts'
import type { Param, Sql, Statement } from '../sql.ts'
import { sql, statement } from '../sql.ts'
import type { ViewRow } from './views.ts'
import { VIEW } from './views.ts'

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

/** Which index a list is read from: one branch for each kind of status asked for. */
export type Branch = 'all' | 'active' | 'failed' | 'canceled' | 'succeeded'

const ENDED: readonly RunStatus[] = ['succeeded', 'failed', 'canceled']

const known = new Map<string, Sql<never>>()
/** A text that is put together from parts is prepared once. */
const made = <R>(name: string, text: string): Sql<R> => {
  const found = known.get(text)
  if (found) return found
  const fresh = sql<R>(name, text)
  known.set(text, fresh as Sql<never>)
  return fresh
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
      'run_lists.scan_bound',
      `select r.id from runs r where ${[...where, 'r.id < $1'].join(' and ')} order by r.id desc limit 1 offset ${SCAN}`,
    ),
    below,
    ...params,
  )
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
      'run_lists.page',
      `select ${VIEW} from runs r where ${[...where, 'r.id < $1', 'r.id >= $2'].join(' and ')} order by r.id desc limit $3`,
    ),
    below,
    from,
    most,
    ...params,
  )
}

const countStatuses = sql<{ status: RunStatus; n: number }>(
  'run_lists.counts',
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
