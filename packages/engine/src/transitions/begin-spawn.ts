// Whether an executor is started for a queue, decided for all its spawners together: the row with its number and reason is there before
// anything is started, so that a spawner which dies in between leaves what it was about to do.
import type { BeginSpawn, BegunSpawn, QueueLoad, SpawnHistory } from '../model/spawn.ts'
import { decideSpawn } from '../model/spawn.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { insertSpawn, lastSpawns, openSpawns, sessionsSeen } from '../store/tables/spawns.ts'

/** Failures in a row that are told apart. */
const LOOKED_AT = 20

export function* beginSpawn(
  tx: Tx,
  request: BeginSpawn,
  load: QueueLoad,
  session: string,
): Steps<BegunSpawn> {
  const { queue, spawner, kind, mine } = request
  // the newest first: one that is made between the two is not counted, and has the number that this one would take
  const [last, [counted], seen] = yield* ask(
    lastSpawns(queue, LOOKED_AT),
    openSpawns(queue),
    sessionsSeen(mine),
  )
  const ended = new Map(seen.map((row) => [row.session, row.ended === 1]))
  const answer = {
    mine: mine.map((each) => ({
      session: each,
      seen: ended.has(each)
        ? ended.get(each)
          ? ('ended' as const)
          : ('live' as const)
        : ('starting' as const),
    })),
  }
  const history = historyOf(counted ?? { open: 0, starting: 0 }, last)
  const { spawn, reason } = decideSpawn(load, history, request, tx.now)
  if (!spawn) return { ...answer, session: null, reason }
  const n = (last[0]?.n ?? 0) + 1
  const [[made]] = yield* ask(
    insertSpawn({ session, queue, n, spawner, kind, reason }, request.startByMs),
  )
  return made
    ? { ...answer, session, reason }
    : { ...answer, session: null, reason: 'another spawner has started one at the same time' }
}

const historyOf = (
  { open, starting }: { readonly open: number; readonly starting: number },
  last: readonly {
    readonly state: string
    readonly asked_at: number
    readonly settled_at: number | null
  }[],
): SpawnHistory => {
  const settled = last.filter(({ state }) => state !== 'open')
  const at = settled.findIndex(({ state }) => state !== 'failed')
  const failed = at < 0 ? settled : settled.slice(0, at)
  return {
    open,
    starting,
    lastAt: last[0]?.asked_at ?? null,
    failures: failed.length,
    failedAt: failed.length === 0 ? null : Math.max(...failed.map((row) => row.settled_at ?? 0)),
  }
}
