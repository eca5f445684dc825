// What stands in the store, as figures: the same on every server. Each count stops at a bound, and no label has more values than
// there are queues, sinks, sweeps and limits to look at.
import type { Family, Sample } from '../kernel/meters.ts'
import { gauge } from '../kernel/meters.ts'
import type { Settings } from '../model/settings.ts'
import { sessionMachine } from '../model/session.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { sessions } from '../store/tables/sessions.ts'
import { sinks } from './deliveries.ts'
import type { SincePass } from './operations.ts'
import { slots, sweeps } from './operations.ts'
import { orderBacklog } from './orders.ts'
import { queues } from './queues.ts'

/** Limits are as many as users have keys: those with the most who wait. */
const LIMITS_SHOWN = 50
const QUEUES_SHOWN = 100

const one = (value: number): Sample[] => [{ labels: {}, value }]

export function* metrics(tx: Tx, settings: Settings, since: SincePass): Steps<Family[]> {
  return [
    ...(yield* ofQueues(tx)),
    ...(yield* ofExecutors(tx)),
    ...(yield* ofLimits(tx)),
    ...(yield* ofOutbox(tx, settings)),
    ...(yield* ofSweeps(tx, since)),
  ]
}

function* ofQueues(tx: Tx): Steps<Family[]> {
  const { queues: all } = yield* queues(tx)
  const shown = all.toSorted((a, b) => b.wanted - a.wanted).slice(0, QUEUES_SHOWN)
  const by = (value: (queue: (typeof shown)[number]) => number): Sample[] =>
    shown.map((queue) => ({ labels: { queue: queue.queue }, value: value(queue) }))
  return [
    gauge(
      'leasehold_queue_waiting_runs',
      'Runs that an executor could take now; what is paused is not counted.',
      by(({ waiting }) => waiting),
    ),
    gauge(
      'leasehold_queue_oldest_wait_seconds',
      'How long the oldest of them has waited.',
      by(({ oldestWaitMs }) => oldestWaitMs / 1_000),
    ),
    gauge(
      'leasehold_queue_held_runs',
      'Runs that executors hold: attempts in work.',
      by(({ held }) => held),
    ),
    gauge(
      'leasehold_queue_executors',
      'Executors that serve the queue and take what is new.',
      by(({ executors }) => executors),
    ),
    gauge(
      'leasehold_queue_slots',
      'Their slots; those that serve several queues count for each.',
      by(({ capacity }) => capacity),
    ),
    gauge(
      'leasehold_queue_free_slots',
      'Of those, how many they could fill now.',
      by(({ free }) => free),
    ),
    gauge(
      'leasehold_queue_paused',
      '1 where the queue is paused.',
      by(({ paused }) => (paused === null ? 0 : 1)),
    ),
  ]
}

function* ofExecutors(tx: Tx): Steps<Family[]> {
  const [rows] = yield* ask(sessions(0))
  const renewing = rows.filter(({ embedded }) => embedded === 0)
  const oldest = Math.min(tx.now, ...renewing.map((row) => row.renewed_at))
  return [
    gauge(
      'leasehold_sessions',
      'Sessions of executors by state.',
      sessionMachine.states
        .filter((state) => state !== 'ended')
        .map((state) => ({
          labels: { state },
          value: rows.filter((row) => row.state === state).length,
        })),
    ),
    gauge(
      'leasehold_renewal_age_seconds',
      'How long ago the session that has been silent for longest renewed its lease.',
      one((tx.now - oldest) / 1_000),
    ),
  ]
}

function* ofLimits(tx: Tx): Steps<Family[]> {
  const { slots: all } = yield* slots(tx)
  const shown = all
    .toSorted((a, b) => b.waiters - a.waiters || b.used - a.used)
    .slice(0, LIMITS_SHOWN)
  const by = (value: (slot: (typeof shown)[number]) => number | null): Sample[] =>
    shown.flatMap((slot) => {
      const figure = value(slot)
      return figure === null ? [] : [{ labels: { key: slot.key }, value: figure }]
    })
  return [
    gauge(
      'leasehold_limit_value',
      `Units of a limit; of the ${LIMITS_SHOWN} keys with the most who wait.`,
      by(({ value }) => value),
    ),
    gauge(
      'leasehold_limit_used',
      'Units that are held.',
      by(({ used }) => used),
    ),
    gauge(
      'leasehold_limit_waiting_runs',
      'Runs that wait in its line.',
      by(({ waiters }) => waiters),
    ),
  ]
}

function* ofOutbox(tx: Tx, settings: Settings): Steps<Family[]> {
  const { sinks: all } = yield* sinks(tx, settings)
  const orders = yield* orderBacklog(tx)
  const by = (value: (sink: (typeof all)[number]) => number): Sample[] =>
    all.map((sink) => ({ labels: { sink: sink.name }, value: value(sink) }))
  return [
    gauge(
      'leasehold_outbox_open',
      'Deliveries that are not settled.',
      by(({ open }) => open),
    ),
    gauge(
      'leasehold_outbox_oldest_age_seconds',
      'Age of the oldest of them: the lag of the relay.',
      by(({ ageMs }) => ageMs / 1_000),
    ),
    gauge(
      'leasehold_outbox_late',
      '1 where that age is above deliveryLateMs.',
      by(({ late }) => (late ? 1 : 0)),
    ),
    gauge(
      'leasehold_outbox_dead',
      'Deliveries that are dead and wait for people.',
      by(({ dead }) => dead),
    ),
    gauge('leasehold_orders_open', 'Orders that are not applied yet.', one(orders.open)),
    gauge(
      'leasehold_orders_oldest_age_seconds',
      'Age of the oldest of them.',
      one(orders.ageMs / 1_000),
    ),
    gauge(
      'leasehold_orders_set_aside',
      'Orders that were set aside and wait for people.',
      one(orders.aside),
    ),
  ]
}

function* ofSweeps(tx: Tx, since: SincePass): Steps<Family[]> {
  const { sweeps: all } = yield* sweeps(tx, since)
  return [
    gauge(
      'leasehold_sweep_late_seconds',
      'How late the next pass of a sweep is; 0 on time.',
      all.map(({ name, lateByMs }) => ({ labels: { sweep: name }, value: lateByMs / 1_000 })),
    ),
    gauge(
      'leasehold_sweep_failed',
      '1 where its last pass failed.',
      all.map(({ name, error }) => ({ labels: { sweep: name }, value: error === null ? 0 : 1 })),
    ),
  ]
}
