// Attempts that are handed to a process of their own: a launcher that holds one is given a token for it, and the bearer of that
// token takes it over.
import { refuse } from '../../kernel/outcome.ts'
import type { ClaimAnswer, Grant } from '../../model/work.ts'
import type { Adoption } from '../../store/move/claims.ts'
import { ask } from '../../store/sql.ts'
import { heldHere } from '../../store/tables/journal.ts'
import { adopt } from '../../transitions/adopt.ts'
import type { Engine } from '../engine.ts'

export interface Adoptions {
  readonly grant: Grant
  /** Moves the attempt to the session of the process that was launched for it; answered as a claim of it. */
  adopt(adoption: Adoption & { readonly startBy: number }): Promise<ClaimAnswer>
}

export const adoptionsOf = (engine: Engine): Adoptions => ({
  async grant({ session, run, attempt, runner, startByMs }) {
    const { held, now } = await engine.read(function* (tx) {
      const [[row]] = yield* ask(heldHere(run, session))
      return { held: row, now: tx.now }
    })
    if (held?.attempt !== attempt)
      return refuse(
        'stale_attempt',
        `${session} does not hold attempt ${attempt} of ${run}, so nobody can take it over from there`,
        { run, attempt, session },
      )
    const startBy = now + startByMs
    const token = engine.grants.token({ session: runner, from: session, run, attempt, startBy })
    return { ok: true, token, startBy }
  },

  async adopt(adoption) {
    const { settings, store } = engine
    const answer = await store.run((tx) => adopt(tx, adoption, settings))
    if (!answer.ok) return answer
    engine.hub.changed(adoption.run)
    return {
      ok: true,
      claim: 1,
      runs: [answer.run],
      now: answer.now,
      leaseUntil: answer.leaseUntil,
    }
  },
})
