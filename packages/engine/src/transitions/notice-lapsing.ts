// Open approvals whose deadline is near: people are told once of each, while they can still decide.
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { lapsingApproval } from '../model/notice.ts'
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { tell, toldNow } from '../store/tables/notices.ts'
import { lapsingApprovals } from '../store/tables/waits.ts'

const MOST = 200

export function* noticeLapsing(
  _tx: Tx,
  { approvalLapsingMs }: Settings,
): Steps<{ examined: number; acted: number; more: boolean; follow: Follow }> {
  const follow = nothing()
  const [lapsing] = yield* ask(lapsingApprovals(approvalLapsingMs, MOST))
  const more = lapsing.length === MOST
  if (lapsing.length === 0) return { examined: 0, acted: 0, more, follow }
  const notices = lapsing.map(lapsingApproval)
  const [, stored] = yield* finish(...tell(notices))
  follow.notices.push(...toldNow(notices, stored))
  return { examined: lapsing.length, acted: stored.length, more, follow }
}
