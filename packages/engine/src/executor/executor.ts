// An executor: claims runs and drives them within its slots, keeps its session's lease, and lets go of everything when it
// stops. It is the single owner, in memory, of its jobs and slots; one synchronous turn decides.
import { codes } from '../kernel/codes.ts'
import type { ErrorCode } from '../kernel/codes.ts'
import { inWords } from '../kernel/duration.ts'
import { errorOf, Fault, FatalError, LeaseholdError, StaleAttemptError } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import type { Ports } from '../kernel/ports.ts'
import { jittered } from '../kernel/random.ts'
import { sleep } from '../kernel/timers.ts'
import { backoffMs, triesLeft } from '../model/retry.ts'
import type {
  AttemptWrite,
  ClaimAnswer,
  ClaimedRun,
  ExecutorPort,
  LetGo,
  RegisterOk,
  RenewAnswer,
  RenewRequest,
  WriteAnswer,
} from '../model/work.ts'
import { heldDigest, PROTOCOL_VERSION } from '../model/work.ts'
import { codecOf } from './codec.ts'
import type { Driver, Left, Returned } from './driver.ts'
import { makeDriver } from './driver.ts'
import { StepError } from './failure.ts'
import { payloadOf } from './payload.ts'
import type { Renewals, Sent } from './renewals.ts'
import { elapsedSince, startRenewals } from './renewals.ts'
import { checked } from './schema.ts'
import type { Slots } from './slots.ts'
import { makeSlots } from './slots.ts'
import type { Turns } from './turns.ts'
import { makeTurns } from './turns.ts'
import type { AroundStep } from './environment.ts'
import { Continuation, makeContext } from './verbs.ts'
import type { AnyWorkflow } from './context.ts'
import { definitionsOf } from './workflow.ts'

export interface ExecutorOptions {
  readonly port: ExecutorPort
  readonly ports: Ports
  readonly workflows: readonly AnyWorkflow[]
  /** Queues to claim from. Default: each workflow's own. */
  readonly queues?: readonly string[]
  readonly labels?: readonly string[]
  /** Runs at once by slot class. Default `{ default: 10 }`. */
  readonly slots?: Readonly<Record<string, number>>
  readonly build?: string
  readonly host?: string
  readonly pid?: number
  /** How long `stop` lets steps finish. Default 25 s. */
  readonly drainMs?: number
  /** How long aborted bodies may take to settle. Default 2 s. */
  readonly abortGraceMs?: number
  /** When the supervisor kills the process after its signal; what stopping may take must fit. Where it is known, give it. */
  readonly killLimitMs?: number
  /** Steps that one claim drives before a waiting run gets the slot. Default 50; 0 lets go after each. */
  readonly maxChainDepth?: number
  /** How long a claim waits for work at the engine. Default 20 s. */
  readonly claimWaitMs?: number
  /** Renewals from elsewhere than the main loop, as from a thread of their own. */
  readonly renewals?: typeof startRenewals
  readonly aroundStep?: AroundStep
  /** Hears why the executor has stopped by itself: its server will not have it again, or a mistake of our own. */
  readonly onStopped?: (why: Error) => void
}

export type ExecutorState = 'idle' | 'starting' | 'running' | 'draining' | 'stopped'

export interface ExecutorStatus {
  readonly state: ExecutorState
  readonly session: string | null
  readonly slots: readonly {
    readonly class: string
    readonly limit: number
    readonly used: number
    readonly reserved: number
  }[]
  readonly jobs: readonly {
    readonly run: string
    readonly workflow: string
    readonly attempt: number
    readonly phase: 'driving' | 'ending' | 'unsettled'
    readonly since: number
    readonly bodies: number
    readonly firstReason: string | null
    readonly saved: boolean
  }[]
  readonly markers: readonly string[]
  readonly unreleased: readonly string[]
  readonly pollInProgress: boolean
  readonly lastRenewalAt: number | null
  readonly fenced: boolean
  /** Why it has stopped by itself, in words; null where it was told to stop, or works. */
  readonly stoppedBecause: string | null
}

