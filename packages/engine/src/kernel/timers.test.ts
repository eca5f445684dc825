import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { virtualClock } from '../testing/clock.ts'
import { sleep, systemTimers } from './timers.ts'

describe('RUN-29 delays beyond 2³¹ ms', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('RUN-29 are slept in parts and fire once, at their end', () => {
    const month = 30 * 86_400_000
    let fired = 0
    systemTimers.after(month, () => (fired += 1))
    vi.advanceTimersByTime(month - 1)
    expect(fired).toBe(0)
    vi.advanceTimersByTime(1)
    expect(fired).toBe(1)
    vi.advanceTimersByTime(month * 3)
    expect(fired).toBe(1)
  })

  it('RUN-29 can be canceled in any part', () => {
    let fired = 0
    const cancel = systemTimers.after(2 ** 31 + 10, () => (fired += 1))
    vi.advanceTimersByTime(2 ** 31 + 5)
    cancel()
    vi.advanceTimersByTime(2 ** 32)
    expect(fired).toBe(0)
  })
})

describe('a sleep', () => {
  it('EX-17 ends early when its signal is aborted, and leaves no timer', async () => {
    const clock = virtualClock(0)
    const stop = new AbortController()
    const slept = sleep(clock.timers(), 1_000, stop.signal)
    stop.abort()
    expect(await slept).toBe('aborted')
    expect(clock.next()).toBeNull()
    expect(await sleep(clock.timers(), 5, stop.signal)).toBe('aborted')
    const whole = sleep(clock.timers(), 5)
    clock.moveTo(5)
    expect(await whole).toBe('slept')
  })
})
