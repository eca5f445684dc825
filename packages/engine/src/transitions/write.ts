// What attempts write: checkpoints and ends, for many runs at once. Locks the runs in the order of their ids, checks each
// fence under the lock, lets the model decide, and stores exactly what it says. An item that was not locked is `busy`.
import { LeaseholdError } from '../kernel/errors.ts'
import type { Outcome, Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Applied } from '../model/apply.ts'
import { applyWrite, approvalId, isPlain, namedWaits, touchesWaits } from '../model/apply.ts'
import type { AttemptEnd } from '../model/attempt.ts'
import type { Follow } from '../model/follow.ts'
import { FRONT, mayAdmit, merge, nothing, wakes } from '../model/follow.ts'
import type { Notice } from '../model/notice.ts'
import { askedApproval, noticesOfEnd } from '../model/notice.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../model/run.ts'
import type { PlanContext } from '../model/start.ts'
import type { AttemptWrite, WriteAnswer, WriteOk } from '../model/work.ts'
import {
  approvalsSettled,
  atTheDoor,
  consequences,
  declaredLimits,
  follows,
} from '../store/consequences.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import { writeEnds, writeProgress, writeRuns } from '../store/move/whole-runs.ts'
import type { Statement, Steps, Tx } from '../store/sql.ts'
import { ask, finish, UniqueViolation, wrote } from '../store/sql.ts'
import {
  endedAttempts,
  insertAttempts,
  insertEvents,
  insertEventsOnce,
  insertSteps,
  insertStreamItems,
} from '../store/tables/journal.ts'
import { ensureLimits } from '../store/tables/limits.ts'
import { tell } from '../store/tables/notices.ts'
import {
  adoptChildren,
  bearRuns,
  insertRuns,
  lastTag,
  payloadsOf,
  writeExtras,
} from '../store/tables/runs.ts'
import { putLanes } from '../store/tables/lanes.ts'
import {
  goneWaits,
  inheritSignals,
  insertApprovals,
  liveWaits,
  putWaits,
  readSignals,
  releaseSignals,
  signalOf,
  takeSignals,
  unreadSignals,
  waitOf,
} from '../store/tables/waits.ts'
import type { PlainlyWritten } from './write-plain.ts'
import { entriesOnce, isEnd, writePlain } from './write-plain.ts'

export interface SessionWrite {
  readonly session: string
  readonly write: AttemptWrite
}

export interface Written {
  /**
   * One answer an item, in order; `busy` where another transaction had the run; `again` where the batch was plain, was
   * committed with its only ask, and this run was not as a plain write needs it: to be written again, not `plainly`.
   */
  readonly answers: readonly (WriteAnswer | 'busy' | 'again')[]
  readonly follow: Follow
}

/**
 * Each run stands in `items` at most once: the caller sends a run's next write when it has the answer to this one.
 * `plainly`: plain writes are tried first without reading their runs; by default where locked runs are skipped.
 */
export function* write(
  tx: Tx,
  items: readonly SessionWrite[],
  context: PlanContext,
  lock: 'skip' | 'wait' = 'skip',
  plainly = lock === 'skip',
): Steps<Written> {
  const plain = plainly ? items.filter(({ write: each }) => isPlain(each)) : []
  if (plain.length === 0) return yield* decided(tx, items, context, lock)
  // where nothing is left to store it is the only ask, and what was not plain after all is rare: it is written again
  const whole = plain.length === items.length && (tx.kind === 'postgres' || plain.every(isEnd))
  const done = yield* writePlain(tx, plain, context, whole)
  const rest = whole ? [] : items.filter(({ write: each }) => !done.answers.has(each.run))
  const others = whole ? null : yield* decided(tx, rest, context, lock, done.entries)
  const answers = new Map<string, WriteAnswer | 'busy'>(done.answers)
  rest.forEach(({ write: each }, i) =>
    answers.set(each.run, others?.answers[i] as WriteAnswer | 'busy'),
  )
  return {
    answers: items.map(({ write: each }) => answers.get(each.run) ?? 'again'),
    follow: others ? merge(done.follow, others.follow) : done.follow,
  }
}

