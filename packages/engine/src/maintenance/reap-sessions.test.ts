import { describe, expect, it } from 'vitest'
import { defaults } from '../model/settings.ts'
import type { Upkeep } from './loop.ts'
import { reapSessions } from './reap-sessions.ts'

const SWEEP_MS = 1_000
const LEASE_MS = 30_000

interface Said {
  readonly event: string
  readonly facts: Readonly<Record<string, unknown>>
}

/** A reaper whose clocks the test sets, and whose transactions are counted and answered by it. */
const reaping = ({ shared = false } = {}) => {
  const clock = { wall: 5_000_000, mono: 700_000 }
  /** How long the store takes to say what its clock says. */
  let answerMs = 0
  const said: Said[] = []
  const note = (event: string, facts: Readonly<Record<string, unknown>> = {}) =>
    void said.push({ event, facts })
  const answers: unknown[] = []
  let [acts, recounts] = [0, 0]
  const upkeep = {
    ports: {
      time: { now: () => clock.wall, mono: () => clock.mono },
      log: { debug: note, info: note, warn: note, error: note },
    },
    settings: { ...defaults, leaseMs: LEASE_MS, renewMs: 10_000 },
    storeClock: () => {
      const { wall } = clock
      clock.wall += answerMs
      clock.mono += answerMs
      return Promise.resolve(wall)
    },
    act: () => {
      acts += 1
      return Promise.resolve(answers.shift() ?? { ended: [], examined: 0 })
    },
    store: {
      run: (transition: unknown) => {
        expect(transition).toBeTypeOf('function')
        recounts += 1
        return Promise.resolve()
      },
    },
  } as unknown as Upkeep
  const sweep = reapSessions(SWEEP_MS, {
    reading: { wall: clock.wall, early: clock.mono, late: clock.mono },
    shared,
  })
  const pass = async (ms: number, jump = 0) => {
    clock.mono += ms
    clock.wall += ms + jump
    const before = acts
    const { skipped, ...rest } = await sweep.pass(upkeep)
    // a pass that ends nobody still takes back what ended sessions held
    return { ...rest, ends: skipped === 0, acts: acts - before }
  }
  /** Looks each second for `ms`. */
  const watched = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= SWEEP_MS) await pass(Math.min(left, SWEEP_MS))
  }
  return {
    clock,
    sweep,
    upkeep,
    pass,
    watched,
    said,
    answers,
    slow: (ms: number) => void (answerMs = ms),
    get recounts() {
      return recounts
    },
  }
}

