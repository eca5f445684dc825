// Writes of attempts, grouped while a request is in flight; each is answered on its own.
import type { Batcher } from '../kernel/batcher.ts'
import { batcher, ItemError } from '../kernel/batcher.ts'
import { Fault } from '../kernel/errors.ts'
import type { Timers } from '../kernel/timers.ts'
import type { AttemptWrite, WriteAnswer } from '../model/work.ts'
import type { AnswerOf } from '../protocol/route.ts'
import type { Routes } from '../protocol/routes.ts'
import { faultOf, isFault, isRefusal, refusalOf } from './judged.ts'

/** Writes of one request, by size of their text. */
const REQUEST_MAX = 8 * 1024 ** 2

type ItemAnswer = AnswerOf<Routes['write']>['answers'][number]

export interface GroupedWrites {
  add(session: string, write: AttemptWrite): Promise<WriteAnswer>
  forget(session: string): void
}

/** `send` gets the texts of some writes and answers as many. */
export const groupedWrites = (
  timers: Timers,
  send: (session: string, texts: readonly string[]) => Promise<readonly ItemAnswer[]>,
): GroupedWrites => {
  const writers = new Map<string, Batcher<AttemptWrite, WriteAnswer>>()

  const sent = async (
    session: string,
    texts: readonly string[],
  ): Promise<(WriteAnswer | ItemError)[]> => {
    try {
      const answers = await send(session, texts)
      return texts.map((_text, i) => writeAnswerOf(answers[i]))
    } catch (error) {
      const refusal = refusalOf(error)
      return texts.map(() => refusal ?? new ItemError(faultOf(error)))
    }
  }

  const writerOf = (session: string): Batcher<AttemptWrite, WriteAnswer> => {
    const found = writers.get(session)
    if (found) return found
    const made = batcher<AttemptWrite, WriteAnswer>(timers, async (writes) => {
      const answers: (WriteAnswer | ItemError)[] = []
      for (const part of parts(writes.map((each) => JSON.stringify(each))))
        answers.push(...(await sent(session, part)))
      return answers
    })
    writers.set(session, made)
    return made
  }

  return {
    add: (session, write) => writerOf(session).add(write),
    forget: (session) => void writers.delete(session),
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

const writeAnswerOf = (answer: ItemAnswer | undefined): WriteAnswer | ItemError => {
  if (answer === undefined)
    return new ItemError(new Fault('unknown_outcome', 'the server answered fewer writes than sent'))
  if (answer.ok === true) return answer as unknown as WriteAnswer
  const { code, message, detail, fault } = answer
  if (fault === true || !isRefusal(code))
    return new ItemError(new Fault(isFault(code) ? code : 'unknown_outcome', message, { detail }))
  return { ok: false, code, message, detail }
}
