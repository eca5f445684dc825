// What an operator does with a delivery: one that is dead is tried anew, one that is dead or waits for its time is dropped,
// with a receipt that says by whom.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import { deliveriesNow, dropDelivery, reviveDelivery } from '../store/tables/deliveries.ts'
import { receiptsFor } from './deliver.ts'

export type SettleDeliveryAnswer = Outcome<{
  readonly delivery: string
  readonly run: string
  readonly sink: string
  readonly done: 'retried' | 'dropped'
}>

export function* settleDelivery(
  _tx: Tx,
  id: string,
  what: 'retry' | 'drop',
  by: string,
): Steps<{ answer: SettleDeliveryAnswer; follow: Follow }> {
  const follow = nothing()
  const note = `dropped by ${by}`
  const [[found]] = yield* ask(what === 'retry' ? reviveDelivery(id) : dropDelivery(id, note))
  if (!found) {
    const [[now]] = yield* ask(deliveriesNow([id]))
    return {
      answer: now
        ? refuse(
            'delivery_state',
            `the delivery ${id} is ${now.state}; ${what === 'retry' ? 'one that is dead can be tried anew' : 'one that is due or dead can be dropped'}`,
            { delivery: id, state: now.state },
          )
        : refuse(
            'not_found',
            `there is no delivery ${id}; leasehold deliveries lists those that there are`,
            { delivery: id },
          ),
      follow,
    }
  }
  if (what === 'drop') yield* finish(receiptsFor([found], () => note))
  else follow.deliveries = true
  return {
    answer: {
      ok: true,
      delivery: id,
      run: found.run,
      sink: found.sink,
      done: what === 'retry' ? 'retried' : 'dropped',
    },
    follow,
  }
}
