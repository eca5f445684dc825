// A claim: a session takes due runs and becomes their holder. The session's row is written first, which locks it and
// requires it live; a second copy of a claim is answered with what the first still holds.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { legible, readOr } from '../kernel/stored.ts'
import { liveWait } from '../model/apply.ts'
import type { Settings } from '../model/settings.ts'
import type { ClaimedRun, Entry, EntryKind } from '../model/work.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { ClaimRow } from '../store/move/claims.ts'
import { claimNamedRuns, claimStatements, heldUnderClaim } from '../store/move/claims.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish, within } from '../store/sql.ts'
import type { StepRow } from '../store/tables/journal.ts'
import { stepsOfClaim } from '../store/tables/journal.ts'
import { anyDue, withheldLanes } from '../store/tables/runs.ts'
import { numberClaim, sessionById } from '../store/tables/sessions.ts'
import { waitOf, waitsOfClaim } from '../store/tables/waits.ts'
import { wake } from './wake.ts'

export interface ClaimCommand {
  readonly session: string
  readonly claim: number
  readonly most: number
  readonly except: readonly string[]
  /** Every lane that the session serves, also those in which it does not look now. */
  readonly serves: readonly string[]
  /** Of these, where it has room: runs that this claim makes due are taken there too. */
  readonly open: readonly string[]
  /** Where to look, in this order, each from the lowest place that may still be queued. */
  readonly lanes: readonly {
    readonly lane: string
    readonly from: { readonly rank: number; readonly id: string }
  }[]
  /** Exactly these runs, as they were offered, and none from the lanes. */
  readonly runs?: readonly string[]
}

export interface Claimed {
  readonly ok: true
  readonly runs: readonly ClaimedRun[]
  /** The highest (rank, id) taken of each lane, where the next scan may start, and the tags of all. */
  readonly taken: ReadonlyMap<
    string,
    { readonly rank: number; readonly id: string; readonly tags: readonly number[] }
  >
  readonly leaseUntil: number | null
  /** The store's clock: what a claim brings is limited by it. */
  readonly now: number
  /** The first answer of a claim that is asked for again. */
  readonly repeated: boolean
  /** Lanes with a run that only this session may not have; every lane where a rule keeps it from some anywhere. */
  readonly withheld: ReadonlySet<string> | 'all'
  readonly follow: Follow
}

export function* claim(
  tx: Tx,
  command: ClaimCommand,
  settings: Settings,
): Steps<Claimed | Refusal> {
  const [numbered, [session], due, kept] = yield* ask(
    numberClaim(command.session, command.claim),
    sessionById(command.session),
    anyDue(),
    withheldLanes(command.except),
  )
  if (!session)
    return refuse('session_ended', `there is no session ${command.session}; register anew`, {
      session: command.session,
    })
  const repeated = numbered.length === 0
  if (repeated && session.state !== 'live')
    return refuse(
      'session_ended',
      `session ${command.session} is ${session.state}${session.end_reason === null ? '' : ` (${session.end_reason})`}; register anew`,
      {
        session: command.session,
        state: session.state,
        evidence: session.evidence,
      },
    )
  if (repeated && session.claim_no > command.claim)
    return refuse(
      'claim_superseded',
      `claim ${command.claim} of ${command.session} came after claim ${session.claim_no}; drop it`,
      { claim: session.claim_no },
    )
  if (repeated) {
    const [rows, steps, waits] = yield* finish(
      heldUnderClaim(command.session, command.claim),
      stepsOfClaim(command.session, command.claim, settings.claimJournalMaxBytes),
      waitsOfClaim(command.session, command.claim),
    )
    return {
      ok: true,
      runs: runsOf(rows, steps, waits),
      taken: new Map(),
      leaseUntil: session.lease_until,
      now: tx.now,
      repeated: true,
      withheld: 'all',
      follow: nothing(),
    }
  }
  // due is judged here, by the store's clock, and not only by the loop that looks each second
  const named = command.runs !== undefined
  const follow = named || due.length === 0 ? nothing() : (yield* within(wake(tx))).follow
  const lanes = named ? [] : lanesWith(command, follow)
  const perLane = command.runs
    ? [claimNamedRuns({ ...command, runs: command.runs })]
    : lanes.flatMap(({ lane, from }) => claimStatements({ ...command, lane, from }))
  const [steps, waits, ...claimed] = yield* claimAnd(command, settings, perLane)
  const taken = new Map<string, { rank: number; id: string; tags: number[] }>()
  lanes.forEach(({ lane }, i) => {
    for (const row of [...(claimed[2 * i] ?? []), ...(claimed[2 * i + 1] ?? [])]) {
      const last = taken.get(lane)
      const later = !last || row.rank > last.rank || (row.rank === last.rank && row.id > last.id)
      const tags = [...(last?.tags ?? []), row.tag]
      taken.set(lane, later ? { rank: row.rank, id: row.id, tags } : { ...last, tags })
    }
  })
  return {
    ok: true,
    runs: runsOf(claimed.flat(), steps, waits),
    taken,
    leaseUntil: session.lease_until,
    now: tx.now,
    repeated: false,
    withheld: kept.some(({ lane }) => lane === '') ? 'all' : new Set(kept.map(({ lane }) => lane)),
    follow,
  }
}

