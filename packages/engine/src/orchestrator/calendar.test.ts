// The calendar against an enumeration of its own: it walks through each zone's offsets forward in time, with a reader of cron
// fields that shares nothing with the library.
import { describe, expect, test } from 'vitest'
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

interface Fields {
  readonly seconds: readonly number[]
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly day: (wall: Date) => boolean
}

const values = (field: string, least: number, most: number): number[] =>
  Array.from({ length: most - least + 1 }, (_each, i) => least + i).filter((value) =>
    field.split(',').some((part) => {
      const [range = '', every] = part.split('/')
      const [from, to] =
        range === '*'
          ? [least, most]
          : [Number(range.split('-')[0]), Number(range.split('-')[1] ?? range)]
      return value >= from && value <= to && (value - from) % Number(every ?? 1) === 0
    }),
  )

const read = (cron: string): Fields => {
  const all = cron.split(' ')
  const [second = '', minute = '', hour = '', date = '', month = '', weekday = ''] =
    all.length === 5 ? ['0', ...all] : all
  const dates = new Set(values(date, 1, 31))
  const months = new Set(values(month, 1, 12))
  const weekdays = new Set(values(weekday, 0, 7).map((day) => day % 7))
  return {
    seconds: values(second, 0, 59),
    minutes: values(minute, 0, 59),
    hours: values(hour, 0, 23),
    day: (wall) => {
      if (!months.has(wall.getUTCMonth() + 1)) return false
      const [byDate, byWeekday] = [dates.has(wall.getUTCDate()), weekdays.has(wall.getUTCDay())]
      return date !== '*' && weekday !== '*' ? byDate || byWeekday : byDate && byWeekday
    },
  }
}

interface Segment {
  readonly from: number
  readonly to: number
  readonly offset: number
}

/** The offset of a zone as its name in a date says it, which is another way than the calendar’s. */
const offsetOf = (format: Intl.DateTimeFormat, instant: number): number => {
  const [, sign, hours = '0', minutes = '0'] =
    /GMT(?:([+-])(\d\d):(\d\d))?/.exec(format.format(instant)) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
}

const segmentsOf = (zone: string, from: number, to: number): Segment[] => {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  const out: Segment[] = []
  let [begin, offset] = [from, offsetOf(format, from)]
  for (let day = from; day < to; day += DAY) {
    if (offsetOf(format, day + DAY) === offset) continue
    for (let minute = day; minute <= day + DAY; minute += 60_000) {
      const now = offsetOf(format, minute)
      if (now === offset) continue
      out.push({ from: begin, to: minute, offset })
      begin = minute
      offset = now
    }
  }
  return [...out, { from: begin, to, offset }]
}

/** Wall-clock ticks from one wall-clock time to another, both as if they were UTC. */
function* walls(fields: Fields, from: number, to: number): Generator<number> {
  for (let day = Math.floor(from / DAY) * DAY; day < to; day += DAY) {
    if (!fields.day(new Date(day))) continue
    for (const hour of fields.hours)
      for (const minute of fields.minutes)
        for (const second of fields.seconds) {
          const wall = day + ((hour * 60 + minute) * 60 + second) * 1_000
          if (wall >= from && wall < to) yield wall
        }
  }
}

/** The ticks of some segments in a row: what the clocks skip fires once at its end, what they repeat fired before. */
const enumerated = (fields: Fields, segments: readonly Segment[]): number[] => {
  const out: number[] = []
  let high = (segments[0]?.from ?? 0) + (segments[0]?.offset ?? 0)
  for (const { from, to, offset } of segments) {
    const begin = from + offset
    if (begin > high && !walls(fields, high, begin).next().done && out.at(-1) !== from)
      out.push(from)
    for (const wall of walls(fields, Math.max(begin, high), to + offset))
      if (out.at(-1) !== wall - offset) out.push(wall - offset)
    high = Math.max(high, to + offset)
  }
  return out
}

const zones = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Asia/Kolkata',
  'Pacific/Apia',
]
/** At most some tens of ticks a day. */
const seldom = [
  '0 7,9 * * *', '30 2 * * *', '0 2 * * *', '0 3 * * *', '30 1 * * *', '0 0 * * *', '59 23 * * *', '0 12 * * 1-5', '15 2 * * 0', '45 2 * * 0',
  '0 1 * * 7', '0 0 1 * *', '0 0 31 * *', '30 2 29 2 *', '0 0 13 * 5', '10,50 1,2,3 * * *', '5 2-3 * * 6,0', '0 0 1 1 *', '0 6 1-7 3,10,11 *', '0 */6 * * *',
  '30 2 25-31 3 0', '30 1 25-31 10 0', '0 4 1 4,9 *', '0 0 * 9 0', '30 0 * 4 5', '15 3 8-14 3 0', '30 1 1-7 11 0', '0 0 30 12 *', '0 0,12 15 6 1', '20 4 */2 * *',
  '30 30 2 * * *', '15 0 2 * * 0', '0 59 1 * * *', '59 59 23 * * *', '0,30 0 3 1 * *', '0 0 2 * 3,4 0-6', '45 15 1 * 10,11 *', '0 30 12 * * 3',
] // prettier-ignore
/** So many that they are looked at around the changes only, where a zone does something to them. */
const often = [
  '* * * * *', '*/5 * * * *', '*/15 * * * *', '0 * * * *', '30 * * * *', '*/7 2 * * *', '*/20 0-3 * * *', '0,59 * * * 0', '10 */2 * * *', '* 1 * * *',
  '*/30 * * * * *', '0 */10 * * * *',
] // prettier-ignore

/** At night ten years; a change in the code shows in the first as well. */
const YEARS = process.env['LEASEHOLD_NIGHTLY'] === '1' ? 10 : 2

test('RAIL-16 S13 around every change of the clocks for years, fifty expressions in twelve zones tick as an independent enumeration says', () => {
  expect(seldom.length + often.length).toBe(50)
  const [from, to] = [at('2026-01-01T00:00:00Z'), at(`${2026 + YEARS}-01-01T00:00:00Z`)]
  let wrong = 0
  let ticks = 0
  const check = (
    cron: string,
    zone: string,
    segments: readonly Segment[],
    begin: number,
    end: number,
  ) => {
    let last = begin - 1
    for (const expected of enumerated(read(cron), segments)) {
      if (expected < begin || expected >= end) continue
      const found = calendar.next(cron, zone, last)
      ticks += 1
      if (found !== expected) {
        wrong += 1
        expect
          .soft(found, `${cron} in ${zone} after ${new Date(last).toISOString()}`)
          .toBe(expected)
        return
      }
      last = found
    }
    const more = calendar.next(cron, zone, last)
    if (more !== null && more < end) wrong += 1
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
