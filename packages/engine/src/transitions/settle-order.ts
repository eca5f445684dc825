// What an operator does with an order that was set aside: it is tried anew, or dropped with a receipt that says by whom.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { removeNotices } from '../store/tables/notices.ts'
import { dropOrder, insertReceipts, retryOrder } from '../store/tables/orders.ts'

export type SettleOrderAnswer = Outcome<{
  readonly order: string
  readonly run: string
  readonly done: 'retried' | 'dropped'
}>

/** A drop is final: what the engine itself wanted by the order its sweep over families orders anew. */
export function* settleOrder(
  _tx: Tx,
  order: string,
  what: 'retry' | 'drop',
  by: string,
): Steps<{ answer: SettleOrderAnswer; follow: Follow }> {
  const follow = nothing()
  const [[found]] = yield* ask(what === 'retry' ? retryOrder(order) : dropOrder(order))
  if (!found)
    return {
      answer: refuse(
        'not_found',
        `no order ${order} is set aside; leasehold orders lists those that are`,
        { order },
      ),
      follow,
    }
  // what was to be delivered of it, and has not been, is void
  yield* finish(
    removeNotices(order, 'order_set_aside'),
    ...(what === 'drop'
      ? [
          insertReceipts([
            {
              run: found.run,
              kind: found.kind,
              attempt: 0,
              recipient: order,
              outcome: `dropped by ${by}`,
            },
          ]),
        ]
      : []),
  )
  // a dropped start lets what was asked of its run come to its end
  follow.orders = true
  return {
    answer: { ok: true, order, run: found.run, done: what === 'retry' ? 'retried' : 'dropped' },
    follow,
  }
}