/** Reads the runs under their locks and lets the model decide. With its first ask it stores the `entries` of others. */
function* decided(
  tx: Tx,
  items: readonly SessionWrite[],
  context: PlanContext,
  lock: 'skip' | 'wait',
  entries: PlainlyWritten['entries'] = [],
): Steps<{ answers: (WriteAnswer | 'busy')[]; follow: Follow }> {
  const follow = nothing()
  if (items.length === 0) {
    yield* entriesOnce(finish(insertSteps(entries)), entries)
    return { answers: [], follow }
  }
  const ids = items.map(({ write: each }) => each.run)
  const waiting = items
    .filter(({ write: each }) => touchesWaits(each))
    .map(({ write: each }) => each.run)
  const continued = items
    .filter(({ write: each }) => each.end?.kind === 'continue')
    .map(({ write: each }) => each.run)
  const named = items.flatMap(({ write: each }) => namedWaits(each))
  const [, rows, live, gone, signals, states] = yield* entriesOnce(
    ask(
      insertSteps(entries),
      lockRuns(ids, lock),
      ...([
        liveWaits(waiting),
        goneWaits(named),
        unreadSignals(waiting),
        payloadsOf(continued),
      ] as const),
    ),
    entries,
  )
  const waits = [...live, ...gone]
  const runs = new Map(rows.map((row) => [row.id, runOf(row)]))
  const waitsOf = groupBy(waits.map(waitOf), (wait) => wait.run)
  const signalsOf = groupBy(signals.map(signalOf), (signal) => signal.run)
  const misses = items
    .filter(({ session, write: each }) => !holds(runs.get(each.run), session, each.attempt))
    .map(({ write: each }) => each)
  const toEnd = items
    .flatMap(({ write: each }) =>
      each.end?.kind === 'hand_back' && each.end.toEnd === true ? [runs.get(each.run)] : [],
    )
    .filter((run) => run !== undefined)
  const history =
    misses.length === 0 && toEnd.length === 0 ? ([[], []] as const) : yield* missed(misses, toEnd)
  const [found, lastTags] = history

  const answers: (WriteAnswer | 'busy')[] = []
  const applied: { applied: Applied; write: AttemptWrite; session: string }[] = []
  for (const { session, write: each } of items) {
    const run = runs.get(each.run)
    if (!run || !holds(run, session, each.attempt)) {
      answers.push(missAnswer(run, session, each, found))
      continue
    }
    const outcome: Outcome<{ applied: Applied }> = applyWrite(
      {
        run,
        waits: waitsOf.get(run.id) ?? [],
        signals: signalsOf.get(run.id) ?? [],
        lastTag: lastTags.find((row) => row.run === run.id)?.tag ?? null,
        state: states.find((row) => row.id === run.id)?.state ?? null,
      },
      each,
      tx.now,
      context,
    )
    if (!outcome.ok) {
      answers.push(outcome)
      continue
    }
    answers.push(outcome.applied.answer)
    if (outcome.applied.idle) continue
    applied.push({ applied: outcome.applied, write: each, session })
    follows(follow, run, outcome.applied.run)
  }
  if (applied.length > 0) yield* store(tx, applied, follow, context)
  return { answers, follow }
}

