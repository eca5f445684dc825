// One world from its seed to its verdict: faults and all that people do, then healing, then the audit.
import { defaults } from '../../src/model/settings.ts'
import { Answers } from './answers.ts'
import { audit } from './audit.ts'
import type { Commit } from './commit.ts'
import type { Driver } from './driver.ts'
import { freshDisk } from './disk.ts'
import { Fate } from './fate.ts'
import type { Called, Kind, Rates, Strike } from './faults.ts'
import { drawCoordinatorFaults, drawProcessFaults, drawWeather, Faults } from './faults.ts'
import { Hosts } from './hosts.ts'
import { Liveness } from './liveness.ts'
import { Lurker } from './lurker.ts'
import { Net } from './net.ts'
import { Orchestrator } from './orchestrator.ts'
import { People } from './people.ts'
import { closureOf, definitionFor, programs } from './programs.ts'
import { ended, Rules } from './rules.ts'
import { Schedules } from './schedules.ts'
import { Senders } from './senders.ts'
import { Shadow } from './shadow.ts'
import { Sinks } from './sinks.ts'
import type { Point } from './sometimes.ts'
import { Sometimes } from './sometimes.ts'
import { Usage } from './slot-table.ts'
import { Wires } from './wires.ts'
import type { Node } from './world.ts'
import { pick, World } from './world.ts'

/** What a world is made of; drawn from its seed, and made smaller by the shrinker. */
export interface Plan {
  readonly seed: number
  readonly rates: Rates
  /** Now and then two kinds strike at once. */
  readonly pairs: boolean
  readonly gusts: boolean
  /** People act at the very moment at which it may go wrong. */
  readonly keen: boolean
  /** A workflow that only the first executor serves. */
  readonly rare: string | null
  readonly executors: number
  readonly capacity: number
  /** The real executor, not the scripted one. */
  readonly real: boolean
  /** Calls go through the real client and the real handler. */
  readonly http: boolean
  /** They go over WebSockets, and somebody lurks there. */
  readonly sockets: boolean
  /** Every third workflow of the real executor has a process for each attempt. */
  readonly isolated: boolean
  /** Every other workflow of the real executor has a context, which may change. */
  readonly contexts: boolean
  readonly runs: number
  readonly chaosMs: number
  readonly workflows: readonly string[]
  /** Schedules start runs beside the clients. */
  readonly schedules: boolean
  /** Notices are sent to sinks. */
  readonly sinks: boolean
  /** Deliveries come to triggers beside the clients. */
  readonly senders: boolean
  /** Wake-ups stay dropped while the world heals. */
  readonly silent: boolean
  /** Numbers of faults that are left out. */
  readonly skip: readonly number[]
  /** A scenario: exactly these faults at exactly these calls, and what is in it is over when its runs have ended. */
  readonly scenario?: Scenario
}

/** Within which the runs of a scenario are started, near each other. */
const STARTS_OVER_MS = 300

export interface Scenario {
  readonly strikes: readonly Strike[]
  /** People do more than let waiting runs go on. */
  readonly meddle: boolean
  /** When the first executor is told to stop, in milliseconds; it is started again after. */
  readonly stopAtMs: number | null
  /** How long schedules and senders go on at least, in milliseconds. */
  readonly lastsMs: number
}

export interface Verdict {
  readonly rule: string | null
  readonly message: string | null
  readonly faults: number
  /** Of those, delays and duplicates. */
  readonly soft: number
  /** How often two kinds struck at the same instant. */
  readonly together: number
  readonly drawn: number
  /** Numbered calls of the network and of the store, while faults could strike. */
  readonly calls: readonly Called[]
  readonly byKind: ReadonlyMap<Kind, number>
  readonly hash: string
  readonly events: number
  readonly commits: number
  readonly completed: number
  readonly virtualMs: number
  readonly sometimes: ReadonlyMap<Point, number>
}

const settings = {
  ...defaults,
  leaseMs: 5_000,
  renewMs: 1_500,
  sweepMs: 1_000,
  limitGraceMs: 800,
  cancelGraceMs: 2_500,
  handBackDelayMs: 200,
  handBackDelayMaxMs: 1_500,
  ownerLimit: 6,
  missedAfterMs: 4_000,
  deliveryLeaseMs: 4_000,
  deliveryTimeoutMs: 800,
  deliveryRefusalsMax: 5,
  deliveryBackoffMs: 150,
  deliveryBackoffMaxMs: 1_500,
  deliveryDrainMs: 500,
}