describe('RUN-11 S14 when sessions may be ended', () => {
  it('RUN-11 on a file of its own from the first pass, on a shared store once a whole lease has been watched', async () => {
    const own = reaping()
    expect(await own.pass(SWEEP_MS)).toMatchObject({ ends: true, acts: 2 })
    const shared = reaping({ shared: true })
    await shared.watched(LEASE_MS - SWEEP_MS)
    expect(await shared.pass(SWEEP_MS - 1)).toMatchObject({ ends: false, acts: 1 })
    expect(await shared.pass(1)).toMatchObject({ ends: true, acts: 2 })
    expect(shared.said).toEqual([])
  })

  it('RUN-11 what has been watched counts also where the turn was another’s', async () => {
    const x = reaping({ shared: true })
    for (let i = 0; i < 30; i++) {
      x.clock.mono += SWEEP_MS
      x.clock.wall += SWEEP_MS
      await x.sweep.watch?.(x.upkeep)
    }
    expect(await x.pass(0)).toMatchObject({ ends: true })
    x.clock.wall += 60_000
    await x.sweep.watch?.(x.upkeep)
    expect(await x.pass(SWEEP_MS)).toMatchObject({ ends: false })
  })

  for (const [jump, jumped] of [
    [2_001, true],
    [-2_001, true],
    [2_000, false],
    [-2_000, false],
  ] as const)
    it(`S14 a clock that moves by ${jump} ms between two passes has ${jumped ? '' : 'not '}jumped`, async () => {
      const x = reaping()
      await x.pass(SWEEP_MS)
      expect(await x.pass(SWEEP_MS, jump)).toMatchObject({ ends: !jumped })
      expect(x.recounts).toBe(jumped ? 1 : 0)
      if (!jumped) return
      expect(x.said).toEqual([
        {
          event: 'reap.waits',
          facts: { stalled: false, vague: false, jumped: true, leaseMs: LEASE_MS },
        },
      ])
      await x.watched(LEASE_MS - SWEEP_MS)
      expect(await x.pass(SWEEP_MS - 1)).toMatchObject({ ends: false })
      expect(await x.pass(1)).toMatchObject({ ends: true })
    })

  it('S14 a jump before the first pass is seen', async () => {
    const x = reaping()
    expect(await x.pass(SWEEP_MS, 60_000)).toMatchObject({ ends: false })
  })

  it('S14 a clock that creeps is caught by what it said a lease ago, and not by what it said before that', async () => {
    const x = reaping()
    for (let i = 0; i < 20; i++)
      expect(await x.pass(SWEEP_MS, 100), `pass ${i}`).toMatchObject({ ends: true })
    expect(await x.pass(SWEEP_MS, 100)).toMatchObject({ ends: false })
    const slow = reaping()
    for (let i = 0; i < 200; i++)
      expect(await slow.pass(SWEEP_MS, 60), `pass ${i}`).toMatchObject({ ends: true })
  })

  it('S14 what it said exactly a lease ago still counts', async () => {
    // the opening of the store, 30 s ago, is apart from it by more than a jump, and nothing since then is
    const x = reaping()
    await x.pass(2 * SWEEP_MS, 1_500)
    for (let i = 0; i < 13; i++) await x.pass(2 * SWEEP_MS)
    expect(x.said).toEqual([])
    await x.pass(2 * SWEEP_MS, 501)
    expect(x.said).toMatchObject([{ event: 'reap.waits', facts: { jumped: true } }])
    const later = reaping()
    await later.pass(2 * SWEEP_MS, 1_500)
    for (let i = 0; i < 15; i++) await later.pass(2 * SWEEP_MS)
    await later.pass(SWEEP_MS, 501)
    expect(later.said).toEqual([])
  })

  it('S14 a pass that comes late by more than two intervals has stood still', async () => {
    const x = reaping()
    await x.pass(SWEEP_MS)
    expect(await x.pass(2 * SWEEP_MS)).toMatchObject({ ends: true })
    expect(await x.pass(2 * SWEEP_MS + 1)).toMatchObject({ ends: false })
    expect(x.said).toMatchObject([
      { event: 'reap.waits', facts: { stalled: true, vague: false, jumped: false } },
    ])
    expect(x.recounts).toBe(0)
  })

  it('S14 an answer that was under way for long says little', async () => {
    const x = reaping()
    x.slow(2_000)
    expect(await x.pass(0)).toMatchObject({ ends: true })
    const y = reaping()
    y.slow(2_001)
    expect(await y.pass(0)).toMatchObject({ ends: false })
    expect(y.said).toMatchObject([{ event: 'reap.waits', facts: { vague: true } }])
  })
})

describe('RUN-11 what is taken back', () => {
  it('RUN-11 who is ended and what is taken back are logged and counted', async () => {
    const x = reaping()
    const attempt = { run: 'run_1', attempt: 2, session: 'ses_1', status: 'queued' }
    x.answers.push(
      { ended: [{ id: 'ses_1', evidence: 'its lease lapsed' }] },
      { ended: [attempt], examined: 3 },
    )
    expect(await x.pass(SWEEP_MS)).toEqual({ examined: 4, acted: 1, ends: true, acts: 2 })
    expect(x.said).toEqual([
      { event: 'session.reaped', facts: { session: 'ses_1', evidence: 'its lease lapsed' } },
      { event: 'attempt.taken_back', facts: attempt },
    ])
  })

  it('RUN-11 as long as whole batches come, and something comes of them', async () => {
    const x = reaping()
    const ended = [{ run: 'run_1', attempt: 1, session: 'ses_1', status: 'queued' }]
    x.answers.push(
      { ended: [] },
      { ended, examined: 500 },
      { ended, examined: 500 },
      { ended: [], examined: 500 },
      { ended, examined: 500 },
    )
    expect(await x.pass(SWEEP_MS)).toEqual({ examined: 1_500, acted: 2, ends: true, acts: 4 })
    const y = reaping()
    y.answers.push({ ended: [] }, { ended, examined: 499 }, { ended, examined: 500 })
    expect(await y.pass(SWEEP_MS)).toEqual({ examined: 499, acted: 1, ends: true, acts: 2 })
  })
})
