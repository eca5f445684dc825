// Orders: what one transaction wanted of another run. Each is taken (deleted) and applied in one transaction, so that it
// is done once, by ordinary transitions.
import { Defect } from '../kernel/errors.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { readOr, stored, storedObject } from '../kernel/stored.ts'
import type { Follow } from '../model/follow.ts'
import type { Notice } from '../model/notice.ts'
import { nothing } from '../model/follow.ts'
import type { Run, RunStatus } from '../model/run.ts'
import { isHeld } from '../model/run.ts'
import type { PlanContext, StartCommand } from '../model/start.ts'
import type { Wait } from '../model/wait.ts'
import { follows } from '../store/consequences.ts'
import { freeCurrent } from '../store/current.ts'
import { lockRuns, runOf } from '../store/move/run-row.ts'
import { writeRuns } from '../store/move/whole-runs.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, within } from '../store/sql.ts'
import { tell } from '../store/tables/notices.ts'
import type { OrderPlace, OrderRow } from '../store/tables/orders.ts'
import { FIRST_ORDER, insertReceipts, ordersDue, takeOrders } from '../store/tables/orders.ts'
import { payloadsOf, presentRuns } from '../store/tables/runs.ts'
import { liveWaits, putWaits, waitOf } from '../store/tables/waits.ts'
import { cancel } from './cancel.ts'
import { retry } from './retry.ts'
import { afterFact, signal } from './signal.ts'
import { knownStarts, start } from './start.ts'

export type { OrderRow }

/** What an order of the kind `start` says that starts a run again. */
export interface RetryOrder {
  readonly retryOf: string
  readonly from: string | null
  readonly version: string | null
  readonly by: string
}
const isRetry = (payload: object): payload is RetryOrder => 'retryOf' in payload

/** The run that applying this order locks; null for one that is new. */
const lockedBy = (order: OrderRow): string | null => {
  if (order.kind !== 'start') return order.run
  const payload = readOr(
    () => payloadOf(order),
    // it says so when it is applied
    () => ({}),
  )
  return isRetry(payload) ? payload.retryOf : null
}

export function* dueOrders(
  _tx: Tx,
  most: number,
  after: OrderPlace = FIRST_ORDER,
): Steps<OrderRow[]> {
  const [orders] = yield* ask(ordersDue(most, after))
  return orders
}

/**
 * Tells parents of their children's ends, many in one transaction: the parents are locked in the order of their ids. An
 * order that another transaction has locked, or whose parent, is left as it is and answered as busy.
 */
export function* tellParents(
  tx: Tx,
  orders: readonly OrderRow[],
): Steps<{ applied: number; busy: readonly OrderRow[]; follow: Follow }> {
  const follow = nothing()
  const named = [...new Set(orders.map((order) => order.run))]
  const [rows, there] = yield* ask(lockRuns(named, 'skip'), presentRuns(named))
  const locked = new Set(rows.map((row) => row.id))
  const elsewhere = new Set(there.map(({ id }) => id).filter((id) => !locked.has(id)))
  const free = orders.filter((order) => !elsewhere.has(order.run))
  const told = free.map((order) => ({
    order,
    payload: readOr(
      () => payloadOf(order),
      // the sweep over families finds the child untold, and orders it anew
      () => null,
    ),
  }))
  const [taken, waits, children] = yield* ask(
    takeOrders(free.map(({ id }) => id)),
    liveWaits([...locked]),
    payloadsOf(told.flatMap(({ payload }) => (payload ? [String(payload['child'])] : []))),
  )
  const ids = new Set(taken.map(({ id }) => id))
  const busy = orders.filter((order) => !ids.has(order.id))
  const mine = told
    .filter(({ order }) => ids.has(order.id))
    .flatMap(({ order, payload }) =>
      payload ? [{ order, key: String(payload['key']), child: String(payload['child']) }] : [],
    )
  if (mine.length === 0) return { applied: 0, busy, follow }
  const satisfied: Wait[] = []
  const receipts = mine.map(({ order, key, child }) => {
    const ended = children.find((row) => row.id === child)
    const wait = waits
      .map(waitOf)
      .find((each) => each.run === order.run && each.key === key && each.kind === 'child')
    const tells = ended !== undefined && wait?.state === 'open'
    if (tells)
      satisfied.push({
        ...wait,
        state: 'satisfied',
        result: JSON.stringify({ run: child, ...outcomeOf(child, ended) }),
      })
    return {
      run: child,
      kind: 'parent_told',
      attempt: 0,
      recipient: order.run,
      outcome: tells ? 'told' : ended === undefined ? 'child_missing' : 'no_open_wait',
    }
  })
  const next: Run[] = []
  for (const row of rows) {
    const run = runOf(row)
    const own = satisfied.filter((wait) => wait.run === run.id)
    if (own.length === 0) continue
    const after = afterFact(run, own, tx.now)
    next.push(after)
    follows(follow, run, after)
    if (isHeld(run.status))
      follow.told.push({
        session: run.session ?? '',
        run: run.id,
        attempt: run.attempt,
        directive: 'waits',
        note: null,
      })
  }
  const revs = new Map(next.map((run) => [run.id, run.rev]))
  yield* ask(
    writeRuns(next),
    putWaits(satisfied, (run) => revs.get(run) ?? 0),
    insertReceipts(receipts),
  )
  return { applied: mine.length, busy, follow }
}

