// From a claimed run to its settled job: the run gets its slot, what it needs is prepared, one synchronous turn decides
// whether its function is called, and the slot is free when all that it began has settled and its files are gone.
import type { MarkerKind, Room } from '../model/coordinator.ts'
import { moveJob } from '../model/job.ts'
import { launchCheck } from '../model/launch.ts'
import type { ClaimedRun } from '../model/work.ts'
import type { AnyWorkflow } from './authoring/context.ts'
import type { Core, Drive, Session, Work } from './core.ts'
import { isFenced, workflowsOf } from './core.ts'
import type { Left } from './driving/driver.ts'
import type { Prepared } from './preparing/preparing.ts'
import { needsPreparation, NOTHING, prepare } from './preparing/preparing.ts'
import type { Behind } from './preparing/clean-up.ts'
import { cleanUp } from './preparing/clean-up.ts'
import { Isolated } from './processes/isolated.ts'
import { Launched } from './pods/launched.ts'
import { makeDriver } from './driving/run-driver.ts'
import { handBack, pages, send } from './wire.ts'
import { callWorkflow } from './workflow-call.ts'
import { workflowRetry } from './workflow-retry.ts'

/** An attempt that this executor has taken, and the store's clock less this process's monotonic clock. */
interface Taken {
  readonly of: Session
  readonly job: Drive
  readonly work: Work
  readonly storeOffset: number
}

/** Takes a run that a claim brought: it has a slot out of the claim's reservation from this turn on. */
export const take = (
  core: Core,
  of: Session,
  room: Room,
  claimed: ClaimedRun,
  storeOffset: number,
): void => {
  const { coordinator, options, workflows } = core
  const { run, attempt, version } = claimed
  const workflow = workflows.get(`${claimed.workflow}@${version}`)
  if (!workflow) {
    options.ports.log.warn('claim.unknown_workflow', { run, workflow: claimed.workflow, version })
    return void handBack(core, of, claimed, 'unknown_workflow')
  }
  const earlier = coordinator.latest(run)
  // a process that is going is gone within its grace
  const isGoing = earlier?.left === true && earlier.work?.isolated !== null
  if (earlier && earlier.bodies > 0 && !isGoing)
    return void handBack(core, of, claimed, 'unsettled_here')
  const { slotClass } = workflow.definition
  const job = coordinator.admit(room, run, attempt, slotClass, options.ports.time.now())
  const work = workOf(core, of, job, claimed, workflow, storeOffset)
  job.work = work
  const taken: Taken = { of, job, work, storeOffset }
  watch(core, taken)
  if (!earlier) return begin(core, taken)
  // its earlier attempt here has ended in the store, but that answer may still be on its way: begin when it has left
  void earlier.work?.driver.settled.then(() => begin(core, taken))
}

const workOf = (
  core: Core,
  of: Session,
  job: Drive,
  claimed: ClaimedRun,
  workflow: AnyWorkflow,
  storeOffset: number,
): Work => {
  const { coordinator, options, turns } = core
  const { slotClass } = job
  const retryInMs = (error: unknown): number | undefined =>
    workflowRetry(workflow, claimed, error, options.ports.random.next())
  const isolated = elsewhere(core, workflow)
  const driver = makeDriver({
    // the journal is replayed where the function runs
    claimed: isolated ? { ...claimed, journal: [], entries: 0, waits: [] } : claimed,
    job,
    ports: options.ports,
    turns,
    write: (write) => send(core, of, write, () => driver.over),
    page: (after) => pages(core, of, claimed.run, after),
    storeOffset,
    rivals: () => (coordinator.isFull(slotClass) ? workflowsOf(core, [slotClass]) : []),
    maxChainDepth: options.maxChainDepth ?? 50,
    retryInMs,
    ...(isolated ? { relay: isolated } : {}),
  })
  return {
    claimed,
    workflow,
    driver,
    log: core.logs.open(of.id, claimed.run, claimed.attempt, storeOffset),
    isolated,
    retryInMs,
    directory: null,
    held: false,
    prepared: undefined,
    timedOut: null,
  }
}

/** What drives its attempts where that is not this process. */
const elsewhere = (core: Core, { definition }: AnyWorkflow): Isolated | Launched | null => {
  const { launcher, processes } = core.options
  if (definition.isolation === 'process' && processes) return new Isolated(core, processes)
  if (definition.isolation === 'job' && launcher) return new Launched(core, launcher)
  return null
}

