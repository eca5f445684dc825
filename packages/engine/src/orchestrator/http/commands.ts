// Commands of people, done once: the first answer under an `Idempotency-Key` is stored in the transaction that does the
// thing, so a repeat gets it again for 24 h, whatever happened to the response (RAIL-08).
import type { ErrorCode } from '../../kernel/codes.ts'
import { codes } from '../../kernel/codes.ts'
import type { Outcome, Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { storedObject } from '../../kernel/stored.ts'
import type { Follow } from '../../model/follow.ts'
import { nothing } from '../../model/follow.ts'
import type { PlanContext } from '../../model/start.ts'
import type { Steps, Tx } from '../../store/sql.ts'
import { ask, within } from '../../store/sql.ts'
import {
  answerCommand,
  commandById,
  insertCommand,
  removeCommand,
} from '../../store/tables/orders.ts'
import type { Engine } from '../engine.ts'

/** What a request is, for its repeat to be told from another one under the same key. */
export interface Command {
  readonly key: string
  readonly route: string
  /** Keyed hash over the path and the body. */
  readonly hash: string
}

export type Transition<T> = (
  tx: Tx,
  context: PlanContext,
) => Steps<{ readonly answer: Outcome<T>; readonly follow: Follow }>

export interface Done<T> {
  readonly answer: Outcome<T>
  readonly replayed: boolean
}

/** Does `transition`, once for each command; without a command just so. */
export const doOnce = async <T>(
  engine: Engine,
  command: Command | null,
  transition: Transition<T>,
): Promise<Done<T>> => {
  if (command === null) return { answer: (await engine.act(transition)).answer, replayed: false }
  const { done } = await engine.act((tx, context) => once(tx, context, command, transition))
  return done
}

function* once<T>(
  tx: Tx,
  context: PlanContext,
  command: Command,
  transition: Transition<T>,
): Steps<{ done: Done<T>; follow: Follow }> {
  // the row is taken first: a second copy waits for the first one's commit, and then finds its answer
  const [taken, [first]] = yield* ask(
    insertCommand({
      id: command.key,
      route: command.route,
      request_hash: command.hash,
      status: 0,
      answer: '',
    }),
    commandById(command.key),
  )
  if (taken.length === 0) {
    const answer =
      first?.request_hash === command.hash
        ? (storedObject(
            first.answer,
            `the answer under the key ${command.key}`,
          ) as unknown as Outcome<T>)
        : refuse(
            'command_reused',
            `the key ${command.key} was used for another request to ${first?.route}; mint a new one for each new request`,
            { key: command.key, route: first?.route ?? null },
          )
    return { done: { answer, replayed: first?.request_hash === command.hash }, follow: nothing() }
  }
  const { answer, follow } = yield* within(transition(tx, context))
  const status = statusOf(answer)
  yield* ask(
    judged(status)
      ? answerCommand(command.key, status, JSON.stringify(answer))
      : removeCommand(command.key),
  )
  return { done: { answer, replayed: false }, follow }
}

const statusOf = (answer: { readonly ok: true } | Refusal): number =>
  answer.ok ? 200 : codes[answer.code satisfies ErrorCode].status

/** What was not judged on its merits may be tried again under the same key. */
const judged = (status: number): boolean =>
  status < 500 && status !== 400 && status !== 401 && status !== 403 && status !== 429
