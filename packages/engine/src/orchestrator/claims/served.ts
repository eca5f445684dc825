// What each live session serves, as this process knows it: what it has registered here, or what its row says.
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { Serves } from '../../model/lane.ts'
import { liveSessions, servesOf } from '../../store/tables/sessions.ts'
import { ask } from '../../store/sql.ts'
import type { Engine } from '../engine.ts'

export interface Served {
  /** Undefined where no such session lives. */
  of(session: string): Promise<Serves | undefined>
  put(session: string, what: Serves): void
  forget(session: string): void
}

export const makeServed = (engine: Engine): Served => {
  const known = new Map<string, Serves>()
  return {
    async of(session) {
      const kept = known.get(session)
      if (kept) return kept
      const all = await engine.read(function* () {
        return (yield* ask(liveSessions()))[0]
      })
      for (const row of all) known.set(row.id, servesOf(row))
      return known.get(session)
    },
    put: (session, what) => void known.set(session, what),
    forget: (session) => void known.delete(session),
  }
}

export const noSuchSession = (session: string): Refusal =>
  refuse('session_ended', `there is no live session ${session}; register anew`, { session })
