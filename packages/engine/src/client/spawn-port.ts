// The spawn port over HTTP: what a spawner in another process calls.
import type { SpawnPort } from '../model/spawn.ts'
import type { Peer } from './call.ts'
import { call } from './call.ts'
import { refusalOf, thrown } from './judged.ts'

const TIMEOUT_MS = 10_000

export const httpSpawnPort = (peer: Peer): SpawnPort => ({
  async begin(request) {
    try {
      return await call(peer, 'beginSpawn', {
        body: { ...request, mine: [...request.mine] },
        timeoutMs: TIMEOUT_MS,
      })
    } catch (error) {
      return thrown(error)
    }
  },

  async settle(session, evidence) {
    try {
      await call(peer, 'settleSpawn', {
        params: { session },
        body: { evidence },
        timeoutMs: TIMEOUT_MS,
      })
    } catch (error) {
      // its row was removed: nothing is left to be settled
      if (refusalOf(error)?.code !== 'not_found') thrown(error)
    }
  },
})
