// The list of runs, newest first, page by page, and how many there are of each status.
import { byBytes } from '../kernel/byte-order.ts'
import type { RunStatus } from '../model/run.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { Branch, RunFilter } from '../store/tables/run-lists.ts'
import type { ViewRow } from '../store/tables/views.ts'
import { COUNT_MAX } from '../store/count-max.ts'
import { runsPage, scanBound, statusCounts } from '../store/tables/run-lists.ts'
import type { RunView } from './run-view.ts'
import { viewOf } from './run-view.ts'

export interface RunPage {
  readonly runs: readonly RunView[]
  /** Cursor of the next page, which may be empty where few runs match; null at the end. */
  readonly next: string | null
}

/** Above every id. */
const TOP = '\u{10ffff}'

export function* runList(
  _tx: Tx,
  filter: RunFilter,
  cursor: string | null,
  limit: number,
): Steps<RunPage> {
  const branches = branchesOf(filter.statuses)
  const below = cursor ?? TOP
  const bounds = branches
    .map((branch) => scanBound(branch, filter, below))
    .filter((each) => each !== null)
  const found = bounds.length === 0 ? [] : yield* ask(...bounds)
  const bound = found.reduce(
    (most, [row]) => (row && byBytes(row.id, most) > 0 ? row.id : most),
    '',
  )
  const parts = yield* ask(
    ...branches.map((branch) => runsPage(branch, filter, below, bound, limit + 1)),
  )
  const rows = parts.flat().sort(newestFirst)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    runs: page.map(viewOf),
    next: rows.length > limit && last ? last.id : bound === '' ? null : bound,
  }
}

const newestFirst = (a: ViewRow, b: ViewRow): number => byBytes(b.id, a.id)

/** Each kind of status is read from an index of its own, so that a few failed runs among many are found at once. */
const branchesOf = (statuses: readonly RunStatus[]): Branch[] => {
  if (statuses.length === 0) return ['all']
  const ended = (['failed', 'canceled', 'succeeded'] as const).filter((each) =>
    statuses.includes(each),
  )
  return statuses.some((each) => !(ended as readonly RunStatus[]).includes(each))
    ? ['active', ...ended]
    : ended
}

export interface StatusCount {
  readonly status: RunStatus
  readonly count: number
  /** Counting stopped here. */
  readonly more: boolean
}

export function* runCounts(_tx: Tx): Steps<readonly StatusCount[]> {
  const [rows] = yield* ask(statusCounts())
  return rows.map(({ status, n }) => ({
    status,
    count: Math.min(n, COUNT_MAX - 1),
    more: n >= COUNT_MAX,
  }))
}
