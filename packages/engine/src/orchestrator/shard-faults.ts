// What it means that one of several databases does not answer: what is there waits for it, and nothing else does.
import { Fault } from '../kernel/errors.ts'
import type { Time } from '../kernel/time.ts'
import type { Timers } from '../kernel/timers.ts'
import { sleep } from '../kernel/timers.ts'

/** Whether the same may be asked of the shard again: it did not answer, or could not. */
export const isAway = (error: unknown): boolean => error instanceof Fault && error.retryable

/** Does something at a shard; a fault that may pass says which one it is of, beside what it says. */
export const atShard = async <T>(
  number: number,
  count: number,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Fault) || !error.retryable || count === 1) throw error
    throw new Fault(
      error.code as ConstructorParameters<typeof Fault>[0],
      `shard ${number} of ${count}: ${error.message}. What is on the others goes on; repeat in a moment`,
      { cause: error, detail: { ...error.detail, shard: number } },
    )
  }
}

/** Which shards did not answer of late, and for how long they are not asked where others will do. */
export interface Away {
  has(number: number): boolean
  /** What comes of it; a fault that may pass, or no answer within the patience, is null, and noted. */
  asked<T>(number: number, work: Promise<T>): Promise<{ readonly answer: T } | null>
}

export const makeAway = (
  { time, timers }: { readonly time: Time; readonly timers: Timers },
  patienceMs: number,
  heard: (error: unknown) => void,
): Away => {
  const until = new Map<number, number>()
  const note = (number: number): null => {
    until.set(number, time.mono() + patienceMs)
    return null
  }
  return {
    has: (number) => (until.get(number) ?? Number.NEGATIVE_INFINITY) > time.mono(),
    async asked(number, work) {
      const come = new AbortController()
      try {
        const late = sleep(timers, patienceMs, come.signal).then(() => null)
        const answer = await Promise.race([work.then((given) => ({ answer: given })), late])
        if (answer === null) {
          heard(
            new Fault(
              'store_unavailable',
              `shard ${number} did not answer within ${patienceMs} ms`,
              {
                detail: { shard: number },
              },
            ),
          )
          return note(number)
        }
        until.delete(number)
        return answer
      } catch (error) {
        if (!isAway(error)) throw error
        heard(error)
        return note(number)
      } finally {
        come.abort()
      }
    },
  }
}

/** Every one is waited for, also where one fails: the others have been done by then. */
export const all = async <T>(asked: readonly Promise<T>[]): Promise<T[]> => {
  const done = await Promise.allSettled(asked)
  return done.map((each) => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
}
