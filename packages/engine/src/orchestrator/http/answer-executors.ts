// Answers to executors: the executor port, over HTTP.
import { refuse } from '../../kernel/outcome.ts'
import { nothing } from '../../model/follow.ts'
import type { ClaimRequest, RegisterRequest, RenewRequest, Told } from '../../model/work.ts'
import type { executorRoutes } from '../../protocol/executor-routes.ts'
import { CLAIM_WAIT_MS_MAX } from '../../protocol/executor-shapes.ts'
import type { Message } from '../../protocol/sse.ts'
import { endOnEvidence } from '../../transitions/end-session.ts'
import { ask } from '../../store/sql.ts'
import { sessionById } from '../../store/tables/sessions.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { standingDirectives } from '../standing-directives.ts'
import { writeEach } from '../write-each.ts'

export const executorAnswers = ({
  adoptions,
  engine,
  port,
  reapSoon,
}: Shared): AnswersTo<keyof typeof executorRoutes> => {
  const listening = new Map<string, AbortController>()

  return {
    async register({ body }) {
      return { ...(await port.register(body as RegisterRequest)) }
    },

    async claim({ body, signal }) {
      const request: ClaimRequest = { ...body, waitMs: Math.min(body.waitMs, CLAIM_WAIT_MS_MAX) }
      return { ...(await port.claim(request, signal)) }
    },

    async write({ body }) {
      return { answers: await writeEach(port, body.session, body.writes) }
    },

    async renew({ body }) {
      return { ...(await port.renew(body as RenewRequest)) }
    },

    async close({ body }) {
      return { ...(await port.close(body)) }
    },

    async logs({ body: { session, parts } }) {
      return { ...(await port.logs(session, parts)) }
    },

    async journal({ body }) {
      return { entries: await port.journal(body.session, body.run, body.after) }
    },

    async grant({ body }) {
      return { ...(await adoptions.grant(body)) }
    },

    async adopt({ body: { session, run, attempt }, grant }) {
      if (!grant)
        return refuse(
          'not_allowed',
          'an attempt is adopted with its own token, which its launcher asks for with `grant`',
        )
      const { from, startBy } = grant
      return { ...(await adoptions.adopt({ session, run, attempt, from, startBy })) }
    },

    async exited({ body: { session, evidence }, actor }) {
      const { found, ended } = await engine.act(function* (tx) {
        const [[row]] = yield* ask(sessionById(session))
        const what = `reported by ${actor}: ${evidence}`
        return row
          ? { found: true, ...(yield* endOnEvidence(tx, session, what)) }
          : { found: false, ended: false, follow: nothing() }
      })
      if (!found) return refuse('not_found', `there is no session ${session}`, { session })
      if (ended) reapSoon()
      return { ok: true, ended }
    },

    async listen({ query: { session }, stream }) {
      return stream(async function* (signal): AsyncGenerator<Message, void, undefined> {
        listening.get(session)?.abort()
        const mine = new AbortController()
        listening.set(session, mine)
        const waiting: Told[] = []
        let wake: () => void = () => undefined
        const stop = port.listen(session, (told) => {
          waiting.push(told)
          wake()
        })
        const leave = (): void => wake()
        signal.addEventListener('abort', leave, { once: true })
        mine.signal.addEventListener('abort', leave, { once: true })
        try {
          // what was told while nobody listened stands on the rows
          waiting.push(...(await standingDirectives(engine, session)))
          while (!signal.aborted && !mine.signal.aborted) {
            const next = waiting.shift()
            if (next) yield { event: 'told', id: null, data: next }
            else
              await new Promise<void>((resolve) => {
                wake = resolve
                if (waiting.length > 0 || signal.aborted || mine.signal.aborted) resolve()
              })
          }
        } finally {
          stop()
          signal.removeEventListener('abort', leave)
          if (listening.get(session) === mine) listening.delete(session)
        }
      })
    },
  }
}
