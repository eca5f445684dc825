// A world of its own for spawners: a server that crashes, two spawners of one queue that are killed, executors that never come, come
// late, hang, die or go silent, and a network that loses what is asked and what is answered.
import type { Spawner } from '../../src/executor/spawning/spawner.ts'
import { startSpawner } from '../../src/executor/spawning/spawner.ts'
import { Fault } from '../../src/kernel/errors.ts'
import { defaults } from '../../src/model/settings.ts'
import type { SpawnPort } from '../../src/model/spawn.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import { begunSpawn } from '../../src/orchestrator/http/answer-spawns.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import { executorPort } from '../../src/orchestrator/executor-port.ts'
import { startLoops } from '../../src/orchestrator/upkeep.ts'
import type { Store } from '../../src/store/store.ts'
import { settleSpawn } from '../../src/transitions/settle-spawn.ts'
import { definition } from '../support/engine.ts'
import { freshDisk } from './disk.ts'
import type { Around, Up } from './spawn-executor.ts'
import { Executor, never } from './spawn-executor.ts'
import { SpawnRules } from './spawn-rules.ts'
import type { Node } from './world.ts'
import { oneOf, pick, World } from './world.ts'

const CHAOS_MS = 90_000
const settings = { ...defaults, leaseMs: 5_000, renewMs: 1_500, sweepMs: 1_000 }
const policy = { max: 3, slots: 2, afterMs: 300, cooldownMs: 1_500, startByMs: 4_000 }
const STOP_MS = 3_000

export interface SpawnVerdict {
  readonly rule: string | null
  readonly message: string | null
  readonly hash: string
  readonly faults: number
  readonly spawned: number
  readonly failed: number
  readonly completed: number
}

