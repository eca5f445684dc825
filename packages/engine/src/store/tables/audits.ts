// The invariants as SQL: each statement answers the ids of what breaks one. They look at all active runs and at the newest
// ended ones; those that history can break are asked of all runs too, a page at a time. What heals by itself counts only
// when it is older than the time that healing takes.
import type { Sql, Statement } from '../sql.ts'
import { sql, statement } from '../sql.ts'
import { unitsIn } from './limits.ts'

/** How many are counted of each, and how many of the newest runs are looked at beside the active ones. */
export const FOUND_MAX = 1_001
const RECENT = 2_000

const SOME = `(select r.id from runs r where r.ended_at is null
   union select x.id from (select r.id from runs r order by r.id desc limit ${RECENT}) x)`

/** Instead, where all runs are gone through: a page of them, by id. */
const PAGE = `(select r.id from runs r where r.id > $1 order by r.id limit $2)`

/**
 * A transaction reads the clock as it begins, and may then wait for its rows: another that began later can be done with them
 * before it. So instants of one run can be in the wrong order by as long as a transaction may last, which its revs never are.
 */
const MEANWHILE_MS = 60_000

interface Audit {
  readonly name: string
  readonly what: string
  readonly text: Sql<{ id: string }>
  /** Of a page of runs; null where the statement above looks at all that can break it. */
  readonly paged: Sql<{ id: string }> | null
  /** The statement takes the grace, in milliseconds, as its parameter. */
  readonly graced: boolean
}

const audit = (name: string, what: string, text: string): Audit => ({
  name,
  what,
  text: sql(
    `audit.${name}`,
    `select distinct y.id from (${text}) y order by y.id limit ${FOUND_MAX}`,
  ),
  paged: text.includes(SOME)
    ? sql(
        `audit.${name}.page`,
        `select distinct y.id from (${text.replaceAll(SOME, PAGE)}) y order by y.id limit ${FOUND_MAX}`,
      )
    : null,
  graced: text.includes('$1'),
})

const LIMIT_COLUMNS = ['limit_owner', 'limit_global', 'limit_a', 'limit_b'] as const
const holdersOf = (column: (typeof LIMIT_COLUMNS)[number]): string =>
  `select ${unitsIn(column)} as units, r.created_at from runs r where r.${column} = l.key and r.slot_state > 0 and (r.slot_state = 3 or r.slot_state = case when l.mode = 'whole_run' then 1 else 2 end)`

