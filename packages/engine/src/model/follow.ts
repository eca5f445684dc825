// What follows from a committed transaction: hints, all of which polling would find too. The orchestrator acts on them.
import type { Notice } from './notice.ts'
import type { Told } from './work.ts'

export interface Follow {
  /** Limits whose line may move, each with how much of it was freed or how many have come into its line. */
  readonly admit: Map<string, number>
  /** Lanes with a run that has become claimable, and the lowest (rank, id) that has. */
  readonly lanes: Map<string, { rank: number; id: string }>
  /** Whether orders were written. */
  orders: boolean
  /** Whether something is to be delivered. */
  deliveries: boolean
  /** Runs that have ended. */
  readonly ended: string[]
  /** Runs whose row has changed. */
  readonly changed: string[]
  /** Directives for the holders of runs. */
  readonly told: (Told & { readonly session: string })[]
  /** The earliest instant at which a run has become due later. */
  readyAt: number | null
  /** Notices that were stored. */
  readonly notices: Notice[]
}

/** Before all places in a line, and a number that a store and JSON can carry: who wakes a lane with it looks from its start. */
export const FRONT = { rank: -1e300, id: '' } as const

export const nothing = (): Follow => ({
  admit: new Map(),
  lanes: new Map(),
  orders: false,
  deliveries: false,
  ended: [],
  changed: [],
  told: [],
  readyAt: null,
  notices: [],
})

export const wakes = (follow: Follow, run: { lane: string; rank: number; id: string }): void => {
  const known = follow.lanes.get(run.lane)
  if (!known || run.rank < known.rank || (run.rank === known.rank && run.id < known.id))
    follow.lanes.set(run.lane, { rank: run.rank, id: run.id })
}

/** So much of this limit was freed, or has come to wait for it. */
export const mayAdmit = (follow: Pick<Follow, 'admit'>, key: string, units: number): void =>
  void follow.admit.set(key, (follow.admit.get(key) ?? 0) + units)

export const merge = (into: Follow, from: Follow): Follow => {
  for (const [key, units] of from.admit) mayAdmit(into, key, units)
  for (const [lane, { rank, id }] of from.lanes) wakes(into, { lane, rank, id })
  into.orders ||= from.orders
  into.deliveries ||= from.deliveries
  into.ended.push(...from.ended)
  into.changed.push(...from.changed)
  into.told.push(...from.told)
  into.notices.push(...from.notices)
  if (from.readyAt !== null && (into.readyAt === null || from.readyAt < into.readyAt))
    into.readyAt = from.readyAt
  return into
}
