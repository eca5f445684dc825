// Applies orders: children's ends to their parents many at once, the rest one by one. One that fails is tried again later
// and keeps no other from being applied; nor does one whose run another transaction has locked.
import { Fault } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { jittered } from '../kernel/random.ts'
import { applyOrder, dueOrders, startsOf, tellParents } from '../transitions/apply-orders.ts'
import { postpone } from '../transitions/postpone.ts'
import type { Sweep } from './loop.ts'
import { patience } from './loop.ts'

const BATCH = 200

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
        const attempt = async (
          ids: readonly { id: string; tries: number }[],
          apply: () => Promise<readonly { id: string }[]>,
        ): Promise<void> => {
          try {
            const notYet = await apply()
            acted += ids.length - notYet.length
            for (const { id } of notYet) left.add(id)
          } catch (error) {
            if (error instanceof Fault && error.code === 'store_busy') {
              for (const { id } of ids) left.add(id)
              return
            }
            failed += ids.length
            upkeep.ports.log.warn('order.failed', {
              orders: ids.map(({ id }) => id).slice(0, 5),
              error,
            })
            for (const { id, tries } of ids)
              await upkeep.store.run((tx) =>
                postpone(
                  tx,
                  id,
                  jittered(upkeep.ports.random, Math.min(60_000, 100 * 2 ** Math.min(tries, 10))),
                  messageOf(error),
                ),
              )
          }
        }
        if (told.length > 0)
          await attempt(told, async () => (await upkeep.act((tx) => tellParents(tx, told))).busy)
        await upkeep.learn(startsOf(others))
        for (const order of others)
          await attempt([order], async () =>
            (await upkeep.act((tx, context) => applyOrder(tx, order, context))).applied
              ? []
              : [order],
          )
        skipped += failed + left.size
        busy += left.size
        after = orders.findLast(({ id }) => left.has(id)) ?? after
        if (orders.length < BATCH || failed > 0)
          return { examined, acted, skipped, ...again(busy > 0) }
      }
    },
  }
}
