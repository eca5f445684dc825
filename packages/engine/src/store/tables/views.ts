// What people look at of a run, its family and what it waits for, and the inbox of approvals. Reads only.
import type { RunStatus } from '../../model/run.ts'
import type { RunRow } from '../move/run-row.ts'
import { runColumns } from '../move/run-row.ts'
import { hasItem, item, SEPARATOR } from '../has-item.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'
import type { ApprovalRow } from './waits.ts'
import { approvalColumns } from './waits.ts'

export type ViewRow = RunRow & { readonly progress: string | null }
export const VIEW = `${runColumns}, r.progress`

const byId = sql<ViewRow>(
  'views.by_id',
  `select ${VIEW} from {rows $1 as b: run text} join runs r on r.id = b.run order by r.id`,
)
export const viewsOf = (ids: readonly string[]): Statement<ViewRow> =>
  statement(byId, rows(ids.map((run) => ({ run }))))

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
