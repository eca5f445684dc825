// Plain writes, many at once, in one round trip: the fence and all that could make a run special are guards of the statements
// themselves. What they do is what the model does to such a run; what they leave untouched it decides.
import { LeaseholdError } from '../kernel/errors.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { PlanContext } from '../model/start.ts'
import type { AttemptWrite, WriteOk } from '../model/work.ts'
import type { PlainWrite } from '../store/move.ts'
import { completePlain, endPlain, progressPlain } from '../store/move.ts'
import type { Steps } from '../store/sql.ts'
import { ask, finish, UniqueViolation } from '../store/sql.ts'
import type { PlainStep } from '../store/tables/journal.ts'
import { insertLastSteps, insertProgressSteps } from '../store/tables/journal.ts'

interface Item {
  readonly session: string
  readonly write: AttemptWrite
}

/** Answers the runs that were written. `last`: nothing is asked after it, and the transaction commits with it. */
export function* writePlain(
  items: readonly Item[],
  { settings: { entriesMax, journalMax } }: PlanContext,
  last: boolean,
): Steps<{ answers: Map<string, WriteOk>; follow: Follow }> {
  const ends = items.filter(({ write }) => write.end !== undefined)
  const checkpoints = items.filter(({ write }) => write.end === undefined)
  const endRows = ends.map(rowOf)
  const how = last ? finish : ask
  const written = function* () {
    try {
      return yield* how(
        progressPlain(checkpoints.map(rowOf), entriesMax, journalMax),
        insertProgressSteps(checkpoints.flatMap(stepsOf)),
        endPlain(endRows, entriesMax, journalMax),
        insertLastSteps(ends.flatMap(stepsOf)),
        completePlain(endRows),
      )
    } catch (error) {
      throw error instanceof UniqueViolation
        ? entryTwice(items.flatMap(({ write }) => write.entries))
        : error
    }
  }
  const [progressed, , , , ended] = yield* written()
  const follow = nothing()
  const answers = new Map<string, WriteOk>()
  const answer = (run: string, rev: number, more: Pick<WriteOk, 'note' | 'ended'>): void => {
    answers.set(run, { ok: true, rev, directive: null, satisfied: [], ...more })
    follow.changed.push(run)
  }
  for (const { id, rev, note } of progressed) answer(id, rev, { note, ended: null })
  for (const { id, rev, ...limits } of ended) {
    answer(id, rev, { note: null, ended: 'succeeded' })
    follow.ended.push(id)
    // what it held of its limits is free
    for (const key of Object.values(limits)) if (key !== null) follow.admit.add(key)
  }
  return { answers, follow }
}

/** What the store says when an entry has the key of an earlier one of its run. */
export const entryTwice = (entries: readonly { readonly key: string }[]): LeaseholdError =>
  new LeaseholdError(
    'invalid_request',
    `an entry has the key of an earlier one of its run; the keys are ${entries
      .map(({ key }) => key)
      .slice(0, 5)
      .join(', ')}`,
  )

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

const stepsOf = ({ session, write: { run, attempt, entries } }: Item): PlainStep[] => {
  const last = entries.at(-1)?.n ?? 0
  return entries.map(({ key, n, kind, at, output, error }) => ({
    run,
    attempt,
    session,
    last,
    key,
    n,
    kind,
    at,
    output,
    error,
  }))
}