function* store(
  tx: Tx,
  items: readonly { applied: Applied; write: AttemptWrite; session: string }[],
  follow: Follow,
  context: PlanContext,
): Steps<void> {
  const all = items.map((item) => item.applied)
  const ended = all.filter(({ run }) => isTerminal(run.status))
  const moved = all.filter(({ run, end }) => end !== null && !isTerminal(run.status))
  const progressed = all.filter(({ end }) => end === null)
  const revs = new Map(all.map(({ run }) => [run.id, run.rev]))
  const rev = (run: string): number => revs.get(run) ?? 0
  // asked last: what an end closes and ends includes what this same write has opened
  const atEnd = yield* consequences(ended, follow, context)
  const notices = noticesOf(items)
  follow.notices.push(...notices)
  const statements: Statement[] = []
  const add = <T>(list: readonly T[], make: (list: readonly T[]) => Statement): void => {
    if (list.length > 0) statements.push(make(list))
  }
  add(
    items.filter(({ applied }) => applied.end !== null),
    (list) =>
      insertAttempts(
        list.map(
          ({ applied: { before, run, end, endReason }, write: { firstReason, end: sent } }) => ({
            run: before.id,
            attempt: before.attempt,
            session: before.session ?? '',
            leased_at: before.leasedAt ?? 0,
            ended_at: tx.now,
            end: end ?? 'failed',
            reason: endReason ?? run.reason,
            note: sent?.kind === 'lose' ? sent.note : run.note,
            first_reason: firstReason ?? null,
            rev: run.rev,
          }),
        ),
      ),
  )
  add(
    all.flatMap((each) => each.waits),
    (list) => putWaits(list, rev),
  )
  statements.push(
    ...approvalsSettled(
      all.flatMap((each) => each.waits),
      rev,
    ),
  )
  add(
    all.flatMap((each) => each.read.map((key) => ({ run: each.run.id, key }))),
    readSignals,
  )
  add(
    all.flatMap((each) => each.released.map((key) => ({ run: each.run.id, key }))),
    releaseSignals,
  )
  add(
    all.flatMap((each) => each.taken),
    takeSignals,
  )
  add(
    all.flatMap((each) => each.approvals.map((approval) => ({ run: each.run.id, ...approval }))),
    (list) =>
      insertApprovals(
        list.map((each) => ({
          id: approvalId(each.run, each.key),
          run: each.run,
          key: each.key,
          prompt: each.prompt,
          data: each.data,
          deciders: JSON.stringify(each.deciders),
          deadline: each.deadline,
          rev: rev(each.run),
        })),
      ),
  )
  const born = all.flatMap(({ children }) => children)
  const births = born.length === 0 ? [] : [bearRuns(born.map((child) => atTheDoor(child, follow)))]
  for (const { before, successor } of all) {
    if (!successor) continue
    statements.push(
      insertRuns([successor.run]),
      inheritSignals(before.id, successor.run.id),
      adoptChildren(before.id, successor.run.id),
      insertEvents([
        {
          run: before.id,
          rev: rev(before.id),
          seq: 0,
          kind: 'run.continued',
          actor: null,
          data: JSON.stringify({ as: successor.run.id }),
        },
      ]),
    )
    if (successor.run.status === 'queued') wakes(follow, { lane: successor.run.lane, ...FRONT })
    else for (const limit of successor.limits) mayAdmit(follow, limit.key, 1)
  }
  add(
    all.flatMap(({ before, notes }) =>
      notes.map((note, seq) => ({
        run: before.id,
        rev: rev(before.id),
        seq,
        actor: null,
        ...note,
      })),
    ),
    insertEventsOnce,
  )
  add(declaredLimits([...born, ...all.flatMap(({ successor }) => successor ?? [])]), ensureLimits)
  const lanes = [...born, ...all.flatMap(({ successor }) => (successor ? [successor] : []))].map(
    ({ run }) => run,
  )
  add(lanes, (list) =>
    putLanes(
      list.map((run) => ({
        lane: run.lane,
        queue: run.queue,
        workflow: run.workflow,
        version: run.version,
        labels: run.labels,
      })),
    ),
  )
  add(
    items.filter(({ write: each }) => each.state !== undefined || each.progress !== undefined),
    (list) =>
      writeExtras(
        list.map(({ write: each }) => ({
          id: each.run,
          has_state: each.state === undefined ? 0 : 1,
          state: each.state ?? null,
          progress: each.progress ?? null,
        })),
      ),
  )
  add(
    items.flatMap(({ write: each }) =>
      (each.stream ?? []).map((item) => ({ run: each.run, ...item })),
    ),
    insertStreamItems,
  )
  const steps = all.flatMap(({ entries, before, run }) =>
    entries.map(({ key, n, kind, at, output, error }) => ({
      run: run.id,
      key,
      n,
      kind,
      attempt: before.attempt,
      rev: run.rev,
      at,
      output,
      error,
    })),
  )
  try {
    const [ends, moves, progress] = yield* entriesOnce(
      finish(
        writeEnds(ended),
        writeRuns(moved.map((each) => each.run)),
        writeProgress(progressed.map((each) => each.run)),
        insertSteps(steps),
        ...births,
        ...statements,
        ...(notices.length > 0 ? tell(notices) : []),
        ...atEnd,
      ),
      steps,
    )
    wrote([...ends, ...moves, ...progress], all.length, 'write')
  } catch (error) {
    const [child] = born
    if (error instanceof UniqueViolation && child)
      throw new LeaseholdError(
        'key_reused',
        `the child ${child.run.workflow}${born.length === 1 ? '' : ` or one of the ${born.length - 1} beside it`} cannot start: its ${child.run.key === null ? 'id' : `key ${child.run.key}`} belongs to another run`,
        { workflow: child.run.workflow, key: child.run.key },
      )
    throw error
  }
}

