// The calendar against an enumeration that shares nothing with it (`test/support/enumeration.ts`), and its rules one by one.
import { describe, expect, test } from 'vitest'
import type { Segment } from '../../test/support/enumeration.ts'
import { compared, often, segmentsOf, seldom, zones } from '../../test/support/enumeration.ts'
import { calendar } from './calendar.ts'

const DAY = 86_400_000
const HOUR = 3_600_000
const at = (text: string): number => Date.parse(text)
const list = (cron: string, zone: string, from: string, count: number): string[] => {
  const out: string[] = []
  for (let last = at(from); out.length < count;) {
    const next = calendar.next(cron, zone, last)
    if (next === null) break
    out.push(new Date(next).toISOString())
    last = next
  }
  return out
}

/** At night ten years; a change in the code shows in the first as well. */
const YEARS = process.env['LEASEHOLD_NIGHTLY'] === '1' ? 10 : 2

test('RAIL-16 S13 around every change of the clocks for years, fifty expressions in twelve zones tick as an independent enumeration says', () => {
  expect(seldom.length + often.length).toBe(50)
  const [from, to] = [at('2026-01-01T00:00:00Z'), at(`${2026 + YEARS}-01-01T00:00:00Z`)]
  let wrong = 0
  let ticks = 0
  const check = (cron: string, zone: string, segments: Segment[], begin: number, end: number) => {
    const found = compared(cron, zone, segments, begin, end)
    ticks += found.ticks
    wrong += found.wrong.length
    expect.soft(found.wrong).toEqual([])
  }
  const around = (segments: readonly Segment[], change: number, ms: number): Segment[] =>
    segments
      .filter((each) => each.to > change - ms - DAY && each.from < change + ms + DAY)
      .map((each) => ({
        ...each,
        from: Math.max(each.from, change - ms - DAY),
        to: Math.min(each.to, change + ms + DAY),
      }))
  const look = (
    crons: readonly string[],
    zone: string,
    segments: Segment[],
    change: number,
    ms: number,
  ) => {
    for (const cron of crons)
      check(cron, zone, around(segments, change, ms), change - ms, change + ms)
  }
  for (const zone of zones) {
    const segments = segmentsOf(zone, from, to)
    // where a zone does something to a wall clock, and a month in which it does nothing
    for (const { from: change } of segments.slice(1)) {
      look(seldom, zone, segments, change, 1.5 * DAY)
      look(often, zone, segments, change, 1.5 * HOUR)
    }
    look(seldom, zone, segments, from + 45 * DAY, 15 * DAY)
  }
  expect(wrong).toBe(0)
  expect(ticks).toBeGreaterThan(10_000 * YEARS)
})

describe('RAIL-16 a time that the clocks skip fires once after it, one that comes twice fires once', () => {
  test.each([
    // on 29 March 2026 at 01:00 UTC Berlin goes from 02:00 to 03:00
    [
      '30 2 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'],
    ],
    [
      '*/15 2 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T01:00:00.000Z', '2026-03-30T00:00:00.000Z'],
    ],
    [
      '0 2,3 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T01:00:00.000Z', '2026-03-30T00:00:00.000Z'],
    ],
    // on 25 October 2026 at 01:00 UTC it goes from 03:00 to 02:00
    [
      '30 2 * * *',
      '2026-10-24T12:00:00Z',
      ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'],
    ],
    ['0 * * * *', '2026-10-25T00:00:00Z', ['2026-10-25T02:00:00.000Z', '2026-10-25T03:00:00.000Z']],
  ])('%s in Europe/Berlin after %s', (cron, from, expected) => {
    expect(list(cron, 'Europe/Berlin', from, expected.length)).toEqual(expected)
  })
})

test('B066 a list of hours fires at its local hours through both changes', () => {
  for (const day of ['2026-03-28', '2026-10-24']) {
    const fires = list('0 7,9 * * *', 'Europe/Berlin', `${day}T00:00:00Z`, 6)
    const local = fires.map((each) =>
      new Date(each).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'short' }),
    )
    expect(local).toEqual(['07:00', '09:00', '07:00', '09:00', '07:00', '09:00'])
    expect([...fires].sort()).toEqual(fires)
  }
})

test('RAIL-16 the newest tick up to an instant is the one that next gives, also in gaps and repeated hours', () => {
  for (const cron of ['30 2 * * *', '*/20 * * * *', '0 */30 1-3 * * *'])
    for (const from of ['2026-03-28T20:00:00Z', '2026-10-24T20:00:00Z'])
      for (let last = at(from); last < at(from) + DAY;) {
        const next = calendar.next(cron, 'Europe/Berlin', last) ?? Infinity
        expect(calendar.newest(cron, 'Europe/Berlin', next)).toBe(next)
        expect(calendar.newest(cron, 'Europe/Berlin', next + 1)).toBe(next)
        expect(calendar.newest(cron, 'Europe/Berlin', next + 999)).toBe(next)
        expect(calendar.newest(cron, 'Europe/Berlin', next - 1)).toBeLessThanOrEqual(last)
        last = next
      }
})

test('B063 the first of a month is far away and is found; what never comes is none', () => {
  expect(list('0 0 1 * *', 'UTC', '2026-01-01T00:00:00Z', 1)).toEqual(['2026-02-01T00:00:00.000Z'])
  expect(list('0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', 1)).toEqual(['2028-02-29T00:00:00.000Z'])
  expect(list('0 0 30 2 *', 'UTC', '2026-01-01T00:00:00Z', 1)).toEqual([])
})

test.each([
  ['@daily', 'UTC', 'expected five fields'],
  ['* * * *', 'UTC', 'expected five fields'],
  ['0 0 * * * * 2027', 'UTC', 'expected five fields'],
  ['2027-01-01T00:00:00', 'UTC', 'expected five fields'],
  ['61 * * * *', 'UTC', 'cannot be read'],
  ['0 0 * * *', 'Europe/Nowhere', 'the name of a time zone'],
])('RAIL-16 %s in %s is refused with what was expected', (cron, zone, what) => {
  expect(calendar.fault(cron, zone)).toContain(what)
})
