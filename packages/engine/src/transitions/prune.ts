// Removes families of runs whose members have all ended longer ago than the retention, a bounded batch at a time.
import type { Settings } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import { lockRuns } from '../store/move/run-row.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { forgetDeliveries } from '../store/tables/deliveries.ts'
import { forgetNotices } from '../store/tables/notices.ts'
import { forgetCommands } from '../store/tables/orders.ts'
import { endedRoots, familyOf, removeRuns } from '../store/tables/prune.ts'
import { forgetSessions } from '../store/tables/sessions.ts'

export interface PruneCursor {
  readonly at: number
  readonly id: string
}

export interface Pruned {
  readonly examined: number
  readonly removed: number
  /** Where the next batch starts; null when the round is done. */
  readonly cursor: PruneCursor | null
}

const BATCH = 200
const MOST_DELIVERIES = 1_000
const FIRST: PruneCursor = { at: -1, id: '' }

export function* prune(
  _tx: Tx,
  cursor: PruneCursor | null,
  { settings, shard }: { readonly settings: Settings; readonly shard: Shard },
): Steps<Pruned> {
  const [roots] = yield* ask(
    endedRoots(cursor ?? FIRST, settings.retentionMs, BATCH, shard),
    forgetCommands(settings.commandMs),
    forgetSessions(settings.retentionMs),
    forgetNotices(settings.retentionMs),
    forgetDeliveries(settings.retentionMs, MOST_DELIVERIES),
  )
  const ready = roots.filter((row) => row.ready === 1).map((row) => row.id)
  const last = roots.length < BATCH ? undefined : roots.at(-1)
  const next = last === undefined ? null : { at: last.ended_at, id: last.id }
  if (ready.length === 0) return { examined: roots.length, removed: 0, cursor: next }
  const [members] = yield* ask(familyOf(ready))
  const [locked] = yield* ask(
    lockRuns(
      members.map((row) => row.id),
      'skip',
    ),
  )
  // a family of which another transaction has locked a row goes in the next round, as a whole
  const free = new Set(locked.map((row) => row.id))
  const held = new Set(members.filter(({ id }) => !free.has(id)).map(({ root }) => root))
  const gone = members.filter(({ root }) => !held.has(root))
  if (gone.length === 0) return { examined: roots.length, removed: 0, cursor: next }
  const results = yield* finish(...removeRuns(gone.map((row) => row.id)))
  return { examined: roots.length, removed: results.at(-1)?.length ?? 0, cursor: next }
}
