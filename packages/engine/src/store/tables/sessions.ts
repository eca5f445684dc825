// Sessions: registered lives of executors, with their leases, and how they end.
import { readOr, stored, storedTexts } from '../../kernel/stored.ts'
import type { Serves } from '../../model/lane.ts'
import type { SessionState } from '../../model/session.ts'
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

export interface SessionRow {
  readonly id: string
  readonly embedded: number
  readonly process: string
  readonly host: string
  readonly pid: number
  readonly build: string
  readonly queues: string
  readonly labels: string
  readonly workflows: string
  readonly capacity: number
  readonly lease_ms: number
  readonly created_at: number
  readonly renewed_at: number
  readonly lease_until: number | null
  readonly claim_no: number
  readonly connection: number
  readonly state: SessionState
  readonly status: string | null
  readonly ended_at: number | null
  readonly end_reason: string | null
  readonly evidence: string | null
}
const SESSION =
  's.id, s.embedded, s.process, s.host, s.pid, s.build, s.queues, s.labels, s.workflows, s.capacity, s.lease_ms, s.created_at, s.renewed_at, s.lease_until, ' +
  's.claim_no, s.connection, s.state, s.status, s.ended_at, s.end_reason, s.evidence'

const NOTHING: Serves = { queues: [], labels: [], workflows: [] }

/** A session whose row cannot be read serves nothing, until it registers anew. */
export const servesOf = (
  session: Pick<SessionRow, 'id' | 'queues' | 'labels' | 'workflows'>,
): Serves =>
  readOr(
    () => ({
      queues: storedTexts(session.queues, `the queues of ${session.id}`),
      labels: storedTexts(session.labels, `the labels of ${session.id}`),
      workflows: stored(session.workflows, `the workflows of ${session.id}`) as Serves['workflows'],
    }),
    () => NOTHING,
  )

const insert = sql<SessionRow>(
  'sessions.insert',
  `insert into sessions (id, embedded, process, host, pid, build, queues, labels, workflows, capacity, lease_ms, created_at, renewed_at, lease_until)
   select b.id, b.embedded, b.process, b.host, b.pid, b.build, b.queues, b.labels, b.workflows, b.capacity, b.lease_ms, {now}, {now},
          case when b.embedded = 1 then null else {now} + b.lease_ms end
     from {rows $1 as b: id text, embedded int, process text, host text, pid int, build text, queues text, labels text, workflows text, capacity int, lease_ms bigint} where true
   on conflict do nothing returning ${SESSION.replaceAll('s.', '')}`,
)
export type NewSession = Pick<
  SessionRow,
  | 'id'
  | 'embedded'
  | 'process'
  | 'host'
  | 'pid'
  | 'build'
  | 'queues'
  | 'labels'
  | 'workflows'
  | 'capacity'
  | 'lease_ms'
>
export const insertSession = (session: NewSession): Statement<SessionRow> =>
  statement(insert, rows([session]))

const byId = sql<SessionRow>('sessions.by_id', `select ${SESSION} from sessions s where s.id = $1`)
export const sessionById = (id: string): Statement<SessionRow> => statement(byId, id)

const all = sql<SessionRow & { held: number }>(
  'sessions.all',
  `select ${SESSION}, (select count(*) from runs r where r.session = s.id) as held from sessions s where s.ended_at is null or s.ended_at > {now} - $1 order by s.id desc limit 1000`,
)
/** Sessions that live, and those that ended within so many milliseconds, each with the number of runs that it holds. */
export const sessions = (endedWithinMs: number): Statement<SessionRow & { held: number }> =>
  statement(all, endedWithinMs)

const held = sql<{ queue: string; n: number }>(
  'sessions.held_of_queues',
  'select r.queue, count(*) as n from runs r where r.session is not null group by r.queue',
)
/** How many runs of each queue are held. */
export const heldOfQueues = (): Statement<{ queue: string; n: number }> => statement(held)

const live = sql<SessionRow>(
  'sessions.live',
  `select ${SESSION} from sessions s where s.state = 'live' order by s.id`,
)
export const liveSessions = (): Statement<SessionRow> => statement(live)

const number = sql<{ claim_no: number }>(
  'sessions.claim',
  `update sessions set claim_no = $2 where id = $1 and state = 'live' and claim_no < $2 returning claim_no`,
)
/** Writes the number of a claim on its session's row, which locks it and requires it live. */
export const numberClaim = (id: string, claim: number): Statement<{ claim_no: number }> =>
  statement(number, id, claim)

const connect = sql<SessionRow>(
  'sessions.connect',
  `update sessions set connection = $2 where id = $1 and process = $3 and ended_at is null and (connection < $2 or ($2 = 1 and connection = 1)) returning ${SESSION.replaceAll('s.', '')}`,
)
/** Makes a connection the newest of its session, unless a newer one has been. The first is that which registered it. */
export const connectSession = (
  id: string,
  connection: number,
  process: string,
): Statement<SessionRow> => statement(connect, id, connection, process)

export type ConnectionRow = Pick<
  SessionRow,
  'id' | 'claim_no' | 'connection' | 'ended_at' | 'end_reason' | 'evidence'
>
const connections = sql<ConnectionRow>(
  'sessions.connections',
  `select s.id, s.claim_no, s.connection, s.ended_at, s.end_reason, s.evidence from {rows $1 as b: session text} join sessions s on s.id = b.session`,
)
/** The newest connection and claim of each of these sessions, and whether it has ended. */
export const connectionsOf = (ids: readonly string[]): Statement<ConnectionRow> =>
  statement(connections, rows([...new Set(ids)].map((session) => ({ session }))))

