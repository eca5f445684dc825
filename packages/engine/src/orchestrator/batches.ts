// Starts and writes that come one by one and go into the store many at once: each is answered on its own, and one that is bad
// harms no other (RAIL-09).
import type { Batcher } from '../kernel/batcher.ts'
import { batcher, ItemError } from '../kernel/batcher.ts'
import { Fault, LeaseholdError } from '../kernel/errors.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Timers } from '../kernel/timers.ts'
import type { Follow } from '../model/follow.ts'
import type { PlanContext } from '../model/start.ts'
import type { WriteAnswer } from '../model/work.ts'
import type { Steps, Tx } from '../store/sql.ts'
import type { Manner, Store } from '../store/store.ts'
import type { StartAnswer, StartItem } from '../transitions/start.ts'
import { knownStarts, start } from '../transitions/start.ts'
import type { SessionWrite } from '../transitions/write.ts'
import { write } from '../transitions/write.ts'
import type { Lanes } from './claims/lanes.ts'
import type { Purpose } from './meters.ts'

export interface Batches {
  start(item: StartItem): Promise<StartAnswer>
  /** Many that came together: they are one batch. */
  startMany(items: readonly StartItem[]): Promise<readonly StartAnswer[]>
  write(item: SessionWrite): Promise<WriteAnswer>
  /** Resolves when no batch is collecting or in flight. */
  idle(): Promise<void>
}

interface Parts {
  readonly store: Store
  readonly lanes: Lanes
  readonly timers: Timers
  /** For what is asked outside a transition. */
  readonly contextNow: () => PlanContext
  /** Runs a transition and does what follows from it. */
  act<T extends { readonly follow: Follow }>(
    transition: (tx: Tx, context: PlanContext) => Steps<T>,
    manner?: Manner,
    purpose?: Purpose,
  ): Promise<T>
}

export const makeBatches = ({ store, lanes, timers, contextNow, act }: Parts): Batches => {
  const startBatch = async (items: readonly StartItem[]): Promise<StartAnswer[]> => {
    const { answers } = await act(
      (tx, context) => start(tx, items, context, lanes.known),
      undefined,
      'start',
    )
    const known = answers.flatMap((answer, at) =>
      answer === 'known' ? [{ item: items[at] as StartItem, at }] : [],
    )
    const out = answers.map((answer) => answer as StartAnswer)
    if (known.length > 0) {
      const found = await store.read((tx) =>
        knownStarts(
          tx,
          known.map(({ item }) => item),
          contextNow(),
        ),
      )
      known.forEach(({ at }, i) => {
        out[at] = found[i] as StartAnswer
      })
    }
    return out
  }
  const starts: Batcher<StartItem, StartAnswer> = batcher(timers, (items) =>
    singly(items, startBatch),
  )

  const writeBatch = async (
    items: readonly SessionWrite[],
  ): Promise<(WriteAnswer | ItemError)[]> => {
    const answers: (WriteAnswer | ItemError | 'busy')[] = []
    // a run's second write in one flush is applied after its first
    for (const round of rounds(items)) {
      const done = await singly(round, async (part) => {
        const { answers: first } = await act(
          (tx, context) => write(tx, part, context),
          undefined,
          'write',
        )
        const again = part.filter((_item, i) => first[i] === 'again')
        const second =
          again.length === 0
            ? []
            : (await act((tx, context) => write(tx, again, context, 'skip', false))).answers
        return first.map((answer, i): WriteAnswer | 'busy' => {
          const last = answer === 'again' ? second[again.indexOf(part[i] as SessionWrite)] : answer
          return last === 'again' || last === undefined ? 'busy' : last
        })
      })
      round.forEach((item, i) => {
        answers[items.indexOf(item)] = done[i] ?? 'busy'
      })
    }
    const busy = items.flatMap((item, at) => (answers[at] === 'busy' ? [{ item, at }] : []))
    for (let i = 0; i < busy.length; i += 4)
      await Promise.all(
        busy.slice(i, i + 4).map(async ({ item, at }) => {
          answers[at] = await alone(item)
        }),
      )
    return (answers as (WriteAnswer | ItemError)[]).map(refusedContent)
  }
  const alone = async (item: SessionWrite): Promise<WriteAnswer | ItemError> => {
    try {
      const { answers } = await act((tx, context) => write(tx, [item], context, 'wait'))
      const [answer] = answers
      if (answer !== undefined && answer !== 'busy' && answer !== 'again') return answer
      return refuse('not_found', `there is no run ${item.write.run}`, { run: item.write.run })
    } catch (error) {
      return new ItemError(error)
    }
  }
  const writes: Batcher<SessionWrite, WriteAnswer> = batcher(timers, writeBatch)

  return {
    start: (item) => starts.add(item),
    startMany: startBatch,
    write: (item) => writes.add(item),
    async idle() {
      await starts.idle()
      await writes.idle()
    },
  }
}

/** A write that the store refuses for its content is answered so; trying it again would not mend it. */
const refusedContent = (answer: WriteAnswer | ItemError): WriteAnswer | ItemError => {
  if (!(answer instanceof ItemError) || !(answer.error instanceof LeaseholdError)) return answer
  const { code, message, detail } = answer.error
  return code === 'invalid_request' || code === 'key_reused'
    ? refuse(code, message, detail)
    : answer
}

/** Each run at most once in a round; later writes of the same run go to later rounds. */
const rounds = (items: readonly SessionWrite[]): SessionWrite[][] => {
  const out: SessionWrite[][] = []
  const seen = new Map<string, number>()
  for (const item of items) {
    const at = seen.get(item.write.run) ?? 0
    seen.set(item.write.run, at + 1)
    ;(out[at] ??= []).push(item)
  }
  return out
}

/** A data error in a batch re-runs its items one by one, so that one bad item harms no other (RAIL-09). */
const singly = async <I, O>(
  items: readonly I[],
  run: (items: readonly I[]) => Promise<readonly O[]>,
): Promise<(O | ItemError)[]> => {
  try {
    return [...(await run(items))]
  } catch (error) {
    // what another try would not mend may be the fault of one row
    if (error instanceof Fault && error.retryable) throw error
    if (items.length === 1) return [new ItemError(error)]
    const answers: (O | ItemError)[] = []
    for (const item of items) {
      try {
        const [answer] = await run([item])
        answers.push(answer as O)
      } catch (each) {
        answers.push(new ItemError(each))
      }
    }
    return answers
  }
}
