import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { QueueLoad, SpawnHistory, SpawnPolicy } from './spawn.ts'
import { decideSpawn, judgeSpawned, spawnBackoffMs } from './spawn.ts'

const NOW = 1_000_000
const load: QueueLoad = { waiting: 14, oldestWaitMs: 5_000, capacity: 20, free: 0 }
const history: SpawnHistory = { open: 0, starting: 0, lastAt: null, failures: 0, failedAt: null }
const policy: SpawnPolicy = { max: 3, slots: 10, afterMs: 0, cooldownMs: 10_000, startByMs: 60_000 }
const decide = (more: Partial<QueueLoad & SpawnHistory & SpawnPolicy> = {}) =>
  decideSpawn({ ...load, ...more }, { ...history, ...more }, { ...policy, ...more }, NOW)

describe('OPS-05 whether an executor is started', () => {
  it('one is where runs wait and no slot is free, and its reason says so', () => {
    expect(decide()).toEqual({
      spawn: true,
      reason: '14 runs wait, the oldest for 5 s, and none of 20 slots is free',
    })
    expect(decide({ capacity: 0 }).reason).toContain('no executor serves the queue')
  })

  it.each([
    [{ waiting: 0 }, 'nothing waits'],
    [{ free: 1 }, '1 of 20 slots are free'],
    [{ afterMs: 6_000 }, 'the oldest run has waited for 5 s, of 6 s'],
    [{ open: 3 }, '3 of at most 3 that were started are there'],
    [{ open: 2, starting: 2 }, '2 that are on their way have room for the 14 that wait'],
    [{ lastAt: NOW - 9_999 }, 'the last was started less than 10 s ago'],
    [
      { failures: 2, failedAt: NOW - 39_999 },
      'the last 2 came to nothing; none is started for 40 s',
    ],
  ])('none is where %j', (more, reason) => {
    expect(decide(more)).toEqual({ spawn: false, reason })
  })

  it.each([
    [{ open: 2, starting: 1 }],
    [{ lastAt: NOW - 10_000 }],
    // written by a clock that was ahead
    [{ lastAt: NOW + 1_000_000_000 }],
    [{ failures: 2, failedAt: NOW - 40_000 }],
  ])('one is where %j', (more) => {
    expect(decide(more).spawn).toBe(true)
  })

  it('there are never more than the most, whatever else is so', () => {
    const whole = fc.nat(50)
    fc.assert(
      fc.property(
        fc.record({
          waiting: whole,
          free: whole,
          starting: whole,
          open: whole,
          max: whole,
          slots: whole,
          failures: whole,
        }),
        (more) => {
          if (decide(more).spawn) {
            expect(more.open).toBeLessThan(more.max)
            expect(more.free).toBe(0)
            expect(more.waiting).toBeGreaterThan(0)
          }
        },
      ),
    )
  })

  it('waits ever longer after failures, and not for ever', () => {
    const waits = [0, 1, 2, 3, 50].map((failures) => spawnBackoffMs(failures, 10_000))
    expect(waits).toEqual([0, 20_000, 40_000, 80_000, 600_000])
    expect(spawnBackoffMs(1, 0)).toBe(2_000)
  })
})

describe('OPS-05 what is done with an executor that was started', () => {
  const limits = { startByMs: 60_000, stopMs: 30_000 }
  it.each([
    ['starting', 59_999, null, 'leave'],
    ['starting', 60_000, null, 'kill'],
    ['live', 9e9, null, 'leave'],
    ['ended', 1, null, 'tell'],
    ['ended', 40_000, 10_001, 'leave'],
    ['live', 40_000, 10_000, 'kill'],
  ] as const)('%s at %i ms, told at %s: %s', (seen, now, toldAt, what) => {
    expect(judgeSpawned({ startedAt: 0, seen, toldAt }, limits, now)).toBe(what)
  })
})
