// From a claimed run to its settled job: the run gets its slot, its function is called when its turn has come, and the slot
// is free when all that it began has settled.
import type { Room } from '../model/coordinator.ts'
import { moveJob } from '../model/job.ts'
import type { ClaimedRun } from '../model/work.ts'
import type { AnyWorkflow } from './context.ts'
import type { Core, Drive, Session, Work } from './core.ts'
import { workflowsOf } from './core.ts'
import { makeDriver } from './run-driver.ts'
import { handBack, pages, send } from './wire.ts'
import { callWorkflow } from './workflow-call.ts'
import { workflowRetry } from './workflow-retry.ts'

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
  if (earlier && earlier.bodies > 0) return void handBack(core, of, claimed, 'unsettled_here')
  const { slotClass } = workflow.definition
  const job = coordinator.admit(room, run, attempt, slotClass, options.ports.time.now())
  const work = workOf(core, of, job, claimed, workflow, storeOffset)
  job.work = work
  watch(core, job, work, storeOffset)
  if (!earlier) return launch(core, of, job, work)
  // its earlier attempt here has ended in the store, but that answer may still be on its way: begin when it has left
  void earlier.work?.driver.settled.then(() => launch(core, of, job, work))
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
  const driver = makeDriver({
    claimed,
    job,
    ports: options.ports,
    turns,
    write: (write) => send(core, of, write, () => driver.over),
    page: (after) => pages(core, of, claimed.run, after),
    storeOffset,
    rivals: () => (coordinator.isFull(slotClass) ? workflowsOf(core, [slotClass]) : []),
    maxChainDepth: options.maxChainDepth ?? 50,
    retryInMs: (error) => workflowRetry(workflow, claimed, error, options.ports.random.next()),
  })
  return { claimed, workflow, driver }
}

/** Its limits of time, and what follows when it has left and when it has settled. */
const watch = (core: Core, job: Drive, { claimed, driver }: Work, storeOffset: number): void => {
  const { coordinator, options } = core
  const { log, time, timers } = options.ports
  const { run, attempt } = claimed
  const cancels: (() => void)[] = []
  const limit = (
    at: number | null,
    reason: 'time_limit' | 'attempt_deadline',
    note: string,
  ): void => {
    if (at === null) return
    const ms = Math.max(0, at - (time.mono() + storeOffset))
    cancels.push(timers.after(ms, () => driver.stop(reason, note)))
  }
  limit(claimed.deadline, 'time_limit', 'the run’s total limit has passed')
  limit(claimed.attemptDeadline, 'attempt_deadline', 'the attempt’s limit has passed')
  void driver.left.then((left) => {
    for (const cancel of cancels) cancel()
    if (left.kind === 'stale') log.info('attempt.stale', { run, attempt })
    if (left.kind === 'dropped') log.info('attempt.dropped', { run, attempt, reason: left.reason })
  })
  void driver.settled.then(() => {
    coordinator.settle(job)
    core.wakePoll?.()
    core.roomier?.()
    core.settledOne?.()
  })
}

const launch = (core: Core, of: Session, job: Drive, work: Work): void => {
  if (job.phase !== 'reserved') return
  moveJob(job, 'launch', 'launching')
  work.driver.start(() => callWorkflow(core.options, of.answer, work))
  moveJob(job, 'run', 'running')
}
