// Routes of what is sent outside: the sinks, the deliveries of notices to them, and what operators do with those.
import * as z from 'zod'
import { deliveryMachine } from '../model/delivery.ts'
import { noticeKinds } from '../model/notice.ts'
import { route } from './route.ts'
import { inQuery, instant, whole } from './values.ts'

const deliveryId = z.string().min(1).max(200)
const state = z.enum(deliveryMachine.states)
const kind = z.enum(noticeKinds)

const delivery = z
  .object({
    id: z.string(),
    run: z.string().describe('What the notice is of: a run, or the session, tick or order'),
    kind,
    occurrence: z.string(),
    sink: z.string(),
    state,
    holder: z.string().nullable().describe('The server that is sending it'),
    dueAt: instant.describe('When it is tried next, or when the claim of who sends it lapses'),
    refusals: whole.describe('Times that its sink has refused it'),
    lapses: whole.describe('Claims that lapsed, or sends that were cut off, without an answer'),
    error: z.string().nullable(),
    note: z.string().nullable(),
    createdAt: instant,
    settledAt: instant.nullable(),
  })
  .meta({ id: 'Delivery' })

const sink = z
  .object({
    name: z.string(),
    type: z.string().nullable().describe('null for one that was removed'),
    kinds: z.array(kind),
    seenAt: instant.nullable().describe('When a server last said that it has the sink'),
    gone: z.boolean().describe('No server says so any more'),
    open: whole.describe('Deliveries that are due or being sent, counted up to 10,000'),
    dead: whole,
    oldestAt: instant.nullable(),
    ageMs: whole.describe('Age of the oldest open delivery'),
    late: z.boolean().describe('It is older than deliveryLateMs'),
  })
  .meta({ id: 'Sink' })

const settledDelivery = z.object({
  delivery: z.string(),
  run: z.string(),
  sink: z.string(),
  done: z.enum(['retried', 'dropped']),
})

export const deliveryRoutes = {
  listSinks: route({
    method: 'GET',
    path: '/v1/sinks',
    summary: 'Where notices are sent, and how far each is behind',
    group: 'server',
    role: 'viewer',
    answer: z.object({ now: instant, sinks: z.array(sink) }),
    refusals: [],
  }),
  listDeliveries: route({
    method: 'GET',
    path: '/v1/deliveries',
    summary: 'Notices on their way to sinks, and what came of each, newest first',
    group: 'server',
    role: 'viewer',
    query: z.strictObject({
      state: state.optional(),
      cursor: z.string().max(5_000).optional(),
      limit: inQuery.whole(1, 1_000).default(200),
    }),
    answer: z.object({ deliveries: z.array(delivery), next: z.string().nullable() }),
    refusals: [],
  }),
  retryDelivery: route({
    method: 'POST',
    path: '/v1/deliveries/:id/retry',
    summary: 'Try a dead delivery anew',
    group: 'server',
    role: 'operator',
    params: z.strictObject({ id: deliveryId }),
    body: z.strictObject({}),
    answer: settledDelivery,
    refusals: ['not_found', 'delivery_state'],
  }),
  dropDelivery: route({
    method: 'DELETE',
    path: '/v1/deliveries/:id',
    summary: 'Drop a delivery that is due or dead: it is not sent',
    group: 'server',
    role: 'operator',
    params: z.strictObject({ id: deliveryId }),
    answer: settledDelivery,
    refusals: ['not_found', 'delivery_state'],
  }),
}
