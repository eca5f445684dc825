// A world of its own for pods: launchers that are killed and stopped and come again under another name, a cluster that does things
// late and says so later, pods that hang, die or are refused, a server that crashes, and a network that loses either way. Beside
// what holds of pods every commit is held against the rules of all runs.
import { attemptPort } from '../../src/client/attempt-port.ts'
import type { Fetch } from '../../src/client/call.ts'
import { httpExecutorPort } from '../../src/client/executor-port.ts'
import { httpLaunchPort } from '../../src/client/launch-port.ts'
import type { Executor } from '../../src/executor/executor.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { inside } from '../../src/executor/authoring/workflow.ts'
import type { KubernetesObject } from '../../src/executor/pods/kubernetes-api.ts'
import { kubernetesPods } from '../../src/executor/pods/kubernetes-pods.ts'
import { mustBeTemplate } from '../../src/executor/pods/pod-template.ts'
import { readAttemptToken } from '../../src/kernel/attempt-token.ts'
import { Fault, LeaseholdError } from '../../src/kernel/errors.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import { defaults } from '../../src/model/settings.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import { startLoops } from '../../src/orchestrator/upkeep.ts'
import type { Steps, Tx } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { Answers } from './answers.ts'
import { audit } from './audit.ts'
import type { Commit } from './commit.ts'
import { emptyCommit, watched } from './commit.ts'
import { freshDisk } from './disk.ts'
import { handlerOf } from './http.ts'
import type { Container } from './pod-cluster.ts'
import { SimCluster } from './pod-cluster.ts'
import type { Alive } from './pod-rules.ts'
import { PodRules } from './pod-rules.ts'
import { closureOf } from './programs.ts'
import { workflowsFor } from './real-executor.ts'
import { Rules } from './rules.ts'
import type { Hooks } from './scripted-executor.ts'
import { Shadow } from './shadow.ts'
import { Usage } from './slot-table.ts'
import type { Node } from './world.ts'
import { oneOf, pick, World } from './world.ts'

const CHAOS_MS = 90_000
const RUNS = 45
const START_BY_MS = 8_000
/** Within which a launcher that stops has let go of everything. */
const DRAIN_MS = 3_000
const ABORT_GRACE_MS = 1_000
/** How long a launcher is waited for after its signal. */
const GRACE_MS = 6_000
const settings = {
  ...defaults,
  leaseMs: 5_000,
  renewMs: 1_500,
  sweepMs: 1_000,
  limitGraceMs: 800,
  cancelGraceMs: 2_500,
  handBackDelayMs: 200,
  handBackDelayMaxMs: 1_500,
}
const URL = 'http://127.0.0.1:7400'
const workflows = [
  'one',
  'five',
  'flaky',
  'patient',
  'sleeper',
  'ignorer',
  'deaf',
  'poison',
  'chain',
  'stubborn',
  'doomed',
]
/** What a pod's process does. */
const manners = [
  'works',
  'works',
  'works',
  'works',
  'dies',
  'dies at once',
  'hangs',
  'freezes',
] as const
const template = mustBeTemplate({ spec: { containers: [{ image: 'sim' }] } }, 'the template')

export interface PodVerdict {
  readonly rule: string | null
  readonly message: string | null
  readonly hash: string
  readonly faults: number
  readonly pods: number
  readonly adopted: number
  readonly completed: number
}

interface Up {
  readonly node: Node
  readonly engine: Engine
  readonly handler: ReturnType<typeof handlerOf>
}

interface Launching {
  readonly name: string
  readonly node: Node
  readonly executor: Executor
}

const never = <T>(): Promise<T> => new Promise(() => undefined)

export const playPods = async (
  seed: number,
  log: ((line: string) => void) | null = null,
): Promise<PodVerdict> => {
  const { stackTraceLimit } = Error
  if (log === null) Error.stackTraceLimit = 0
  const world = new World(seed, log)
  const unheard = (error: unknown): void =>
    world.violate('defect', `nobody hears of it: ${String((error as Error).stack ?? error)}`)
  process.on('unhandledRejection', unheard)
  try {
    return await played(world)
  } finally {
    process.off('unhandledRejection', unheard)
    Error.stackTraceLimit = stackTraceLimit
  }
}

