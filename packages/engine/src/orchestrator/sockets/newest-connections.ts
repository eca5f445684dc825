// Which connection of a session is its newest. The row says it, also when the newer one came through another server; so each
// message of an older one is refused. One question to the store answers for all messages that have come meanwhile.
import { batcher } from '../../kernel/batcher.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { ask } from '../../store/sql.ts'
import type { ConnectionRow } from '../../store/tables/sessions.ts'
import { connectionsOf } from '../../store/tables/sessions.ts'
import type { Engine } from '../engine.ts'

export interface Standing {
  readonly ok: true
  readonly claim: number
}

export interface NewestConnections {
  /** Ok where this connection is the newest of a session that has not ended; with the number of its newest claim. */
  check(session: string, connection: number): Promise<Standing | Refusal>
}

export const newestConnections = (engine: Engine): NewestConnections => {
  const rows = batcher<string, ConnectionRow | undefined>(engine.ports.timers, async (sessions) => {
    const found = await engine.read(function* () {
      return (yield* ask(connectionsOf(sessions)))[0]
    })
    const byId = new Map(found.map((row) => [row.id, row]))
    return sessions.map((session) => byId.get(session))
  })
  return {
    async check(session, connection) {
      const row = await rows.add(session)
      if (!row || row.ended_at !== null)
        return refuse(
          'session_ended',
          row
            ? `session ${session} was ended: ${row.end_reason} (${row.evidence}); drop what it held and register anew`
            : `there is no session ${session}; register anew`,
          { session, reason: row?.end_reason ?? null, evidence: row?.evidence ?? null },
        )
      return row.connection === connection
        ? { ok: true, claim: row.claim_no }
        : superseded(session, connection, row.connection)
    },
  }
}

export const superseded = (session: string, connection: number, newest: number): Refusal =>
  refuse(
    'connection_superseded',
    `connection ${connection} of ${session} is not its newest, which is ${newest}; speak over that one`,
    { session, connection: newest },
  )
