import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs, retryFaults, triesLeft } from './retry.ts'

describe('RUN-27 retries', () => {
  it('RUN-27 the delay doubles from 1 s to 5 min', () => {
    const delays = Array.from({ length: 12 }, (_, i) => backoffMs({}, i + 1, 0))
    expect(delays.slice(0, 5)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
    expect(delays.at(-1)).toBe(300_000)
  })

  it('RUN-27 base, factor and max are the policy’s', () => {
    const policy = { base: '10s', factor: 3, max: '1m' } as const
    expect([1, 2, 3].map((n) => backoffMs(policy, n, 0))).toEqual([10_000, 30_000, 60_000])
  })

  it('RUN-27 chance takes off up to half and never adds', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (failures, chance) => {
          const full = backoffMs({}, failures, 0)
          const ms = backoffMs({}, failures, chance)
          return Number.isInteger(ms) && ms <= full && ms >= full / 2 - 1
        },
      ),
    )
  })

  it('RUN-27 maxAttempts counts the first try', () => {
    expect([1, 2, 3].map((failures) => triesLeft({ maxAttempts: 3 }, 1, failures))).toEqual([
      true,
      true,
      false,
    ])
    expect([1, 2, 3].map((failures) => triesLeft({}, 3, failures))).toEqual([true, true, false])
    expect(triesLeft({}, 1, 1)).toBe(false)
  })

  it('RUN-27 a policy that cannot be kept is named fault by fault', () => {
    expect(retryFaults({}, 'retry')).toEqual([])
    for (const maxAttempts of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(retryFaults({ maxAttempts }, 'retry')).toEqual([
        expect.stringContaining('retry.maxAttempts is'),
      ])
    for (const factor of [0.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(retryFaults({ factor, maxAttempts: 0 }, 'step')).toHaveLength(2)
  })
})
