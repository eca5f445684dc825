// The executor port over HTTP: what an executor in another process calls. Writes are grouped while a request is in flight;
// what the network does is a fault, and only a server of ours can refuse anything.
import { batcher, ItemError } from '../kernel/batcher.ts'
import type { Batcher } from '../kernel/batcher.ts'
import type { ErrorCode, FaultCode, RefusalCode } from '../kernel/codes.ts'
import { codes } from '../kernel/codes.ts'
import { errorOf, Fault, LeaseholdError } from '../kernel/errors.ts'
import type { Refusal } from '../kernel/outcome.ts'
import type { Ports } from '../kernel/ports.ts'
import type {
  AttemptWrite,
  ClaimAnswer,
  CloseAnswer,
  Entry,
  ExecutorPort,
  RegisterAnswer,
  RenewAnswer,
  Told,
  WriteAnswer,
} from '../model/work.ts'
import type { AnswerOf } from '../protocol/route.ts'
import type { Routes } from '../protocol/routes.ts'
import type { Fetch, Peer } from './call.ts'
import { call, JsonText } from './call.ts'
import { follow } from './follow.ts'

export interface HttpPortOptions {
  readonly url: string
  readonly token?: string | null
  readonly fetch?: Fetch
  readonly ports: Pick<Ports, 'timers' | 'random' | 'log'>
}

/** A proxy cuts what is silent for longer. */
const LONGEST_CLAIM_MS = 20_000
const CLAIM_SLACK_MS = 10_000
const HOT_TIMEOUT_MS = 10_000
/** Writes of one request, by size of their text. */
const REQUEST_MAX = 8 * 1024 ** 2

/** Codes that say nothing of the run or the session: the same request may be answered another time. */
const NOT_JUDGED: readonly ErrorCode[] = [
  'draining',
  'unauthorized',
  'not_allowed',
  'forbidden_origin',
  'internal_error',
]

export const httpExecutorPort = ({
  url,
  token = null,
  fetch: fetcher = (input, init) => fetch(input, init),
  ports: { timers, random, log },
}: HttpPortOptions): ExecutorPort => {
  const peer: Peer = { url, token, actor: null, fetch: fetcher, timers }
  const writers = new Map<string, Batcher<AttemptWrite, WriteAnswer>>()

  const writerOf = (session: string): Batcher<AttemptWrite, WriteAnswer> => {
    const found = writers.get(session)
    if (found) return found
    const made = batcher<AttemptWrite, WriteAnswer>(timers, async (writes) => {
      const answers: (WriteAnswer | ItemError)[] = []
      for (const part of parts(writes.map((each) => JSON.stringify(each))))
        answers.push(...(await send(session, part)))
      return answers
    })
    writers.set(session, made)
    return made
  }

  const send = async (
    session: string,
    texts: readonly string[],
  ): Promise<(WriteAnswer | ItemError)[]> => {
    const body = new JsonText(
      `{"session":${JSON.stringify(session)},"writes":[${texts.join(',')}]}`,
    )
    try {
      const { answers } = await call(peer, 'write', { body, timeoutMs: HOT_TIMEOUT_MS })
      return texts.map((_text, i) => writeAnswerOf(answers[i]))
    } catch (error) {
      const refusal = refusalOf(error)
      return texts.map(() => refusal ?? new ItemError(faultOf(error)))
    }
  }

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
      const waitMs = Math.min(request.waitMs, LONGEST_CLAIM_MS)
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

    write: (session, write) => writerOf(session).add(write),

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
        writers.delete(request.session)
        return answer as unknown as CloseAnswer
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

/** Texts in order, in groups that each fit a request. */
const parts = (texts: readonly string[]): string[][] => {
  const out: string[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const text of texts) {
    bytes += text.length
    if (bytes > REQUEST_MAX) {
      out.push([])
      bytes = text.length
    }
    out.at(-1)?.push(text)
  }
  return out
}

type ItemAnswer = AnswerOf<Routes['write']>['answers'][number]

const writeAnswerOf = (answer: ItemAnswer | undefined): WriteAnswer | ItemError => {
  if (answer === undefined)
    return new ItemError(new Fault('unknown_outcome', 'the server answered fewer writes than sent'))
  if (answer.ok === true) return answer as unknown as WriteAnswer
  const { code, message, detail, fault } = answer
  if (fault === true || !isRefusal(code))
    return new ItemError(new Fault(isFault(code) ? code : 'unknown_outcome', message, { detail }))
  return { ok: false, code, message, detail }
}

const kindOf = (code: string): string | undefined =>
  Object.hasOwn(codes, code) ? codes[code as ErrorCode].kind : undefined
const isRefusal = (code: string): code is RefusalCode => kindOf(code) === 'refusal'
const isFault = (code: string): code is FaultCode => kindOf(code) === 'fault'

/** What the server judged, as the value that the port answers; undefined for everything else. */
const refusalOf = (
  error: unknown,
  notJudged: readonly ErrorCode[] = NOT_JUDGED,
): Refusal | undefined =>
  error instanceof LeaseholdError && isRefusal(error.code) && !notJudged.includes(error.code)
    ? { ok: false, code: error.code, message: error.message, detail: error.detail }
    : undefined

const faultOf = (error: unknown): unknown =>
  error instanceof LeaseholdError && !(error instanceof Fault)
    ? new Fault('peer_unreachable', error.message, {
        cause: error,
        detail: { ...error.detail, code: error.code },
      })
    : error

const thrown = (error: unknown): never => {
  throw faultOf(error)
}
