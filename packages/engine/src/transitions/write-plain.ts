// Plain writes, many at once: the fence and all that could make a run special are guards of the statements themselves. What
// they do is what the model does to such a run; what they leave untouched it decides.
import { LeaseholdError } from '../kernel/errors.ts'
import type { Follow } from '../model/follow.ts'
import { mayAdmit, nothing } from '../model/follow.ts'
import type { PlanContext } from '../model/start.ts'
import type { AttemptWrite, WriteOk } from '../model/work.ts'
import type { PlainEnd, PlainWrite, Progressed } from '../store/move/plain.ts'
import { completePlain, endPlain, progressPlain } from '../store/move/plain.ts'
import { completeAtOnce, progressAtOnce } from '../store/move/plain-postgres.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish, UniqueViolation } from '../store/sql.ts'
import type { StepRow } from '../store/tables/journal.ts'
import { insertLastSteps } from '../store/tables/journal.ts'

interface Item {
  readonly session: string
  readonly write: AttemptWrite
}

export interface PlainlyWritten {
  /** Of the runs that were written. */
  readonly answers: Map<string, WriteOk>
  readonly follow: Follow
  /** The entries of checkpoints, which the next ask is to store: only now is it known which runs took them. */
  readonly entries: readonly (StepRow & { readonly rev: number })[]
}

/**
 * `last`: nothing is asked after it, and the transaction commits with it. Elsewhere than on PostgreSQL that is only so
 * where no item is a checkpoint.
 */
export function* writePlain(
  tx: Tx,
  items: readonly Item[],
  { settings: { entriesMax, journalMaxBytes: journalMax } }: PlanContext,
  last: boolean,
): Steps<PlainlyWritten> {
  const ends = items.filter(isEnd)
  const checkpoints = items.filter((item) => !isEnd(item))
  const send = last ? finish : ask
  const stored =
    tx.kind === 'postgres'
      ? send(
          progressAtOnce(
            checkpoints.map(rowOf),
            checkpoints.flatMap(stepsOf),
            entriesMax,
            journalMax,
          ),
          completeAtOnce(ends.map(rowOf), ends.flatMap(stepsOf), entriesMax, journalMax),
        )
      : inTurn(send, ends, checkpoints, entriesMax, journalMax)
  const entriesNow = (tx.kind === 'postgres' ? items : ends).flatMap(({ write }) => write.entries)
  const [progressed, ended] = yield* entriesOnce(stored, entriesNow)
  const follow = nothing()
  const answers = new Map<string, WriteOk>()
  const answer = (run: string, rev: number, more: Pick<WriteOk, 'note' | 'ended'>): void => {
    answers.set(run, { ok: true, rev, directive: null, satisfied: [], ...more })
    follow.changed.push(run)
  }
  for (const { id, rev, note } of progressed) answer(id, rev, { note, ended: null })
  for (const row of ended) {
    const { id, rev } = row
    answer(id, rev, { note: null, ended: 'succeeded' })
    follow.ended.push(id)
    // what it held of its limits is free
    if (row.limit_owner !== null) mayAdmit(follow, row.limit_owner, 1)
    if (row.limit_global !== null) mayAdmit(follow, row.limit_global, 1)
    if (row.limit_a !== null) mayAdmit(follow, row.limit_a, row.units_a)
    if (row.limit_b !== null) mayAdmit(follow, row.limit_b, row.units_b)
  }
  const entries =
    tx.kind === 'postgres'
      ? []
      : checkpoints.flatMap((item) => {
          const rev = answers.get(item.write.run)?.rev
          return rev === undefined ? [] : stepsOf(item).map((step) => ({ ...step, rev }))
        })
  return { answers, follow, entries }
}

/** The portable text: a statement for each table. */
function* inTurn(
  send: typeof ask,
  ends: readonly Item[],
  checkpoints: readonly Item[],
  entriesMax: number,
  journalMax: number,
): Steps<readonly [readonly Progressed[], readonly PlainEnd[]]> {
  const endRows = ends.map(rowOf)
  const [progressed, , , ended] = yield* send(
    progressPlain(checkpoints.map(rowOf), entriesMax, journalMax),
    endPlain(endRows, entriesMax, journalMax),
    insertLastSteps(
      ends.flatMap((item) => stepsOf(item).map((step) => ({ ...step, session: item.session }))),
    ),
    completePlain(endRows),
  )
  return [progressed, ended]
}

/** Whether a plain write ends its attempt; any other is a checkpoint. */
export const isEnd = ({ write }: Item): boolean => write.end !== undefined

/** The steps of a transaction that stores these entries, with the store's refusal of a key that is there in words. */
export function* entriesOnce<T>(
  steps: Steps<T>,
  entries: readonly { readonly key: string }[],
): Steps<T> {
  try {
    return yield* steps
  } catch (error) {
    if (error instanceof UniqueViolation && error.table === 'steps')
      throw new LeaseholdError(
        'invalid_request',
        `an entry has the key of an earlier one of its run; the keys are ${entries
          .map(({ key }) => key)
          .slice(0, 5)
          .join(', ')}`,
      )
    throw error
  }
}

const bytesOf = (text: string | null): number => (text === null ? 0 : Buffer.byteLength(text))

const rowOf = ({ session, write: { run, attempt, entries, end } }: Item): PlainWrite => {
  const [first] = entries
  // without an entry a write says nothing of how many there are
  const before = first ? first.n - 1 : -1
  return {
    run,
    attempt,
    session,
    before,
    entries: before + entries.length,
    bytes: entries.reduce((sum, { output, error }) => sum + bytesOf(output) + bytesOf(error), 0),
    output: end?.kind === 'complete' ? end.output : null,
  }
}

const stepsOf = ({ write: { run, attempt, entries } }: Item): StepRow[] =>
  entries.map(({ key, n, kind, at, output, error }) => ({
    run,
    key,
    n,
    kind,
    attempt,
    at,
    output,
    error,
  }))