const payloadOf = ({ id, payload }: OrderRow): Readonly<Record<string, unknown>> =>
  storedObject(payload ?? '{}', `the order ${id}`)

interface Ended {
  readonly status: RunStatus
  readonly reason: string | null
  readonly note: string | null
  readonly output: string | null
  readonly error: string | null
}

/** How a child ended, for its parent. A result that cannot be read is no success: the parent is told so by name. */
const outcomeOf = (child: string, { status, reason, note, output, error }: Ended): object =>
  readOr<object>(
    () => ({
      status,
      reason,
      note,
      // left out where it returned nothing: null is a value
      ...(output === null ? {} : { output: stored(output, `the result of ${child}`) }),
      error: error === null ? null : stored(error, `the error of ${child}`),
    }),
    (sentence) => ({
      status: 'failed',
      reason: 'row_unreadable',
      note: sentence,
      error: { name: 'Fault', message: sentence, code: 'row_unreadable' },
    }),
  )

/** What these orders start; one that cannot be read says so when it is applied. */
export const startsOf = (
  orders: readonly OrderRow[],
): Pick<StartCommand, 'workflow' | 'version'>[] =>
  orders
    .filter(({ kind }) => kind === 'start')
    .flatMap((order) =>
      readOr(
        () => {
          const payload = payloadOf(order)
          // what is started again is known
          return isRetry(payload) ? [] : [payload as unknown as StartCommand]
        },
        () => [],
      ),
    )

/**
 * Applies one order of another kind; `outcome` says what came of it, also when it could not be done. One that another
 * transaction has locked, or whose run, is left as it is.
 */
export function* applyOrder(
  tx: Tx,
  order: OrderRow,
  context: PlanContext,
): Steps<{ applied: boolean; outcome: string; follow: Follow }> {
  const locks = lockedBy(order)
  if (locks !== null && !(yield* freeCurrent(locks)))
    return { applied: false, outcome: 'its run is locked', follow: nothing() }
  const [taken] = yield* ask(takeOrders([order.id]))
  if (taken.length === 0) return { applied: false, outcome: 'taken by another', follow: nothing() }
  const payload = payloadOf(order)
  const receipt = (kind: string, recipient: string, outcome: string) =>
    insertReceipts([{ run: order.run, kind, attempt: 0, recipient, outcome }])
  switch (order.kind) {
    case 'cancel': {
      const { answer, follow } = yield* cancel(
        tx,
        {
          run: order.run,
          by: typeof payload['by'] === 'string' ? payload['by'] : 'order',
          reason: typeof payload['reason'] === 'string' ? payload['reason'] : null,
        },
        context,
      )
      const outcome = answer.ok ? answer.status : answer.code
      yield* ask(receipt('cancel', order.id, outcome))
      return { applied: true, outcome, follow }
    }
    case 'signal': {
      const { answer, follow } = yield* signal(
        tx,
        {
          run: order.run,
          id: order.id,
          name: String(payload['name']),
          payload: (payload['payload'] as string | null) ?? null,
          by: (payload['by'] as string | null) ?? null,
        },
        context.settings,
      )
      const outcome = answer.ok ? 'sent' : answer.code
      yield* ask(receipt('signal', order.id, outcome))
      return { applied: true, outcome, follow }
    }
    case 'start': {
      const { answer, what, data, follow } = isRetry(payload)
        ? yield* retryNow(tx, order.run, payload, context)
        : yield* startNow(tx, payload as unknown as StartCommand, context)
      const outcome = answer.ok ? (answer.id === order.run ? 'started' : 'alias') : answer.code
      const notices: Notice[] = answer.ok
        ? []
        : [
            {
              run: order.run,
              kind: 'start_refused',
              occurrence: '',
              sentence: `${what} that a transaction asked for was refused: ${answer.message}`,
              data: { ...data, code: answer.code, ...answer.detail },
            },
          ]
      yield* ask(receipt('start', answer.ok ? answer.id : order.id, outcome), ...tell(notices))
      follow.notices.push(...notices)
      // what its transaction asked of it besides has waited for it
      follow.orders = true
      return { applied: true, outcome, follow }
    }
    case 'child_ended':
      throw new Defect('orders of children’s ends are applied together')
  }
}

interface Begun {
  readonly answer: Outcome<{ readonly id: string }>
  /** What was to begin, as people say it. */
  readonly what: string
  readonly data: Readonly<Record<string, string>>
  readonly follow: Follow
}

function* startNow(tx: Tx, command: StartCommand, context: PlanContext): Steps<Begun> {
  const item = { command, actor: null }
  const data = { workflow: command.workflow }
  const what = `the start of ${command.workflow}`
  const { answers, follow } = yield* within(start(tx, [item], context, new Set()))
  const [answer] = answers
  if (answer !== undefined && answer !== 'known') return { answer, what, data, follow }
  const [known] = yield* within(knownStarts(tx, [item], context))
  return { answer: known ?? refuse('not_found', 'the start was not stored'), what, data, follow }
}

function* retryNow(
  tx: Tx,
  id: string,
  { retryOf, from, version, by }: RetryOrder,
  context: PlanContext,
): Steps<Begun> {
  const command = { run: retryOf, id, from, version, by }
  const { answer, follow } = yield* within(retry(tx, command, context))
  return {
    answer: answer.ok ? { ok: true, id: answer.run } : answer,
    what: `the retry of ${retryOf}`,
    data: { retryOf },
    follow,
  }
}
