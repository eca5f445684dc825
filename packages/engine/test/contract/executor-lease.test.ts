import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { elapsedSince } from '../../src/executor/session/renewals.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const holding = async () => {
  const body = gate<string>()
  const signals: AbortSignal[] = []
  const w = workflow('w', (ctx) =>
    ctx.step('a', ({ signal }) => {
      signals.push(signal)
      return body.opened
    }),
  )
  const x = executorOn(t, { workflows: [w] })
  await x.executor.start()
  const id = await t.start('w')
  await advance(t, 0)
  return { x, id, body, signals, w }
}
/** Moves time on while the sweeps pass, each on its interval. */
const live = async (ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 1_000) {
    await advance(t, Math.min(1_000, left))
    await t.pass('reap-sessions', 'poll-lanes')
  }
}

describe('RUN-06 renewing', () => {
  it('RUN-06 every ten seconds, by one call for all that is held', async () => {
    const { x, id } = await holding()
    await live(60_000)
    expect(x.count('renew')).toBe(6)
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('RUN-06 one that is not answered within a second is repeated each second, jittered', async () => {
    const { x } = await holding()
    x.cut.renew = 'never'
    await advance(t, 10_000)
    expect(x.count('renew')).toBe(1)
    await advance(t, 5_000)
    expect(x.count('renew')).toBeGreaterThanOrEqual(4)
    expect(x.count('renew')).toBeLessThanOrEqual(8)
    x.cut.renew = undefined
    await advance(t, 2_000)
    const answered = x.count('renew')
    await advance(t, 8_000)
    expect(x.count('renew') - answered).toBeLessThanOrEqual(1)
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('RUN-06 an executor whose session was ended drops its attempts and registers anew; bodies keep their slots', async () => {
    const { x, id, body, signals } = await holding()
    const before = x.executor.status().session
    t.sql(
      `update sessions set state = 'ended', ended_at = 1, end_reason = 'lease_lapsed', evidence = 'x' where id = ? returning id`,
      String(before),
    )
    await t.pass('reap-sessions')
    await live(11_000)
    const status = x.executor.status()
    expect(status.session).not.toBe(before)
    expect(signals[0]?.aborted).toBe(true)
    expect(status.jobs).toMatchObject([{ run: id, attempt: 1, phase: 'settling', left: true }])
    expect(only([...status.slots])['used']).toBe(1)
    // the run stays out of its claims while that body has not settled
    expect(t.run(id)).toMatchObject({ status: 'queued' })
    body.open('late')
    await live(2_000)
    expect(t.run(id)).toMatchObject({ attempt: 2 })
    expect(t.run(id)['status']).not.toBe('queued')
    void x.executor.stop()
    await advance(t, 30_000)
  })
})

describe('RUN-08 self-fencing', () => {
  it('RUN-08 B086 without a renewal for four fifths of the lease it aborts its attempts before anyone else can have them', async () => {
    const { x, id, signals } = await holding()
    x.cut.renew = 'before'
    await advance(t, 23_000)
    expect(signals[0]?.aborted).toBe(false)
    await advance(t, 2_600)
    expect(signals[0]?.aborted).toBe(true)
    expect(signals[0]?.reason).toMatchObject({ reason: 'lease_lost' })
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
    expect(x.executor.status()).toMatchObject({ fenced: true })
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('RUN-06 RUN-08 what a thread has renewed while the main loop was busy is heard before the lease is given up', async () => {
    const body = gate<string>()
    let signal: AbortSignal | undefined
    const w = workflow('w', (ctx) =>
      ctx.step('a', (step) => {
        signal = step.signal
        return body.opened
      }),
    )
    let hearIn: ((ms: number) => void) | undefined
    const x = executorOn(t, {
      workflows: [w],
      renewals: ({ heard, ports: { time, timers }, session }) => {
        const hear = (): void =>
          heard(
            { ok: true, now: 0, leaseUntil: 0, told: [], pending: [], wantsList: false },
            { session, draining: false, status: null, letGo: [] },
            { wall: time.now() - 1_000, mono: time.mono() - 1_000 },
          )
        hearIn = (ms) => void timers.after(ms, hear)
        return { soon: () => undefined, stop: () => undefined }
      },
    })
    await x.executor.start()
    await t.start('w')
    await advance(t, 23_900)
    // its message lies behind the timers that are due in the same turn
    hearIn?.(100)
    await advance(t, 200)
    expect(signal?.aborted).toBe(false)
    expect(x.executor.status()).toMatchObject({ fenced: false })
    await advance(t, 25_000)
    expect(signal?.aborted).toBe(true)
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('RUN-08 counts from the sending of the last renewal that succeeded, by whichever clock says more', () => {
    const time = { now: () => 5_000, mono: () => 1_200 }
    expect(elapsedSince({ wall: 1_000, mono: 1_000 }, time)).toBe(4_000)
    expect(elapsedSince({ wall: 4_900, mono: 200 }, time)).toBe(1_000)
  })

  it('RUN-08 hands back what it held before it claims again', async () => {
    const { x, id, body } = await holding()
    x.cut.renew = 'before'
    await advance(t, 25_600)
    const claims = x.count('claim')
    await advance(t, 1_000)
    expect(x.count('claim')).toBe(claims)
    x.cut.renew = undefined
    await advance(t, 2_500)
    expect(x.executor.status().fenced).toBe(false)
    const renewals = x.calls.filter(({ call }) => call === 'renew')
    expect(
      renewals.some(({ sent }) =>
        (sent as { letGo: { run: string }[] }).letGo.some((each) => each.run === id),
      ),
    ).toBe(true)
    expect(t.run(id)).toMatchObject({ status: 'queued', losses: 0 })
    body.open('late')
    await live(2_000)
    expect(t.run(id)).toMatchObject({ attempt: 2 })
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('EX-28 the lease expires, another drives the run, and the original settles late: one outcome, the holder’s', async () => {
    const { x, id, body, w } = await holding()
    x.cut.renew = 'before'
    x.cut.write = 'before'
    await live(40_000)
    expect(t.run(id)).toMatchObject({ status: 'queued', losses: 1 })
    const bodies: string[] = []
    const other = workflow('w', (ctx) => ctx.step('a', () => void bodies.push('other')))
    const y = executorOn(t, { workflows: [other], seed: 99 })
    await y.executor.start()
    await live(2_000)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 2 })
    const after = t.run(id)
    x.cut.renew = undefined
    x.cut.write = undefined
    body.open('late')
    await live(15_000)
    expect(t.run(id)).toEqual(after)
    expect(x.executor.status()).toMatchObject({ state: 'running', jobs: [] })
    expect(w.name).toBe('w')
    for (const each of [x, y]) void each.executor.stop()
    await advance(t, 30_000)
  })
})

describe('RUN-10 digests of an executor', () => {
  it('RUN-10 once a lease it says what it holds, and what it does not know goes back', async () => {
    const { x, id } = await holding()
    // a run that its session is said to hold, and that it never heard of
    const stray = await t.start('w', { queue: 'elsewhere' })
    const session = String(x.executor.status().session)
    t.sql(
      `update runs set status = 'running', session = ?, claim = 1, leased_at = 1, attempt = 1 where id = ? returning id`,
      session,
      stray,
    )
    // the digest goes with one renewal, what differs is said with the next, and then the list is sent
    await live(55_000)
    expect(t.run(stray)).toMatchObject({ status: 'queued' })
    expect(only(t.sql('select "end", reason from attempts where run = ?', stray))).toEqual({
      end: 'handed_back',
      reason: 'unknown_here',
    })
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
    void x.executor.stop()
    await advance(t, 30_000)
  })
})

describe('RAIL-06 the loss of the fence', () => {
  it('RAIL-06 crosses a function that catches everything: it is neither caught nor recorded, and only that attempt is dropped', async () => {
    const hold = gate()
    const caught: unknown[] = []
    const w = workflow({ name: 'w', retry: { maxAttempts: 5 } }, async (ctx) => {
      for (let i = 0; i < 3; i++)
        try {
          await ctx.step(`a${i}`, async () => {
            await hold.opened
            return i
          })
        } catch (error) {
          caught.push(error)
        }
      try {
        await ctx.all('all', {
          x: (inner) => inner.step('x', () => 1),
          y: (inner) => inner.sleep('y', '1s'),
        })
      } catch (error) {
        caught.push(error)
      }
      return 'mine'
    })
    const other = workflow('o', () => 'fine')
    const x = executorOn(t, { workflows: [w, other] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    await t.engine.takeFrom(id, 'op', 'x')
    await advance(t, 1_000)
    const b = await t.session({ definitions: [w.definition] })
    const taking = b.claim(1, { waitMs: 60_000 })
    await t.pass('wake-due')
    const { attempt } = only(await taking)
    hold.open()
    await advance(t, 5_000)
    expect(caught).toEqual([])
    expect(t.run(id)).toMatchObject({ status: 'running', attempt, session: b.id, failures: 0 })
    expect(t.sql('select * from steps')).toEqual([])
    expect(x.executor.status().jobs).toEqual([])
    const fine = await t.start('o')
    await advance(t, 0)
    expect(t.run(fine)['status']).toBe('succeeded')
    void x.executor.stop()
    await advance(t, 0)
  })

  it('EX-10 L3 a run that was taken from the only executor is driven there again as soon as its old body has settled', async () => {
    const { x, id, body, signals } = await holding()
    await t.engine.takeFrom(id, 'op', 'x')
    // it is given the run, hands it back, and asks for others while the body of the first attempt is at work
    await advance(t, 21_000)
    await t.pass('wake-due', 'poll-lanes')
    await advance(t, 0)
    expect(t.run(id)).toMatchObject({ status: 'queued', attempt: 2 })
    body.open('late')
    await advance(t, 100)
    expect(signals).toHaveLength(2)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 3, output: '"late"' })
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('EX-10 claims that may be cut are linked to nothing that outlives them', async () => {
    const any = vi.spyOn(AbortSignal, 'any')
    const added = vi.spyOn(AbortSignal.prototype, 'addEventListener')
    const removed = vi.spyOn(AbortSignal.prototype, 'removeEventListener')
    try {
      const { x, body } = await holding()
      await live(300_000)
      expect(x.count('claim')).toBeGreaterThan(8)
      // each `any` would stay with the signal of the executor, whatever becomes of its claim
      expect(any).not.toHaveBeenCalled()
      expect(added.mock.calls.length - removed.mock.calls.length).toBeLessThan(5)
      body.open('done')
      await live(1_000)
    } finally {
      any.mockRestore()
      added.mockRestore()
      removed.mockRestore()
    }
  })

  it('EX-10 L3 where a claim that is cut short fails, as over a network, its repeat is not cut', async () => {
    const body = gate<string>()
    const w = workflow('w', (ctx) => ctx.step('a', () => body.opened))
    const x = executorOn(t, { workflows: [w], cutFails: true })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    await t.engine.takeFrom(id, 'op', 'x')
    await advance(t, 21_000)
    await t.pass('wake-due', 'poll-lanes')
    await advance(t, 0)
    body.open('late')
    await advance(t, 1_000)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 3, output: '"late"' })
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('RAIL-06 a stale write of any kind says so to the driver alone: nothing is logged as an error', async () => {
    const { x, id, body } = await holding()
    await t.engine.takeFrom(id, 'op', 'x')
    body.open('late')
    await advance(t, 1_000)
    expect(x.logged.filter(({ level }) => level === 'error')).toEqual([])
    expect(t.run(id)['error']).toBeNull()
    void x.executor.stop()
    await advance(t, 30_000)
  })
})

describe('RUN-07 repeats of an executor', () => {
  it('RUN-07 a write whose answer was lost is repeated until it is answered, and stored once', async () => {
    const hold = gate()
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', () => hold.opened)
      return ctx.step('b', () => 2)
    })
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    x.cut.write = 'after'
    hold.open()
    await advance(t, 3_000)
    expect(x.count('write')).toBeGreaterThan(2)
    x.cut.write = undefined
    await advance(t, 3_000)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '2', attempt: 1, entries: 2 })
    expect(t.sql('select n, key from steps order by n')).toEqual([
      { n: 1, key: 'a' },
      { n: 2, key: 'b' },
    ])
    expect(t.sql('select attempt, "end" from attempts')).toEqual([{ attempt: 1, end: 'completed' }])
    void x.executor.stop()
    await advance(t, 0)
  })
})