export const drawPlan = (seed: number): Plan => {
  const random = new World(seed).chance('plan')
  const { rates: weather, pairs, gusts } = drawWeather(random)
  const calm = Object.keys(weather).length === 0
  const all = programs.filter((program) => program.inner !== true).map(({ name }) => name)
  const count = 4 + pick(random, 8)
  const keen = random.next() < 0.8
  const workflows = new Set<string>(['one'])
  // what people are keen on
  if (keen)
    for (const name of ['racer', 'shipper', 'sleeper', 'flaky'])
      if (random.next() < 0.4) workflows.add(name)
  while (workflows.size < count) workflows.add(all[pick(random, all.length)] ?? 'one')
  const plan = {
    seed,
    rates: weather,
    pairs,
    gusts,
    keen,
    rare: random.next() < 0.4 ? (all[pick(random, all.length)] ?? null) : null,
    executors: 1 + pick(random, 4),
    capacity: 4 + pick(random, 7),
    real: random.next() < 0.35,
    http: random.next() < 0.06,
    runs: calm ? 60 : 55 + pick(random, 55),
    // without faults there is less to see
    chaosMs: calm ? 20_000 : 60_000 + pick(random, 60_000),
    workflows: [...workflows].sort(),
    silent: random.next() < 0.3,
    schedules: random.next() < 0.3,
    sinks: random.next() < 0.3,
    senders: random.next() < 0.3,
    isolated: false,
    contexts: false,
    sockets: false,
    skip: [],
  }
  const sockets = !plan.http && new World(seed).chance('sockets').next() < 0.15
  if (!plan.real) return { ...plan, sockets }
  const apart = new World(seed).chance('isolation')
  const beside = new World(seed).chance('coordinator')
  const isolated = apart.next() >= 0.5
  const contexts = beside.next() >= 0.5
  const rates = {
    ...weather,
    ...(isolated && !calm ? drawProcessFaults(apart) : {}),
    ...(contexts && !calm ? drawCoordinatorFaults(beside) : {}),
  }
  return { ...plan, sockets, isolated, contexts, rates }
}

export const play = async (
  plan: Plan,
  log: ((line: string) => void) | null = null,
): Promise<Verdict> => {
  // stacks are stored with the errors of runs and name whoever called us; nobody reads them but with a trace
  const { stackTraceLimit } = Error
  if (log === null) Error.stackTraceLimit = 0
  const world = new World(plan.seed, log)
  // it would end the process of whoever had it
  const unheard = (error: unknown): void =>
    world.violate('defect', `nobody hears of it: ${String((error as Error).stack ?? error)}`)
  process.on('unhandledRejection', unheard)
  try {
    return await played(plan, world)
  } finally {
    process.off('unhandledRejection', unheard)
    Error.stackTraceLimit = stackTraceLimit
  }
}

