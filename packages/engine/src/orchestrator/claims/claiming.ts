// Claims: from the lanes that a session serves, or of exactly the runs that it was offered. What either leaves is passed on
// to others who wait.
import type { Refusal } from '../../kernel/outcome.ts'
import type { ClaimAnswer, ClaimRequest } from '../../model/work.ts'
import type { Serves } from '../../model/lane.ts'
import { isAmong } from '../../model/lane.ts'
import type { ClaimCommand, Claimed } from '../../transitions/claim.ts'
import { claim } from '../../transitions/claim.ts'
import type { Engine } from '../engine.ts'
import { laneWithWork, passOn } from './lane-with-work.ts'
import type { Served } from './served.ts'
import { noSuchSession } from './served.ts'

export interface NamedRequest extends Omit<ClaimRequest, 'waitMs'> {
  readonly runs: readonly string[]
}

export interface Claiming {
  claim(request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer>
  /** Takes those of these runs that may still be had. */
  claimNamed(request: NamedRequest): Promise<ClaimAnswer>
}

export const makeClaiming = (engine: Engine, served: Served): Claiming => {
  const { settings, hub, lanes, meters, store } = engine

  const transition = async (
    request: Omit<ClaimRequest, 'waitMs'>,
    what: Serves,
    from: Pick<ClaimCommand, 'lanes' | 'runs'>,
  ): Promise<Claimed | Refusal> => {
    const serves = lanes.served(request.session, what)
    const open = request.only ? serves.filter((lane) => isAmong(request.only, lane)) : serves
    const answer = await engine.timed('claim', () =>
      store.run((tx) => claim(tx, { ...request, ...from, serves, open }, settings)),
    )
    if (answer.ok && !answer.repeated) meters.claimed.add({}, answer.runs.length)
    if (!answer.ok && answer.code === 'session_ended') served.forget(request.session)
    return answer
  }

  const shown = (request: { readonly claim: number }, answer: Claimed): ClaimAnswer => {
    for (const run of answer.runs) hub.changed(run.run)
    return {
      ok: true,
      claim: request.claim,
      runs: answer.runs,
      now: answer.now,
      leaseUntil: answer.leaseUntil,
    }
  }

  return {
    async claim(request, signal) {
      const what = await served.of(request.session)
      if (!what) return noSuchSession(request.session)
      const asked = await laneWithWork(engine, request, what, signal)
      try {
        const answer = await transition(request, what, { lanes: asked })
        if (!answer.ok) return answer
        engine.follow(answer.follow)
        if (!answer.repeated)
          lanes.found(
            { asked, session: request.session, except: request.except, most: request.most },
            { taken: answer.taken, count: answer.runs.length, withheld: answer.withheld },
          )
        return shown(request, answer)
      } finally {
        passOn(engine, asked)
      }
    },

    async claimNamed(request) {
      const what = await served.of(request.session)
      if (!what) return noSuchSession(request.session)
      const answer = await transition(request, what, { lanes: [], runs: request.runs })
      return answer.ok ? shown(request, answer) : answer
    },
  }
}
