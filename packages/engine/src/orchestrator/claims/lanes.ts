// Where claims look. A lane is (queue, workflow, version, labels); for each this keeps the lowest place that may still be
// queued and whether it may hold anything at all. Both are hints, forgotten once a second so that what they missed is found.
import { FRONT } from '../../model/follow.ts'
import type { Lane, Serves } from '../../model/lane.ts'
import { parseLane, serves } from '../../model/lane.ts'

export interface Place {
  readonly rank: number
  readonly id: string
}

interface LaneState extends Lane {
  readonly lane: string
  from: Place
  maybe: boolean
  /** Virtual time of fair queueing: rises by what is claimed, by one a claim at most, and never falls. */
  virtual: number
  stored: number
  /** Wake-ups so far: one that comes while a claim is under way is not taken back by what that claim found. */
  wakes: number
  looking: number
  /** Who found nothing for itself at so many wake-ups, while others may be given what is there. */
  readonly vain: Map<string, number>
}

export interface LanePlace {
  readonly lane: string
  readonly from: Place
  readonly wakes: number
}

export interface Lanes {
  readonly known: ReadonlySet<string>
  /** `virtual`: the virtual time that the store has of it. */
  add(lane: string, virtual?: number): void
  /** The lane's virtual time, as far as this process has seen it. */
  virtual(lane: string): number
  /** Lanes whose virtual time has risen since this was last asked. */
  risen(): { readonly lane: string; readonly tag: number }[]
  /** A run at this place became claimable. */
  wake(lane: string, at: Place): void
  /** Whether the lane may hold something that can be claimed. */
  mayHold(lane: string): boolean
  /** A claim of these lanes is under way, and is over. */
  looks(asked: readonly LanePlace[]): void
  looked(asked: readonly LanePlace[]): void
  /** How many claims are under way in the lane. */
  looking(lane: string): number
  /** The lanes that this session serves. */
  served(session: string, serves: Serves): readonly string[]
  /** The lanes that this session serves and that may hold something for it, in an order that goes round. */
  look(session: string, serves: Serves, except: readonly string[]): LanePlace[]
  /** What a claim of these lanes found; `withheld` are those whose rest is for other sessions. */
  found(
    claim: {
      readonly asked: readonly LanePlace[]
      readonly session: string
      readonly except: readonly string[]
      readonly most: number
    },
    what: {
      readonly taken: ReadonlyMap<string, Place & { tags: readonly number[] }>
      readonly count: number
      readonly withheld: ReadonlySet<string> | 'all'
    },
  ): void
  /** Looks from the start again in every lane, and in these, which hold something, at all. */
  refresh(withWork: Iterable<string>): void
}

/** Who asked: another list of what is excluded is another question. */
const asker = (session: string, except: readonly string[]): string => [session, ...except].join(' ')

export const makeLanes = (): Lanes => {
  const states = new Map<string, LaneState>()
  const known = new Set<string>()
  const matches = new Map<string, { size: number; lanes: LaneState[] }>()
  let turn = 0

  const stateOf = (lane: string): LaneState => {
    const found = states.get(lane)
    if (found) return found
    const made: LaneState = {
      lane,
      ...parseLane(lane),
      from: FRONT,
      maybe: true,
      virtual: 0,
      stored: 0,
      wakes: 0,
      looking: 0,
      vain: new Map(),
    }
    states.set(lane, made)
    known.add(lane)
    return made
  }

  const matching = (session: string, what: Serves): LaneState[] => {
    const kept = matches.get(session)
    if (kept && kept.size === states.size) return kept.lanes
    const lanes = [...states.values()].filter((lane) => serves(what, lane))
    if (matches.size > 10_000) matches.clear()
    matches.set(session, { size: states.size, lanes })
    return lanes
  }

  return {
    known,
    add(lane, virtual = 0) {
      const state = stateOf(lane)
      state.virtual = Math.max(state.virtual, virtual)
      state.stored = Math.max(state.stored, virtual)
    },
    virtual: (lane) => states.get(lane)?.virtual ?? 0,
    risen() {
      const risen = [...states.values()].filter((state) => state.virtual > state.stored)
      for (const state of risen) state.stored = state.virtual
      return risen.map(({ lane, virtual }) => ({ lane, tag: virtual }))
    },
    wake(lane, at) {
      const state = stateOf(lane)
      state.maybe = true
      state.wakes += 1
      if (at.rank < state.from.rank || (at.rank === state.from.rank && at.id < state.from.id))
        state.from = at
    },
    mayHold: (lane) => states.get(lane)?.maybe ?? false,
    looks(asked) {
      for (const { lane } of asked) stateOf(lane).looking += 1
    },
    looked(asked) {
      for (const { lane } of asked) stateOf(lane).looking -= 1
    },
    looking: (lane) => states.get(lane)?.looking ?? 0,
    served: (session, what) => matching(session, what).map(({ lane }) => lane),
    look(session, what, except) {
      const mine = matching(session, what).filter(
        ({ maybe, vain, wakes }) =>
          maybe && (vain.size === 0 || vain.get(asker(session, except)) !== wakes),
      )
      turn += 1
      const first = mine.length === 0 ? 0 : turn % mine.length
      return [...mine.slice(first), ...mine.slice(0, first)].map(({ lane, from, wakes }) => ({
        lane,
        from,
        wakes,
      }))
    },
    found({ asked, session, except, most }, { taken, count, withheld }) {
      for (const [lane, { tags }] of taken) {
        const state = stateOf(lane)
        for (const tag of [...tags].sort((a, b) => a - b))
          state.virtual = Math.max(state.virtual, Math.min(tag, state.virtual + 1))
      }
      for (const { lane, wakes } of asked) {
        const state = stateOf(lane)
        if (state.wakes !== wakes) continue
        const got = taken.get(lane)
        const whole = withheld !== 'all' && !withheld.has(lane)
        // what was excluded may stand before what was taken
        if (got && (whole || withheld === 'all')) state.from = { rank: got.rank, id: got.id }
        // a claim that stopped for want of room says nothing of what is left
        if (count >= most) continue
        if (whole) state.maybe = false
        else state.vain.set(asker(session, except), wakes)
      }
    },
    refresh(withWork) {
      for (const state of states.values()) {
        state.from = FRONT
        state.vain.clear()
      }
      for (const lane of withWork) stateOf(lane).maybe = true
    },
  }
}