const lock = sql<{ id: string; state: SessionState }>(
  'sessions.lock',
  `select s.id, s.state from {rows $1 as b: session text} join sessions s on s.id = b.session order by s.id {lock s}`,
)
/** These sessions, locked in the order of their ids. */
export const lockSessions = (
  ids: readonly string[],
): Statement<{ id: string; state: SessionState }> =>
  statement(lock, rows([...new Set(ids)].sort().map((session) => ({ session }))))

const renew = sql<SessionRow>(
  'sessions.renew',
  `update sessions set renewed_at = {now}, lease_until = case when embedded = 1 or state = 'retired' then lease_until else {now} + lease_ms end,
          status = coalesce($2, status), state = case when state = 'live' and $3 = 1 then 'draining' else state end
    where id = $1 and ended_at is null returning ${SESSION.replaceAll('s.', '')}`,
)
export const renewSession = (
  id: string,
  status: string | null,
  draining: boolean,
): Statement<SessionRow> => statement(renew, id, status, draining ? 1 : 0)

const end = sql<{ id: string }>(
  'sessions.end',
  `update sessions set state = 'ended', ended_at = {now}, end_reason = $2, evidence = $3 where id = $1 and ended_at is null returning id`,
)
export const endSession = (
  id: string,
  reason: string,
  evidence: string,
): Statement<{ id: string }> => statement(end, id, reason, evidence)

export interface LapsedRow {
  readonly id: string
  readonly lease_until: number
  readonly renewed_at: number
}
const endLapsed = sql<LapsedRow>(
  'sessions.end_lapsed',
  // one whose row somebody has locked keeps no other from being ended
  `with pick as materialized (
     select s.id from sessions s where s.ended_at is null and s.lease_until is not null and s.lease_until < {now} and s.lease_until < $1 and s.lease_ms <= $2 and {now} between $1 and $3
      order by s.id {lock s skip})
   update sessions set state = 'ended', ended_at = {now}, end_reason = 'lease_lapsed', evidence = 'the lease lapsed'
     from pick where sessions.id = pick.id returning sessions.id, sessions.lease_until, sessions.renewed_at`,
)
/**
 * Ends every session whose lease, of so many milliseconds at most, has lapsed by the store’s clock and had at this instant;
 * none where that clock says less than that, or more than `latest`.
 */
export const endLapsedSessions = (
  at: number,
  leaseMs = 1e15,
  latest = 1e15,
): Statement<LapsedRow> => statement(endLapsed, at, Math.floor(leaseMs), Math.ceil(latest))

const putEvidence = sql<{ id: string }>(
  'sessions.evidence',
  `update sessions set evidence = b.evidence from {rows $1 as b: id text, evidence text} where sessions.id = b.id returning sessions.id`,
)
/** What is known of the end of these sessions, in words. */
export const writeEvidence = (
  items: readonly { id: string; evidence: string }[],
): Statement<{ id: string }> => statement(putEvidence, rows(items))

const endEmbedded = sql<{ id: string }>(
  'sessions.end_embedded',
  `update sessions set state = 'ended', ended_at = {now}, end_reason = 'owner_ended', evidence = $2 where embedded = 1 and state <> 'retired' and ended_at is null and process <> $1 returning id`,
)
/** Ends the sessions that lived inside an earlier owner of the file: its lock was free. A retired one lives on past its owner. */
export const endEmbeddedSessions = (process: string, evidence: string): Statement<{ id: string }> =>
  statement(endEmbedded, process, evidence)

const endAll = sql<{ id: string }>(
  'sessions.end_all',
  `update sessions set state = 'ended', ended_at = {now}, end_reason = 'restored', evidence = $1 where ended_at is null returning id`,
)
/** Ends every session: the store was restored, and who held what then may hold something else now. */
export const endAllSessions = (evidence: string): Statement<{ id: string }> =>
  statement(endAll, evidence)

const recount = sql<{ id: string }>(
  'sessions.recount',
  // one whose row somebody has locked counts on as it did: its session is given the grace of a jump all the same
  `with pick as materialized (
     select s.id from sessions s where s.ended_at is null and s.lease_until is not null and s.state <> 'retired' order by s.id {lock s skip})
   update sessions set lease_until = {now} + lease_ms from pick where sessions.id = pick.id returning sessions.id`,
)
/** Counts every remote lease anew: from the start of a new owner of the file, or after a jump of the clock. */
export const recountLeases = (): Statement<{ id: string }> => statement(recount)

const retire = sql<{ id: string }>(
  'sessions.retire',
  `update sessions set state = 'retired', lease_until = {now} + lease_ms where id = $1 and ended_at is null returning id`,
)
export const retireSession = (id: string): Statement<{ id: string }> => statement(retire, id)

const forget = sql<{ id: string }>(
  'sessions.forget',
  `with pick as materialized (
     select s.id from sessions s where s.ended_at < {now} - $1 and not exists (select 1 from runs r where r.session = s.id) {lock s skip})
   delete from sessions where id in (select p.id from pick p) returning id`,
)
export const forgetSessions = (endedBeforeMs: number): Statement<{ id: string }> =>
  statement(forget, endedBeforeMs)
