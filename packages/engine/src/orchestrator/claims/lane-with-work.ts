// Waiting for work: until a lane that a session serves may hold something, as a long poll and a session that waits for an
// offer do; and passing on to others who wait what is left.
import type { ClaimRequest } from '../../model/work.ts'
import type { Serves } from '../../model/lane.ts'
import { isAmong } from '../../model/lane.ts'
import type { Engine } from '../engine.ts'
import type { LanePlace } from './lanes.ts'

/** How many of those who wait are let look into a lane at a time, beside those who come by themselves. */
const AT_ONCE = 4

/** What a claim has left in a lane, or did not come to look for, is for others who wait. */
export const passOn = ({ lanes, hub }: Engine, asked: readonly LanePlace[]): void => {
  lanes.looked(asked)
  for (const { lane } of asked)
    while (lanes.mayHold(lane) && lanes.looking(lane) < AT_ONCE) if (!hub.lane(lane)) break
}

/** Waits until a lane that the session serves may hold something, or the time is over. */
export const laneWithWork = (
  engine: Engine,
  request: Pick<ClaimRequest, 'session' | 'except' | 'only' | 'waitMs'>,
  what: Serves,
  signal: AbortSignal | undefined,
): Promise<LanePlace[]> => {
  const look = (): LanePlace[] =>
    engine.lanes
      .look(request.session, what, request.except)
      .filter(({ lane }) => isAmong(request.only, lane))
  const takeUp = (places: LanePlace[]): LanePlace[] => {
    engine.lanes.looks(places)
    return places
  }
  const found = look()
  if (found.length > 0 || request.waitMs <= 0 || signal?.aborted === true)
    return Promise.resolve(takeUp(found))
  return new Promise((resolve) => {
    const done = (lanes: LanePlace[]): void => {
      cancel()
      stop()
      signal?.removeEventListener('abort', onAbort)
      resolve(takeUp(lanes))
    }
    const onAbort = (): void => done([])
    const stop = engine.hub.onLane((woken) => {
      // those who look now pass on what they leave
      if (engine.lanes.looking(woken) >= AT_ONCE) return true
      const now = look()
      const mine = now.some(({ lane }) => lane === woken)
      if (mine) done(now)
      return mine
    })
    const cancel = engine.ports.timers.after(request.waitMs, () => done(look()))
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
