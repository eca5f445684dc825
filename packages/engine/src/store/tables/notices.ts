// Notices: what people are to see and nothing waits for, each kind once for a run.
import type { Notice, NoticeKind } from '../../model/follow.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

export interface NoticeRow {
  readonly run: string
  readonly kind: NoticeKind
  readonly at: number
  readonly sentence: string
  readonly data: string | null
}
const NOTICE = 'n.run, n.kind, n.at, n.sentence, n.data'

const insert = sql<{ run: string; kind: NoticeKind }>(
  'notices.insert',
  `insert into notices (run, kind, at, sentence, data)
   select b.run, b.kind, {now}, b.sentence, b.data from {rows $1 as b: run text, kind text, sentence text, data text} where true
   on conflict do nothing returning run, kind`,
)
/** A compare-and-set: of two that write the same notice one gets its row back. */
export const insertNotices = (
  notices: readonly Notice[],
): Statement<{ run: string; kind: NoticeKind }> =>
  statement(
    insert,
    rows(
      notices.map(({ run, kind, sentence, data }) => ({
        run,
        kind,
        sentence,
        data: JSON.stringify(data),
      })),
    ),
  )

const newest = sql<NoticeRow>(
  'notices.newest',
  `select ${NOTICE} from notices n where (n.at, n.kind, n.run) < ($1, $2, $3) order by n.at desc, n.kind desc, n.run desc limit $4`,
)
/** Notices before a place, newest first. */
export const noticesBefore = (
  before: { readonly at: number; readonly run: string; readonly kind: string },
  most: number,
): Statement<NoticeRow> => statement(newest, before.at, before.kind, before.run, most)

const ofRun = sql<NoticeRow>(
  'notices.of_run',
  `select ${NOTICE} from notices n where n.run = $1 order by n.at, n.kind`,
)
export const noticesOf = (run: string): Statement<NoticeRow> => statement(ofRun, run)

const forget = sql<{ run: string }>(
  'notices.forget',
  `with pick as materialized (
     select n.run, n.kind from notices n where n.at < {now} - $1 and (select 1 from runs r where r.id = n.run) is null
        and (select 1 from orders o where o.id = n.run) is null {lock n skip})
   delete from notices where (run, kind) in (select p.run, p.kind from pick p) returning run`,
)
/** Forgets those of runs that are gone, and of orders that never became one and are not set aside. */
export const forgetNotices = (olderMs: number): Statement<{ run: string }> =>
  statement(forget, olderMs)

const remove = sql<{ run: string }>(
  'notices.remove',
  'delete from notices where run = $1 and kind = $2 returning run',
)
/** Removes a notice whose cause is gone. */
export const removeNotice = (run: string, kind: NoticeKind): Statement<{ run: string }> =>
  statement(remove, run, kind)
