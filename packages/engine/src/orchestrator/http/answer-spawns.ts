// Answers to spawners, and about what they did.
import { refuse } from '../../kernel/outcome.ts'
import type { BeginSpawn, BegunSpawn } from '../../model/spawn.ts'
import type { spawnRoutes } from '../../protocol/spawn-routes.ts'
import { queueNamed } from '../../queries/queues.ts'
import { spawns } from '../../queries/spawns.ts'
import { beginSpawn } from '../../transitions/begin-spawn.ts'
import { settleSpawn } from '../../transitions/settle-spawn.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { paged, placeOf } from './cursor.ts'
import type { Engine } from '../engine.ts'

/** Whether an executor is to be started; what waits is looked at in the transaction before, as it may have gone the next moment anyway. */
export const begunSpawn = async (engine: Engine, request: BeginSpawn): Promise<BegunSpawn> => {
  const load = await engine.read((tx) => queueNamed(tx, request.queue))
  const session = engine.ports.ids.next('ses')
  const begun = await engine.store.run((tx) => beginSpawn(tx, request, load, session))
  if (begun.session !== null)
    engine.ports.log.info('executor.spawned', {
      session,
      queue: request.queue,
      spawner: request.spawner,
      reason: begun.reason,
    })
  return begun
}

export const spawnAnswers = ({
  engine,
  reapSoon,
}: Pick<Shared, 'engine' | 'reapSoon'>): AnswersTo<keyof typeof spawnRoutes> => ({
  async beginSpawn({ body }) {
    const { session, reason, mine } = await begunSpawn(engine, body)
    return { ok: true, session, reason, mine: [...mine] }
  },

  async settleSpawn({ params: { session }, body: { evidence } }) {
    const { found, ended } = await engine.act((tx) => settleSpawn(tx, session, evidence))
    if (!found) return refuse('not_found', `no executor ${session} was started so`, { session })
    if (ended) reapSoon()
    return { ok: true, ended }
  },

  async listSpawns({ query: { cursor, limit } }) {
    const from = placeOf('spawns', cursor)
    return from.ok
      ? paged('spawns', await engine.read((tx) => spawns(tx, from.place, limit)))
      : from
  },
})