/** What people are to see of these writes beside what follows an end. */
const noticesOf = (items: readonly { applied: Applied; write: AttemptWrite }[]): Notice[] =>
  items.flatMap(({ applied: { before, run, end, approvals }, write: { end: sent } }) => [
    ...(end === null
      ? []
      : noticesOfEnd(before, run, end, sent?.kind === 'lose' ? sent.note : run.note)),
    ...approvals.map(({ key, prompt, deadline }) =>
      askedApproval({ run: run.id, key, id: approvalId(run.id, key), prompt, deadline }),
    ),
  ])

const holds = (run: Run | undefined, session: string, attempt: number): boolean =>
  run !== undefined && run.attempt === attempt && run.session === session

function* missed(misses: readonly AttemptWrite[], toEnd: readonly Run[]) {
  const [found, ...tags] = yield* ask(
    endedAttempts(misses),
    ...toEnd.map((run) => lastTag(run.lane, run.priority)),
  )
  return [found, toEnd.map((run, i) => ({ run: run.id, tag: tags[i]?.[0]?.tag ?? null }))] as const
}

/**
 * A repeat by the attempt that made the write gets the first answer again; anyone else has lost the fence, and so has an
 * attempt that was ended by others and comes with entries that were never stored.
 */
const missAnswer = (
  run: Run | undefined,
  session: string,
  each: AttemptWrite,
  found: readonly { run: string; attempt: number; session: string; end: string; rev: number }[],
): WriteAnswer | 'busy' => {
  const own = found.find(
    (row) => row.run === each.run && row.attempt === each.attempt && row.session === session,
  )
  const stored = own?.end === 'canceled' || (each.entries.at(-1)?.n ?? 0) <= (run?.entries ?? 0)
  if (own && each.end && stored && FIRST_ANSWERS[own.end as AttemptEnd]?.includes(each.end.kind))
    return firstAnswer(own, run)
  if (!run) return 'busy'
  return staleAttempt(run, each.attempt, session)
}

const FIRST_ANSWERS: Readonly<Partial<Record<AttemptEnd, readonly string[]>>> = {
  completed: ['complete', 'continue'],
  failed: ['fail'],
  suspended: ['suspend', 'park'],
  handed_back: ['hand_back'],
  canceled: [
    'complete',
    'continue',
    'fail',
    'suspend',
    'hand_back',
    'park',
    'stale',
    'revoke',
    'lose',
  ],
  stale: ['stale'],
  revoked: ['revoke'],
  lost: ['lose'],
}

const firstAnswer = (own: { end: string; rev: number }, run: Run | undefined): WriteOk => ({
  ok: true,
  rev: own.rev,
  directive: null,
  note: null,
  ended:
    own.end === 'completed'
      ? 'succeeded'
      : own.end === 'canceled'
        ? 'canceled'
        : (run?.status ?? 'queued'),
  satisfied: [],
})

export const staleAttempt = (run: Run, attempt: number, session: string): Refusal =>
  refuse(
    'stale_attempt',
    `attempt ${attempt} of ${run.id} by ${session} no longer holds it: the run is ${run.status}${run.session === null ? '' : `, held by attempt ${run.attempt} of ${run.session}`}. Drop this attempt`,
    { run: run.id, attempt: run.attempt, holder: run.session, status: run.status },
  )

const groupBy = <T>(list: readonly T[], key: (item: T) => string): Map<string, T[]> => {
  const groups = new Map<string, T[]>()
  for (const item of list) {
    const group = groups.get(key(item))
    if (group) group.push(item)
    else groups.set(key(item), [item])
  }
  return groups
}