const played = async (plan: Plan, world: World): Promise<Verdict> => {
  const { scenario } = plan
  const faults = new Faults(world, plan, new Set(plan.skip), scenario?.strikes)
  const quiet = Object.keys(plan.rates).length === 0 && scenario === undefined
  const meddle = scenario?.meddle ?? !quiet
  const net = new Net(world, faults)
  const clock = { offset: 0 }
  const disk = freshDisk(world.born('disk', clock).ports.time)
  const shadow = new Shadow(disk.store.db)
  const usage = new Usage()
  const answers = new Answers(world, shadow)
  const chosen = closureOf(plan.workflows)
  const sometimes = new Sometimes(shadow)
  let commits = 0
  let unexpected: string | null = null
  const surprise = (what: string): void => {
    unexpected = what
    world.violate('refused', what)
  }

  const rules = new Rules(world, shadow, usage, {
    leaseMs: settings.leaseMs,
    lossesMax: settings.lossesMax,
    lossesSuspect: settings.lossesSuspect,
    handBacksMax: settings.handBacksMax,
    triesOf: (workflow) => chosen.find(({ name }) => name === workflow)?.retry?.maxAttempts ?? 1,
    endSent: (place) => answers.endsSent.has(place),
    unnamed: (place) => answers.unnamed.has(place),
    unnoticedSince: (at) => fate.unnoticedSince(at),
  })
  const orchestrator = new Orchestrator(world, faults, net, disk, clock, settings, {
    answers,
    sometimes,
    waits: (ms) => fate.waits(ms),
    sinks: (node) => sinks.of(node, 'self'),
    committed,
  })
  function committed(commit: Commit): void {
    commits += 1
    for (const touch of commit.writes)
      if (touch.table !== 'sweeps')
        world.record(`${touch.name}${touch.params.join()}${touch.rows.length}`)
    const change = shadow.take(commit, world.now)
    if (world.talks) tell(world, change)
    sometimes.committed(change, orchestrator.silent)
    rules.check(change)
    schedules.check(commit)
    senders.check(commit)
    people.saw(change)
    sinks.check(commit, change)
  }
  const waiting = world.chance('claims')
  const wires = plan.sockets ? new Wires(world, net, faults, disk.store.db) : null
  const hosts = new Hosts(
    world,
    net,
    faults,
    { programs: chosen, capacity: plan.capacity },
    {
      body: (run, attempt, key) => {
        const entry = shadow.entriesOf(run).get(key)
        if (entry && entry.attempt <= attempt)
          world.violate(
            'S6',
            `${key} of ${run} is recorded by attempt ${entry.attempt} and runs again in attempt ${attempt}`,
          )
      },
      unexpected: surprise,
      forgets: (run) => people.forgotten(run),
      // short, so that they do not hide what else is asked; some outlive their process, or what they were not told of
      claimWaitMs: () =>
        faults.over ? (plan.silent ? 8_000 : 1_200) : pick(waiting, 4) === 0 ? 2_000 : 120,
    },
    plan.executors,
    { ...plan, wires },
  )
  const lurker =
    wires && !quiet && world.chance('lurks').next() < 0.7
      ? new Lurker(world, wires, chosen.map(definitionFor))
      : null
  const fate = new Fate(
    world,
    faults,
    net,
    hosts,
    orchestrator,
    settings.leaseMs,
    plan.pairs,
    (driver) => people.struck(driver.session),
  )
  const people = new People(
    world,
    net,
    faults,
    shadow,
    {
      runs: plan.runs,
      overMs: scenario ? STARTS_OVER_MS : plan.chaosMs * 0.7,
      programs: chosen.filter(({ name }) => plan.workflows.includes(name)),
      meddle,
      keen: plan.keen && meddle,
    },
    surprise,
    (verb, code) => sometimes.refused(verb, code),
  )

  const schedules = new Schedules(
    world,
    disk.store.db,
    shadow,
    people,
    plan.schedules && plan.http === false,
    'clock.jump' in plan.rates,
    settings.missedAfterMs,
    () => fate.furthest,
  )

  const sinks: Sinks = new Sinks(world, disk, {
    on: plan.sinks,
    quiet: quiet || scenario !== undefined,
    jumped: () => fate.jumped,
    overMs: plan.chaosMs,
    settings,
    committed,
  })
  const senders = new Senders(world, disk.store.db, people, plan.workflows, plan.senders)

  world.at(0, null, () => orchestrator.boot())
  world.at(20, null, () => {
    for (const host of hosts.all) hosts.boot(host)
    people.start()
    schedules.start()
    sinks.start()
    senders.start()
    lurker?.start()
    fate.start()
  })
  if (scenario) {
    const caller = (node: Node): Driver | undefined =>
      hosts.living.find((driver) => driver.node === node)
    net.kill = (node) => {
      const driver = caller(node)
      if (driver) hosts.end(driver, 400)
      return driver !== undefined
    }
    const [first] = hosts.all
    const { stopAtMs } = scenario
    if (first && stopAtMs !== null) world.at(stopAtMs, null, () => hosts.stop(first, 1_500, 300))
  }
  const isOver = (): boolean =>
    scenario !== undefined &&
    world.now >= scenario.lastsMs &&
    sinks.over &&
    people.asked >= plan.runs &&
    people.answered === people.asked &&
    shadow.active.size === 0
  await world.play(plan.chaosMs, isOver)
  const calls = [...faults.calls]
  const chaosOver = world.violation === null
  if (chaosOver) {
    people.leave()
    lurker?.leave()
    await heal(world, {
      faults,
      net,
      orchestrator,
      hosts,
      people,
      schedules,
      sinks,
      senders,
      shadow,
      usage,
      fate,
      silent: plan.silent,
    })
  }
  const runs = [...shadow.runs.values()]
  const completed = runs.filter(({ status }) => status === 'succeeded').length
  if (!world.violation) {
    const left = [...shadow.active].map((id) => shadow.runs.get(id))
    if (left.length > 0)
      world.violate(
        'L11',
        `${left.length} runs have not ended: ${left
          .slice(0, 3)
          .map(
            (run) =>
              `${run?.id} (${run?.workflow}) is ${run?.status} ${run?.wait_on ?? ''} ${run?.reason ?? ''} ${run?.ready_at ?? ''}`,
          )
          .join('; ')}`,
      )
    audit(disk.store.db, world, shadow, answers, plan)
    schedules.audit()
    sinks.audit()
    senders.audit()
    if (completed === 0) world.violate('PROOF-03', 'nothing completed')
    if (quiet) calm(world, shadow, net, chosen)
  }
  return {
    rule: world.violation?.rule ?? null,
    message: world.violation?.message ?? unexpected,
    faults: faults.counted,
    soft: faults.soft,
    together: faults.together,
    drawn: faults.drawn,
    calls,
    byKind: faults.byKind,
    hash: world.hash,
    events: world.events,
    commits,
    completed,
    virtualMs: world.now,
    sometimes: sometimes.reached,
  }
}

