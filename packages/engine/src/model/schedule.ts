// Schedules: which tick comes next, and what becomes of one that is late or meets a run of an earlier one. Pure; what a
// calendar knows comes as a port.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { shown } from '../kernel/json.ts'

/** What becomes of ticks whose time has passed by more than `missedAfterMs` before anybody could fire them. */
export const missedPolicies = ['skip', 'one', 'all'] as const
export type MissedPolicy = (typeof missedPolicies)[number]

/** What becomes of a tick while a run of an earlier one is active. */
export const overlapPolicies = ['allow', 'skip', 'cancel_running', 'queue'] as const
export type OverlapPolicy = (typeof overlapPolicies)[number]

export const tickOutcomes = [
  'started',
  'waiting',
  'skipped',
  'missed',
  'refused',
  'replaced',
] as const
export type TickOutcome = (typeof tickOutcomes)[number]

/** What a cron expression means in a time zone. Ticks are instants in milliseconds. */
export interface Calendar {
  /** What is wrong with the two, as a sentence; null where they can be used. */
  fault(cron: string, zone: string): string | null
  /** The first tick after an instant; null where there is none any more. */
  next(cron: string, zone: string, after: number): number | null
  /** The last tick at or before an instant; null where there is none. */
  newest(cron: string, zone: string, upTo: number): number | null
}

/** The ticks of one schedule. */
export interface Ticks {
  next(after: number): number | null
  newest(upTo: number): number | null
}

export const ticksOf = (
  calendar: Calendar,
  { cron, zone }: { readonly cron: string; readonly zone: string },
): Ticks => ({
  next: (after) => calendar.next(cron, zone, after),
  newest: (upTo) => calendar.newest(cron, zone, upTo),
})

export interface TickPlan {
  /** The tick that fires, if any does. */
  readonly fire: number | null
  /** Ticks that were missed and do not fire: the first and the last of them. */
  readonly missed: { readonly first: number; readonly last: number } | null
  /** The tick after those. */
  readonly next: number | null
}

/** What becomes of the tick that is due, and of those that were missed with it. */
export const planTick = (
  due: number,
  policy: MissedPolicy,
  now: number,
  missedAfterMs: number,
  ticks: Ticks,
): TickPlan => {
  const border = now - missedAfterMs
  if (due >= border || policy === 'all') return { fire: due, missed: null, next: ticks.next(due) }
  const last = Math.max(due, ticks.newest(border - 1) ?? due)
  const next = ticks.next(last)
  if (policy === 'skip') return { fire: null, missed: { first: due, last }, next }
  if (last === due) return { fire: due, missed: null, next }
  return { fire: last, missed: { first: due, last: ticks.newest(last - 1) ?? due }, next }
}

/** How many ticks may wait for the runs before them; those beyond are skipped, openly. */
const WAITING_MAX = 100

export interface OverlapPlan {
  readonly outcome: 'started' | 'waiting' | 'skipped'
  readonly note: string | null
  /** Active runs are canceled, and ticks that wait already are replaced by this one. */
  readonly cancels: boolean
}

/** What becomes of a tick, given the active runs of its schedule and how many ticks wait for them. */
export const planOverlap = (
  policy: OverlapPolicy,
  active: readonly string[],
  waiting: number,
): OverlapPlan => {
  const free = active.length === 0 && waiting === 0
  if (policy === 'allow' || free) return { outcome: 'started', note: null, cancels: false }
  const [first] = active
  const behind = first === undefined ? 'a tick before it waits' : `${first} has not ended`
  if (policy === 'skip') return { outcome: 'skipped', note: behind, cancels: false }
  if (policy === 'cancel_running') return { outcome: 'waiting', note: behind, cancels: true }
  return waiting >= WAITING_MAX
    ? { outcome: 'skipped', note: `${waiting} ticks wait before it`, cancels: false }
    : { outcome: 'waiting', note: behind, cancels: false }
}

/** A refusal where cron and zone cannot be used, or would never fire. */
export const calendarFault = (
  calendar: Calendar,
  { cron, zone }: { readonly cron: string; readonly zone: string },
  now: number,
): Outcome<{ readonly next: number }> => {
  const fault = calendar.fault(cron, zone)
  if (fault !== null) return refuse('invalid_request', fault, { cron, zone })
  const next = calendar.next(cron, zone, now)
  return next === null
    ? refuse(
        'invalid_request',
        `cron is ${shown(cron)}, which has no tick after now; expected one that fires`,
        { cron, zone },
      )
    : { ok: true, next }
}