export interface Executor {
  readonly state: ExecutorState
  start(): Promise<void>
  /** Drains, hands back what is left, closes the session. A second call gets the first one's promise. */
  stop(options?: { readonly exiting?: boolean }): Promise<void>
  status(): ExecutorStatus
  /** Changes a class's limit; work in progress is never stopped by it. */
  setSlots(slotClass: string, limit: number): void
}

interface Job {
  readonly claimed: ClaimedRun
  readonly workflow: AnyWorkflow
  readonly driver: Driver
  readonly since: number
  readonly cancels: (() => void)[]
  left: Left | null
}

interface Session {
  readonly id: string
  readonly answer: RegisterOk
  readonly renewals: Renewals
  readonly unlisten: () => void
  lastSent: Sent
  lastRenewalAt: number | null
  claimNo: number
  /** The highest claim whose answer has come. */
  received: number
  letGo: LetGo[]
  digestAt: number
  wantsList: boolean
  fenced: boolean
  over: boolean
}

const CLOSE_MS = 2_000
const DRAIN_MS = 25_000
const ABORT_GRACE_MS = 2_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 2_000

export const makeExecutor = (options: ExecutorOptions): Executor => {
  const { port, ports, drainMs = DRAIN_MS, abortGraceMs = ABORT_GRACE_MS } = options
  mustFitBefore(options.killLimitMs, drainMs, abortGraceMs)
  const { time, timers, random, ids, log } = ports
  const definitions = definitionsOf(options.workflows)
  const workflows = new Map(options.workflows.map((each) => [`${each.name}@${each.version}`, each]))
  const slots: Slots = makeSlots(options.slots ?? { default: 10 })
  for (const { definition } of options.workflows) slots.ensure(definition.slotClass)
  const turns: Turns = makeTurns(timers)
  const jobs = new Map<string, Job>()
  const stopping = new AbortController()

  let state: ExecutorState = 'idle'
  let session: Session | null = null
  let stopped: Promise<void> | null = null
  let starting: Promise<Session> | null = null
  const isStarting = (): boolean => state === 'starting'
  const isRunning = (): boolean => state === 'running'
  let polling: Promise<void> | null = null
  let pollInProgress = false
  let stoppedBecause: string | null = null
  let wakePoll: (() => void) | null = null
  let roomier: (() => void) | null = null
  let cancelFence: (() => void) | null = null
  let warnedUnknownCall = false

  // ── session ────────────────────────────────────────────────────────────────────────────────────

  const register = async (): Promise<Session> => {
    const id = ids.next('ses')
    // the lease runs from when the store answers, which is after this
    const sent: Sent = { wall: time.now(), mono: time.mono() }
    const answer = await port.register({
      protocol: PROTOCOL_VERSION,
      session: id,
      build: options.build ?? 'unknown',
      host: options.host ?? 'localhost',
      pid: options.pid ?? 0,
      queues: options.queues ?? [],
      labels: options.labels ?? [],
      capacity: slots.capacity(),
      definitions,
    })
    if (!answer.ok) throw errorOf(answer)
    const made: Session = {
      id,
      answer,
      renewals: (options.renewals ?? startRenewals)({
        ports,
        session: id,
        renewMs: answer.renewMs,
        send: (request) => port.renew(request),
        say: () => renewal(made),
        heard: (heard, request, at) => {
          try {
            renewed(made, heard, request, at)
          } catch (error) {
            // an answer that cannot be read is no answer: the lease is not trusted for it
            log.warn('renewal.unreadable', { session: id, error })
          }
        },
      }),
      unlisten: port.listen(id, (told) =>
        jobOf(told.run, told.attempt)?.driver.told(told.directive, told.note),
      ),
      lastSent: sent,
      lastRenewalAt: null,
      claimNo: 0,
      received: 0,
      letGo: [],
      digestAt: sent.mono,
      wantsList: false,
      fenced: false,
      over: false,
    }
    return made
  }

  const jobOf = (run: string, attempt: number): Job | undefined => {
    const job = jobs.get(run)
    return job && job.claimed.attempt === attempt && job.left === null ? job : undefined
  }

  const held = (): { run: string; attempt: number }[] =>
    [...jobs.values()]
      .filter((job) => job.left === null)
      .map(({ claimed }) => ({ run: claimed.run, attempt: claimed.attempt }))

  const renewal = (of: Session): RenewRequest => {
    const now = time.mono()
    const digest = now - of.digestAt >= of.answer.leaseMs
    if (digest) of.digestAt = now
    return {
      session: of.id,
      draining: state === 'draining',
      status: JSON.stringify(executor.status()),
      letGo: of.letGo,
      ...(of.wantsList
        ? { held: { claim: of.received, runs: held() } }
        : digest
          ? { held: { claim: of.received, digest: heldDigest(held()) } }
          : {}),
    }
  }

  const renewed = (of: Session, answer: RenewAnswer, request: RenewRequest, sent: Sent): void => {
    if (of.over || session !== of) return
    if (!answer.ok) {
      log.warn('session.lost', { session: of.id, message: answer.message })
      void loseSession(of, answer.message)
      return
    }
    const pending = new Set(answer.pending.map(({ run, attempt }) => `${run}#${attempt}`))
    of.lastSent = sent
    of.lastRenewalAt = time.now()
    of.letGo = of.letGo.filter(
      (each) => !request.letGo.includes(each) || pending.has(`${each.run}#${each.attempt}`),
    )
    of.wantsList = answer.wantsList
    if (answer.wantsList) of.renewals.soon()
    for (const told of answer.told)
      jobOf(told.run, told.attempt)?.driver.told(told.directive, told.note)
    if (of.fenced && of.letGo.length === 0) {
      of.fenced = false
      log.info('session.trusted_again', { session: of.id })
      wakePoll?.()
    } else if (of.fenced)
      // what was listed is applied after the answer: ask again when it may have been
      timers.after(FIRST_RETRY_MS, () => of.renewals.soon())
  }

  /** The session was ended by the engine: what it held is somebody else's. Drop it all and register anew. */
  const loseSession = async (of: Session, why: string): Promise<void> => {
    if (of.over) return
    closeLocally(of)
    for (const job of jobs.values()) job.driver.drop(`the session was ended: ${why}`)
    if (state !== 'running') return
    session = null
    let wait = FIRST_RETRY_MS
    while (state === 'running') {
      try {
        const made = await register()
        if (!isRunning()) return await close(made, [])
        session = made
        log.info('session.registered', { session: session.id, after: of.id })
        wakePoll?.()
        return
      } catch (error) {
        if (isFinalNo(error)) return stopForGood('executor.refused', error)
        log.warn('session.not_registered', { error })
        await sleep(timers, jittered(random, wait), stopping.signal)
        wait = Math.min(LAST_RETRY_MS, wait * 2)
      }
    }
  }

  /** It would stay up idle and look healthy: it stops instead, and says why. */
  const stopForGood = (event: string, error: unknown): void => {
    log.error(event, { error })
    stoppedBecause ??= messageOf(error)
    void executor.stop()
    options.onStopped?.(error instanceof Error ? error : new Error(messageOf(error)))
  }

  const closeLocally = (of: Session): void => {
    of.over = true
    of.renewals.stop()
    of.unlisten()
  }

  /** Stop trusting a lease before anyone else can be given its runs (RUN-08). */
  const watchLease = (): void => {
    const of = session
    if (
      of &&
      !of.over &&
      !of.answer.embedded &&
      !of.fenced &&
      elapsedSince(of.lastSent, time) >= 0.8 * of.answer.leaseMs
    ) {
      of.fenced = true
      log.warn('session.fenced', {
        session: of.id,
        leaseMs: of.answer.leaseMs,
        held: held().length,
      })
      for (const job of jobs.values()) {
        if (job.left !== null) continue
        of.letGo.push({ run: job.claimed.run, attempt: job.claimed.attempt, reason: 'lease_lost' })
        job.driver.stop('lease_lost', 'the lease could not be renewed in time')
        job.driver.drop('lease_lost')
      }
      of.renewals.soon()
    }
    if (state === 'running' || state === 'draining')
      cancelFence = timers.after(Math.max(50, (of?.answer.leaseMs ?? 30_000) / 20), watchLease)
  }

  // ── claiming ───────────────────────────────────────────────────────────────────────────────────

  const poll = async (): Promise<void> => {
    let wait = FIRST_RETRY_MS
    while (state === 'running') {
      const of = session
      const room = slots.reserve()
      if (!of || of.fenced || of.over || !room) {
        if (room) slots.release(room)
        await new Promise<void>((resolve) => {
          wakePoll = resolve
        })
        wakePoll = null
        continue
      }
      const claim = of.claimNo + 1
      of.claimNo = claim
      let answer: ClaimAnswer | null = null
      pollInProgress = true
      // a claim that waits for the classes with room ends its wait when another class gets some
      const hurry = new AbortController()
      if (room.partial)
        roomier = () => {
          if (
            slots
              .status()
              .some((each) => !room.classes.includes(each.class) && slots.free(each.class) > 0)
          )
            hurry.abort()
        }
      let again = false
      // an answer that did not come is asked for again under its number, until it has come or the session is over
      while (answer === null && !of.over && state === 'running') {
        try {
          answer = await port.claim(
            {
              session: of.id,
              claim,
              most: room.most,
              except: [...jobs.values()]
                .filter((job) => job.left !== null || job.driver.bodies > 0)
                .map(({ claimed }) => claimed.run),
              waitMs: again || hurry.signal.aborted ? 0 : (options.claimWaitMs ?? 20_000),
              ...(room.partial ? { only: workflowsOf(room.classes) } : {}),
            },
            room.partial ? AbortSignal.any([stopping.signal, hurry.signal]) : stopping.signal,
          )
          wait = FIRST_RETRY_MS
        } catch (error) {
          again = true
          log.debug('claim.failed', { session: of.id, claim, error })
          await sleep(timers, jittered(random, wait), stopping.signal)
          wait = Math.min(LAST_RETRY_MS, wait * 2)
        }
      }
      pollInProgress = false
      roomier = null
      slots.release(room)
      if (answer === null) continue
      if (!answer.ok) {
        if (answer.code === 'session_ended') await loseSession(of, answer.message)
        else await sleep(timers, jittered(random, wait), stopping.signal)
        continue
      }
      of.received = Math.max(of.received, claim)
      const offset = answer.now - time.mono()
      for (const run of answer.runs) {
        if (of.over || of !== session || of.fenced)
          of.letGo.push({ run: run.run, attempt: run.attempt, reason: 'lease_lost' })
        else if (state !== 'running') void handBack(of, run, 'shutdown')
        else beginAfter(of, run, offset)
      }
    }
  }

  const workflowsOf = (classes: readonly string[]): string[] =>
    options.workflows
      .filter((each) => classes.includes(each.definition.slotClass))
      .map((each) => each.name)

  /** One request, no retry, never an error: what fails is listed in the next renewals. */
  const handBack = async (
    of: Session,
    { run, attempt }: { run: string; attempt: number },
    reason: string,
  ): Promise<void> => {
    try {
      await port.write(of.id, { run, attempt, entries: [], end: { kind: 'hand_back', reason } })
    } catch (error) {
      if (error instanceof Fault && error.detail['unknownCall'] === true) {
        if (!warnedUnknownCall) log.warn('hand_back.unknown', { run, attempt, error })
        else log.debug('hand_back.unknown', { run, attempt })
        warnedUnknownCall = true
      } else log.warn('hand_back.failed', { run, attempt, reason, error })
      of.letGo.push({ run, attempt, reason })
    }
  }

  // ── driving ────────────────────────────────────────────────────────────────────────────────────

  /** The run's earlier attempt here has ended in the store, but its answer may still be on its way: begin when it has left. */
  const beginAfter = (of: Session, claimed: ClaimedRun, storeOffset: number): void => {
    const earlier = jobs.get(claimed.run)
    if (!earlier) return begin(of, claimed, storeOffset)
    if (earlier.driver.bodies > 0) return void handBack(of, claimed, 'unsettled_here')
    void earlier.driver.settled.then(() => {
      if (of.over || of.fenced || state !== 'running') void handBack(of, claimed, 'shutdown')
      else begin(of, claimed, storeOffset)
    })
  }

  const begin = (of: Session, claimed: ClaimedRun, storeOffset: number): void => {
    const workflow = workflows.get(`${claimed.workflow}@${claimed.version}`)
    if (!workflow) {
      log.warn('claim.unknown_workflow', {
        run: claimed.run,
        workflow: claimed.workflow,
        version: claimed.version,
      })
      void handBack(of, claimed, 'unknown_workflow')
      return
    }
    const { slotClass } = workflow.definition
    slots.take(slotClass)
    const driver = makeDriver({
      claimed,
      ports,
      turns,
      write: (write) => send(of, write, () => driver.over),
      page: (after) => pages(of, claimed.run, after),
      storeOffset,
      rivals: () => (slots.full(slotClass) ? workflowsOf([slotClass]) : []),
      maxChainDepth: options.maxChainDepth ?? 50,
      retryInMs: (error) => workflowRetry(workflow, claimed, error, random.next()),
    })
    const job: Job = { claimed, workflow, driver, since: time.now(), cancels: [], left: null }
    jobs.set(claimed.run, job)
    const limit = (
      at: number | null,
      reason: 'time_limit' | 'attempt_deadline',
      note: string,
    ): void => {
      if (at !== null)
        job.cancels.push(
          timers.after(Math.max(0, at - (time.mono() + storeOffset)), () =>
            driver.stop(reason, note),
          ),
        )
    }
    limit(claimed.deadline, 'time_limit', 'the run’s total limit has passed')
    limit(claimed.attemptDeadline, 'attempt_deadline', 'the attempt’s limit has passed')
    void driver.left.then((left) => {
      job.left = left
      for (const cancel of job.cancels) cancel()
      if (left.kind === 'stale')
        log.info('attempt.stale', { run: claimed.run, attempt: claimed.attempt })
      if (left.kind === 'dropped')
        log.info('attempt.dropped', {
          run: claimed.run,
          attempt: claimed.attempt,
          reason: left.reason,
        })
    })
    void driver.settled.then(() => {
      if (jobs.get(claimed.run) === job) jobs.delete(claimed.run)
      slots.put(slotClass)
      wakePoll?.()
      roomier?.()
      settledOne?.()
    })
    driver.start(() => call(workflow, driver, of))
  }
  let settledOne: (() => void) | null = null

  const call = async (workflow: AnyWorkflow, driver: Driver, of: Session): Promise<Returned> => {
    const { answer } = of
    const { claimed } = driver
    const codec = codecOf(workflow.options.codec)
    const input: unknown = await checked(
      workflow.options.input,
      codec.decode(claimed.input),
      `the input of ${workflow.name}`,
      'invalid_input',
    ).catch((error: unknown) => {
      driver.fail('invalid_input', error)
      throw error
    })
    const ctx = makeContext({
      driver,
      ports,
      codec,
      begun: { step: null },
      generation: answer.generation,
      stepRetry: workflow.options.stepRetry ?? {},
      payloadMax: answer.limits.payloadMax,
      limitGraceMs: answer.limits.limitGraceMs,
      ...(options.aroundStep ? { around: options.aroundStep } : {}),
    })
    const value: unknown = await workflow.handler(ctx, input)
    // the attempt has ended meanwhile: what comes back now is not its result, and is not even looked at (EX-12)
    if (driver.over) return { kind: 'value', output: null }
    if (value instanceof Continuation)
      return { kind: 'continue', input: value.input, runId: ids.next('run') }
    const what = `the result of ${workflow.name}`
    return {
      kind: 'value',
      output: payloadOf(
        codec,
        workflow.options.output
          ? await checked(workflow.options.output, value, what, 'invalid_output')
          : value,
        answer.limits.payloadMax,
        what,
      ),
    }
  }

  /** Sends a write until it is answered: it can be repeated, since the store knows its own attempt's writes. */
  const send = async (
    of: Session,
    write: AttemptWrite,
    over: () => boolean,
  ): Promise<WriteAnswer> => {
    let wait = FIRST_RETRY_MS
    for (;;) {
      if (of.over || over())
        throw new LeaseholdError('session_ended', 'the session is over', { session: of.id })
      try {
        return await port.write(of.id, write)
      } catch (error) {
        if (error instanceof Fault && !error.retryable) throw error
        log.debug('write.failed', { run: write.run, attempt: write.attempt, error })
      }
      await sleep(timers, jittered(random, wait))
      wait = Math.min(LAST_RETRY_MS, wait * 2)
    }
  }

  const pages = async (of: Session, run: string, after: number) => {
    let wait = FIRST_RETRY_MS
    for (;;) {
      if (of.over)
        throw new LeaseholdError('session_ended', 'the session is over', { session: of.id })
      try {
        return await port.journal(of.id, run, after)
      } catch (error) {
        // somebody else holds the run: what its journal says is not for this attempt
        if (error instanceof StaleAttemptError) throw error
        log.debug('journal.failed', { run, after, error })
      }
      await sleep(timers, jittered(random, wait))
      wait = Math.min(LAST_RETRY_MS, wait * 2)
    }
  }

  // ── stopping ───────────────────────────────────────────────────────────────────────────────────

  const drain = async (exiting: boolean): Promise<void> => {
    const of = session
    stopping.abort()
    wakePoll?.()
    for (const job of jobs.values()) job.driver.drain()
    const deadline = time.mono() + drainMs
    await within(drainMs, Promise.all([allLeft(), polling]))
    const rest = [...jobs.values()].filter((job) => job.left === null)
    if (rest.length > 0) {
      log.warn('executor.drain_limit', {
        held: rest.map(({ claimed }) => claimed.run),
        pollInProgress,
        overMs: time.mono() - deadline,
      })
      for (const job of rest) job.driver.stop('shutdown', 'the executor is shutting down')
    }
    if ([...jobs.values()].some((job) => job.driver.bodies > 0))
      await within(abortGraceMs, allSettled())
    if (of && !of.over) {
      const unsettled = exiting
        ? []
        : [...jobs.values()]
            .filter((job) => job.driver.bodies > 0 && job.left === null)
            .map(({ claimed }) => claimed.run)
      for (const job of jobs.values())
        if (!unsettled.includes(job.claimed.run)) job.driver.drop('the session is closed')
      await close(of, unsettled)
    }
    cancelFence?.()
    state = 'stopped'
  }

  const close = async (of: Session, unsettled: readonly string[]): Promise<void> => {
    const closing = port.close({
      session: of.id,
      reason: 'stopped',
      ...(unsettled.length > 0 ? { except: unsettled } : {}),
    })
    const told = closing.then(
      (answer) => (answer.ok ? null : answer.message),
      (error: unknown) => messageOf(error),
    )
    const answer = await within(CLOSE_MS, told)
    const bounded = answer === undefined ? `no answer within ${inWords(CLOSE_MS)}` : answer
    if (bounded !== null) log.warn('session.not_closed', { session: of.id, message: bounded })
    closeLocally(of)
    if (unsettled.length > 0)
      void allSettled().then(() =>
        port
          .close({ session: of.id, reason: 'settled' })
          .catch((error: unknown) => log.warn('session.not_closed', { session: of.id, error })),
      )
  }

  /** What a promise comes to, or undefined once `ms` have passed; its timer does not outlive it, nor keep a program alive. */
  const within = async <T>(ms: number, promise: Promise<T>): Promise<T | undefined> => {
    const come = new AbortController()
    try {
      return await Promise.race([promise, sleep(timers, ms, come.signal).then(() => undefined)])
    } finally {
      come.abort()
    }
  }

  const allLeft = (): Promise<unknown> =>
    Promise.all([...jobs.values()].map((job) => job.driver.left))
  const allSettled = async (): Promise<void> => {
    while (jobs.size > 0)
      await new Promise<void>((resolve) => {
        settledOne = resolve
      })
  }

  const executor: Executor = {
    get state() {
      return state
    },
    async start() {
      if (state !== 'idle')
        throw new LeaseholdError(
          'draining',
          `the executor is ${state}; make a new one to start again`,
          { state },
        )
      state = 'starting'
      starting = register()
      try {
        session = await starting
      } catch (error) {
        if (isStarting()) state = 'idle'
        throw error
      }
      if (!isStarting())
        throw new LeaseholdError('draining', 'the executor was stopped while it registered')
      state = 'running'
      watchLease()
      polling = poll().catch((error: unknown) => stopForGood('executor.poll_failed', error))
    },
    stop({ exiting = true } = {}) {
      if (stopped) return stopped
      if (state === 'idle') {
        state = 'stopped'
        stopped = Promise.resolve()
        return stopped
      }
      const registered = state === 'starting' ? starting : null
      state = 'draining'
      // a registration under way is waited for, so that its session is closed and not left to its lease
      stopped = (registered ?? Promise.resolve()).then(
        () => drain(exiting),
        () => {
          state = 'stopped'
        },
      )
      return stopped
    },
    status: () => ({
      state,
      session: session?.id ?? null,
      slots: slots.status(),
      jobs: [...jobs.values()].map((job) => ({
        run: job.claimed.run,
        workflow: job.claimed.workflow,
        attempt: job.claimed.attempt,
        phase:
          job.left !== null
            ? ('unsettled' as const)
            : job.driver.firstReason !== null
              ? ('ending' as const)
              : ('driving' as const),
        since: job.since,
        bodies: job.driver.bodies,
        firstReason: job.driver.firstReason,
        saved: job.driver.reasonSaved,
      })),
      markers: [],
      unreleased: [],
      pollInProgress,
      lastRenewalAt: session?.lastRenewalAt ?? null,
      fenced: session?.fenced ?? false,
      stoppedBecause,
    }),
    setSlots(slotClass, limit) {
      slots.set(slotClass, limit)
      wakePoll?.()
      roomier?.()
    },
  }
  return executor
}

