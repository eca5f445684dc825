// Notices, newest first, a page at a time.
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { NoticeRow } from '../store/tables/notices.ts'
import { noticesBefore } from '../store/tables/notices.ts'
import { noticeId } from '../model/notice.ts'
import { value } from './run-view.ts'

export const noticeView = (row: NoticeRow) => ({
  run: row.run,
  kind: row.kind,
  occurrence: row.occurrence,
  id: noticeId(row),
  at: row.at,
  sentence: row.sentence,
  data: value(row, 'data'),
})

export function* notices(
  _tx: Tx,
  cursor: string | null,
  limit: number,
): Steps<{ notices: ReturnType<typeof noticeView>[]; next: string | null }> {
  const [, at = '1e15', kind = '', run = '', occurrence = ''] =
    /^(\d+):(\w+):([^\n]*)\n?(.*)$/su.exec(cursor ?? '') ?? []
  const [rows] = yield* ask(noticesBefore({ at: Number(at), kind, run, occurrence }, limit + 1))
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    notices: page.map(noticeView),
    next:
      rows.length > limit && last
        ? `${last.at}:${last.kind}:${last.run}\n${last.occurrence}`
        : null,
  }
}
