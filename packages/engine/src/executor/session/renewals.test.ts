import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kernel/random.ts'
import type { RenewAnswer, RenewRequest } from '../../model/work.ts'
import { virtualClock } from '../../testing/clock.ts'
import type { Sent } from './renewals.ts'
import { elapsedSince, startRenewals } from './renewals.ts'

const START = 1_000_000
const RENEW_MS = 10_000
const answer: RenewAnswer = { ok: false, code: 'session_ended', message: 'heard', detail: {} }
const request: RenewRequest = { session: 'ses_1', draining: false, status: null, letGo: [] }

/** Renewals whose answers come when the test gives them. */
const renewing = () => {
  const clock = virtualClock(START)
  const open: { readonly give: () => void; readonly fail: (error: Error) => void }[] = []
  const heard: Sent[] = []
  const failed: Readonly<Record<string, unknown>>[] = []
  const note = () => undefined
  const renewals = startRenewals({
    ports: {
      time: clock.time,
      timers: clock.timers(),
      random: seededRandom(1),
      log: {
        debug: (event, facts) => void failed.push({ event, ...facts }),
        info: note,
        warn: note,
        error: note,
      },
    },
    session: 'ses_1',
    renewMs: RENEW_MS,
    say: () => request,
    send: () =>
      new Promise((resolve, reject) => open.push({ give: () => resolve(answer), fail: reject })),
    heard: (_, __, sent) => void heard.push(sent),
  })
  /** Moves time on, one timer after the other, and lets what follows from each happen. */
  const pass = async (ms: number): Promise<void> => {
    const until = clock.time.now() + ms
    for (let at = clock.next(); at !== null && at <= until; at = clock.next()) {
      clock.moveTo(at)
      await Promise.resolve()
    }
    clock.moveTo(until)
  }
  const turn = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await Promise.resolve()
  }
  return { renewals, clock, open, heard, failed, pass, turn }
}

describe('RUN-06 renewals', () => {
  it('RUN-06 the first is sent after the interval, and the next after the interval from its answer', async () => {
    const x = renewing()
    await x.pass(RENEW_MS - 1)
    expect(x.open).toHaveLength(0)
    await x.pass(1)
    expect(x.open).toHaveLength(1)
    await x.pass(400)
    x.open[0]?.give()
    await x.turn()
    expect(x.heard).toEqual([{ wall: START + RENEW_MS, mono: START + RENEW_MS }])
    await x.pass(RENEW_MS - 1)
    expect(x.open).toHaveLength(1)
    await x.pass(1)
    expect(x.open).toHaveLength(2)
  })

  it('RUN-06 one that failed is logged with its session, and repeated within the second', async () => {
    const x = renewing()
    await x.pass(RENEW_MS)
    const error = new Error('cut')
    x.open[0]?.fail(error)
    await x.turn()
    expect(x.failed).toEqual([{ event: 'renewal.failed', session: 'ses_1', error }])
    await x.pass(1_500)
    expect(x.open.length).toBeGreaterThanOrEqual(2)
  })

  it('RUN-06 asked for soon it goes at once, unless one is under way', async () => {
    const x = renewing()
    x.renewals.soon()
    await x.pass(0)
    expect(x.open).toHaveLength(1)
    x.renewals.soon()
    x.renewals.soon()
    await x.pass(0)
    expect(x.open).toHaveLength(1)
    x.open[0]?.give()
    await x.turn()
    x.renewals.soon()
    await x.pass(0)
    expect(x.open).toHaveLength(2)
  })

  it('RUN-06 once stopped nothing is sent, heard or logged', async () => {
    const x = renewing()
    await x.pass(RENEW_MS)
    x.renewals.soon()
    x.renewals.stop()
    x.open[0]?.give()
    await x.turn()
    x.renewals.soon()
    await x.pass(60_000)
    expect(x.open).toHaveLength(1)
    expect(x.heard).toEqual([])
    const y = renewing()
    await y.pass(RENEW_MS)
    y.renewals.stop()
    y.open[0]?.fail(new Error('cut'))
    await y.turn()
    expect(y.failed).toEqual([])
    expect(y.clock.next()).toBeNull()
  })
})

describe('RUN-08 trust', () => {
  it('RUN-08 is counted by the clock that says more', () => {
    const at = (now: number, mono: number) => ({ now: () => now, mono: () => mono })
    expect(elapsedSince({ wall: 100, mono: 50 }, at(130, 55))).toBe(30)
    expect(elapsedSince({ wall: 100, mono: 50 }, at(101, 95))).toBe(45)
  })
})
