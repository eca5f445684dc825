// The orchestrator as a process: the engine and all its loops on the disk, which outlives it. Its store fails before and
// after a commit, answers late, refuses writes for a while, and its process ends around a commit.
import { messageOf } from '../../src/kernel/json.ts'
import { Fault, LeaseholdError } from '../../src/kernel/errors.ts'
import type { Sink } from '../../src/model/delivery.ts'
import type { Log } from '../../src/kernel/log.ts'
import type { LogPart } from '../../src/model/log.ts'
import type { Settings } from '../../src/model/settings.ts'
import type {
  AttemptWrite,
  ClaimRequest,
  CloseRequest,
  RegisterRequest,
  RenewRequest,
} from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import { executorPort } from '../../src/orchestrator/executor-port.ts'
import { startLoops } from '../../src/orchestrator/upkeep.ts'
import { calendar } from '../../src/orchestrator/calendar.ts'
import type { Steps, Tx } from '../../src/store/sql.ts'
import { finish } from '../../src/store/sql.ts'
import type { Behind, Manner, Store } from '../../src/store/store.ts'
import { putPause, removePause, setOperatorLimit } from '../../src/store/tables/limits.ts'
import type { OrderRow } from '../../src/store/tables/orders.ts'
import { insertOrders } from '../../src/store/tables/orders.ts'
import type { CancelCommand } from '../../src/transitions/cancel.ts'
import type { DecideCommand } from '../../src/transitions/decide.ts'
import { endOnEvidence, takeOverFile } from '../../src/transitions/end-session.ts'
import type { RetryCommand } from '../../src/transitions/retry.ts'
import type { NewTrigger } from '../../src/transitions/set-trigger.ts'
import { pauseTrigger, resumeTrigger, setTrigger } from '../../src/transitions/set-trigger.ts'
import { hookVerb } from './senders.ts'
import type { NewSchedule } from '../../src/transitions/set-schedule.ts'
import {
  createSchedule,
  pauseSchedule,
  resumeSchedule,
  runNow,
} from '../../src/transitions/set-schedule.ts'
import type { SignalCommand } from '../../src/transitions/signal.ts'
import type { StartItem } from '../../src/transitions/start.ts'
import type { Answers } from './answers.ts'
import type { Commit } from './commit.ts'
import { emptyCommit, watched } from './commit.ts'
import type { Disk } from './disk.ts'
import type { Faults, Kind } from './faults.ts'
import { handlerOf, httpVerb } from './http.ts'
import type { Net, Server } from './net.ts'
import type { Sometimes } from './sometimes.ts'
import type { Clock, Node, World } from './world.ts'
import { pick } from './world.ts'

export interface Watch {
  /** A transaction has committed. */
  committed(commit: Commit): void
  /** A transaction has been asked for and begins so much later. */
  waits(ms: number): void
  /** Where the process sends notices. */
  sinks(node: Node): readonly Sink[]
  readonly answers: Answers
  readonly sometimes: Sometimes
}

/** Transactions of one instant of virtual time: a loop that asks for more never rests, and would never let time pass. */
const AT_ONE_INSTANT = 10_000

/** How long it is away when it dies at a numbered call. */
const DOWN_MS = 300

const never = <T>(): Promise<T> => new Promise<T>(() => undefined)

