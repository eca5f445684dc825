// Applies orders: children's ends to their parents many at once, the rest one by one. One that fails is tried again later
// and keeps no other from being applied; nor does one whose run another transaction has locked. One that fails by what it
// is, and not by the store, is set aside after so many tries.
import { Fault } from '../kernel/errors.ts'
import type { Growth } from '../kernel/growing-delay.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { messageOf } from '../kernel/json.ts'
import { jittered } from '../kernel/random.ts'
import type { OrderRow } from '../transitions/apply-orders.ts'
import { applyOrder, dueOrders, startsOf, tellParents } from '../transitions/apply-orders.ts'
import { failOrder } from '../transitions/fail-order.ts'
import { postpone } from '../transitions/postpone.ts'
import type { Sweep } from './loop.ts'
import { patience } from './loop.ts'

const BATCH = 200
const AGAIN: Growth = { firstMs: 100, maxMs: 60_000 }

export const applyOrders = (): Sweep => {
  const again = patience()
  return {
    name: 'apply-orders',
    intervalMs: 1_000,
    async pass(upkeep) {
      let examined = 0
      let acted = 0
      let skipped = 0
      let busy = 0
      /** Behind the last order that was left to another transaction, else at the front: what was applied is gone. */
      let after: { readonly id: string; readonly not_before: number } | undefined
      for (;;) {
        const orders = await upkeep.read((tx) => dueOrders(tx, BATCH, after))
        examined += orders.length
        const told = orders.filter((order) => order.kind === 'child_ended')
        const others = orders.filter((order) => order.kind !== 'child_ended')
        const left = new Set<string>()
        let failed = 0
        /** The store failed: what is left is for another pass. */
        let down = false
        const fails = async (order: OrderRow, error: unknown): Promise<void> => {
          failed += 1
          const { id, tries, failures } = order
          upkeep.ports.log.warn('order.failed', { order: id, failures, error })
          const ms = jittered(upkeep.ports.random, growingDelayMs(tries + 1, AGAIN))
          // what the store does to it says nothing about the order
          if (isOfTheStore(error))
            await upkeep.store.run((tx) => postpone(tx, id, ms, messageOf(error)))
          else
            await upkeep.act((tx) =>
              failOrder(tx, id, ms, messageOf(error), upkeep.settings.orderFailuresMax),
            )
        }
        const attempt = async (
          list: readonly OrderRow[],
          apply: (list: readonly OrderRow[]) => Promise<readonly OrderRow[]>,
        ): Promise<void> => {
          try {
            const notYet = await apply(list)
            acted += list.length - notYet.length
            for (const { id } of notYet) left.add(id)
          } catch (error) {
            if (isOfTheStore(error) && error.code === 'store_busy') {
              for (const { id } of list) left.add(id)
            } else if (isOfTheStore(error) || list.length === 1) {
              down ||= isOfTheStore(error)
              for (const order of list) await fails(order, error)
            }
            // one of them is bad, and the others are not to fail with it
            else for (const order of list) await attempt([order], apply)
          }
        }
        if (told.length > 0)
          await attempt(
            told,
            async (list) => (await upkeep.act((tx) => tellParents(tx, list))).busy,
          )
        await upkeep.learn(startsOf(others))
        for (const order of others)
          await attempt([order], async (list) =>
            (await upkeep.act((tx, context) => applyOrder(tx, order, context))).applied ? [] : list,
          )
        skipped += failed + left.size
        busy += left.size
        after = orders.findLast(({ id }) => left.has(id)) ?? after
        if (orders.length < BATCH || down) return { examined, acted, skipped, ...again(busy > 0) }
      }
    },
  }
}

/** Of the outside, which may be well again; a row that cannot be read is as it is. */
const isOfTheStore = (error: unknown): error is Fault =>
  error instanceof Fault && error.code !== 'row_unreadable'
