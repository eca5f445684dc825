// Answers about what is sent outside: sinks, deliveries, and what an operator does with one.
import type { deliveryRoutes } from '../../protocol/delivery-routes.ts'
import { deliveries, sinks } from '../../queries/deliveries.ts'
import { settleDelivery } from '../../transitions/settle-delivery.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { paged, placeOf } from './cursor.ts'

export const deliveryAnswers = ({
  engine,
}: Pick<Shared, 'engine'>): AnswersTo<keyof typeof deliveryRoutes> => ({
  listSinks: () => engine.read((tx) => sinks(tx, engine.settings)),

  async listDeliveries({ query: { cursor, limit, state = null } }) {
    const from = placeOf('deliveries', cursor)
    return from.ok
      ? paged('deliveries', await engine.read((tx) => deliveries(tx, from.place, limit, state)))
      : from
  },

  retryDelivery: ({ params: { id }, actor, once }) =>
    once((tx) => settleDelivery(tx, id, 'retry', actor)),

  async dropDelivery({ params: { id }, actor }) {
    return (await engine.act((tx) => settleDelivery(tx, id, 'drop', actor))).answer
  },
})
