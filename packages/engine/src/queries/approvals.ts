// The inbox: approvals that wait for a decision, the oldest first.
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { openApprovals } from '../store/tables/views.ts'
import { approvalView } from './run-view.ts'

export interface InboxQuery {
  /** Empty: of all runs, for all deciders. */
  readonly run: string
  readonly decider: string
  readonly olderThanMs: number
  readonly cursor: string | null
  readonly limit: number
}

export function* approvalInbox(
  _tx: Tx,
  query: InboxQuery,
): Steps<{ approvals: readonly ReturnType<typeof approvalView>[]; next: string | null }> {
  const [, at = '-1', id = ''] = /^(\d+):(.*)$/su.exec(query.cursor ?? '') ?? []
  const [rows] = yield* ask(
    openApprovals(
      { at: Number(at), id },
      query.olderThanMs,
      query.run,
      query.decider,
      query.limit + 1,
    ),
  )
  const page = rows.slice(0, query.limit)
  const last = page.at(-1)
  return {
    approvals: page.map(approvalView),
    next: rows.length > query.limit && last ? `${last.created_at}:${last.id}` : null,
  }
}
