// A start is overdue: nobody has claimed a run for so long after it could have begun. People are told once, and nothing
// becomes of the run. Active runs are looked at by pages, so that one pass costs the same however many there are.
import { inWords } from '../kernel/duration.ts'
import type { Follow } from '../model/follow.ts'
import type { Notice } from '../model/notice.ts'
import { nothing } from '../model/follow.ts'
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { tell, toldNow } from '../store/tables/notices.ts'
import type { OverdueRow } from '../store/tables/runs.ts'
import { activePage, overdueStarts } from '../store/tables/runs.ts'

export interface Noticed {
  readonly examined: number
  readonly acted: number
  /** Where the next page starts; empty when the round is done. */
  readonly cursor: string
  readonly follow: Follow
}

const PAGE = 1_000
const MOST = 100

export function* noticeOverdue(tx: Tx, cursor: string, settings: Settings): Steps<Noticed> {
  const follow = nothing()
  const [[page], overdue] = yield* ask(
    activePage(cursor, PAGE),
    overdueStarts(cursor, PAGE, settings.startOverdueMs, MOST),
  )
  const examined = page?.n ?? 0
  const stopped = overdue.length === MOST ? overdue.at(-1)?.id : undefined
  const next = stopped ?? (examined < PAGE ? '' : (page?.last ?? ''))
  const notices = overdue.map((row) => noticeOf(row, tx.now))
  if (notices.length === 0) return { examined, acted: 0, cursor: next, follow }
  const [, stored] = yield* finish(...tell(notices))
  follow.notices.push(...toldNow(notices, stored))
  return { examined, acted: stored.length, cursor: next, follow }
}

const noticeOf = (
  { id, workflow, status, wait_on, reason, since }: OverdueRow,
  now: number,
): Notice => ({
  run: id,
  kind: 'start_overdue',
  occurrence: '',
  sentence: `nobody has claimed ${id} (${workflow}) for ${inWords(now - since)}: it is ${
    status === 'queued'
      ? 'queued'
      : reason === 'no_executor'
        ? 'waiting for an executor'
        : 'waiting for a slot'
  }`,
  data: { workflow, since, status, waitOn: wait_on, reason },
})
