// A whole engine for tests: SQLite in memory, a clock of its own, executors that can be killed. A sleep of 30 days takes
// milliseconds, nothing is shared between two of them, and no test framework is assumed.
import type { Duration } from '../kernel/duration.ts'
import { milliseconds } from '../kernel/duration.ts'
import { errorOf, LeaseholdError } from '../kernel/errors.ts'
import { mintIds } from '../kernel/ids.ts'
import { encode } from '../kernel/json.ts'
import type { MembersOf } from '../kernel/known-members.ts'
import { mustKnowMembers } from '../kernel/known-members.ts'
import type { Log } from '../kernel/log.ts'
import { noLog } from '../kernel/log.ts'
import { seededRandom } from '../kernel/random.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { systemTimers } from '../kernel/timers.ts'
import type { RunStatus, WaitOn } from '../model/run.ts'
import type { Settings } from '../model/settings.ts'
import type { Entry, ExecutorPort } from '../model/work.ts'
import type { Executor, ExecutorOptions } from '../executor/executor.ts'
import { makeExecutor } from '../executor/executor.ts'
import type { AroundStep } from '../executor/authoring/environment.ts'
import { temporaryScratch } from '../executor/preparing/scratch.ts'
import type { AnyWorkflow, Workflow } from '../executor/authoring/context.ts'
import type { Engine } from '../orchestrator/engine.ts'
import { openOnSqlite } from '../orchestrator/open.ts'
import { nextEvent } from '../queries/lines.ts'
import { endOnEvidence } from '../transitions/end-session.ts'
import type { VirtualClock } from './clock.ts'
import { processesInMemory } from './processes.ts'
import { virtualClock } from './clock.ts'
import type { RunView } from './inspect.ts'
import { inspect } from './inspect.ts'

export interface TestEngineOptions {
  /** What its executors drive. */
  readonly workflows: readonly AnyWorkflow[]
  /** Chance and ids come from it; the same seed gives the same test. Default 1. */
  readonly seed?: number
  /** The clock's start. Default 2026-01-01T00:00:00Z. */
  readonly now?: number
  /** Default 1. */
  readonly executors?: number
  /** Leases never run out here, whatever is said of them: an executor ends by `crash` and `crashAt`. */
  readonly settings?: Partial<Settings>
  readonly executor?: Partial<
    Pick<
      ExecutorOptions,
      'slots' | 'queues' | 'labels' | 'maxChainDepth' | 'drainMs' | 'abortGraceMs'
    >
  >
  /** Default: silent. */
  readonly log?: Log
}

export interface StartOptions {
  readonly key?: string
  readonly owner?: string
  readonly queue?: string
  readonly labels?: readonly string[]
  readonly priority?: number
  readonly delay?: Duration
  readonly totalLimit?: Duration
  readonly attemptLimit?: Duration
  readonly startBy?: Duration
}

export interface TestEngine {
  /** The engine itself, for what has no shorthand here. */
  readonly engine: Engine
  readonly clock: VirtualClock
  readonly executors: readonly Executor[]
  /** Starts a run and gives its id; throws the refusal where it was refused. */
  start<I>(
    workflow: Workflow<I, unknown> | string,
    input: I,
    options?: StartOptions,
  ): Promise<string>
  /** The run's output, moving time on as far as needed; throws when it fails, or when only somebody else could move it. */
  result(run: string): Promise<unknown>
  /** Moves time on until the run is in this state: a status, or `waiting:approval` and its like. */
  until(run: string, state: RunStatus | `waiting:${WaitOn}`): Promise<RunView>
  /** Lets happen what happens now, without moving time. */
  settle(): Promise<void>
  /** Moves time on, stopping at each instant at which something is due. */
  advance(duration: Duration): Promise<void>
  /** The run as it stands; throws `not_found`. */
  get(run: string): Promise<RunView>
  journal(run: string): Promise<Entry[]>
  attempts(
    run: string,
  ): Promise<{ attempt: number; session: string; end: string; reason: string | null }[]>
  signal(run: string, name: string, payload?: unknown, id?: string): Promise<void>
  /** `key` names the approval within its run, as its function does. */
  approve(run: string, key: string, options?: { by?: string; payload?: unknown }): Promise<void>
  deny(run: string, key: string, options?: { by?: string; reason?: string }): Promise<void>
  cancel(run: string, reason?: string): Promise<void>
  pause(run: string): Promise<void>
  resume(run: string): Promise<void>
  /** Starts a run that has ended again, as a new one, and gives its id; `from` names the step that it begins at. */
  retry(run: string, from?: string): Promise<string>
  /** Replaces the body of a step, by its name, in all runs of a workflow. */
  mock(
    workflow: AnyWorkflow | string,
    step: string,
    body: (step: { tryNumber: number; run: string }) => unknown,
  ): void
  /** Kills the executor that runs this step, `before` its body or `after` it (its result is lost), so many times. */
  crashAt(step: string, when: 'before' | 'after', times?: number): void
  /** Kills an executor: its promises stop, its process is known to have ended. Another takes its place at once. */
  crash(index?: number): Promise<void>
  /** How often the body of each step has begun, by its key. */
  begun(run: string, key: string): number
  close(): Promise<void>
}