/** Refusals of a registration that another try may not meet. */
const PASSING: readonly ErrorCode[] = ['draining', 'session_ended']

/** Whether a server has said no in a way that no repeat of the registration changes. */
const isFinalNo = (error: unknown): boolean =>
  error instanceof LeaseholdError &&
  codes[error.code].kind === 'refusal' &&
  !PASSING.includes(error.code)

/** A supervisor that kills before the executor has let go would leave its runs to their lease (EX-20). */
const mustFitBefore = (
  killLimitMs: number | undefined,
  drainMs: number,
  abortGraceMs: number,
): void => {
  if (killLimitMs === undefined || drainMs + abortGraceMs < killLimitMs) return
  throw new LeaseholdError(
    'invalid_config',
    `stopping may take ${inWords(drainMs + abortGraceMs)} (drain limit ${inWords(drainMs)}, abort grace ${inWords(abortGraceMs)}), and the process is killed after ${inWords(killLimitMs)}; lower drainMs, or raise the kill limit of the supervisor above the sum`,
    { drainMs, abortGraceMs, killLimitMs },
  )
}

/** Errors that no try mends: our own refusals, and what an author has called final, in the function or in a step of it. */
const isFinal = (error: unknown): boolean => {
  try {
    if (error instanceof LeaseholdError) return error.code !== 'child_failed'
    return (
      error instanceof FatalError || (error instanceof StepError && error.name === 'FatalError')
    )
  } catch {
    return true // it cannot even be looked at
  }
}

/** The workflow's own next try for an error, or undefined when there is none. */
const workflowRetry = (
  workflow: AnyWorkflow,
  claimed: ClaimedRun,
  error: unknown,
  chance: number,
): number | undefined => {
  const policy = workflow.options.retry
  if (!policy || isFinal(error)) return undefined
  return triesLeft(policy, 1, claimed.failures + 1)
    ? backoffMs(policy, claimed.failures + 1, chance)
    : undefined
}
