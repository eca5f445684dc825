// Applies orders: children's ends to their parents many at once, the rest one by one. One that fails is tried again later
// and keeps no other from being applied.
import { messageOf } from '../kernel/json.ts'
import { jittered } from '../kernel/random.ts'
import { applyOrder, dueOrders, startsOf, tellParents } from '../transitions/apply-orders.ts'
import { postpone } from '../transitions/postpone.ts'
import type { Sweep } from './loop.ts'

const BATCH = 200

export const applyOrders: Sweep = {
  name: 'apply-orders',
  intervalMs: 1_000,
  async pass(upkeep) {
    let examined = 0
    let acted = 0
    let skipped = 0
    for (;;) {
      const orders = await upkeep.read((tx) => dueOrders(tx, BATCH))
      examined += orders.length
      const told = orders.filter((order) => order.kind === 'child_ended')
      const others = orders.filter((order) => order.kind !== 'child_ended')
      let failed = 0
      const attempt = async (
        ids: readonly { id: string; tries: number }[],
        apply: () => Promise<number>,
      ): Promise<void> => {
        try {
          acted += await apply()
        } catch (error) {
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
        await attempt(told, async () => (await upkeep.act((tx) => tellParents(tx, told))).applied)
      await upkeep.learn(startsOf(others))
      for (const order of others)
        await attempt([order], async () =>
          (await upkeep.act((tx, context) => applyOrder(tx, order, context))).applied ? 1 : 0,
        )
      skipped += failed
      if (orders.length < BATCH || failed > 0) return { examined, acted, skipped }
    }
  },
}