interface Node {
  executor: Executor
  readonly timers: ReturnType<VirtualClock['timers']>
  dead: boolean
}

/** Real turns of the event loop, and a real moment for bodies that do real work. */
const aTurn = (): Promise<void> => new Promise((resolve) => systemTimers.soon(resolve))
const aMoment = (): Promise<void> => new Promise((resolve) => void systemTimers.after(1, resolve))

const FOREVER = 1e12
const NEW_YEAR = Date.UTC(2026, 0, 1)

const NAME_IT =
  'name it among the `workflows` of the test engine, also where it only runs as a child'

/** What runs at the end of another would be a notice that no test looks at. */
/** A test has no cluster: what a pod would drive is driven by a process in memory. */
const withoutCluster = (workflow: AnyWorkflow): AnyWorkflow =>
  workflow.definition.isolation === 'job'
    ? { ...workflow, definition: { ...workflow.definition, isolation: 'process' } }
    : workflow

const mustNameHandlers = (workflows: readonly AnyWorkflow[]): void => {
  for (const { name, definition } of workflows)
    if (definition.onEnd !== null && !workflows.some((each) => each.name === definition.onEnd))
      throw new LeaseholdError(
        'unknown_workflow',
        `${definition.onEnd}, which runs at the end of ${name}, is not there; ${NAME_IT}`,
        { workflow: definition.onEnd, of: name },
      )
}

const OPTIONS: MembersOf<TestEngineOptions> = {
  workflows: true,
  seed: true,
  now: true,
  executors: true,
  settings: true,
  executor: true,
  log: true,
}
const START_OPTIONS: MembersOf<StartOptions> = {
  key: true,
  owner: true,
  queue: true,
  labels: true,
  priority: true,
  delay: true,
  totalLimit: true,
  attemptLimit: true,
  startBy: true,
}

