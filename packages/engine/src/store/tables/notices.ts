// Notices: what people are to see and nothing waits for, each once for its kind, run and occurrence.
import type { Notice, NoticeKind } from '../../model/notice.ts'
import { noticeId } from '../../model/notice.ts'
import type { Statement } from '../sql.ts'
import { forEach, sql, statement } from '../sql.ts'

export interface NoticeRow {
  readonly run: string
  readonly kind: NoticeKind
  readonly occurrence: string
  readonly at: number
  readonly sentence: string
  readonly data: string | null
}
const NOTICE = 'n.run, n.kind, n.occurrence, n.at, n.sentence, n.data'

export type NoticeKey = Pick<Notice, 'run' | 'kind' | 'occurrence'>

// asked before the notice is stored, so that one which was told of before is not told of anew
const order = sql<{ id: string }>(
  'deliveries.order',
  `insert into deliveries (id, run, kind, occurrence, sink, seq, due_at, created_at)
   select b.id || '_' || s.name, b.run, b.kind, b.occurrence, s.name,
          b.n + coalesce((select max(d.seq) from deliveries d where d.run = b.run and d.sink = s.name), 0), {now}, {now}
     from {rows $1 as b: id text, n int, run text, kind text, occurrence text} join sinks s on s.kind = b.kind
    where not exists (select 1 from notices n where n.run = b.run and n.kind = b.kind and n.occurrence = b.occurrence)
   on conflict do nothing returning id`,
)
const insert = sql<NoticeKey>(
  'notices.insert',
  `insert into notices (run, kind, occurrence, at, sentence, data)
   select b.run, b.kind, b.occurrence, {now}, b.sentence, b.data
     from {rows $1 as b: run text, kind text, occurrence text, sentence text, data text} where true
   on conflict do nothing returning run, kind, occurrence`,
)
/**
 * Stores notices, and what is to be delivered of them, with their cause. The last one is a compare-and-set: of two that store
 * the same notice one gets its row back.
 */
export const tell = (
  notices: readonly Notice[],
): [Statement<{ id: string }>, Statement<NoticeKey>] => [
  forEach(
    order,
    notices.map((notice, i) => ({
      id: noticeId(notice),
      n: i + 1,
      run: notice.run,
      kind: notice.kind,
      occurrence: notice.occurrence,
    })),
  ),
  forEach(
    insert,
    notices.map(({ run, kind, occurrence, sentence, data }) => ({
      run,
      kind,
      occurrence,
      sentence,
      data: JSON.stringify(data),
    })),
  ),
]

/** Those of these notices that were stored now, by what `tell` answered. */
export const toldNow = (notices: readonly Notice[], stored: readonly NoticeKey[]): Notice[] => {
  const ids = new Set(stored.map(noticeId))
  return notices.filter((notice) => ids.has(noticeId(notice)))
}

const newest = sql<NoticeRow>(
  'notices.newest',
  `select ${NOTICE} from notices n where (n.at, n.kind, n.run, n.occurrence) < ($1, $2, $3, $4)
    order by n.at desc, n.kind desc, n.run desc, n.occurrence desc limit $5`,
)
/** Notices before a place, newest first. */
export const noticesBefore = (
  before: {
    readonly at: number
    readonly run: string
    readonly kind: string
    readonly occurrence: string
  },
  most: number,
): Statement<NoticeRow> =>
  statement(newest, before.at, before.kind, before.run, before.occurrence, most)

const ofRun = sql<NoticeRow>(
  'notices.of_run',
  `select ${NOTICE} from notices n where n.run = $1 order by n.at, n.kind, n.occurrence limit $2`,
)
/** The first so many of a run. */
export const noticesOf = (run: string, most: number): Statement<NoticeRow> =>
  statement(ofRun, run, most)

export interface ToldRow extends NoticeRow {
  readonly workflow: string | null
  readonly owner: string | null
  readonly key: string | null
}
const byKeys = sql<ToldRow>(
  'notices.by_keys',
  `select ${NOTICE}, r.workflow, r.owner, r.key from {rows $1 as b: run text, kind text, occurrence text}
     join notices n on n.run = b.run and n.kind = b.kind and n.occurrence = b.occurrence
     left join runs r on r.id = n.run`,
)
/** These notices, with what is known of their runs. */
export const noticesByKeys = (keys: readonly NoticeKey[]): Statement<ToldRow> =>
  forEach(
    byKeys,
    keys.map(({ run, kind, occurrence }) => ({ run, kind, occurrence })),
  )

const forget = sql<{ run: string }>(
  'notices.forget',
  `with pick as materialized (
     select n.run, n.kind, n.occurrence from notices n where n.at < {now} - $1 and (select 1 from runs r where r.id = n.run) is null
        and (select 1 from orders o where o.id = n.run) is null {lock n skip})
   delete from notices where (run, kind, occurrence) in (select p.run, p.kind, p.occurrence from pick p) returning run`,
)
/** Forgets those of runs that are gone, and of orders that never became one and are not set aside. */
export const forgetNotices = (olderMs: number): Statement<{ run: string }> =>
  statement(forget, olderMs)

const remove = sql<{ run: string }>(
  'notices.remove',
  'delete from notices where run = $1 and kind = $2 returning run',
)
/** Removes the notices of a kind whose cause is gone. */
export const removeNotices = (run: string, kind: NoticeKind): Statement<{ run: string }> =>
  statement(remove, run, kind)
