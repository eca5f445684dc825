// Executors that were started because a queue waited, newest first, a page at a time.
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { spawnsBefore } from '../store/tables/spawns.ts'
import type { SpawnRow } from '../store/tables/spawns.ts'

const view = (row: SpawnRow) => ({
  session: row.session,
  queue: row.queue,
  spawner: row.spawner,
  kind: row.kind,
  reason: row.reason,
  state: row.state,
  askedAt: row.asked_at,
  startBy: row.start_by,
  settledAt: row.settled_at,
  evidence: row.evidence,
})

export function* spawns(
  _tx: Tx,
  cursor: string | null,
  limit: number,
): Steps<{ spawns: ReturnType<typeof view>[]; next: string | null }> {
  const [, at = '1e15', id = ''] = /^(\d+):(.*)$/su.exec(cursor ?? '') ?? []
  const [rows] = yield* ask(spawnsBefore({ at: Number(at), id }, limit + 1))
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    spawns: page.map(view),
    next: rows.length > limit && last ? `${last.asked_at}:${last.session}` : null,
  }
}
