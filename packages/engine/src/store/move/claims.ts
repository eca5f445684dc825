// Who gets which runs: claims from lanes and of named runs, what would be claimed, and a hold that goes from one session to
// another. The rules stand in the statements, so that looking and taking are one.
import { STRIDES } from '../../model/stream.ts'
import type { Statement, Values } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

/** What a claim gives its session for each run. */
export interface ClaimRow {
  readonly id: string
  readonly workflow: string
  readonly version: string
  readonly attempt: number
  readonly leased_at: number
  readonly entries: number
  readonly waits: number
  readonly rank: number
  readonly tag: number
  readonly input: string | null
  /** What `ctx.now()` gives before the first entry. */
  readonly first_at: number
  readonly deadline: number | null
  readonly attempt_deadline: number | null
  readonly failures: number
  readonly owner: string
  readonly rev: number
  /** What its chance is drawn by. */
  readonly seed: string
  /** The highest number of what it has appended to its streams; null in attempts that number by themselves. */
  readonly items: number | null
}

const CLAIMED = `runs.id, runs.workflow, runs.version, runs.attempt, runs.leased_at, runs.entries, runs.waits, runs.rank, runs.tag, runs.input, coalesce(runs.replay_at, runs.created_at) as first_at,
      runs.deadline, runs.attempt_deadline, runs.failures, runs.owner, runs.rev, coalesce(runs.replay_seed, runs.id) as seed,
      case when runs.attempt > ${STRIDES} then (select coalesce(max(t.seq), 0) from streams t where t.run = runs.id) end as items`
/** A row of `CLAIMED`. */
const claimRowOf = (v: Values): ClaimRow => ({
  id: v[0] as string,
  workflow: v[1] as string,
  version: v[2] as string,
  attempt: v[3] as number,
  leased_at: v[4] as number,
  entries: v[5] as number,
  waits: v[6] as number,
  rank: v[7] as number,
  tag: v[8] as number,
  input: v[9] as string | null,
  first_at: v[10] as number,
  deadline: v[11] as number | null,
  attempt_deadline: v[12] as number | null,
  failures: v[13] as number,
  owner: v[14] as string,
  rev: v[15] as number,
  seed: v[16] as string,
  items: v[17] as number | null,
})
const TAKE = `status = 'running', attempt = runs.attempt + 1, session = $1, claim = $2, leased_at = {now}, rev = runs.rev + 1,
      reason = null, note = null, attempt_deadline = {now} + runs.attempt_limit_ms`
/** How long a suspect run may be due before sessions empty themselves for it. */
const SUSPECT_DUE_MS = 60_000

/** The lane is not paused. */
const notPaused = (
  lane: string,
): string => `not exists (select 1 from pauses p join lanes l on l.lane = ${lane}
          where (p.until is null or p.until > {now}) and ((p.kind = 'queue' and p.name = l.queue) or (p.kind = 'workflow' and p.name = l.workflow)))`
/** The session is live and this claim is its newest. */
const NEWEST = `exists (select 1 from sessions s where s.id = $1 and s.claim_no = $2 and s.state = 'live')`
/** As it will be when the claim is made. */
const NEXT = `exists (select 1 from sessions s where s.id = $1 and s.claim_no < $2 and s.state = 'live')`
const MAY = `${NEWEST}
      and ${notPaused('$3')}`

// a status that a planner cannot read leads it to the few suspects instead of through all that is queued
const ofLane = (
  may: string,
): string => `r.lane = $3 and r.status = 'queued' and (r.rank, r.id) >= ($4, $5) and r.suspect_since is null and ${may}
        and not exists (select 1 from runs h where h.session = $1 and h.suspect_since is not null)
        and not exists (select 1 from runs w where w.suspect_since < {now} - $7 and coalesce(w.status, '') = 'queued' and w.lane in (select x.lane from {rows $9 as x: lane text}))
        and r.id not in (select x.run from {rows $8 as x: run text})
      order by r.lane, r.rank, r.id`

const claimLane = sql<ClaimRow>(
  'runs.claim',
  `with pick as materialized (
     select r.id from runs r
      where ${ofLane(MAY)}
      limit (select case when c.n < $6 then $6 - c.n else 0 end from (select count(*) as n from runs h where h.session = $1 and h.claim = $2) c) {lock r skip})
   update runs set ${TAKE} from pick where runs.id = pick.id returning ${CLAIMED}`,
  claimRowOf,
)

/** A run that was lost twice in a row goes only to a session that holds nothing else, alone (RUN-12). */
const suspectOfLane = (
  may: string,
): string => `r.lane = $3 and r.suspect_since is not null and coalesce(r.status, '') = 'queued' and ${may}
        and not exists (select 1 from runs h where h.session = $1)
        and r.id not in (select x.run from {rows $4 as x: run text})
      order by r.suspect_since limit 1`

const claimSuspect = sql<ClaimRow>(
  'runs.claim_suspect',
  `with pick as materialized (
     select r.id from runs r
      where ${suspectOfLane(MAY)} {lock r skip})
   update runs set ${TAKE} from pick where runs.id = pick.id returning ${CLAIMED}`,
  claimRowOf,
)

