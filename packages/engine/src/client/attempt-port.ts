// The port of a process that drives one attempt (RAIL-14): it registers the session that its token is for, adopts the attempt where
// another executor would claim, and asks for nothing more.
import type { AttemptGrant } from '../kernel/attempt-token.ts'
import type { ClaimAnswer, ExecutorPort } from '../model/work.ts'
import { call } from './call.ts'
import type { HttpPortOptions } from './executor-port.ts'
import { httpExecutorPort } from './executor-port.ts'
import { refusalOf, thrown } from './judged.ts'
import { peerOf } from './peer.ts'

const TIMEOUT_MS = 10_000

/** `settled` hears when the attempt has: nothing is left to do. `refused` hears why it could not be adopted. */
export const attemptPort = (
  { run, attempt }: AttemptGrant,
  options: HttpPortOptions,
  { settled, refused }: { settled(): void; refused(message: string): void },
): ExecutorPort => {
  const port = httpExecutorPort(options)
  const fetcher = options.fetch ?? ((input, init) => fetch(input, init))
  const peer = peerOf({
    url: options.url,
    token: options.token ?? null,
    actor: null,
    fetch: fetcher,
    timers: options.ports.timers,
  })
  return {
    ...port,
    // it serves nothing: its one run is given to it
    register: (request) =>
      port.register({ ...request, definitions: [], queues: [], labels: [], capacity: 1 }),
    async claim({ session, claim }, signal): Promise<ClaimAnswer> {
      // its one slot is free again
      if (claim > 1) {
        settled()
        return new Promise((resolve) => {
          const none = (): void => resolve({ ok: true, claim, runs: [], now: 0, leaseUntil: null })
          signal?.addEventListener('abort', none, { once: true })
          if (signal?.aborted === true) none()
        })
      }
      try {
        const body = { session, run, attempt }
        const answer = await call(peer, 'adopt', { body, timeoutMs: TIMEOUT_MS })
        return answer as unknown as ClaimAnswer
      } catch (error) {
        const refusal = refusalOf(error, [])
        if (!refusal) return thrown(error)
        refused(refusal.message)
        return { ok: true, claim, runs: [], now: 0, leaseUntil: null }
      }
    },
  }
}
