// What a launcher of pods asks its server beside the executor port: a token for an attempt, and to hear that a process is gone.
import type { Grant, GrantAnswer } from '../model/work.ts'
import type { Peer } from './call.ts'
import { call } from './call.ts'
import { refusalOf, thrown } from './judged.ts'

const TIMEOUT_MS = 10_000

export interface LaunchPort {
  readonly grant: Grant
  /** Reports that nothing of the process of a session is alive. One that never was has nothing to end. */
  readonly exited: (session: string, evidence: string) => Promise<void>
}

export const httpLaunchPort = (peer: Peer): LaunchPort => ({
  async grant(request): Promise<GrantAnswer> {
    try {
      return await call(peer, 'grant', { body: request, timeoutMs: TIMEOUT_MS })
    } catch (error) {
      return refusalOf(error) ?? thrown(error)
    }
  },

  async exited(session, evidence) {
    try {
      await call(peer, 'exited', { body: { session, evidence }, timeoutMs: TIMEOUT_MS })
    } catch (error) {
      if (refusalOf(error)?.code !== 'not_found') thrown(error)
    }
  },
})