const played = async (world: World): Promise<PodVerdict> => {
  const clock = { offset: 0 }
  const disk = freshDisk(world.born('disk', clock).ports.time)
  const { db } = disk.store
  const chance = world.chance('faults')
  const net = world.chance('net')
  const programs = closureOf(workflows)
  let faults = 0
  let over = false
  let up: Up | null = null
  let pods = 0
  const alive = new Set<Alive>()
  const kills = new Map<Alive, () => void>()
  const launchers = new Map<string, Launching>()

  const strikes = (odds: number): boolean => {
    if (over || chance.next() >= odds) return false
    faults += 1
    return true
  }

  // what must hold after each commit

  const shadow = new Shadow(db)
  const answers = new Answers(world, shadow)
  const podRules = new PodRules(world, db)
  const rules = new Rules(world, shadow, new Usage(), {
    leaseMs: settings.leaseMs,
    lossesMax: settings.lossesMax,
    lossesSuspect: settings.lossesSuspect,
    handBacksMax: settings.handBacksMax,
    triesOf: (name) => programs.find((each) => each.name === name)?.retry?.maxAttempts ?? 1,
    endSent: (place) => answers.endsSent.has(place),
    unnamed: (place) => answers.unnamed.has(place),
    unnoticedSince: () => 0,
  })
  const committed = (commit: Commit): void => {
    for (const touch of commit.writes)
      if (touch.table !== 'sweeps')
        world.record(`${touch.name}${touch.params.join()}${touch.rows.length}`)
    const change = shadow.take(commit, world.now)
    for (const { run, kind } of change.events) {
      world.say(() => `  ${kind} ${run}`)
      if (kind === 'attempt.adopted')
        podRules.adopted(shadow.runs.get(run)?.session ?? null, commit.now, alive)
    }
    rules.check(change)
    const seen = [...launchers.values()].flatMap(({ name, node, executor }) =>
      node.alive ? [{ name, status: executor.status() }] : [],
    )
    podRules.slots(seen, alive, cluster.late)
  }

  // the server

  const boot = async (): Promise<void> => {
    const node = world.born('server', clock)
    const store: Store = {
      kind: 'sqlite',
      async run(transaction, _manner, behind) {
        if (!node.alive || world.violation) return never()
        const commits: Commit[] = []
        const watching =
          <U>(steps: (tx: Tx) => Steps<U>) =>
          (tx: Tx): Steps<U> => {
            const commit = emptyCommit(tx)
            commits.push(commit)
            return watched(steps(tx), commit)
          }
        const answer = disk.store.run(watching(transaction), undefined, (what) => {
          const next = behind?.(what) ?? null
          return next === null ? null : watching(next)
        })
        // the driver has committed, or failed, within this turn
        for (const commit of commits) if (commit.whole) committed(commit)
        const came = await answer
        if (strikes(0.001)) crash(node)
        return node.alive ? came : never()
      },
      read: (transaction) => (node.alive ? disk.store.read(transaction) : never()),
      get roundTrips() {
        return disk.store.roundTrips
      },
      close: () => Promise.resolve(),
    }
    const engine = await openEngine({ store, ports: node.ports, settings })
    const write = engine.write.bind(engine)
    engine.write = async (session, item) => {
      const held = answers.arrived(session, item)
      const answer = await write(session, item)
      answers.write(session, item, answer, held)
      return answer
    }
    startLoops(engine, 'self')
    up = { node, engine, handler: handlerOf(world, engine) }
  }
  const crash = (node: Node): void => {
    node.alive = false
    up = null
    world.at(world.now + 300 + pick(chance, 3_000), null, () => void boot())
  }

  /** HTTP over a network that may lose, delay or double what is asked, and lose what is answered. */
  const fetchFrom =
    (from: Node): Fetch =>
    (url, { signal, ...init }) =>
      new Promise((resolve, reject) => {
        const fail = (why: string): void => {
          if (from.alive) reject(new Fault('peer_unreachable', why))
        }
        signal?.addEventListener('abort', () => fail('it was given up'), { once: true })
        if (!from.alive) return
        const headers = init.headers as Readonly<Record<string, string>>
        const arrive = async (): Promise<Response> => {
          const server = up
          if (server === null) throw new Fault('peer_unreachable', 'nobody answers')
          if (typeof init.body === 'string' && init.body.includes('"letGo"'))
            answers.listed(JSON.parse(init.body) as Parameters<Answers['listed']>[0])
          const answer = await server.handler.fetch(new Request(url, { ...init, headers }))
          const text = await answer.text()
          if (!server.node.alive) return never()
          return new Response(text, { status: answer.status, headers: [...answer.headers] })
        }
        const asked = async (): Promise<Response> => {
          await world.sleep(from, 1 + pick(net, strikes(0.02) ? 2_000 : 20))
          if (strikes(0.03)) throw new Fault('peer_unreachable', 'it did not arrive')
          if (strikes(0.01))
            world.at(world.now + pick(net, 3_000), null, () => void arrive().catch(() => undefined))
          const answer = await arrive()
          await world.sleep(from, 1 + pick(net, 20))
          if (strikes(0.03)) throw new Fault('peer_unreachable', 'the answer was lost')
          return answer
        }
        asked().then(resolve, (error: unknown) => {
          if (!(error instanceof LeaseholdError)) world.violate('defect', String(error))
          fail('nothing came')
        })
      })

  // pods

  const hooksFor = (die: () => void, own: () => Alive): Hooks => ({
    body: (run, attempt) => podRules.drives(`${run}#${attempt}`, own()),
    die,
    unexpected: (what) => world.violate('refused', what),
    forgets: () => false,
    claimWaitMs: () => 0,
  })

  /** What `leasehold attempt` does, in a container. */
  const container = (job: KubernetesObject, token: string): Container => {
    const grant = readAttemptToken(token)
    if (!grant) throw new Error('a container has no token')
    pods += 1
    const node = world.born(`pod ${grant.session}`, { offset: 0 })
    const manner = over ? 'works' : oneOf(chance, manners)
    if (manner !== 'works') faults += 1
    const own: Alive = {
      job,
      hangs: manner === 'hangs' || manner === 'freezes',
      runner: grant.session,
      place: `${grant.run}#${grant.attempt}`,
      bornAt: world.now,
    }
    alive.add(own)
    kills.set(own, () => exit(137))
    world.say(() => `${node.name} begins for ${own.place}`)
    let exited: (code: number) => void = () => undefined
    const gone = new Promise<number>((resolve) => (exited = resolve))
    const exit = (code: number): void => {
      if (!alive.delete(own)) return
      kills.delete(own)
      node.alive = false
      world.say(() => `${node.name} exits with ${code}`)
      exited(code)
    }
    const options = { url: URL, token, ports: node.ports, fetch: fetchFrom(node) }
    const stopThen = (code: number): void => void executor.stop().then(() => exit(code))
    const executor = makeExecutor({
      port: {
        ...attemptPort(grant, options, {
          settled: () => stopThen(0),
          refused: () => stopThen(4),
        }),
        listen: () => () => undefined,
      },
      ports: node.ports,
      workflows: workflowsFor(
        world,
        node,
        { programs, capacity: 1, without: null },
        hooksFor(
          () => exit(139),
          () => own,
        ),
        { isolated: 'job', contexts: null, slotsUsed: null },
      ).map(inside),
      session: grant.session,
      slots: { default: 1 },
      host: node.name,
      drainMs: 2_000,
      abortGraceMs: 500,
      onStopped: () => exit(1),
    })
    if (manner === 'dies at once') world.at(world.now + 50, node, () => exit(1))
    if (manner === 'dies') world.at(world.now + pick(chance, 6_000), node, () => exit(137))
    if (manner === 'freezes')
      world.at(world.now + pick(chance, 4_000), null, () => {
        node.stalledUntil = Number.POSITIVE_INFINITY
      })
    if (manner !== 'hangs')
      world.at(world.now + 100 + pick(chance, 900), node, () => {
        executor.start().catch(() => exit(1))
      })
    return {
      gone,
      tell: () => (own.hangs ? undefined : stopThen(143)),
      kill: () => exit(137),
    }
  }

  const cluster = new SimCluster({
    world,
    strikes,
    isOver: () => over,
    start: container,
    removing: (job) => podRules.removing(job, alive),
  })

  // launchers

  const launch = (host: string): void => {
    const node = world.born(host, { offset: 0 })
    const name = node.ports.ids.next('own')
    const options = { url: URL, token: null, ports: node.ports, fetch: fetchFrom(node) }
    const port: ExecutorPort = { ...httpExecutorPort(options), listen: () => () => undefined }
    const { grant, exited } = httpLaunchPort({
      ...options,
      actor: 'launcher',
      timers: node.ports.timers,
    })
    const setup = { programs, capacity: 4, without: null }
    const die = (): void => world.violate('EX-24', 'a function of a pod is called by its launcher')
    const executor = makeExecutor({
      port,
      ports: node.ports,
      workflows: workflowsFor(
        world,
        node,
        setup,
        { ...hooksFor(die, die as never), body: die },
        { isolated: 'job', contexts: null, slotsUsed: null },
      ),
      launcher: {
        pods: kubernetesPods({
          api: cluster.api(node),
          timers: node.ports.timers,
          template,
          url: URL,
          launcher: name,
        }),
        grant,
        exited(session, evidence) {
          podRules.reports(session, alive)
          return exited(session, evidence)
        },
        startByMs: START_BY_MS,
      },
      slots: { default: 4 },
      host,
      drainMs: DRAIN_MS,
      abortGraceMs: ABORT_GRACE_MS,
      claimWaitMs: 1_000,
      maxChainDepth: 3,
    })
    launchers.set(host, { name, node, executor })
    void (async () => {
      for (;;)
        try {
          return await executor.start()
        } catch (error) {
          if (!(error instanceof LeaseholdError)) throw error
          await world.sleep(node, 200)
        }
    })()
  }
  const end = (host: string, { node }: Launching): void => {
    if (!node.alive) return
    node.alive = false
    world.at(world.now + 500 + pick(chance, 5_000), null, () => launch(host))
  }
  const disturb = (): void => {
    const host = oneOf(chance, ['one', 'two'])
    const launcher = launchers.get(host)
    if (!launcher?.node.alive || over) return
    faults += 1
    const roll = chance.next()
    if (roll < 0.4) return end(host, launcher)
    if (roll < 0.6) {
      launcher.node.stalledUntil = world.now + pick(chance, 8_000)
      return
    }
    void launcher.executor.stop().then(() => end(host, launcher))
    world.at(world.now + GRACE_MS, null, () => end(host, launcher))
  }
  const befall = (): void => {
    if (over) return
    const what = oneOf(chance, ['away', 'delete', 'evict', 'machine', 'silence', 'evict'] as const)
    const struck = {
      away: () => (cluster.away(pick(chance, 6_000)), true),
      delete: () => cluster.deleteSome(),
      evict: () => cluster.evictSome(),
      machine: () => cluster.loseMachine(),
      silence: () => cluster.silence(),
    }[what]()
    world.say(() => `${what} befalls the cluster: ${struck}`)
    if (struck) faults += 1
  }

  // what there is to do

  const start = (id: string, workflow: string): void =>
    void up?.engine.start({ command: { id, workflow, input: 'null' } }).then(
      (answer) => answers.start({ id, workflow, input: 'null' } as never, answer),
      () => undefined,
    )
  const cancel = (id: string): void => {
    faults += 1
    void up?.engine.cancel({ run: id, by: 'people', reason: null }).catch(() => undefined)
  }
  // what is seen best when nothing else befalls it

  const startAll = (name: string, workflow: string): readonly string[] => {
    const ids = [0, 1, 2, 3].map((i) => `run_${name}_${i}`)
    for (const id of ids) start(id, workflow)
    return ids
  }
  const untilEnded = async (ids: readonly string[]): Promise<void> => {
    const left = (): readonly string[] => ids.filter((id) => shadow.active.has(id))
    await world.play(world.now + 60_000, () => left().length === 0)
    if (!world.violation && left().length > 0)
      world.violate('L3', `${left().join(', ')} have not ended, and nothing hinders them`)
  }
  /** RUN-06: a pod that is gone leaves nothing waiting for its lease, since its launcher sees it. */
  const killed = async (): Promise<void> => {
    await world.play(world.now + 10_000)
    const ids = startAll('killed', 'ignorer')
    const driven = (): readonly Alive[] =>
      [...alive].filter(({ runner }) => ids.some((id) => shadow.runs.get(id)?.session === runner))
    await world.play(world.now + 15_000, () => driven().length === ids.length)
    await world.play(world.now + 1_000)
    const struck = driven()
    for (const each of struck) kills.get(each)?.()
    await untilEnded(ids)
    for (const { place } of struck)
      if (!world.violation && shadow.attemptEnds.get(place) !== 'lost')
        world.violate(
          'RUN-06',
          `the pod of ${place} died, and it was ${shadow.attemptEnds.get(place)}`,
        )
  }
  /** L2, EX-18: what no pod has adopted is handed back where its launcher stops, and goes on elsewhere. */
  const stopped = async (): Promise<void> => {
    cluster.waits = true
    const ids = startAll('stopped', 'one')
    const held = (session: string | null): readonly string[] =>
      ids.filter((id) => shadow.runs.get(id)?.session === session)
    const all = [...launchers].map(([host, launcher]) => {
      const { session } = launcher.executor.status()
      return { host, launcher, session }
    })
    await world.play(world.now + 5_000, () => all.some(({ session }) => held(session).length > 0))
    const busy = all.find(({ session }) => held(session).length > 0)
    if (!busy || world.violation) return
    const before = held(busy.session)
    void busy.launcher.executor.stop().then(() => end(busy.host, busy.launcher))
    await world.play(world.now + DRAIN_MS + ABORT_GRACE_MS + 250)
    cluster.waits = false
    const id = held(busy.session).find((each) => before.includes(each))
    if (!world.violation && id !== undefined)
      world.violate('L2', `${id} is still held by its launcher, which was to have stopped`)
    await untilEnded(ids)
  }

  world.at(0, null, () => void boot())
  world.at(50, null, () => {
    for (const host of ['one', 'two']) launch(host)
  })
  const load = world.chance('load')
  for (let i = 0; i < RUNS; i++) {
    const at = 500 + pick(load, CHAOS_MS - 5_000)
    world.at(at, null, () => start(`run_${i}`, oneOf(load, workflows)))
    if (load.next() < 0.15) world.at(at + pick(load, 6_000), null, () => cancel(`run_${i}`))
  }
  for (let at = 2_000; at < CHAOS_MS; at += 500 + pick(chance, 7_000)) world.at(at, null, disturb)
  for (let at = 1_000; at < CHAOS_MS; at += 300 + pick(chance, 4_000)) world.at(at, null, befall)
  await world.play(CHAOS_MS)
  over = true
  await world.play(world.now + 300_000, () => shadow.active.size === 0)
  if (!world.violation && shadow.active.size > 0)
    world.violate('L11', `${[...shadow.active].join(', ')} have not ended`)
  if (!world.violation) await killed()
  if (!world.violation) await stopped()
  // what was to begin by a time is looked at when that is over, and again until it is seen to
  await world.play(world.now + 260_000, () => alive.size === 0 && cluster.unfinished.length === 0)
  if (!world.violation) {
    podRules.audit(
      [...launchers.values()].map(({ name }) => name),
      alive,
      cluster.unfinished,
    )
    audit(db, world, shadow, answers, { real: true, contexts: false })
  }
  const count = (sql: string): number => db.prepare(sql).pluck().get() as number
  return {
    rule: world.violation?.rule ?? null,
    message: world.violation?.message ?? null,
    hash: world.hash,
    faults,
    pods,
    adopted: count(`select count(*) from events where kind = 'attempt.adopted'`),
    completed: count(`select count(*) from runs where status = 'succeeded'`),
  }
}