/** The lanes that were asked for, and those in which this claim has made something due, each from its lowest place. */
const lanesWith = (
  { lanes, open }: ClaimCommand,
  { lanes: woken }: Follow,
): ClaimCommand['lanes'] => [
  ...lanes.map(({ lane, from }) => {
    const at = woken.get(lane)
    return {
      lane,
      from: at && (at.rank < from.rank || (at.rank === from.rank && at.id < from.id)) ? at : from,
    }
  }),
  ...open
    .filter((lane) => woken.has(lane) && !lanes.some((each) => each.lane === lane))
    .map((lane) => ({ lane, from: woken.get(lane) as { rank: number; id: string } })),
]

function* claimAnd(
  command: ClaimCommand,
  settings: Settings,
  perLane: ReturnType<typeof claimStatements>[number][],
): Steps<[StepRow[], Parameters<typeof waitOf>[0][], ...ClaimRow[][]]> {
  const results = yield* finish(
    ...perLane,
    stepsOfClaim(command.session, command.claim, settings.claimJournalMaxBytes),
    waitsOfClaim(command.session, command.claim),
  )
  const claimed = results.slice(0, perLane.length) as ClaimRow[][]
  return [
    results[perLane.length] as StepRow[],
    results[perLane.length + 1] as Parameters<typeof waitOf>[0][],
    ...claimed,
  ]
}

/** A payload that cannot be read is given as the sentence that says so: it fails its own run, and keeps no other from its holder. */
export const runsOf = (
  rows: readonly ClaimRow[],
  steps: readonly StepRow[],
  waits: readonly Parameters<typeof waitOf>[0][],
): ClaimedRun[] =>
  readOr(
    () => runsAsStored(rows, steps, waits),
    () =>
      runsAsStored(
        rows.map((row) => legible(row, ['input'])),
        steps.map((step) => legible(step, ['output', 'error'])),
        waits.map((wait) => legible(wait, ['result', 'error'])),
      ),
  )

const runsAsStored = (
  rows: readonly ClaimRow[],
  steps: readonly StepRow[],
  waits: readonly Parameters<typeof waitOf>[0][],
): ClaimedRun[] => {
  const entries = new Map<string, Entry[]>()
  for (const step of steps) {
    const list = entries.get(step.run)
    if (list) list.push(entryOf(step))
    else entries.set(step.run, [entryOf(step)])
  }
  return rows.map((row) => ({
    run: row.id,
    workflow: row.workflow,
    version: row.version,
    owner: row.owner,
    attempt: row.attempt,
    leasedAt: row.leased_at,
    seed: row.seed,
    firstAt: row.first_at,
    deadline: row.deadline,
    attemptDeadline: row.attempt_deadline,
    failures: row.failures,
    input: row.input,
    entries: row.entries,
    ...(row.items === null ? {} : { items: row.items }),
    journal: entries.get(row.id) ?? [],
    waits:
      row.waits === 0
        ? []
        : waits.filter((wait) => wait.run === row.id).map((wait) => liveWait(waitOf(wait))),
  }))
}

export const entryOf = (step: StepRow): Entry => ({
  n: step.n,
  key: step.key,
  kind: step.kind as EntryKind,
  at: step.at,
  output: step.output,
  error: step.error,
})
