// Removes families of runs whose members have all ended longer ago than the retention, a bounded batch at a time.
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { forgetCommands } from '../store/tables/orders.ts'
import { endedRoots, familyOf, removeRuns } from '../store/tables/prune.ts'
import { forgetSessions } from '../store/tables/sessions.ts'

export interface Pruned {
  readonly examined: number
  readonly removed: number
  /** Where the next batch starts; empty when the round is done. */
  readonly cursor: string
}

const BATCH = 200

export function* prune(_tx: Tx, cursor: string, settings: Settings): Steps<Pruned> {
  const [roots] = yield* ask(
    endedRoots(cursor, settings.retentionMs, BATCH),
    forgetCommands(settings.commandMs),
    forgetSessions(settings.retentionMs),
  )
  const ready = roots.filter((row) => row.ready === 1).map((row) => row.id)
  const next = roots.length < BATCH ? '' : (roots.at(-1)?.id ?? '')
  if (ready.length === 0) return { examined: roots.length, removed: 0, cursor: next }
  const [members] = yield* ask(familyOf(ready))
  const results = yield* finish(...removeRuns(members.map((row) => row.id)))
  return { examined: roots.length, removed: results.at(-1)?.length ?? 0, cursor: next }
}
