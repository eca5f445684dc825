// What it means that one of several databases does not answer: what is there waits for it, and nothing else does.
import { Fault } from '../../kernel/errors.ts'
import type { Ports } from '../../kernel/ports.ts'
import type { Timers } from '../../kernel/timers.ts'
import { sleep } from '../../kernel/timers.ts'

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

/** How long a shard is waited for where others have answered, in ms. */
export const PATIENCE_MS = 1_000

/** What comes of it; a fault that may pass where nothing has after `ms`. What was begun goes on, and nobody hears of it. */
export const within = async <T>(timers: Timers, ms: number, work: Promise<T>): Promise<T> => {
  const come = new AbortController()
  const late = sleep(timers, ms, come.signal).then(() => {
    throw new Fault('store_unavailable', `the database did not answer within ${ms} ms`)
  })
  // canceled, it is of no interest how it ends
  late.catch(() => undefined)
  try {
    return await Promise.race([work, late])
  } finally {
    come.abort()
  }
}

/**
 * Which shards did not answer of late, and for how long they are not asked where others will do: for twice as long each time, up
 * to ten times the patience. While one asks again the others go past it.
 */
export interface Away {
  has(number: number): boolean
  /**
   * What comes of it; a fault that may pass, or no answer within the patience, is null, and noted. The patience begins with
   * `after`: what waits by itself is not late before.
   */
  asked<T>(
    number: number,
    work: Promise<T>,
    after?: Promise<unknown>,
  ): Promise<{ readonly answer: T } | null>
}

export const makeAway = (
  { time, timers, log }: Pick<Ports, 'time' | 'timers' | 'log'>,
  patienceMs: number,
  heard: (error: unknown) => void,
): Away => {
  const lost = new Map<number, { readonly forMs: number; readonly until: number }>()
  const note = (number: number, error: unknown): null => {
    // once, and not each time that it is asked again
    if (!lost.has(number)) log.warn('shard.away', { shard: number, error })
    heard(error)
    const forMs = Math.min(2 * (lost.get(number)?.forMs ?? patienceMs / 2), 10 * patienceMs)
    lost.set(number, { forMs, until: time.mono() + forMs })
    return null
  }
  return {
    has: (number) => (lost.get(number)?.until ?? Number.NEGATIVE_INFINITY) > time.mono(),
    async asked(number, work, after) {
      const come = new AbortController()
      const known = lost.get(number)
      if (known && known.until <= time.mono())
        lost.set(number, { ...known, until: time.mono() + patienceMs })
      try {
        const late = (async () => {
          if (after) await after
          await sleep(timers, patienceMs, come.signal)
          return null
        })()
        const answer = await Promise.race([work.then((given) => ({ answer: given })), late])
        if (answer === null) {
          const why = `shard ${number} did not answer within ${patienceMs} ms`
          return note(number, new Fault('store_unavailable', why, { detail: { shard: number } }))
        }
        if (lost.delete(number)) log.info('shard.back', { shard: number })
        return answer
      } catch (error) {
        if (!isAway(error)) throw error
        return note(number, error)
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