/** What a claim would be given, to be offered. */
export interface OfferRow {
  readonly id: string
  readonly lane: string
  readonly rank: number
  readonly tag: number
}
const offerLane = sql<OfferRow>(
  'runs.offer',
  `select r.id, r.lane, r.rank, r.tag from runs r where ${ofLane(`${NEXT} and ${notPaused('$3')}`)} limit $6`,
)
const offerSuspect = sql<OfferRow>(
  'runs.offer_suspect',
  `select r.id, r.lane, r.rank, r.tag from runs r where ${suspectOfLane(`${NEXT} and ${notPaused('$3')}`)}`,
)

/** Exactly these, by the rules of a claim from lanes: a suspect one alone, and only to a session that holds nothing. */
const claimNamed = sql<ClaimRow>(
  'runs.claim_named',
  `with pick as materialized (
     select r.id from {rows $3 as x: run text} join runs r on r.id = x.run
      where coalesce(r.status, '') = 'queued' and r.lane in (select o.lane from {rows $4 as o: lane text})
        and ${NEWEST}
        and ${notPaused('r.lane')}
        and (r.suspect_since is null or $5 = 1)
        and not exists (select 1 from runs h where h.session = $1 and (h.suspect_since is not null or r.suspect_since is not null))
        and (r.suspect_since is not null
          or not exists (select 1 from runs w where w.suspect_since < {now} - $6 and coalesce(w.status, '') = 'queued' and w.lane in (select v.lane from {rows $7 as v: lane text})))
        and r.id not in (select e.run from {rows $8 as e: run text})
      order by r.id limit $9 {lock r skip})
   update runs set ${TAKE} from pick where runs.id = pick.id returning ${CLAIMED}`,
  claimRowOf,
)

const adopt = sql<ClaimRow>(
  'runs.adopt',
  `update runs set session = $4, claim = $5, rev = runs.rev + 1
    where runs.id = $1 and runs.attempt = $2 and coalesce(runs.session, '') = $3 and coalesce(runs.status, '') = 'running'
      and not exists (select 1 from events e where e.run = runs.id and e.kind = 'attempt.stopping'
        and e.rev > coalesce((select max(a.rev) from attempts a where a.run = runs.id), 0)) returning ${CLAIMED}`,
  claimRowOf,
)
/** Moves a running attempt that nothing has stopped yet from one session to another, under a claim of that one. */
export const adoptRun = (
  { run, attempt, from, session }: Adoption,
  claim: number,
): Statement<ClaimRow> => statement(adopt, run, attempt, from, session, claim)

const claimAgain = sql<ClaimRow>(
  'runs.claim_again',
  `select ${CLAIMED} from runs where runs.session = $1 and runs.claim = $2 order by runs.id`,
  claimRowOf,
)

/** An attempt, the session that holds it, and the one that is to. */
export interface Adoption {
  readonly run: string
  readonly attempt: number
  readonly from: string
  readonly session: string
}

export interface LaneClaim {
  readonly session: string
  readonly claim: number
  readonly lane: string
  /** Where the scan starts: the lowest (rank, id) that may still be queued. */
  readonly from: { readonly rank: number; readonly id: string }
  /** Runs in all that the claim may hold, over all its lanes. */
  readonly most: number
  /** Every lane that the session serves: a suspect run that is due too long in one of them empties the session. */
  readonly serves: readonly string[]
  readonly except: readonly string[]
}

const suspectValues = ({ session, claim, lane, except }: LaneClaim) =>
  [session, claim, lane, rows(except.map((run) => ({ run })))] as const
const laneValues = ({ session, claim, lane, from, most, except, serves }: LaneClaim) =>
  [
    session,
    claim,
    lane,
    from.rank,
    from.id,
    most,
    SUSPECT_DUE_MS,
    rows(except.map((run) => ({ run }))),
    rows(serves.map((each) => ({ lane: each }))),
  ] as const

export const claimStatements = (claim: LaneClaim): [Statement<ClaimRow>, Statement<ClaimRow>] => [
  statement(claimSuspect, ...suspectValues(claim)),
  statement(claimLane, ...laneValues(claim)),
]

/** What such a claim would be given now; nothing is locked or written. */
export const offerStatements = (claim: LaneClaim): [Statement<OfferRow>, Statement<OfferRow>] => [
  statement(offerSuspect, ...suspectValues(claim)),
  statement(offerLane, ...laneValues(claim)),
]

export interface NamedClaim extends Omit<LaneClaim, 'lane' | 'from'> {
  readonly runs: readonly string[]
  /** Lanes from which it may take. */
  readonly open: readonly string[]
}

/** Takes those of these runs that may still be had. */
export const claimNamedRuns = (claim: NamedClaim): Statement<ClaimRow> => {
  const runs = [...new Set(claim.runs)]
  return statement(
    claimNamed,
    claim.session,
    claim.claim,
    rows(runs.map((run) => ({ run }))),
    rows(claim.open.map((lane) => ({ lane }))),
    runs.length,
    SUSPECT_DUE_MS,
    rows(claim.serves.map((lane) => ({ lane }))),
    rows(claim.except.map((run) => ({ run }))),
    claim.most,
  )
}

/** What this claim still holds: the answer to a second copy of it. */
export const heldUnderClaim = (session: string, claim: number): Statement<ClaimRow> =>
  statement(claimAgain, session, claim)