export const playSpawners = async (seed: number): Promise<SpawnVerdict> => {
  const world = new World(seed)
  const clock = { offset: 0 }
  const disk = freshDisk(world.born('disk', clock).ports.time)
  const rules = new SpawnRules(world, disk.store.db, policy)
  const chance = world.chance('faults')
  const net = world.chance('net')
  let faults = 0
  let over = false
  let up: Up | null = null
  /** Processes of executors that live, by session. */
  const alive = new Map<string, Executor>()
  let spawned = 0

  const strikes = (odds: number): boolean => {
    if (over || chance.next() >= odds) return false
    faults += 1
    return true
  }

  // the server

  const boot = async (): Promise<void> => {
    const node = world.born('server', clock)
    const store: Store = {
      kind: 'sqlite',
      async run(transaction, _manner, behind) {
        if (!node.alive || world.violation) return never()
        const answer = await disk.store.run(transaction, undefined, behind)
        rules.check()
        if (strikes(0.001)) crash(node)
        return node.alive ? answer : never()
      },
      read: (transaction) => (node.alive ? disk.store.read(transaction) : never()),
      get roundTrips() {
        return disk.store.roundTrips
      },
      close: () => Promise.resolve(),
    }
    const engine = await openEngine({ store, ports: node.ports, settings })
    startLoops(engine, 'self')
    up = { node, engine, port: executorPort(engine, { process: 'self', embedded: false }) }
  }
  const crash = (node: Node): void => {
    node.alive = false
    up = null
    world.at(world.now + 300 + pick(chance, 2_000), null, () => void boot())
  }

  /** Asks the server over a network that may lose either way. */
  const asks = async <T>(from: Node, ask: (server: Up) => Promise<T>): Promise<T> => {
    await world.sleep(from, 1 + pick(net, 20))
    const server = up
    if (!server || strikes(0.02)) throw new Fault('peer_unreachable', 'it did not arrive')
    const answered = ask(server)
    // twice, as a proxy may send it
    if (strikes(0.01)) ask(server).catch(() => undefined)
    const late = world.sleep(from, 2_000).then(() => {
      throw new Fault('peer_unreachable', 'no answer came')
    })
    const answer = await Promise.race([answered, late])
    late.catch(() => undefined)
    await world.sleep(from, 1 + pick(net, 20))
    if (strikes(0.02)) throw new Fault('peer_unreachable', 'the answer was lost')
    return answer
  }

  const around: Around = {
    world,
    clock,
    policy,
    renewMs: settings.renewMs,
    alive,
    asks,
    isOver: () => over,
    counts: () => void (faults += 1),
  }

  // spawners

  const spawners = new Map<
    string,
    { readonly node: Node; readonly spawner: Spawner; readonly own: Set<Executor> }
  >()
  const spawn = (name: string): void => {
    const node = world.born(name, clock)
    const own = new Set<Executor>()
    const port: SpawnPort = {
      begin: (request) => asks(node, ({ engine }) => begunSpawn(engine, request)),
      async settle(session, evidence) {
        rules.settling(session, alive.has(session))
        await asks(node, ({ engine }) => engine.act((tx) => settleSpawn(tx, session, evidence)))
      },
    }
    const spawner = startSpawner({
      port,
      ports: node.ports,
      name,
      queue: 'default',
      policy,
      stopMs: STOP_MS,
      lookMs: 500,
      starter: {
        kind: 'sim',
        start({ session }) {
          rules.starting(session)
          if (strikes(0.05)) return Promise.reject(new Error('no memory'))
          spawned += 1
          const made = new Executor(session, around)
          own.add(made)
          return Promise.resolve(made)
        },
      },
    })
    spawners.set(name, { node, spawner, own })
  }
  /** Killed; what it had started notices, and it is started anew. */
  const killSpawner = (name: string): void => {
    const killed = spawners.get(name)
    if (!killed) return
    faults += 1
    killed.node.alive = false
    spawners.delete(name)
    for (const each of killed.own)
      world.at(world.now + pick(chance, 50), each.node, () => each.untied())
    world.at(world.now + 500 + pick(chance, 5_000), null, () => spawn(name))
  }

  const stop = async (name: string): Promise<void> => {
    const { spawner, own } = spawners.get(name) ?? {}
    let stopped = false
    void spawner?.stop().then(() => (stopped = true))
    await world.play(world.now + STOP_MS + 4_000, () => stopped)
    if (world.violation) return
    if (!stopped) world.violate('OPS-05', `the spawner ${name} does not stop in time`)
    else if ([...alive.values()].some((each) => own?.has(each)))
      world.violate('OPS-05', `an executor outlives the spawner ${name}`)
  }
  const start = (id: string): void =>
    void up?.engine.start({ command: { id, workflow: 'w', input: 'null' } }).catch(() => undefined)

  world.at(0, null, () => void boot())
  world.at(50, null, () => {
    void up?.port
      .register({
        protocol: PROTOCOL_VERSION,
        session: 'ses_first',
        build: 'sim',
        host: 'sim',
        pid: 1,
        queues: [],
        labels: [],
        capacity: 1,
        definitions: [definition('w')],
      })
      .then(() => up?.port.close({ session: 'ses_first', reason: 'stopped' }))
    for (const name of ['one', 'two']) spawn(name)
  })
  const load = world.chance('load')
  for (let i = 0; i < 60; i++) world.at(200 + pick(load, CHAOS_MS), null, () => start(`run_${i}`))
  for (let at = 3_000; at < CHAOS_MS; at += 2_000 + pick(chance, 12_000)) {
    const name = oneOf(chance, ['one', 'two'])
    world.at(at, null, () => killSpawner(name))
  }
  await world.play(CHAOS_MS)
  over = true
  // whatever was killed last is up again
  await world.play(world.now + 10_000)
  // what hung with its spawner gone is a machine's to end
  for (const each of alive.values())
    if (![...spawners.values()].some(({ own }) => own.has(each))) each.kill()
  // one is told to stop in the middle of much work, and the other does the rest
  for (let i = 0; i < 40; i++) start(`run_late_${i}`)
  await world.play(world.now + 8_000)
  await stop('one')
  const active = disk.store.db.prepare('select count(*) from runs where ended_at is null').pluck()
  await world.play(world.now + 300_000, () => active.get() === 0)
  await stop('two')
  // what nobody tells of is found out by its time
  await world.play(world.now + 60_000)
  if (!world.violation) rules.audit([...alive.keys()])
  const rows = rules.rows()
  world.record(JSON.stringify(rows))
  return {
    rule: world.violation?.rule ?? null,
    message: world.violation?.message ?? null,
    hash: world.hash,
    faults,
    spawned,
    failed: rows.filter(({ state }) => state === 'failed').length,
    completed: disk.store.db
      .prepare(`select count(*) from runs where status = 'succeeded'`)
      .pluck()
      .get() as number,
  }
}
