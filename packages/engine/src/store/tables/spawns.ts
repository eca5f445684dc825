// Spawns: executors that were started because a queue waited, each with why and what became of it.
import type { SpawnState } from '../../model/spawn.ts'
import type { Statement } from '../sql.ts'
import { forEach, sql, statement } from '../sql.ts'

export interface SpawnRow {
  readonly session: string
  readonly queue: string
  readonly n: number
  readonly spawner: string
  readonly kind: string
  readonly reason: string
  readonly state: SpawnState
  readonly asked_at: number
  readonly start_by: number
  readonly settled_at: number | null
  readonly evidence: string | null
}
const SPAWN =
  'p.session, p.queue, p.n, p.spawner, p.kind, p.reason, p.state, p.asked_at, p.start_by, p.settled_at, p.evidence'

const openOf = sql<{ open: number; starting: number }>(
  'spawns.open_of',
  `select count(*) as open, count(*) - count(s.id) as starting from spawns p left join sessions s on s.id = p.session
    where p.queue = $1 and p.state = 'open'`,
)
/** How many of a queue are open, and how many of them have not registered. */
export const openSpawns = (queue: string): Statement<{ open: number; starting: number }> =>
  statement(openOf, queue)

const lastOf = sql<Pick<SpawnRow, 'n' | 'state' | 'asked_at' | 'settled_at'>>(
  'spawns.last_of',
  'select p.n, p.state, p.asked_at, p.settled_at from spawns p where p.queue = $1 order by p.n desc limit $2',
)
/** The newest of a queue. */
export const lastSpawns = (
  queue: string,
  most: number,
): Statement<Pick<SpawnRow, 'n' | 'state' | 'asked_at' | 'settled_at'>> =>
  statement(lastOf, queue, most)

const insert = sql<{ session: string }>(
  'spawns.insert',
  `insert into spawns (session, queue, n, spawner, kind, reason, asked_at, start_by)
   select $1, $2, $3, $4, $5, $6, {now}, {now} + $7 where true on conflict do nothing returning session`,
)
/** A compare-and-set by the number: of two that would start the same one, one gets its row back. */
export const insertSpawn = (
  row: Pick<SpawnRow, 'session' | 'queue' | 'n' | 'spawner' | 'kind' | 'reason'>,
  startByMs: number,
): Statement<{ session: string }> =>
  statement(insert, row.session, row.queue, row.n, row.spawner, row.kind, row.reason, startByMs)

const byId = sql<SpawnRow & { registered: number }>(
  'spawns.by_id',
  `select ${SPAWN}, (select count(*) from sessions s where s.id = p.session) as registered from spawns p where p.session = $1`,
)
export const spawnById = (session: string): Statement<SpawnRow & { registered: number }> =>
  statement(byId, session)

const settle = sql<{ session: string }>(
  'spawns.settle',
  `update spawns set state = b.state, settled_at = {now}, evidence = b.evidence
     from {rows $1 as b: session text, state text, evidence text} where spawns.session = b.session and spawns.state = 'open' returning spawns.session`,
)
/** Settles those that are open: each once. */
export const settleSpawns = (
  items: readonly {
    readonly session: string
    readonly state: 'ended' | 'failed'
    readonly evidence: string
  }[],
): Statement<{ session: string }> => forEach(settle, items)

export interface UnsettledRow {
  readonly session: string
  readonly registered: number
  readonly start_by: number
  readonly evidence: string | null
}
const unsettled = sql<UnsettledRow>(
  'spawns.unsettled',
  `select p.session, case when s.id is null then 0 else 1 end as registered, p.start_by, s.evidence
     from spawns p left join sessions s on s.id = p.session
    where p.state = 'open' and (s.ended_at is not null or (s.id is null and p.start_by + $1 <= {now})) order by p.session limit $2`,
)
/** Open ones whose session has ended, or has not come for so long after its time. */
export const unsettledSpawns = (graceMs: number, most: number): Statement<UnsettledRow> =>
  statement(unsettled, graceMs, most)

const seen = sql<{ session: string; ended: number | null }>(
  'spawns.seen',
  'select s.id as session, case when s.ended_at is null then 0 else 1 end as ended from {rows $1 as b: session text} join sessions s on s.id = b.session',
)
/** Those of these sessions that have registered, and whether they have ended. */
export const sessionsSeen = (
  ids: readonly string[],
): Statement<{ session: string; ended: number | null }> =>
  forEach(
    seen,
    ids.map((session) => ({ session })),
  )

const newest = sql<SpawnRow>(
  'spawns.newest',
  `select ${SPAWN} from spawns p where (p.asked_at, p.session) < ($1, $2) order by p.asked_at desc, p.session desc limit $3`,
)
/** Those before a place, newest first. */
export const spawnsBefore = (
  before: { readonly at: number; readonly id: string },
  most: number,
): Statement<SpawnRow> => statement(newest, before.at, before.id, most)

const forget = sql<{ session: string }>(
  'spawns.forget',
  `with pick as materialized (
     select p.session from spawns p where p.state <> 'open' and p.asked_at < {now} - $1
        and exists (select 1 from spawns q where q.queue = p.queue and q.n > p.n) order by p.asked_at limit $2 {lock p skip})
   delete from spawns where session in (select p.session from pick p) returning session`,
)
/** Removes so many that were settled and are older than the age; the newest of a queue stays, as its numbers go on from there. */
export const forgetSpawns = (olderMs: number, most: number): Statement<{ session: string }> =>
  statement(forget, olderMs, most)
