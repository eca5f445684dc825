import { expect, test } from 'vitest'
import { slotsOf } from './slots.ts'

test('RAIL-16 S13 slots of a year are those of an independent enumeration', () => {
  const of = {
    zones: ['Europe/Berlin', 'Australia/Lord_Howe'],
    seldom: ['30 2 * * *', '0 0 31 * *', '15 3 8-14 3 0'],
    often: ['*/20 0-3 * * *'],
  }
  const { looked, wrong } = slotsOf(1, 4, of)
  expect(wrong).toEqual([])
  // one of them alone ticks once a day in each zone, and no time of a day is left out by a change of the clocks
  expect(looked).toBeGreaterThan(2 * 365 + 2 * 13 * 7 * 12)
  expect(looked).toBeLessThan(2 * (366 + 31 + 7) + 2 * 14 * 7 * 12 + 2)
})