const audits: readonly Audit[] = [
  audit(
    'S1',
    'a held run has one holder, whose session has not been ended and whose attempt is the newest',
    `select r.id from runs r left join sessions s on s.id = r.session
      where r.session is not null and (s.id is null or s.ended_at < {now} - $1)
     union all select r.id from runs r join attempts a on a.run = r.id
      where r.session is not null and a.attempt >= r.attempt`,
  ),
  audit(
    'S2',
    'no entry was written by an attempt that the run has not had',
    `select r.id from ${SOME} b join runs r on r.id = b.id join steps s on s.run = r.id
      where s.rev > 1 and (s.attempt > r.attempt or s.rev > r.rev)`,
  ),
  audit(
    'S3',
    'an end is final: nothing of a run is newer than its end, and a success has one completed attempt',
    `select r.id from ${SOME} b join runs r on r.id = b.id join attempts a on a.run = r.id
      where r.ended_at is not null and (a.rev > r.rev or a.ended_at > r.ended_at + ${MEANWHILE_MS})
     union all select r.id from ${SOME} b join runs r on r.id = b.id
      where r.status = 'succeeded' and (select count(*) from attempts a where a.run = r.id and a."end" = 'completed') <> 1
     union all select r.id from ${SOME} b join runs r on r.id = b.id join attempts a on a.run = r.id
      where r.status <> 'succeeded' and a."end" = 'completed'`,
  ),
  audit(
    'S4',
    'attempts are numbered 1 to n without a gap, and no more failures are charged than there were attempts',
    `select r.id from ${SOME} b join runs r on r.id = b.id
      where (select count(*) from attempts a where a.run = r.id and a.attempt <= r.attempt) <> r.attempt - case when r.session is null then 0 else 1 end
         or exists (select 1 from attempts a where a.run = r.id and a.attempt > r.attempt)
         or r.failures > r.attempt`,
  ),
  audit(
    'S5',
    'no limit has more holders than its value lets in',
    `select l.key as id from limits l
      where coalesce(l.operator_value, l.code_value) is not null
        and (${LIMIT_COLUMNS.map((column) => `(select coalesce(sum(x.units), 0) from (${holdersOf(column)}) x)`).join(' + ')}) > coalesce(l.operator_value, l.code_value)
        and (${LIMIT_COLUMNS.map((column) => `exists (select 1 from (${holdersOf(column)}) x where x.created_at >= l.updated_at)`).join(' or ')})`,
  ),
  audit(
    'S6',
    'no halves: a run’s journal has all its entries, its lane is known, its parent is there',
    `select r.id from ${SOME} b join runs r on r.id = b.id
      where r.entries <> (select count(*) from steps s where s.run = r.id)
         or r.entries <> (select coalesce(max(s.n), 0) from steps s where s.run = r.id)
     union all select r.id from runs r where r.ended_at is null and not exists (select 1 from lanes l where l.lane = r.lane)
     union all select r.id from runs r where r.ended_at is null and r.parent is not null and not exists (select 1 from runs p where p.id = r.parent)`,
  ),
  audit(
    'S8',
    'a parent’s record of a child is the child’s end, and no child outlives a parent that it is bound to',
    `select w.run as id from runs r join waits w on w.run = r.id join runs c on c.id = w.name
      where r.ended_at is null and w.kind = 'child' and w.state = 'open' and c.ended_at < {now} - $1
     union all select w.run as id from runs r join waits w on w.run = r.id join runs c on c.id = w.name
      where r.ended_at is null and w.kind = 'child' and w.state = 'satisfied' and c.ended_at is null and not exists (select 1 from runs s where s.series = c.series and s.series <> s.id and s.ended_at is not null)
     union all select c.id from runs c join runs p on p.id = c.parent
      where c.ended_at is null and c.on_parent_end = 'cancel' and c.status <> 'canceling' and p.ended_at < {now} - $1
        and not exists (select 1 from runs s where s.series = p.series and s.ended_at is null)`,
  ),
  audit(
    'S10',
    'each approval was decided before its deadline, and none is open for a run that has ended',
    `select p.id from approvals p where p.state in ('approved', 'denied') and p.decided_at >= p.deadline
     union all select p.id from approvals p join runs r on r.id = p.run where p.state = 'open' and r.ended_at is not null
     union all select p.id from approvals p join waits w on w.run = p.run and w.key = p.key where p.state = 'open' and w.state <> 'open'`,
  ),
  audit(
    'S12',
    'no timer fired before it was due, and none beside the signal that it was to wait for',
    `select w.run as id from ${SOME} b join waits w on w.run = b.id
      where w.kind in ('time', 'retry') and w.state in ('lapsed', 'taken') and w.settled_at < w.due_at
     union all select w.run as id from ${SOME} b join waits w on w.run = b.id join signals g on g.run = w.run and g.taken_by = w.key
      where w.kind = 'signal' and w.state = 'lapsed'`,
  ),
  audit(
    'S14',
    'no session was ended for its lease before the lease had lapsed',
    `select s.id from sessions s where s.end_reason = 'lease_lapsed' and s.ended_at < s.lease_until`,
  ),
  audit(
    'S22',
    'one run for each owner, workflow and key',
    `select r.id from runs r join runs o on o.owner = r.owner and o.workflow = r.workflow and o.key = r.key and o.key is not null
      where r.ended_at is null and r.key is not null and o.id <> r.id`,
  ),
  audit(
    'L11',
    'every active run has a named, live reason',
    `select r.id from runs r where r.ended_at is null and r.status = 'waiting' and r.ready_at < {now} - $1
     union all select r.id from runs r where r.ended_at is null and r.status = 'waiting' and r.wait_on = 'time' and r.ready_at is null
     union all select r.id from runs r where r.ended_at is null and r.status = 'waiting' and r.wait_on in ('signal', 'approval', 'child')
       and not exists (select 1 from waits w where w.run = r.id and w.kind = r.wait_on and w.state in ('open', 'satisfied', 'lapsed'))
     union all select r.id from runs r join waits w on w.run = r.id
      where r.ended_at is null and r.status = 'waiting' and w.kind = 'approval' and w.state = 'open' and not exists (select 1 from approvals p where p.id = w.name and p.state = 'open')
     union all select r.id from runs r join waits w on w.run = r.id
      where r.ended_at is null and r.status = 'waiting' and w.kind = 'child' and w.state = 'open' and not exists (select 1 from runs c where c.id = w.name)
     union all select r.id from runs r where r.ended_at is null and r.status = 'waiting' and r.wait_on = 'slot' and r.ready_at is null
       and coalesce(r.reason, '') <> 'no_executor' and r.limit_owner is null and r.limit_global is null and r.limit_a is null and r.limit_b is null
     union all select r.id from runs r where r.ended_at is null and r.status = 'paused' and r.pause_requested_at is null`,
  ),
]

/** Each invariant with the statement that answers what breaks it. */
export const auditStatements = (
  graceMs: number,
): { name: string; what: string; broken: Statement<{ id: string }> }[] =>
  audits.map(({ name, what, text, graced }) => ({
    name,
    what,
    broken: graced ? statement(text, graceMs) : statement(text),
  }))

const pageEnd = sql<{ n: number; last: string | null }>(
  'audit.page',
  `select count(*) as n, max(x.id) as last from ${PAGE} x`,
)
/** How many runs a page after this id has, and where it ends. */
export const auditPageEnd = (
  after: string,
  page: number,
): Statement<{ n: number; last: string | null }> => statement(pageEnd, after, page)

/** The invariants that any run of history can break, asked of a page of runs. */
export const auditPage = (
  after: string,
  page: number,
): { name: string; what: string; broken: Statement<{ id: string }> }[] =>
  audits.flatMap(({ name, what, paged }) =>
    paged === null ? [] : [{ name, what, broken: statement(paged, after, page) }],
  )
