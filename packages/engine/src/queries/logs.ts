// What the attempts of a run have written, after a place, and how the run stands.
import type { LogPlace, ShownLine } from '../model/log.ts'
import { shownAfter } from '../model/log.ts'
import type { RunStatus } from '../model/run.ts'
import { isTerminal } from '../model/run.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { linesOf, logsAfter } from '../store/tables/logs.ts'
import { viewsOf } from '../store/tables/views.ts'

export interface LogPage {
  readonly status: RunStatus
  readonly lines: readonly ShownLine[]
  /** Whether more follow that are there already. */
  readonly more: boolean
  /** Nothing more is written of what was asked for, but lines may still be on their way. */
  readonly over: boolean
}

const PARTS = 64
const LAST = 2_147_483_647

/** Null where there is no such run; `attempt` null means all. */
export function* logPage(
  _tx: Tx,
  run: string,
  attempt: number | null,
  from: LogPlace,
  most: number,
): Steps<LogPage | null> {
  const after = from.attempt < (attempt ?? 0) ? { attempt: attempt ?? 0, n: 0 } : from
  const [[row], parts] = yield* ask(viewsOf([run]), logsAfter(run, after, attempt ?? LAST, PARTS))
  if (!row) return null
  const found = parts.flatMap((part) =>
    linesOf(part)
      .filter(({ n }) => part.attempt > after.attempt || n > after.n)
      .map((line) => ({ attempt: part.attempt, ...line })),
  )
  return {
    status: row.status as RunStatus,
    lines: shownAfter(after, found.slice(0, most)),
    more: found.length > most || parts.length === PARTS,
    over:
      isTerminal(row.status as RunStatus) ||
      (attempt !== null && (row.attempt > attempt || row.session === null)),
  }
}
