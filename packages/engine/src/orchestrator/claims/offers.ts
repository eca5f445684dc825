// Offers: a session that waits is told which runs it could claim. An offer reserves nothing, and no row knows of it; this
// process only remembers it, so that it does not offer the same run to two at once. One that is not accepted in its time
// goes to others who wait.
import type { Refusal } from '../../kernel/outcome.ts'
import type { Cancel } from '../../kernel/timers.ts'
import type { ClaimAnswer, ClaimRequest } from '../../model/work.ts'
import type { Serves } from '../../model/lane.ts'
import type { OfferRow } from '../../store/move/claims.ts'
import { claimable } from '../../queries/claimable.ts'
import { wake } from '../../transitions/wake.ts'
import type { Claiming, NamedRequest } from './claiming.ts'
import type { Engine } from '../engine.ts'
import { laneWithWork, passOn } from './lane-with-work.ts'
import type { LanePlace } from './lanes.ts'
import type { Served } from './served.ts'
import { noSuchSession } from './served.ts'

export interface Offer {
  readonly id: string
  readonly claim: number
  readonly runs: readonly string[]
  readonly ttlMs: number
}

export interface Offers {
  /**
   * Waits for runs to offer, as a long poll does; null when there were none in time, or only such as the session does not
   * want: it is to ask anew, since what it excludes may have changed while it waited. The offer stands once `made` is called with it. */
  find(
    request: ClaimRequest,
    signal: AbortSignal,
    made: (offer: Offer) => void,
  ): Promise<Offer | Refusal | null>
  /** Claims exactly the runs of an offer, or of one that has gone: they are had when nobody else has taken them. */
  accept(offer: string | null, request: NamedRequest): Promise<ClaimAnswer>
  /** Nobody will accept it: others are offered what it named. */
  end(offer: string): void
  /** How many stand. */
  readonly open: number
}

/** How long an offer stands. */
export const OFFER_TTL_MS = 5_000
/** Runs of one offer. */
const MOST = 100

interface Standing {
  readonly rows: readonly OfferRow[]
  readonly cancel: Cancel
}

export const makeOffers = (engine: Engine, served: Served, claiming: Claiming): Offers => {
  const { lanes, hub, ports } = engine
  const { timers, time } = ports
  const standing = new Map<string, Standing>()
  /** Runs that somebody is being offered, each with the lane that it stands in. */
  const out = new Map<string, string>()
  let numbers = 0

  /** Others who wait look where these stand. */
  const putBack = (rows: readonly OfferRow[]): void => {
    for (const { id, lane, rank } of rows) lanes.wake(lane, { id, rank })
    for (const { lane } of rows) hub.lane(lane)
  }

  const take = (offer: string): Standing | undefined => {
    const found = standing.get(offer)
    if (!found) return undefined
    standing.delete(offer)
    found.cancel()
    for (const { id } of found.rows) out.delete(id)
    return found
  }

  const end = (offer: string): void => putBack(take(offer)?.rows ?? [])

  /** What the session could claim in these lanes, which is out from here on, and what is left of them for others. */
  const look = async (
    request: ClaimRequest,
    what: Serves,
    asked: readonly LanePlace[],
  ): Promise<{ readonly rows: readonly OfferRow[]; readonly isExcluded: boolean }> => {
    const command = {
      ...request,
      most: Math.min(request.most, MOST),
      except: [...request.except, ...out.keys()],
      serves: lanes.served(request.session, what),
      lanes: asked,
    }
    let { rows, withheld, due } = await engine.read((tx) => claimable(tx, command))
    if (due) {
      // as a claim does: due is judged by the store's clock, and not only by the loop that looks each second
      await engine.act((tx) => wake(tx))
      ;({ rows, withheld, due } = await engine.read((tx) => claimable(tx, command)))
    }
    // another may have been offered some of them since
    const free = rows.filter(({ id }) => !out.has(id))
    const elsewhere = new Set(out.values())
    const taken = new Map<string, { rank: number; id: string; tags: number[] }>()
    for (const { lane, rank, id, tag } of free)
      taken.set(lane, { rank, id, tags: [...(taken.get(lane)?.tags ?? []), tag] })
    lanes.found(
      { asked, session: request.session, except: request.except, most: command.most },
      {
        taken,
        // one that stopped for want of room says nothing of what is left, though some of it went to another meanwhile
        count: rows.length,
        withheld: withheld === 'all' ? 'all' : new Set([...withheld, ...elsewhere]),
      },
    )
    // in the turn that found them free, since another look may end in the next
    for (const { id, lane } of free) out.set(id, lane)
    const isExcluded =
      request.except.length > 0 &&
      (withheld === 'all' || asked.some(({ lane }) => withheld.has(lane)))
    return { rows: free, isExcluded }
  }

  return {
    end,
    get open() {
      return standing.size
    },

    async find(request, signal, made) {
      const until = time.mono() + request.waitMs
      for (;;) {
        const what = await served.of(request.session)
        if (!what) return noSuchSession(request.session)
        const waitMs = Math.max(0, until - time.mono())
        const asked = await laneWithWork(engine, { ...request, waitMs }, what, signal)
        if (signal.aborted || asked.length === 0) {
          passOn(engine, asked)
          return null
        }
        try {
          const { rows, isExcluded } = await look(request, what, asked)
          if (rows.length > 0 && signal.aborted) {
            for (const { id } of rows) out.delete(id)
            putBack(rows)
          } else if (rows.length > 0) {
            const id = `off_${++numbers}`
            const cancel = timers.after(OFFER_TTL_MS, () => end(id))
            standing.set(id, { rows, cancel })
            const runs = rows.map((row) => row.id)
            const offer = { id, claim: request.claim, runs, ttlMs: OFFER_TTL_MS }
            made(offer)
            passOn(engine, asked)
            // whoever looks by itself finds them where they stand, but nobody is woken for them
            for (const row of rows) lanes.wake(row.lane, row)
            return offer
          }
          passOn(engine, asked)
          if (rows.length === 0 && isExcluded) return null
        } catch (error) {
          passOn(engine, asked)
          throw error
        }
      }
    },

    async accept(offer, request) {
      try {
        const answer = await claiming.claimNamed(request)
        const taken = new Set(answer.ok ? answer.runs.map(({ run }) => run) : [])
        const rest = offer === null ? undefined : take(offer)
        putBack(rest?.rows.filter(({ id }) => !taken.has(id)) ?? [])
        return answer
      } finally {
        if (offer !== null) end(offer)
      }
    },
  }
}
