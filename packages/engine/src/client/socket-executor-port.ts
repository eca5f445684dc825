// The executor port over a WebSocket: work is offered to it. A claim says that there is room, waits for an offer, and accepts
// it, which is an ordinary claim of what was offered; whatever breaks on the way is asked again under the claim's number.
import { Fault, errorOf } from '../kernel/errors.ts'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Ports } from '../kernel/ports.ts'
import type { LogAnswer } from '../model/log.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CloseAnswer,
  Entry,
  ExecutorPort,
  RenewAnswer,
  Told,
} from '../model/work.ts'
import type { AnswerOf } from '../protocol/route.ts'
import type { Routes } from '../protocol/routes.ts'
import type { AskedType, FromServer } from '../protocol/socket-messages.ts'
import { PULSE_MS, SOCKET_PATH } from '../protocol/socket.ts'
import type { Dial } from './dial.ts'
import { groupedWrites } from './grouped-writes.ts'
import { refusalOf, thrown } from './judged.ts'
import { mustReach } from './peer.ts'
import { SessionLink } from './session-link.ts'

export interface SocketPortOptions {
  /** The server's root, such as `http://127.0.0.1:7400`. */
  readonly url: string
  readonly token?: string | null
  readonly dial?: Dial
  readonly ports: Pick<Ports, 'timers' | 'random' | 'log'>
  /** How often the server is asked whether it is there. Default 5 s. */
  readonly pulseMs?: number
  /** How long an answer may take. Default 10 s. */
  readonly timeoutMs?: number
}

const TIMEOUT_MS = 10_000

type Offered = Extract<FromServer, { type: 'run:offer' }>['body']

/** A session as this port has it. */
interface Linked {
  readonly link: SessionLink
  readonly hear: Set<{ readonly tell: (told: Told) => void; readonly ended: (why: string) => void }>
  /** The claim that waits for an offer. */
  readyFor: number | null
  offer: Offered | null
  /** A claim of offered runs whose answer has not come: it is asked again under its number. */
  accepting: {
    readonly claim: number
    readonly offer: string
    readonly runs: readonly string[]
  } | null
}

const dialLater: Dial = async (...given) => (await import('./dial.ts')).dial(...given)

