// Answers to operators: executors, slots, queues, pauses, versions, sweeps, the audit, and whether the server is well.
import type { Family } from '../../kernel/meters.ts'
import { EXPOSITION, expose } from '../../kernel/meters.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { operationsRoutes } from '../../protocol/operations-routes.ts'
import { audit, auditHistory } from '../../queries/audit.ts'
import { deliveryWarnings } from '../../queries/deliveries.ts'
import { notices } from '../../queries/notices.ts'
import { metrics } from '../../queries/metrics.ts'
import { orderWarnings, ordersAside } from '../../queries/orders.ts'
import {
  executors,
  pauses,
  readiness,
  slotDetail,
  slots,
  sweeps,
  workflows,
} from '../../queries/operations.ts'
import { queueNamed, queues } from '../../queries/queues.ts'
import { triggerWarnings } from '../../queries/triggers.ts'
import { clearMarkers } from '../../transitions/clear-markers.ts'
import { pauseLine, resumeLine } from '../../transitions/pause-line.ts'
import { settleOrder } from '../../transitions/settle-order.ts'
import { setCurrent } from '../../transitions/set-current.ts'
import { setLimit } from '../../transitions/set-limit.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { paged, placeOf } from './cursor.ts'
import type { Engine } from '../engine.ts'

/** What the store holds, and what this process has counted of it. */
export const figuresOf = async (engine: Engine): Promise<Family[]> => {
  const stored = await engine.read((tx) => metrics(tx, engine.settings, engine.passes.since))
  return [...stored, ...engine.meters.families()]
}

export const operationsAnswers = ({
  engine,
  secrets,
  health,
  figures,
}: Shared): AnswersTo<keyof typeof operationsRoutes> => ({
  listExecutors: ({ query: { endedWithinMs } }) =>
    engine.read((tx) => executors(tx, endedWithinMs)),

  clearExecutor: ({ params: { session }, body: { run }, actor, once }) =>
    once((tx) => clearMarkers(tx, { session, run, by: actor })),

  listSlots: () => engine.read(slots),

  async getSlot({ params: { key } }) {
    const found = await engine.read((tx) => slotDetail(tx, key))
    return found ?? refuse('not_found', `no limit has the key ${key}`, { key })
  },

  async setSlot({ params: { key }, body, actor }) {
    await engine.act((tx) =>
      setLimit(tx, {
        key,
        value: body.value,
        mode: body.mode ?? 'whole_run',
        weight: body.weight ?? null,
        by: actor,
      }),
    )
    // runs carry the global limit's key only while it is in force
    if (key === 'global') await engine.reload()
    const found = await engine.read((tx) => slotDetail(tx, key))
    return found ?? refuse('not_found', `no limit has the key ${key}`, { key })
  },

  listQueues: () => engine.read(queues),

  getQueue: ({ params: { queue } }) => engine.read((tx) => queueNamed(tx, queue)),

  listPauses: () => engine.read(pauses),

  pauseLine: ({ body, actor, once }) =>
    once((tx) =>
      pauseLine(tx, {
        kind: body.kind,
        name: body.name,
        by: actor,
        why: body.why ?? null,
        until: body.until ?? null,
        forMs: body.forMs ?? null,
      }),
    ),

  async resumeLine({ params: { kind, name } }) {
    return (await engine.act((tx) => resumeLine(tx, kind, name))).answer
  },

  listWorkflows: () => engine.read(workflows),

  async setCurrentVersion({ params: { name }, body: { version }, once }) {
    const answer = await once((tx) => setCurrent(tx, name, version))
    if (answer.ok) await engine.reload()
    return answer
  },

  async listNotices({ query: { cursor, limit } }) {
    const from = placeOf('notices', cursor)
    return from.ok
      ? paged('notices', await engine.read((tx) => notices(tx, from.place, limit)))
      : from
  },

  listOrders: () => engine.read(ordersAside),

  retryOrder: ({ params: { id }, actor, once }) =>
    once((tx) => settleOrder(tx, id, 'retry', actor)),

  async dropOrder({ params: { id }, actor }) {
    return (await engine.act((tx) => settleOrder(tx, id, 'drop', actor))).answer
  },

  listSweeps: () => engine.read((tx) => sweeps(tx, engine.passes.since)),

  async audit({ query: { after } }) {
    const { invariants, next } =
      after === undefined
        ? { invariants: await engine.read((tx) => audit(tx, engine.settings)), next: '' }
        : await engine.read((tx) => auditHistory(tx, after))
    return { healthy: invariants.every((each) => each.figure === 0), invariants, next }
  },

  async metrics() {
    return new Response(expose([...(await figuresOf(engine)), ...figures()]), {
      headers: { 'content-type': EXPOSITION, 'cache-control': 'no-store' },
    })
  },

  async alive() {
    return { alive: true }
  },

  async ready() {
    const store = engine.refusal()
    const faults = store
      ? // what is late now is so for this
        [`the store refuses writes: ${store.message}`]
      : await engine
          .read((tx) => readiness(tx, engine.passes.since))
          .catch((error: unknown) => [`the store does not answer: ${(error as Error).message}`])
    if (health.draining()) faults.push('the server is shutting down')
    const warnings = await engine
      .read(function* (tx) {
        return [
          ...(yield* triggerWarnings(tx, secrets)),
          ...(yield* deliveryWarnings(tx, engine.settings)),
          ...(yield* orderWarnings(tx)),
        ]
      })
      .catch(() => [])
    return Response.json(
      { ready: faults.length === 0, faults, store: store?.code ?? null, warnings },
      { status: faults.length ? 503 : 200 },
    )
  },

  async drained() {
    // this request is one of those in flight
    const inFlight = health.inFlight() - 1
    const safe = health.draining() && inFlight === 0
    return Response.json({ safe, inFlight }, { status: safe ? 200 : 503 })
  },
})