/** Its limits of time, and what follows when it has left and when it has settled. */
const watch = (core: Core, taken: Taken): void => {
  const { of, job, work, storeOffset } = taken
  const { claimed, driver } = work
  const { log, time, timers } = core.options.ports
  const { run, attempt } = claimed
  const cancels: (() => void)[] = []
  const limit = (at: number | null, passed: () => void): void => {
    if (at !== null)
      cancels.push(timers.after(Math.max(0, at - (time.mono() + storeOffset)), passed))
  }
  limit(claimed.deadline, () => driver.stop('time_limit', 'the run’s total limit has passed'))
  limit(claimed.attemptDeadline, () =>
    work.timedOut
      ? work.timedOut()
      : driver.stop('attempt_deadline', 'the attempt’s limit has passed'),
  )
  void driver.left.then((left) => {
    for (const cancel of cancels) cancel()
    if (left.kind === 'handed_on') log.info('attempt.handed_on', { run, attempt })
    if (left.kind === 'stale') log.info('attempt.stale', { run, attempt })
    if (left.kind === 'dropped') log.info('attempt.dropped', { run, attempt, reason: left.reason })
  })
  void driver.settled.then((left) => settle(core, of, job, work, left))
}

/** Without anything to prepare it is launched in this turn. */
const begin = (core: Core, taken: Taken): void => {
  const { of, job, work } = taken
  // what was told to stop while it waited ends by itself
  if (job.phase !== 'reserved') return
  // what is to be there for a pod is prepared by the pod
  const { definition } = work.workflow
  if (definition.isolation === 'job' || !needsPreparation(work.workflow))
    return launch(core, taken, NOTHING)
  void prepare(core, of, job, work).then((prepared) => {
    if (prepared) launch(core, taken, prepared)
  })
}

/** The launch check and the call of the function, in one turn. */
const launch = (core: Core, { of, job, work, storeOffset }: Taken, { context }: Prepared): void => {
  const { driver, claimed } = work
  const verdict = launchCheck(job, {
    holder: !of.over && !isFenced(of, claimed.run) && !driver.ending,
    context,
    now: core.options.ports.time.mono() + storeOffset,
    deadline: claimed.deadline,
    attemptDeadline: claimed.attemptDeadline,
    failedClosed: core.coordinator.failedClosed,
  })
  if (verdict.launch) {
    const isPrepared = job.phase === 'preparing'
    moveJob(job, 'launch', 'launching')
    driver.start(() =>
      work.isolated
        ? work.isolated.drive(of, work, context, storeOffset)
        : callWorkflow(core.options, of.answer, work, context),
    )
    moveJob(job, 'run', 'running')
    if (isPrepared) driver.says('launched')
    return
  }
  const { because, note } = verdict
  if (because === 'stale' || because === 'time_limit') driver.stop(because, note)
  else if (because === 'attempt_deadline') {
    const late = Object.assign(new Error(note), { code: because })
    driver.fail(because, late, work.retryInMs(late))
  } else if (because === 'failed_closed') driver.giveBack(because)
}

const MARKERS: Readonly<Record<'start' | 'result', MarkerKind>> = {
  start: 'start_not_saved',
  result: 'result_not_saved',
}

/** All that it began has settled: what it took and its files go, and with them its slot, unless something stays behind. */
const settle = (core: Core, of: Session, job: Drive, work: Work, left: Left): void => {
  const unsaved: Behind | null =
    left.kind === 'dropped' && left.unsaved
      ? { kind: MARKERS[left.unsaved], note: left.reason }
      : null
  // without an end in the store its files stay for recovery
  const files = left.kind === 'dropped' ? null : work.directory
  const isCleaned = work.held || files !== null
  // what is queued by a write of its own may have been looked for before the answer of that write came
  const isRunFree = left.kind !== 'ended' || left.status === 'queued' || job.lingered || isCleaned
  // the run is handed back, never held by the marker; a claim here does not get it again
  const gone = (behind: Behind | null): void => {
    leave(core, job, isRunFree, behind ?? undefined)
    if (unsaved) void handBack(core, of, work.claimed, unsaved.kind, job.reason)
  }
  if (!isCleaned) return gone(unsaved)
  void cleanUp(core, of, work, files).then((behind) => gone(worse(behind, unsaved)))
}

/** What keeps nothing new from being taken is the marker; the other is said with it. */
const worse = (behind: Behind | null, unsaved: Behind | null): Behind | null => {
  if (behind === null || unsaved === null) return behind ?? unsaved
  const note = `${behind.note}; ${unsaved.kind}: ${unsaved.note}`
  return behind.kind === 'unreleased' ? { kind: behind.kind, note } : { ...unsaved, note }
}

const leave = (core: Core, job: Drive, isRunFree: boolean, marker?: Behind): void => {
  const { log, time } = core.options.ports
  const { run, attempt } = job
  if (marker) log.warn('executor.marked', { run, attempt, ...marker })
  core.coordinator.settle(job, marker && { ...marker, at: time.now() })
  // a marker is shown at once, not with the next renewal
  if (marker) core.session?.renewals.soon()
  core.wakePoll?.()
  core.wider?.(isRunFree)
  core.settledOne?.()
}
