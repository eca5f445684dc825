// The executor port over HTTP: what an executor in another process calls. Writes are grouped while a request is in flight;
// what the network does is a fault, and only a server of ours can refuse anything.
import { errorOf } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import type { LogAnswer } from '../model/log.ts'
import type {
  ClaimAnswer,
  CloseAnswer,
  Entry,
  ExecutorPort,
  RegisterAnswer,
  RenewAnswer,
  Told,
} from '../model/work.ts'
import { CLAIM_WAIT_MS_MAX } from '../protocol/executor-shapes.ts'
import type { Fetch } from './call.ts'
import { call, JsonText } from './call.ts'
import { follow } from './follow.ts'
import { groupedWrites } from './grouped-writes.ts'
import { refusalOf, thrown } from './judged.ts'
import { peerOf } from './peer.ts'

export interface HttpPortOptions {
  readonly url: string
  readonly token?: string | null
  readonly fetch?: Fetch
  readonly ports: Pick<Ports, 'timers' | 'random' | 'log'>
}

const CLAIM_SLACK_MS = 10_000
const HOT_TIMEOUT_MS = 10_000
export const httpExecutorPort = ({
  url,
  token = null,
  fetch: fetcher = (input, init) => fetch(input, init),
  ports: { timers, random, log },
}: HttpPortOptions): ExecutorPort => {
  const peer = peerOf({ url, token, actor: null, fetch: fetcher, timers })
  const writes = groupedWrites(timers, async (session, texts) => {
    const body = new JsonText(
      `{"session":${JSON.stringify(session)},"writes":[${texts.join(',')}]}`,
    )
    return (await call(peer, 'write', { body, timeoutMs: HOT_TIMEOUT_MS })).answers
  })

  return {
    async register(request) {
      try {
        const answer = await call(peer, 'register', { body: request, timeoutMs: HOT_TIMEOUT_MS })
        return answer as unknown as RegisterAnswer
      } catch (error) {
        // an executor that may not come in is told so, rather than left knocking
        return refusalOf(error, []) ?? thrown(error)
      }
    },

    async claim(request, signal) {
      const waitMs = Math.min(request.waitMs, CLAIM_WAIT_MS_MAX)
      try {
        const answer = await call(peer, 'claim', {
          body: { ...request, waitMs },
          timeoutMs: waitMs + CLAIM_SLACK_MS,
          ...(signal === undefined ? {} : { signal }),
        })
        return answer as unknown as ClaimAnswer
      } catch (error) {
        return refusalOf(error) ?? thrown(error)
      }
    },

    async journal(session, run, after) {
      try {
        const { entries } = await call(peer, 'journal', { body: { session, run, after } })
        return entries as readonly Entry[]
      } catch (error) {
        const refusal = refusalOf(error)
        if (refusal?.code === 'stale_attempt') throw errorOf(refusal)
        return thrown(error)
      }
    },

    write: (session, write) => writes.add(session, write),

    async renew(request) {
      try {
        const answer = await call(peer, 'renew', { body: request, timeoutMs: HOT_TIMEOUT_MS })
        return answer as unknown as RenewAnswer
      } catch (error) {
        return refusalOf(error) ?? thrown(error)
      }
    },

    async close(request) {
      try {
        const answer = await call(peer, 'close', { body: request, timeoutMs: HOT_TIMEOUT_MS })
        writes.forget(request.session)
        return answer as unknown as CloseAnswer
      } catch (error) {
        return refusalOf(error) ?? thrown(error)
      }
    },

    async logs(session, parts) {
      try {
        const answer = await call(peer, 'logs', {
          body: { session, parts },
          timeoutMs: HOT_TIMEOUT_MS,
        })
        return answer as unknown as LogAnswer
      } catch (error) {
        return refusalOf(error) ?? thrown(error)
      }
    },

    listen(session, tell) {
      const over = new AbortController()
      const hear = async (): Promise<void> => {
        const messages = follow(
          peer,
          'listen',
          { query: { session } },
          {
            random,
            signal: over.signal,
            isLast: () => false,
            onLost: (error) => log.debug('listen.lost', { session, error }),
          },
        )
        for await (const message of messages)
          if (message.event === 'told' && !over.signal.aborted) tell(message.data as Told)
      }
      // directives come with renewals too: without this connection they are only later
      hear().catch((error: unknown) => log.warn('listen.ended', { session, error }))
      return () => over.abort()
    },
  }
}
