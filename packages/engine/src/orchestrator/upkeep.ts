// The loops of one process, wired to what commits want of them.
import { admissions, admitWaiting } from '../maintenance/admit-waiting.ts'
import { applyOrders } from '../maintenance/apply-orders.ts'
import { enforceTimeLimits } from '../maintenance/enforce-limits.ts'
import { fireSchedules, forgetOldTicks } from '../maintenance/fire-schedules.ts'
import type { Loop, Sweep, Upkeep } from '../maintenance/loop.ts'
import { startLoop } from '../maintenance/loop.ts'
import { forgetOldArrivals } from '../maintenance/prune-arrivals.ts'
import { parkUnserved } from '../maintenance/park-unserved.ts'
import { pruneEnded } from '../maintenance/prune-ended.ts'
import { noticeLapsingApprovals } from '../maintenance/notice-lapsing.ts'
import { noticeOverdueStarts } from '../maintenance/notice-overdue.ts'
import { makeRecorder } from '../maintenance/record.ts'
import { makeRelay } from '../maintenance/relay.ts'
import { reapSessions } from '../maintenance/reap-sessions.ts'
import { reconcileFamilies } from '../maintenance/reconcile-families.ts'
import { settleSpawns } from '../maintenance/settle-spawns.ts'
import { everyTurn, startTurns } from '../maintenance/turns.ts'
import { wakeDue } from '../maintenance/wake-due.ts'
import type { Sink } from '../model/delivery.ts'
import { servedLanes } from '../queries/lines.ts'
import { ask } from '../store/sql.ts'
import { storeAnswers } from '../store/tables/orders.ts'
import { raiseLanes } from '../transitions/raise-lanes.ts'
import { calendar } from './calendar.ts'
import type { Engine } from './engine.ts'

export interface Loops {
  readonly all: readonly Loop[]
  stop(): Promise<void>
}

export interface LoopsOptions {
  /** They pass only when `once` is called: for tests that own the clock. */
  readonly manual?: boolean
  /** Where this server sends notices. */
  readonly sinks?: readonly Sink[]
}

/** `self` names this process among those of one database, which take turns. */
export const startLoops = (
  engine: Engine,
  self: string,
  { manual = false, sinks = [] }: LoopsOptions = {},
): Loops => {
  const { sweepMs } = engine.settings
  const upkeep = sweeping(engine)
  const opened = { reading: engine.opened, shared: engine.store.kind === 'postgres' }
  const recorder = makeRecorder(upkeep, manual)
  const { meters } = engine
  const record: typeof recorder.add = (row) => {
    engine.passes.passed(row.name)
    meters.passes.observe({ sweep: row.name }, row.duration_ms / 1_000)
    return recorder.add(row)
  }
  let turns = everyTurn
  const sweep = (each: Sweep): Loop =>
    startLoop(each, upkeep, record, { manual, mine: () => turns.mine(each.name) })
  const line = admitWaiting()
  const admit = sweep(line)
  const atOnce = admissions(upkeep, (keys) => {
    line.want(keys)
    admit.soon()
  })
  const orders = sweep(applyOrders())
  const wake = sweep(wakeDue)
  /** The poll: what no wake-up told of is found within a second. */
  const poll = startLoop(
    {
      name: 'poll-lanes',
      intervalMs: engine.settings.pollMs,
      async pass() {
        const queued = (await engine.read(servedLanes)).filter((lane) => lane.queued)
        engine.lanes.refresh(queued.map(({ lane }) => lane))
        for (const { lane } of queued) engine.hub.lane(lane)
        const risen = engine.lanes.risen()
        if (risen.length > 0) await upkeep.store.run((tx) => raiseLanes(tx, risen))
        return { examined: queued.length, acted: queued.length }
      },
    },
    upkeep,
    record,
    { manual },
  )
  const relay = makeRelay({
    sinks,
    self,
    upkeep,
    more: () => relaying.soon(),
    came(sink, how, afterMs) {
      meters.deliveries.add({ sink, how })
      if (how === 'delivered') meters.delivered.observe({ sink }, afterMs / 1_000)
    },
    waits: manual,
  })
  /** Each server relays to the sinks that it has itself. */
  const relaying = startLoop(relay, upkeep, record, { manual })
  const all = [
    admit,
    orders,
    wake,
    poll,
    sweep(reapSessions(sweepMs, opened)),
    sweep(enforceTimeLimits(sweepMs)),
    sweep(reconcileFamilies(sweepMs)),
    sweep(parkUnserved(sweepMs)),
    sweep(settleSpawns(sweepMs)),
    sweep(noticeOverdueStarts(sweepMs)),
    sweep(noticeLapsingApprovals(sweepMs)),
    sweep(fireSchedules(calendar)),
    sweep(pruneEnded()),
    sweep(forgetOldTicks),
    sweep(forgetOldArrivals),
    relaying,
  ]
  if (engine.store.kind === 'postgres' && !manual)
    turns = startTurns(
      upkeep,
      // each looks for what its own executors wait for
      all.filter((loop) => loop !== poll && loop !== relaying).map(({ name }) => name),
      self,
      (name) => all.find((loop) => loop.name === name)?.look(),
    )
  engine.onWanted((what, keys, at) => {
    if (what === 'admit') {
      if (manual) line.want(keys.keys())
      else atOnce.now(keys)
    } else if (what === 'orders') orders.soon()
    else if (what === 'deliveries') relaying.soon()
    else if (at !== null) wake.at(at)
  }, !manual)
  return {
    all,
    async stop() {
      await atOnce.idle()
      await Promise.all(all.map((loop) => loop.stop()))
      await relay.stop(engine.settings.deliveryDrainMs)
      await turns.stop()
      await recorder.flush()
    },
  }
}

/** The engine as sweeps use it: no transaction of theirs stands behind a row that somebody else holds. */
const sweeping = (engine: Engine): Upkeep => ({
  ports: engine.ports,
  settings: engine.settings,
  shard: engine.shard,
  get catalog() {
    return engine.catalog
  },
  act: (transition) => engine.act(transition, 'sweep'),
  read: (transition) => engine.read(transition),
  storeClock: () =>
    engine.store.kind === 'sqlite'
      ? Promise.resolve(engine.ports.time.now())
      : engine.store.read(function* (tx) {
          yield* ask(storeAnswers())
          return tx.now
        }),
  learn: (starts) => engine.learn(starts),
  store: { run: (transition) => engine.store.run(transition, 'sweep') },
})