/** Opens a test engine; close it at the end of the test. */
export const testEngine = async (options: TestEngineOptions): Promise<TestEngine> => {
  mustKnowMembers(options, OPTIONS, 'testEngine')
  mustNameHandlers(options.workflows)
  const clock = virtualClock(options.now ?? NEW_YEAR)
  const random = seededRandom(options.seed ?? 1)
  const ids = mintIds(clock.time, random)
  const log = options.log ?? noLog
  const ports = { time: clock.time, timers: clock.timers(), random, ids, log }
  const opened = await openOnSqlite({
    file: ':memory:',
    ports,
    synchronous: 'OFF',
    manualLoops: true,
    settings: { ...options.settings, leaseMs: FOREVER, renewMs: FOREVER / 10 },
  })
  const { engine, loops } = opened
  let wanted = true
  // beside the loops, which have `onWanted` to themselves: what they were told of stays told
  engine.onFollowed((follow) => {
    if (follow.admit.size > 0 || follow.orders || follow.readyAt !== null) wanted = true
  })
  const mocks = new Map<string, (step: { tryNumber: number; run: string }) => unknown>()
  const crashes: { step: string; when: 'before' | 'after'; left: number }[] = []
  const counts = new Map<string, number>()

  const makeNode = (): Node => {
    const timers = clock.timers()
    const node: Node = { timers, dead: false, executor: undefined as unknown as Executor }
    const gone = <T>(call: Promise<T>): Promise<T> =>
      call.then((answer) => (node.dead ? new Promise<T>(() => undefined) : answer))
    const dead = <T>(): Promise<T> => new Promise<T>(() => undefined)
    const port: ExecutorPort = {
      register: (request) => (node.dead ? dead() : gone(opened.embedded.register(request))),
      claim: (request, signal) =>
        node.dead ? dead() : gone(opened.embedded.claim(request, signal)),
      journal: (session, run, after) =>
        node.dead ? dead() : gone(opened.embedded.journal(session, run, after)),
      write: (session, write) => (node.dead ? dead() : gone(opened.embedded.write(session, write))),
      renew: (request) => (node.dead ? dead() : gone(opened.embedded.renew(request))),
      close: (request) => (node.dead ? dead() : gone(opened.embedded.close(request))),
      logs: (session, parts) => (node.dead ? dead() : gone(opened.embedded.logs(session, parts))),
      listen: (session, tell) =>
        opened.embedded.listen(session, (told) => !node.dead && tell(told)),
    }
    const aroundStep: AroundStep = async (step, body) => {
      const name = `${step.run} ${step.key}`
      counts.set(name, (counts.get(name) ?? 0) + 1)
      const due = (when: 'before' | 'after'): boolean => {
        const crash = crashes.find(
          (each) =>
            each.left > 0 &&
            each.when === when &&
            (each.step === step.name || each.step === step.key),
        )
        if (crash) crash.left -= 1
        return crash !== undefined
      }
      if (due('before')) return kill(node)
      const mock = mocks.get(`${step.workflow} ${step.name}`)
      const value = await (mock ? mock({ tryNumber: step.tryNumber, run: step.run }) : body())
      return due('after') ? kill(node) : value
    }
    node.executor = makeExecutor({
      port,
      ports: { ...ports, timers },
      workflows: options.workflows.map(withoutCluster),
      claimWaitMs: FOREVER,
      // no clock of a test stands still for what other processes have left on this disk
      scratch: {
        ...temporaryScratch(),
        recover: () => Promise.resolve({ removed: [], held: [], alive: [] }),
      },
      processes: processesInMemory(options.workflows, { ...ports, timers }, { aroundStep }),
      ...options.executor,
      aroundStep,
    })
    return node
  }

  const nodes: Node[] = []
  const revive: Promise<void>[] = []
  /** The process is gone: nothing of it runs on, and its exit is known. */
  const kill = (node: Node): Promise<never> => {
    node.dead = true
    node.timers.kill()
    const { session } = node.executor.status()
    const replaced = async (): Promise<void> => {
      if (session !== null)
        await engine.store.run((tx) => endOnEvidence(tx, session, 'the test killed its process'))
      const next = makeNode()
      nodes[nodes.indexOf(node)] = next
      await next.executor.start()
      wanted = true
    }
    revive.push(replaced())
    return new Promise(() => undefined)
  }

  for (let i = 0; i < (options.executors ?? 1); i++) {
    const node = makeNode()
    nodes.push(node)
    await node.executor.start()
  }

  const bodies = (): number =>
    nodes.reduce(
      (sum, node) =>
        sum +
        node.executor.status().jobs.reduce((each, job) => each + (job.left ? 0 : job.bodies), 0),
      0,
    )

  /** Runs real turns of the event loop until nothing of ours is left to run; bodies may do real work meanwhile. */
  const quiet = async (): Promise<void> => {
    let still = 0
    let turns = 0
    while (still < 4) {
      turns += 1
      await (turns < 200 ? aTurn() : aMoment())
      await engine.idle()
      while (revive.length > 0) await revive.pop()
      const waitsForTimer = clock.next() !== null && clock.next()! <= clock.time.now()
      still =
        clock.pending === 0 && !waitsForTimer && (bodies() === 0 || timersOnly()) ? still + 1 : 0
      if (waitsForTimer) clock.moveTo(clock.time.now())
    }
  }
  /** Bodies that have not moved for a while stand on a virtual timer (their own limit, or a sleep through the ports). */
  let unmoved = 0
  const timersOnly = (): boolean => {
    unmoved += 1
    return unmoved > 50
  }

  const settle = async (): Promise<void> => {
    for (;;) {
      unmoved = 0
      await quiet()
      if (!wanted) return
      wanted = false
      for (const loop of loops.all) await loop.once()
      await quiet()
    }
  }

  /** Moves to the next instant at which something is due, at most to `limit`; false when there is none. */
  const step = async (limit: number): Promise<boolean> => {
    const store = await engine.read((tx) => nextEvent(tx, engine.settings))
    const timer = clock.next()
    const instants = [store, timer].filter((each) => each !== null)
    const next = Math.max(clock.time.now(), Math.min(...instants))
    if (instants.length === 0 || next > limit || next >= clock.time.now() + FOREVER / 100)
      return false
    clock.moveTo(Math.max(next, clock.time.now()))
    wanted = true
    await settle()
    return true
  }

  const get = (run: string): Promise<RunView> => inspect.run(engine, run)

  const reach = async (
    run: string,
    there: (view: RunView) => boolean,
    what: string,
  ): Promise<RunView> => {
    await settle()
    for (let i = 0; i < 100_000; i++) {
      const view = await get(run)
      if (there(view)) return view
      const moved = await step(Number.POSITIVE_INFINITY)
      if (moved) continue
      const last = await get(run)
      if (there(last)) return last
      throw new Error(
        `${run} does not come to ${what} by itself: it is ${last.status}${last.waitOn === null ? '' : ` on ${last.waitOn}`}${last.note === null ? '' : ` (${last.note})`}`,
      )
    }
    throw new Error(`${run} has not come to ${what} after 100,000 instants`)
  }

  const must = <T>(outcome: Outcome<T>): T => {
    if (!outcome.ok) throw errorOf(outcome)
    return outcome
  }

  return {
    engine,
    clock,
    get executors() {
      return nodes.map((node) => node.executor)
    },
    async start(workflow, input, start = {}) {
      mustKnowMembers(start, START_OPTIONS, 'the start of a run', 'invalid_request')
      const answer = await engine.start({
        command: {
          id: ids.next('run'),
          workflow: typeof workflow === 'string' ? workflow : workflow.name,
          ...(typeof workflow === 'string' ? {} : { version: workflow.version }),
          input: encode(input),
          key: start.key ?? null,
          owner: start.owner ?? null,
          queue: start.queue ?? null,
          labels: start.labels ?? null,
          priority: start.priority ?? null,
          delayMs: start.delay === undefined ? null : milliseconds(start.delay),
          totalLimitMs: start.totalLimit === undefined ? null : milliseconds(start.totalLimit),
          attemptLimitMs:
            start.attemptLimit === undefined ? null : milliseconds(start.attemptLimit),
          startByMs: start.startBy === undefined ? null : milliseconds(start.startBy),
        },
      })
      if (!answer.ok) throw errorOf(answer)
      return answer.id
    },
    async result(run) {
      const view = await reach(
        run,
        ({ status }) => status === 'succeeded' || status === 'failed' || status === 'canceled',
        'an end',
      )
      if (view.status === 'succeeded') return view.output
      throw new LeaseholdError(
        'child_failed',
        `${run} ${view.status}${view.reason === null ? '' : ` (${view.reason})`}: ${view.error?.message ?? view.note ?? ''}${view.reason === 'unknown_workflow' ? `; ${NAME_IT}` : ''}`,
        { run, status: view.status, reason: view.reason, error: view.error },
      )
    },
    until: (run, state) =>
      reach(
        run,
        (view) => view.status === state || `${view.status}:${view.waitOn}` === state,
        state,
      ),
    settle,
    async advance(duration) {
      const end = clock.time.now() + milliseconds(duration)
      await settle()
      while (await step(end));
      clock.moveTo(end)
      wanted = true
      await settle()
    },
    get,
    journal: (run) => inspect.journal(engine, run),
    attempts: (run) => inspect.attempts(engine, run),
    async signal(run, name, payload, id) {
      must(
        await engine.signal({
          run,
          id: id ?? ids.next('sig'),
          name,
          payload: encode(payload),
          by: 'test',
        }),
      )
      await settle()
    },
    async approve(run, key, { by = 'test', payload } = {}) {
      must(
        await engine.decide({
          approval: `${run}:${key}`,
          decision: 'approved',
          by,
          reason: null,
          payload: encode(payload),
        }),
      )
      await settle()
    },
    async deny(run, key, { by = 'test', reason } = {}) {
      must(
        await engine.decide({
          approval: `${run}:${key}`,
          decision: 'denied',
          by,
          reason: reason ?? null,
          payload: null,
        }),
      )
      await settle()
    },
    async cancel(run, reason) {
      must(await engine.cancel({ run, by: 'test', reason: reason ?? null }))
      await settle()
    },
    async pause(run) {
      must(await engine.pause(run, 'test', null))
      await settle()
    },
    async resume(run) {
      must(await engine.resume(run, 'test'))
      await settle()
    },
    async retry(run, from) {
      const id = ids.next('run')
      const command = { run, id, from: from ?? null, version: null, by: 'test' }
      must(await engine.retry(command))
      await settle()
      return id
    },
    mock: (workflow, name, body) =>
      void mocks.set(`${typeof workflow === 'string' ? workflow : workflow.name} ${name}`, body),
    crashAt: (name, when, times = 1) => void crashes.push({ step: name, when, left: times }),
    async crash(index = 0) {
      const node = nodes[index]
      if (!node) throw new Error(`there is no executor ${index}; there are ${nodes.length}`)
      void kill(node)
      await settle()
    },
    begun: (run, key) => counts.get(`${run} ${key}`) ?? 0,
    async close() {
      await Promise.all(nodes.filter((node) => !node.dead).map(stopQuickly))
      await opened.close()
    },
  }

  async function stopQuickly(node: Node): Promise<void> {
    const stopping = node.executor.stop()
    let done = false
    void stopping.then(() => {
      done = true
    })
    for (let i = 0; i < 10_000 && !done; i++) {
      await aTurn()
      const next = clock.next()
      if (i > 20 && !done && next !== null) clock.moveTo(Math.min(next, clock.time.now() + 60_000))
    }
    await stopping
  }
}