export class Orchestrator {
  engine: Engine | null = null
  node: Node | null = null
  /** Wake-ups are dropped: what follows a commit is told to nobody. */
  silent = false
  /** True time at which the present process came up. */
  upSince = 0
  /** When it last saw that the clock of its store had jumped: it has counted every lease anew since. */
  sawJump = 0
  readonly clock: Clock
  readonly #world: World
  readonly #faults: Faults
  readonly #net: Net
  readonly #disk: Disk
  readonly #settings: Settings
  readonly #watch: Watch
  #lives = 0
  /** No faults of the store: the process has failed to come up because of them. */
  #spared = false
  #refusing: {
    until: number
    code: 'store_read_only' | 'store_full'
    kind: Kind
    counted: boolean
  } | null = null

  constructor(
    world: World,
    faults: Faults,
    net: Net,
    disk: Disk,
    clock: Clock,
    settings: Settings,
    watch: Watch,
  ) {
    this.#world = world
    this.#faults = faults
    this.#net = net
    this.#disk = disk
    this.clock = clock
    this.#settings = settings
    this.#watch = watch
  }

  get up(): boolean {
    return this.#net.server !== null && this.node?.alive === true
  }

  /** Since how many milliseconds it has been there without standing still: what it has to do in time counts from there. */
  get upFor(): number {
    return this.up ? this.#world.now - Math.max(this.upSince, this.node?.stalledUntil ?? 0) : 0
  }

  /** Starts the process; retries what the store refuses, as a supervisor would. */
  boot(): void {
    const node = this.#world.born('orchestrator', this.clock)
    this.node = node
    this.#lives += 1
    void this.#open(node, `process-${this.#lives}`)
  }

  async #open(node: Node, self: string): Promise<void> {
    const store = this.#store(node)
    for (let tries = 0; ; tries++) {
      // a process that never comes up would hide everything else
      this.#spared = tries >= 3
      try {
        const engine = await openEngine({
          store,
          ports: this.#ports(node),
          settings: this.#settings,
        })
        await store.run((tx) => takeOverFile(tx, self, 'the owner lock was free'))
        if (!node.alive) return
        this.engine = engine
        this.#spared = false
        this.upSince = this.#world.now
        const follow = engine.follow.bind(engine)
        engine.follow = (what) => {
          if (!this.silent) follow(what)
        }
        startLoops(engine, 'self', { sinks: this.#watch.sinks(node) })
        this.#net.open(this.#server(node, engine, self))
        return
      } catch (error) {
        if (!(error instanceof Fault)) {
          this.#world.violate('defect', `the engine does not open: ${String(error)}`)
          return
        }
        await this.#world.sleep(node, 100)
      }
    }
  }

  #ports({ ports }: Node): Node['ports'] {
    const warn: Log['warn'] = (event, facts) => {
      if (event === 'reap.waits' && facts?.['jumped'] === true) this.sawJump = this.#world.now
      ports.log.warn(event, facts)
    }
    return { ...ports, log: { ...ports.log, warn } }
  }

  /** Ends the process here and now; it is started again after a while. */
  crash(afterMs: number): void {
    const { node } = this
    if (!node?.alive) return
    node.alive = false
    this.engine = null
    this.#net.server = null
    this.#net.broke(node)
    this.#world.at(this.#world.now + afterMs, null, () => this.boot())
  }

  /** The store refuses writes for so long. */
  refuse(code: 'store_read_only' | 'store_full', ms: number): void {
    const kind = code === 'store_full' ? 'store.full' : 'store.read_only'
    this.#refusing = { until: this.#world.now + ms, code, kind, counted: false }
  }

  heal(): void {
    this.#refusing = null
    this.silent = false
  }

  #store(node: Node): Store {
    const { store: disk } = this.#disk
    const faults = this.#faults
    const world = this.#world
    const luck = world.chance('behind')
    let instant = world.now
    let atInstant = 0
    const run = async <T>(
      transaction: (tx: Tx) => Steps<T>,
      _manner?: Manner,
      behind?: Behind<T>,
    ): Promise<T> => {
      if (!node.alive || world.violation) return never()
      if (world.now > instant) atInstant = 0
      instant = world.now
      atInstant += 1
      if (atInstant > AT_ONE_INSTANT) {
        world.violate('L9', `${AT_ONE_INSTANT} transactions at one instant: a loop never rests`)
        return never()
      }
      const refusing = this.#refusing
      if (refusing && refusing.until > world.now) {
        if (!refusing.counted) faults.count(refusing.kind)
        refusing.counted = true
        throw new Fault(refusing.code, 'the store refuses writes')
      }
      const fate = this.#spared ? null : faults.next('write')
      if (fate === 'before') {
        faults.count('orchestrator.crash_before')
        this.crash(DOWN_MS)
        return never()
      }
      if (!this.#spared && faults.hits('store.error_before'))
        throw new Fault('store_unavailable', 'the connection was lost')
      if (!this.#spared && faults.hits('orchestrator.crash_before')) {
        this.crash(200 + pick(faults.chance('orchestrator.crash_before'), 1_500))
        return never()
      }
      if (faults.hits('store.latency')) {
        const chance = faults.chance('store.latency')
        const ms = 20 + pick(chance, pick(chance, 4) === 0 ? 1_500 : 200)
        this.#watch.waits(ms)
        await world.sleep(node, ms)
        if (!node.alive) return never()
      }
      const commits: Commit[] = []
      const watching =
        <U>(steps: (tx: Tx) => Steps<U>) =>
        (tx: Tx): Steps<U> => {
          const commit = emptyCommit(tx)
          commits.push(commit)
          return watched(steps(tx), commit)
        }
      const answer = disk.run(watching(transaction), undefined, (what) => {
        // now and then what comes behind is left to what follows the commit, as on PostgreSQL
        const next = behind?.(what) ?? null
        return next === null || luck.next() < 0.2 ? null : watching(next)
      })
      // the driver has committed, or failed, within this turn
      let failed: Error | null = null
      const settled = answer.catch((error: unknown) => {
        failed = error instanceof Error ? error : new Error(messageOf(error))
      })
      for (const commit of commits) if (commit.whole) this.#watch.committed(commit)
      await settled
      const fault = failed as Error | null
      if (fault !== null) {
        if (!(fault instanceof LeaseholdError))
          world.violate('defect', fault.stack ?? fault.message)
        throw fault
      }
      if (!node.alive) return never()
      if (this.#spared) return answer
      if (fate === 'after') {
        faults.count('orchestrator.crash_after')
        this.crash(DOWN_MS)
        return never()
      }
      if (fate === 'unknown') {
        faults.count('store.error_after')
        throw new Fault('unknown_outcome', 'the connection was lost at the commit')
      }
      if (faults.hits('orchestrator.crash_after')) {
        this.crash(200 + pick(faults.chance('orchestrator.crash_after'), 1_500))
        return never()
      }
      if (faults.hits('store.error_after'))
        throw new Fault('unknown_outcome', 'the connection was lost at the commit')
      return answer
    }
    return {
      kind: 'sqlite',
      run,
      read: async (transaction) => {
        if (!node.alive) return never()
        const fate = this.#spared ? null : faults.next('read')
        if (fate === 'before' || fate === 'after') {
          faults.count('orchestrator.crash_before')
          this.crash(DOWN_MS)
          return never()
        }
        if (fate === 'unknown') faults.count('store.error_before')
        if (fate === 'unknown' || (!this.#spared && faults.hits('store.error_before')))
          throw new Fault('store_unavailable', 'the connection was lost')
        return disk.read(transaction)
      },
      get roundTrips() {
        return disk.roundTrips
      },
      close: () => Promise.resolve(),
    }
  }

  #server(node: Node, engine: Engine, self: string): Server {
    const port = executorPort(engine, { process: self, embedded: false })
    const handler = handlerOf(this.#world, engine)
    const { answers, sometimes } = this.#watch
    const write = engine.write.bind(engine)
    engine.write = async (session, item) => {
      const held = answers.arrived(session, item)
      const answer = await write(session, item)
      answers.write(session, item, answer, held)
      sometimes.write(answer, item.end?.kind, held)
      return answer
    }
    return {
      node,
      listen: (session, tell) => port.listen(session, tell),
      connect: (socket) => handler.connect(socket),
      listed: (request) => answers.listed(request),
      verbs: {
        http: httpVerb(handler, (request) => answers.listed(request)),
        register: (request: RegisterRequest) => port.register(request),
        claim: async (request: ClaimRequest) => {
          answers.claiming(request)
          const answer = await port.claim(request)
          answers.claim(request, answer)
          return answer
        },
        journal: (session: string, run: string, after: number) => port.journal(session, run, after),
        write: (session: string, write: AttemptWrite) => port.write(session, write),
        logs: (session: string, parts: readonly LogPart[]) => port.logs(session, parts),
        renew: (request: RenewRequest) => {
          answers.listed(request)
          return port.renew(request)
        },
        close: (request: CloseRequest) => port.close(request),
        start: async (item: StartItem) => {
          const answer = await engine.start(item)
          answers.start(item.command, answer)
          return answer
        },
        startMany: async (items: readonly StartItem[]) => {
          const all = await engine.startMany(items)
          items.forEach((item, i) => {
            const answer = all[i]
            if (answer) answers.start(item.command, answer)
          })
          return all
        },
        signal: async (command: SignalCommand) => {
          const answer = await engine.signal(command)
          answers.signal(command, answer)
          return answer
        },
        decide: async (command: DecideCommand) => {
          const answer = await engine.decide(command)
          answers.decide(command, answer)
          return answer
        },
        cancel: async (command: CancelCommand) => {
          const answer = await engine.cancel(command)
          answers.cancel(answer)
          return answer
        },
        pause: async (run: string, by: string) => {
          const answer = await engine.pause(run, by, null)
          answers.pause(answer)
          return answer
        },
        resume: (run: string, by: string) => engine.resume(run, by),
        retry: (command: RetryCommand) => engine.retry(command),
        takeFrom: (run: string, by: string) => engine.takeFrom(run, by, 'because'),
        exited: (session: string) =>
          engine.store.run((tx) => endOnEvidence(tx, session, 'its launcher saw it end')),
        setLimit: (key: string, mode: string, value: number | null) =>
          engine.store.run(() => finish(setOperatorLimit(key, mode, value, 1, 'people'))),
        pauseQueue: (ms: number) =>
          engine.store.run(() =>
            finish(putPause('queue', 'default', 'people', null, node.ports.time.now() + ms)),
          ),
        resumeQueue: () => engine.store.run(() => finish(removePause('queue', 'default'))),
        createSchedule: async (made: NewSchedule) =>
          (await engine.act((tx, context) => createSchedule(tx, made, calendar, context))).answer,
        pauseSchedule: async (name: string) =>
          (await engine.act((tx) => pauseSchedule(tx, name, 'people', null))).answer,
        resumeSchedule: async (name: string) =>
          (await engine.act((tx) => resumeSchedule(tx, name, calendar))).answer,
        runSchedule: async (name: string, run: string) =>
          (await engine.act((tx, context) => runNow(tx, name, run, 'people', context))).answer,
        hook: hookVerb(this.#world, engine),
        setTrigger: async (made: NewTrigger) =>
          (await engine.act((tx, context) => setTrigger(tx, made, context))).answer,
        pauseTrigger: async (name: string) =>
          (await engine.act((tx) => pauseTrigger(tx, name, 'people', null))).answer,
        resumeTrigger: async (name: string) =>
          (await engine.act((tx) => resumeTrigger(tx, name))).answer,
        order: (order: Pick<OrderRow, 'id' | 'kind' | 'run' | 'payload'>) =>
          engine.store.run(() => finish(insertOrders([order]))),
      },
    }
  }
}
