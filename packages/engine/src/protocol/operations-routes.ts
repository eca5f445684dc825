// Routes of operators: executors, slots, queues, pauses, versions, sweeps, the audit, and whether the server is well.
import * as z from 'zod'
import {
  executor,
  invariant,
  notice,
  order,
  pause,
  queue,
  slot,
  slotDetail,
  sweep,
  workflow,
} from './operations-shapes.ts'
import { EXPOSITION } from '../kernel/meters.ts'
import { WEIGHT_MIN } from '../model/slots.ts'
import { route } from './route.ts'
import { inQuery, instant, int, maybe, ms, name, whole } from './values.ts'

const orderId = z.string().min(1).max(500)
const settledOrder = z.object({
  order: z.string(),
  run: z.string(),
  done: z.enum(['retried', 'dropped']),
})

export const operationsRoutes = {
  listExecutors: route({
    method: 'GET',
    path: '/v1/executors',
    summary: 'Executors that live, and those that ended not long ago, with what they hold',
    group: 'executors',
    role: 'viewer',
    query: z.strictObject({ endedWithinMs: inQuery.whole(0, 1e12).default(3_600_000) }),
    answer: z.object({ now: instant, executors: z.array(executor) }),
    refusals: [],
  }),
  clearExecutor: route({
    method: 'POST',
    path: '/v1/executors/:session/clear',
    summary:
      'Tell an executor that what a run left there has been seen to: it frees the slots that it kept',
    group: 'executors',
    role: 'operator',
    params: z.strictObject({ session: name }),
    body: z.strictObject({ run: name }),
    answer: z.object({ session: z.string(), run: z.string() }),
    refusals: ['not_found'],
  }),
  listSlots: route({
    method: 'GET',
    path: '/v1/slots',
    summary: 'Limits, with what is held of each and how many wait',
    group: 'slots',
    role: 'viewer',
    answer: z.object({ slots: z.array(slot) }),
    refusals: [],
  }),
  getSlot: route({
    method: 'GET',
    path: '/v1/slots/:key',
    summary: 'A limit with its holders and its line',
    group: 'slots',
    role: 'viewer',
    params: z.strictObject({ key: name }),
    answer: slotDetail,
    refusals: ['not_found'],
  }),
  setSlot: route({
    method: 'PUT',
    path: '/v1/slots/:key',
    summary: 'Set an operator’s value, which beats the code’s; lowering it ends nothing',
    group: 'slots',
    role: 'operator',
    params: z.strictObject({ key: name }),
    body: z.strictObject({
      value: int.min(0).nullable().describe('null: the code’s value again'),
      mode: z
        .enum(['whole_run', 'while_held'])
        .optional()
        .describe('For a key that has no row yet'),
      weight: z.number().min(WEIGHT_MIN).max(1_000).optional(),
    }),
    answer: slotDetail,
    refusals: [],
  }),
  listQueues: route({
    method: 'GET',
    path: '/v1/queues',
    summary: 'Queues and their lanes: depth, the oldest run, and whether somebody serves them',
    group: 'queues',
    role: 'viewer',
    answer: z.object({ now: instant, queues: z.array(queue) }),
    refusals: [],
  }),
  getQueue: route({
    method: 'GET',
    path: '/v1/queues/:queue',
    summary:
      'A queue for an autoscaler: what waits, for how long, and which slots are free; of a queue that is not known nothing waits',
    group: 'queues',
    role: 'viewer',
    params: z.strictObject({ queue: name }),
    answer: queue.extend({ now: instant }),
    refusals: [],
  }),
  listPauses: route({
    method: 'GET',
    path: '/v1/pauses',
    summary: 'Queues and workflows that are paused',
    group: 'queues',
    role: 'viewer',
    answer: z.object({ pauses: z.array(pause) }),
    refusals: [],
  }),
  pauseLine: route({
    method: 'POST',
    path: '/v1/pauses',
    summary: 'Pause a queue or a workflow: claims skip it',
    group: 'queues',
    role: 'operator',
    body: z.strictObject({
      kind: z.enum(['queue', 'workflow']),
      name,
      why: maybe(z.string().max(2_000)),
      until: maybe(instant),
      forMs: maybe(ms),
    }),
    answer: z.object({ kind: z.enum(['queue', 'workflow']), name: z.string() }),
    refusals: [],
  }),
  resumeLine: route({
    method: 'DELETE',
    path: '/v1/pauses/:kind/:name',
    summary: 'Resume a queue or a workflow',
    group: 'queues',
    role: 'operator',
    params: z.strictObject({ kind: z.enum(['queue', 'workflow']), name }),
    answer: z.object({ kind: z.enum(['queue', 'workflow']), name: z.string() }),
    refusals: ['not_paused'],
  }),
  listWorkflows: route({
    method: 'GET',
    path: '/v1/workflows',
    summary: 'Workflows, their versions, and which is current',
    group: 'workflows',
    role: 'viewer',
    answer: z.object({ workflows: z.array(workflow) }),
    refusals: [],
  }),
  setCurrentVersion: route({
    method: 'POST',
    path: '/v1/workflows/:name/current',
    summary: 'Make a version current: new runs start on it',
    group: 'workflows',
    role: 'operator',
    params: z.strictObject({ name }),
    body: z.strictObject({ version: name }),
    answer: z.object({ name: z.string(), currentVersion: z.string() }),
    refusals: ['unknown_workflow'],
  }),
  listNotices: route({
    method: 'GET',
    path: '/v1/notices',
    summary:
      'What people are to see and nothing waits for: starts that are overdue, losses, failures, approvals, what was refused or set aside',
    group: 'server',
    role: 'viewer',
    query: z.strictObject({
      cursor: z.string().max(5_000).optional(),
      limit: inQuery.whole(1, 1_000).default(200),
    }),
    answer: z.object({ notices: z.array(notice), next: z.string().nullable() }),
    refusals: [],
  }),
  listOrders: route({
    method: 'GET',
    path: '/v1/orders',
    summary:
      'Orders that failed by their content so often that they were set aside, the oldest first',
    group: 'server',
    role: 'viewer',
    answer: z.object({
      orders: z.array(order),
      open: whole.describe('Orders that are not applied yet'),
      oldestMs: ms.describe('Age of the oldest of them'),
      late: z.boolean().describe('It is older than a minute'),
    }),
    refusals: [],
  }),
  retryOrder: route({
    method: 'POST',
    path: '/v1/orders/:id/retry',
    summary: 'Try an order anew that was set aside',
    group: 'server',
    role: 'operator',
    params: z.strictObject({ id: orderId }),
    body: z.strictObject({}),
    answer: settledOrder,
    refusals: ['not_found'],
  }),
  dropOrder: route({
    method: 'DELETE',
    path: '/v1/orders/:id',
    summary: 'Drop an order that was set aside: what it asked for does not happen',
    group: 'server',
    role: 'operator',
    params: z.strictObject({ id: orderId }),
    answer: settledOrder,
    refusals: ['not_found'],
  }),
  listSweeps: route({
    method: 'GET',
    path: '/v1/sweeps',
    summary: 'What each sweep did last, and whether it is late',
    group: 'server',
    role: 'viewer',
    answer: z.object({ now: instant, sweeps: z.array(sweep) }),
    refusals: [],
  }),
  audit: route({
    method: 'GET',
    path: '/v1/audit',
    summary:
      'The invariants, each with its figure: all are 0 when the store is healthy. The first answer is of active and of the newest runs',
    group: 'server',
    role: 'viewer',
    query: z.strictObject({
      after: z
        .string()
        .max(300)
        .optional()
        .describe('Goes through all runs by pages: `next` of the answer before'),
    }),
    answer: z.object({
      healthy: z.boolean(),
      invariants: z.array(invariant),
      next: z.string().nullable().describe('null: every run has been looked at'),
    }),
    refusals: [],
  }),
  metrics: route({
    method: 'GET',
    path: '/metrics',
    summary:
      'Figures for Prometheus: what waits in each queue, executors and their free slots, limits, the lag of the relay, latencies',
    group: 'server',
    role: 'viewer',
    answer: z.string(),
    text: EXPOSITION,
    refusals: [],
  }),
  alive: route({
    method: 'GET',
    path: '/healthz',
    summary: 'The process is alive',
    group: 'server',
    role: 'public',
    answer: z.object({ alive: z.literal(true) }),
    refusals: [],
  }),
  ready: route({
    method: 'GET',
    path: '/readyz',
    summary:
      'The store is reachable, migrated and takes writes, and the sweeps are on time; 503 when not',
    group: 'server',
    role: 'public',
    answer: z.object({
      ready: z.boolean(),
      faults: z.array(z.string()),
      store: z
        .string()
        .nullable()
        .describe('The code for which the store refuses writes; null while it takes them'),
      warnings: z
        .array(z.string())
        .describe('What does not work as meant and keeps nothing else from working'),
    }),
    refusals: [],
  }),
  drained: route({
    method: 'GET',
    path: '/drainz',
    summary: 'Safe to kill: the server drains and nothing is in flight; 503 when not',
    group: 'server',
    role: 'public',
    answer: z.object({ safe: z.boolean(), inFlight: whole }),
    refusals: [],
  }),
}