export const socketExecutorPort = ({
  url,
  token = null,
  dial = dialLater,
  ports,
  pulseMs = PULSE_MS,
  timeoutMs = TIMEOUT_MS,
}: SocketPortOptions): ExecutorPort => {
  mustReach({ url, token })
  const address = `${url.replace(/^http/, 'ws').replace(/\/+$/, '')}${SOCKET_PATH}`
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
  const all = new Map<string, Linked>()

  const linkedTo = (session: string): Linked => {
    const found = all.get(session)
    if (found) return found
    throw errorOf(
      refuse('session_ended', `no connection of this process has ${session}; register anew`, {
        session,
      }),
    )
  }

  const ask = async <T>(
    session: string,
    type: AskedType,
    body: unknown,
    timeout?: number,
  ): Promise<T> =>
    (await linkedTo(session).link.ask(
      type,
      typeof body === 'string' ? body : JSON.stringify(body),
      timeout,
    )) as T

  const writes = groupedWrites(ports.timers, async (session, texts) => {
    try {
      const { answers } = await ask<AnswerOf<Routes['write']>>(
        session,
        'run:checkpoint',
        `{"writes":[${texts.join(',')}]}`,
      )
      return answers
    } catch (error) {
      // the session's end is no judgement of a write: who has lost it drops its attempts
      throw refusalOf(error)?.code === 'session_ended'
        ? new Fault('peer_unreachable', (error as Error).message, { cause: error })
        : error
    }
  })

  /** Nobody wants it any more. */
  const reject = (session: string, offer: string, reason: string): void => {
    ask(session, 'run:reject', { offer, reason }).catch((error: unknown) =>
      ports.log.debug('offer.not_rejected', { session, offer, error }),
    )
  }

  const notReady = (session: string, of: Linked): void => {
    of.readyFor = null
    if (of.offer) reject(session, of.offer.offer, 'not_ready')
    of.offer = null
    ask(session, 'session:busy', {}).catch((error: unknown) =>
      ports.log.debug('socket.not_told', { session, error }),
    )
  }

  const offered = async (
    of: Linked,
    request: ClaimRequest,
    signal: AbortSignal | undefined,
  ): Promise<ClaimAnswer | null> => {
    const { session, ...body } = request
    of.readyFor = request.claim
    of.offer = null
    try {
      const answer = await unlessAborted(
        ask<{ ok: true; offer: string | null; now: number } | ClaimAnswer>(
          session,
          'session:ready',
          body,
          request.waitMs + timeoutMs,
        ),
        signal,
        () => notReady(session, of),
      )
      if (!answer.ok || 'runs' in answer) return answer
      const { offer } = of as { readonly offer: Offered | null }
      of.offer = null
      if (offer === null || offer.offer !== answer.offer)
        return { ok: true, claim: request.claim, runs: [], now: answer.now, leaseUntil: null }
      of.accepting = { claim: request.claim, offer: offer.offer, runs: offer.runs }
      return null
    } finally {
      if (of.readyFor === request.claim) of.readyFor = null
    }
  }

  const answered = async <T>(asked: () => Promise<T>): Promise<T | Refusal> => {
    try {
      return await asked()
    } catch (error) {
      return refusalOf(error) ?? thrown(error)
    }
  }

  return {
    async register(request) {
      const of: Linked = {
        link: new SessionLink(request, {
          ports,
          dial: (signal) => dial(address, headers, signal),
          pulseMs,
          timeoutMs,
          pushed(message) {
            if (message.type === 'run:told') for (const { tell } of of.hear) tell(message.body)
            else if (message.type === 'run:offer') {
              const { claim, offer } = message.body
              if (of.readyFor === claim) of.offer = message.body
              else reject(request.session, offer, 'not_ready')
            }
          },
          ended(why) {
            for (const { ended } of of.hear) ended(why)
          },
        }),
        hear: new Set(),
        readyFor: null,
        offer: null,
        accepting: null,
      }
      try {
        const answer = await of.link.open()
        if (!answer.ok) return answer
        all.get(request.session)?.link.end()
        all.set(request.session, of)
        return answer
      } catch (error) {
        of.link.end()
        // an executor that may not come in is told so, rather than left knocking
        return refusalOf(error, []) ?? thrown(error)
      }
    },

    claim: (request, signal) =>
      answered(async () => {
        const of = linkedTo(request.session)
        if (of.accepting?.claim !== request.claim) {
          of.accepting = null
          const none = await offered(of, request, signal)
          if (none !== null) return none
        }
        const { session, waitMs: _waited, ...body } = request
        const accepting = of.accepting as NonNullable<Linked['accepting']> | null
        if (accepting === null) throw new Fault('peer_unreachable', 'the offer was given up')
        const answer = await unlessAborted(
          ask<ClaimAnswer>(session, 'run:accept', {
            ...body,
            offer: accepting.offer,
            runs: accepting.runs,
          }),
          signal,
          () => undefined,
        )
        of.accepting = null
        return answer
      }),

    async journal(session, run, after) {
      try {
        const { entries } = await ask<{ entries: readonly Entry[] }>(session, 'run:journal', {
          run,
          after,
        })
        return entries
      } catch (error) {
        const refusal = refusalOf(error)
        if (refusal?.code === 'stale_attempt') throw errorOf(refusal)
        return thrown(error)
      }
    },

    write: (session, write) => writes.add(session, write),

    renew: ({ session, ...body }) =>
      answered(() => ask<RenewAnswer>(session, 'session:renew', body)),

    async close({ session, ...body }) {
      try {
        return await answered(() => ask<CloseAnswer>(session, 'session:close', body))
      } finally {
        // what is left unsettled still speaks, until the session is closed for good
        if ((body.except ?? []).length === 0) {
          all.get(session)?.link.end()
          all.delete(session)
          writes.forget(session)
        }
      }
    },

    async logs(session, parts) {
      // a session that has been lost has no connection any more; its late lines go by that of the next
      const by = all.has(session) ? session : ([...all.keys()].at(-1) ?? session)
      let kept = 0
      // one at a time, so that a renewal never waits behind many
      for (const part of parts) {
        const answer = await answered(() =>
          ask<LogAnswer>(by, 'run:logs', { session, parts: [part] }),
        )
        if (!answer.ok) return answer
        kept += answer.kept
      }
      return { ok: true, kept }
    },

    listen(session, tell, ended = () => undefined) {
      const of = all.get(session)
      const mine = { tell, ended }
      of?.hear.add(mine)
      return () => void of?.hear.delete(mine)
    },
  }
}

/** As `asked`, or a Fault as soon as the signal is aborted. */
const unlessAborted = <T>(
  asked: Promise<T>,
  signal: AbortSignal | undefined,
  aborted: () => void,
): Promise<T> => {
  if (!signal) return asked
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      signal.removeEventListener('abort', leave)
      aborted()
      reject(new Fault('peer_unreachable', 'the claim was given up'))
    }
    signal.addEventListener('abort', leave, { once: true })
    asked.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
    if (signal.aborted) leave()
  })
}
