// Group commit: while one flush is in flight the next collects. Throughput does not cost latency when idle, since an
// item that finds nothing in flight leaves in the next turn of the event loop. Used by every hot call.
import type { Timers } from './timers.ts'

export interface Batcher<I, O> {
  /** Resolves with the item's own answer, or rejects with the error of the flush that carried it. */
  add(item: I): Promise<O>
  /** Resolves when nothing is collected or in flight. */
  idle(): Promise<void>
}

interface Pending<I, O> {
  readonly item: I
  readonly resolve: (answer: O) => void
  readonly reject: (error: unknown) => void
}

/** An answer that rejects its own item alone, while the others of its batch are answered. */
export class ItemError {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

/**
 * `flush` gets up to `max` items in the order in which they came and answers one outcome per item, in that order.
 * Items are sent at least once each; a flush that throws rejects all its items and the next one goes on.
 */
export const batcher = <I, O>(
  timers: Timers,
  flush: (items: readonly I[]) => Promise<readonly (O | ItemError)[]>,
  max = 500,
): Batcher<I, O> => {
  let collected: Pending<I, O>[] = []
  let busy = false
  let waiting: (() => void)[] = []

  const pump = async (): Promise<void> => {
    while (collected.length > 0) {
      const part = collected.length <= max ? collected : collected.slice(0, max)
      collected = part === collected ? [] : collected.slice(max)
      try {
        const answers = await flush(part.map((pending) => pending.item))
        part.forEach((pending, i) => {
          const answer = answers[i] as O | ItemError
          if (answer instanceof ItemError) pending.reject(answer.error)
          else pending.resolve(answer)
        })
      } catch (error) {
        for (const pending of part) pending.reject(error)
      }
    }
    busy = false
    const resolves = waiting
    waiting = []
    for (const resolve of resolves) resolve()
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        collected.push({ item, resolve, reject })
        if (busy) return
        busy = true
        timers.soon(() => void pump())
      }),
    idle: () => (busy ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
  }
}
