// An enumeration of the ticks of cron expressions in time zones that shares nothing with the calendar: it walks through each zone's
// offsets forward in time, with a reader of cron fields of its own. And the calendar held against it.
import { calendar } from '../../src/orchestrator/calendar.ts'

const DAY = 86_400_000

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

export interface Segment {
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

/** The stretches of time in which a zone has one offset. */
export const segmentsOf = (zone: string, from: number, to: number): Segment[] => {
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
function* enumerated(fields: Fields, segments: readonly Segment[]): Generator<number> {
  let last = Number.NaN
  let high = (segments[0]?.from ?? 0) + (segments[0]?.offset ?? 0)
  for (const { from, to, offset } of segments) {
    const begin = from + offset
    if (begin > high && !walls(fields, high, begin).next().done && last !== from)
      yield (last = from)
    for (const wall of walls(fields, Math.max(begin, high), to + offset))
      if (last !== wall - offset) yield (last = wall - offset)
    high = Math.max(high, to + offset)
  }
}

export interface Wrong {
  readonly cron: string
  readonly zone: string
  readonly after: string
  readonly expected: string | null
  readonly found: string | null
}

/** What the calendar gives from one instant to another, tick by tick; the first that is wrong ends it. */
export const compared = (
  cron: string,
  zone: string,
  segments: readonly Segment[],
  begin: number,
  end: number,
): { readonly ticks: number; readonly wrong: readonly Wrong[] } => {
  let last = begin - 1
  let ticks = 0
  const wrong = (expected: number | null, found: number | null): Wrong => ({
    cron,
    zone,
    after: shown(last) ?? '',
    expected: shown(expected),
    found: shown(found),
  })
  for (const expected of enumerated(read(cron), segments)) {
    if (expected < begin || expected >= end) continue
    const found = calendar.next(cron, zone, last)
    ticks += 1
    if (found !== expected) return { ticks, wrong: [wrong(expected, found)] }
    last = found
  }
  const more = calendar.next(cron, zone, last)
  return { ticks, wrong: more !== null && more < end ? [wrong(null, more)] : [] }
}

const shown = (instant: number | null): string | null =>
  instant === null ? null : new Date(instant).toISOString()

export const zones = [
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
export const seldom = [
  '0 7,9 * * *', '30 2 * * *', '0 2 * * *', '0 3 * * *', '30 1 * * *', '0 0 * * *', '59 23 * * *', '0 12 * * 1-5', '15 2 * * 0', '45 2 * * 0',
  '0 1 * * 7', '0 0 1 * *', '0 0 31 * *', '30 2 29 2 *', '0 0 13 * 5', '10,50 1,2,3 * * *', '5 2-3 * * 6,0', '0 0 1 1 *', '0 6 1-7 3,10,11 *', '0 */6 * * *',
  '30 2 25-31 3 0', '30 1 25-31 10 0', '0 4 1 4,9 *', '0 0 * 9 0', '30 0 * 4 5', '15 3 8-14 3 0', '30 1 1-7 11 0', '0 0 30 12 *', '0 0,12 15 6 1', '20 4 */2 * *',
  '30 30 2 * * *', '15 0 2 * * 0', '0 59 1 * * *', '59 59 23 * * *', '0,30 0 3 1 * *', '0 0 2 * 3,4 0-6', '45 15 1 * 10,11 *', '0 30 12 * * 3',
] // prettier-ignore
/** So many that they are looked at around the changes only, where a zone does something to them. */
export const often = [
  '* * * * *', '*/5 * * * *', '*/15 * * * *', '0 * * * *', '30 * * * *', '*/7 2 * * *', '*/20 0-3 * * *', '0,59 * * * 0', '10 */2 * * *', '* 1 * * *',
  '*/30 * * * * *', '0 */10 * * * *',
] // prettier-ignore
