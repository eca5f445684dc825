import { describe, expect, it } from 'vitest'
import type { Batcher } from './batcher.ts'
import { batcher, ItemError } from './batcher.ts'
import type { Timers } from './timers.ts'

const turns: Timers = {
  after: () => () => undefined,
  soon: (run) => void setImmediate(run),
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A flush that is answered by hand. */
const byHand = (max?: number) => {
  const flushes: {
    items: readonly number[]
    answer: (answers: readonly (string | ItemError)[]) => void
    fail: (error: unknown) => void
  }[] = []
  const flush = (items: readonly number[]): Promise<readonly (string | ItemError)[]> =>
    new Promise((answer, fail) => flushes.push({ items, answer, fail }))
  const made: Batcher<number, string> =
    max === undefined ? batcher(turns, flush) : batcher(turns, flush, max)
  return { made, flushes }
}
const texts = (items: readonly number[]): string[] => items.map((item) => `#${item}`)

describe('RAIL-09 group commit', () => {
  it('RAIL-09 what comes in one turn leaves together, in its order, and each gets its own answer', async () => {
    const { made, flushes } = byHand()
    const answers = Promise.all([made.add(1), made.add(2), made.add(3)])
    expect(flushes).toHaveLength(0)
    await turn()
    expect(flushes.map(({ items }) => items)).toEqual([[1, 2, 3]])
    flushes[0]?.answer(['a', 'b', 'c'])
    expect(await answers).toEqual(['a', 'b', 'c'])
  })

  it('RAIL-09 one flush is in flight; what comes meanwhile is the next, at once when it is answered', async () => {
    const { made, flushes } = byHand()
    const first = made.add(1)
    await turn()
    const later = [made.add(2), made.add(3)]
    for (let i = 0; i < 5; i++) await turn()
    expect(flushes).toHaveLength(1)
    flushes[0]?.answer(['a'])
    expect(await first).toBe('a')
    expect(flushes.map(({ items }) => items)).toEqual([[1], [2, 3]])
    flushes[1]?.answer(['b', 'c'])
    expect(await Promise.all(later)).toEqual(['b', 'c'])
  })

  it('RAIL-09 a flush that throws rejects its own items alone, and the next goes on', async () => {
    const { made, flushes } = byHand()
    const first = Promise.allSettled([made.add(1), made.add(2)])
    await turn()
    const second = made.add(3)
    flushes[0]?.fail(new Error('disk'))
    expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    flushes[1]?.answer(['c'])
    expect(await second).toBe('c')
  })

  it('RAIL-09 an ItemError rejects its item and no other', async () => {
    const { made, flushes } = byHand()
    const all = Promise.allSettled([made.add(1), made.add(2), made.add(3)])
    await turn()
    flushes[0]?.answer(['a', new ItemError('bad'), 'c'])
    expect(await all).toEqual([
      { status: 'fulfilled', value: 'a' },
      { status: 'rejected', reason: 'bad' },
      { status: 'fulfilled', value: 'c' },
    ])
  })

  it('RAIL-09 no flush is larger than its maximum, and the order holds across flushes', async () => {
    const { made, flushes } = byHand(2)
    const all = Promise.all([1, 2, 3, 4, 5].map((item) => made.add(item)))
    await turn()
    for (let i = 0; i < 3; i++) {
      flushes[i]?.answer(texts(flushes[i]?.items ?? []))
      await turn()
    }
    expect(flushes.map(({ items }) => items)).toEqual([[1, 2], [3, 4], [5]])
    expect(await all).toEqual(['#1', '#2', '#3', '#4', '#5'])
  })

  it('RAIL-09 idle resolves when nothing is collected or in flight, and at once when nothing is', async () => {
    const { made, flushes } = byHand()
    await made.idle()
    void made.add(1)
    let idle = false
    const waiting = made.idle().then(() => (idle = true))
    await turn()
    expect(idle).toBe(false)
    flushes[0]?.answer(['a'])
    await waiting
    expect(idle).toBe(true)
  })
})
