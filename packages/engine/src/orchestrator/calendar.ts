// Cron in time zones. The library matches wall-clock times and knows of no zone here; what a zone makes of a wall-clock time
// is decided below, by two rules. A time that the clocks skip fires with the first instant after the gap, all such ticks as
// one. A time that comes twice fires the first time. So each wall-clock time fires at most once, and later ones never earlier.
import { Cron } from 'croner'
import { messageOf, shown } from '../kernel/json.ts'
import type { Calendar } from '../model/schedule.ts'

const HOUR = 3_600_000
/** No zone is further from UTC. */
const REACH = 15 * HOUR
const KEPT = 500

/** The first `KEPT` of what is made by a text; then anew. */
const remembered = <T>(make: (text: string) => T): ((text: string) => T) => {
  const known = new Map<string, T>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const made = make(text)
    if (known.size >= KEPT) known.clear()
    known.set(text, made)
    return made
  }
}

/** The expression over wall-clock times, which are written as if they were UTC. */
const patternOf = remembered(
  (cron) => new Cron(cron, { utcOffset: 0, mode: '5-or-6-parts', paused: true }),
)

const PARTS = /^(\d+)\/(\d+)\/(\d+) (A|B)\D* (\d+):(\d+):(\d+)$/

const formatOf = remembered(
  (zone) =>
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    }),
)

/** What the wall clock of a zone is ahead of UTC at an instant. */
const offsetAt = (zone: string, at: number): number => {
  const second = Math.floor(at / 1_000) * 1_000
  const text = formatOf(zone).format(second).replace(',', '')
  const parts = PARTS.exec(text)
  if (!parts) throw new Error(`the wall clock of ${zone} reads ${shown(text)}`)
  const [, month, day, year, era, hour, minute, secs] = parts
  // a year before 100 would be taken for one of the last century
  const local = new Date(0)
  local.setUTCFullYear(
    era === 'B' ? 1 - Number(year) : Number(year),
    Number(month) - 1,
    Number(day),
  )
  local.setUTCHours(Number(hour), Number(minute), Number(secs))
  return local.getTime() - second
}

interface Change {
  /** The first instant with the new offset. */
  readonly at: number
  readonly before: number
  readonly after: number
}

/** The change of a zone's offset between two instants, which are too near to each other for two of them. */
const changeBetween = (zone: string, from: number, to: number): Change | null => {
  const before = offsetAt(zone, from)
  const after = offsetAt(zone, to)
  if (before === after) return null
  let [old, young] = [from, to]
  while (young - old > 1) {
    const middle = Math.floor((old + young) / 2)
    if (offsetAt(zone, middle) === before) old = middle
    else young = middle
  }
  return { at: young, before, after }
}

/** The instant at which a wall-clock time fires. It never falls while the wall-clock time rises. */
const instantOf = (zone: string, wall: number): number => {
  const change = changeBetween(zone, wall - REACH, wall + REACH)
  if (!change) return wall - offsetAt(zone, wall - REACH)
  if (wall - change.before < change.at) return wall - change.before
  return Math.max(change.at, wall - change.after)
}

/**
 * The wall-clock time up to which everything has fired at an instant: the clock of the zone, and while an hour is repeated
 * the end of that hour, since it has fired the first time.
 */
const firedUpTo = (zone: string, at: number): number => {
  const wall = at + offsetAt(zone, at)
  const change = changeBetween(zone, at - REACH, at)
  return change && wall < change.at + change.before ? change.at + change.before - 1 : wall
}

const step = (cron: string, wall: number): number | null =>
  patternOf(cron).nextRun(new Date(wall))?.getTime() ?? null

/** Cron expressions in the zones that this machine knows. */
export const calendar: Calendar = {
  fault(cron, zone) {
    const fields = cron.trim().split(/\s+/)
    if (fields.length !== 5 && fields.length !== 6)
      return `cron is ${shown(cron)}; expected five fields (minute, hour, day, month, weekday) or six, with seconds before them`
    try {
      patternOf(cron)
    } catch (error) {
      return `cron is ${shown(cron)}, which cannot be read: ${messageOf(error).replace(/^CronPattern: /, '')}`
    }
    try {
      formatOf(zone)
    } catch {
      return `zone is ${shown(zone)}; expected the name of a time zone, such as Europe/Berlin or UTC`
    }
    return null
  },

  next(cron, zone, after) {
    let wall = step(cron, firedUpTo(zone, after))
    while (wall !== null) {
      const at = instantOf(zone, wall)
      if (at > after) return at
      wall = step(cron, wall)
    }
    return null
  },

  newest(cron, zone, upTo) {
    // the library looks before an instant, and knows whole seconds
    const [run] = patternOf(cron).previousRuns(1, new Date(firedUpTo(zone, upTo) + 1))
    return run === undefined ? null : instantOf(zone, run.getTime())
  },
}
