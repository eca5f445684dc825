import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Session, TestStore } from '../support/store.ts'
import { entry, openStore } from '../support/store.ts'

// there a statement writes two tables at once, and on SQLite an ask costs no trip
const onPostgres = process.env['LEASEHOLD_TEST_STORE'] !== undefined

describe('round trips to the store', () => {
  let test: TestStore
  let session: Session

  beforeEach(async () => {
    test = await openStore()
    session = await test.session()
    // the first start adds its lane
    await test.start('w')
    await session.complete((await session.claim())[0] as never)
  })
  afterEach(() => test.close())

  const trips = async (work: () => Promise<unknown>): Promise<number> => {
    const before = test.engine.store.roundTrips
    await work()
    return test.engine.store.roundTrips - before
  }
  const starts = (count: number): Promise<unknown> =>
    Promise.all(Array.from({ length: count }, () => test.start('w')))

  it.each([1, 50])('PERF %i starts without limits are one', async (count) => {
    expect(await trips(() => starts(count))).toBe(1)
  })

  it.each([1, 50])('PERF a claim of %i runs is two', async (count) => {
    await starts(count)
    expect(await trips(() => session.claim(count))).toBe(2)
  })

  it.each([1, 50])(
    `PERF checkpoints of %i runs are ${onPostgres ? 'one' : 'two'}`,
    async (count) => {
      await starts(count)
      const runs = await session.claim(count)
      expect(
        await trips(() => Promise.all(runs.map((run) => session.checkpoint(run, 'a', 'b')))),
      ).toBe(onPostgres ? 1 : 2)
    },
  )

  it.each([1, 50])(
    'PERF the plain ends of %i runs, with their last steps, are one',
    async (count) => {
      await starts(count)
      const runs = await session.claim(count)
      const end = { kind: 'complete', output: '1' } as const
      expect(
        await trips(() =>
          Promise.all(runs.map((run) => session.write(run, { entries: [entry(1)], end }))),
        ),
      ).toBe(1)
    },
  )

  it.each([1, 50])('PERF hand-backs of %i runs are two', async (count) => {
    await starts(count)
    const runs = await session.claim(count)
    expect(
      await trips(() =>
        Promise.all(runs.map((run) => session.end(run, { kind: 'hand_back', reason: 'shutdown' }))),
      ),
    ).toBe(2)
  })

  it('PERF checkpoints, ends and hand-backs that come together are three together: the plain ones, and the others’ two', async () => {
    await starts(30)
    const runs = await session.claim(30)
    const write = (i: number) => {
      const run = runs[i] as (typeof runs)[number]
      if (i % 3 === 0) return session.checkpoint(run, 'a')
      if (i % 3 === 1) return session.complete(run)
      return session.end(run, { kind: 'hand_back', reason: 'shutdown' })
    }
    expect(await trips(() => Promise.all(runs.map((_run, i) => write(i))))).toBe(3)
  })

  it('PERF a renewal is one, however much is held', async () => {
    await starts(50)
    await session.claim(50)
    expect(await trips(() => session.renew())).toBe(1)
  })
})