interface Healing {
  readonly faults: Faults
  readonly net: Net
  readonly orchestrator: Orchestrator
  readonly hosts: Hosts
  readonly people: People
  readonly schedules: Schedules
  readonly sinks: Sinks
  readonly senders: Senders
  readonly shadow: Shadow
  readonly usage: Usage
  readonly fate: Fate
  readonly silent: boolean
}

/** Faults are over: everything must reach its end within bounds, by itself, save what waits for people. */
const heal = async (
  world: World,
  {
    faults,
    net,
    orchestrator,
    hosts,
    people,
    schedules,
    sinks,
    senders,
    shadow,
    usage,
    fate,
    silent,
  }: Healing,
): Promise<void> => {
  faults.over = true
  net.heal()
  orchestrator.heal()
  orchestrator.silent = silent
  fate.settle()
  people.afresh()
  schedules.leave()
  sinks.leave()
  senders.leave()
  const liveness = new Liveness(world, shadow, usage, hosts, orchestrator, settings)
  let over = false
  let quietSince = 0
  let turn = 0
  const look = (): void => {
    if (over) return
    liveness.look()
    if (orchestrator.upFor > 3_000) schedules.look(orchestrator.node?.ports.time.now() ?? 0)
    sinks.look()
    turn += 1
    if (turn % 2 === 0 && orchestrator.up) void people.care()
    const asking = people.asked > people.answered || !schedules.over || !senders.over || !sinks.over
    // what hangs, or was left behind, is to be killed by its executor, not by the end of the world
    const isDoomed = hosts.all.some(({ machine }) => machine.hasDoomed())
    if (shadow.active.size > 0 || asking || isDoomed) quietSince = 0
    else if (quietSince === 0) quietSince = world.now
    else if (world.now - quietSince >= 1_500) over = true
    world.at(world.now + 250, null, look)
  }
  look()
  await world.play(world.now + 300_000, () => over)
  // runs that have not ended are told of by name
  if (!over && !world.violation && shadow.active.size === 0)
    world.violate('L9', 'all runs have ended, and something is still asked for or at work')
}

/** A world without faults: nothing is tried again and nothing is refused that should not be. */
const calm = (
  world: World,
  shadow: Shadow,
  net: Net,
  chosen: readonly { name: string }[],
): void => {
  if (net.failed > 0)
    world.violate('PROOF-02', `${net.failed} requests failed in a world without faults`)
  const deadly = chosen.some(({ name }) => name === 'poison' || name === 'deaf')
  for (const [place, end] of shadow.attemptEnds)
    if (!deadly && (end === 'expired' || end === 'lost' || end === 'revoked' || end === 'stale'))
      world.violate('PROOF-02', `${place} was ${end} in a world without faults`)
}

const tell = (world: World, change: ReturnType<Shadow['take']>): void => {
  for (const touch of change.writes)
    if (touch.table !== 'sweeps')
      world.say(
        () => `  > ${touch.name} ${touch.rows.length} ${touch.params.join(' ').slice(0, 300)}`,
      )
  for (const { before, after } of change.runs)
    world.say(
      () =>
        `  run ${after.id} ${after.workflow} ${before?.status ?? '-'} -> ${after.status} ${after.wait_on ?? ''} ${after.reason ?? ''} #${after.attempt} ${after.session ?? ''} e${after.entries} rev${after.rev}${ended(after.status) ? ' END' : ''}`,
    )
  for (const { before, after } of change.waits)
    world.say(
      () =>
        `  wait ${after.run} ${after.key} ${after.kind} ${before?.state ?? '-'} -> ${after.state} ${after.name ?? ''} ${after.dueAt ?? ''}`,
    )
  for (const end of change.attempts)
    world.say(() => `  attempt ${end.run}#${end.attempt} ${end.end} ${end.session}`)
  for (const { after } of change.sessions)
    world.say(
      () =>
        `  session ${after.id} ${after.state} claim ${after.claim_no} until ${after.lease_until}`,
    )
}
