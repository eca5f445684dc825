// Stopping: nothing new, current steps end and their runs are handed back; past the limit what still runs is aborted, and
// the session is closed with what has not settled.
import type { Core } from './core.ts'
import { driversOf } from './core.ts'
import { allSettled, close, within } from './session/closing.ts'
import { ABORT_GRACE_MS, DRAIN_MS } from './options.ts'

export const drain = async (
  core: Core,
  polling: Promise<void> | null,
  exiting: boolean,
): Promise<void> => {
  const { coordinator, options, session: of } = core
  const { drainMs = DRAIN_MS, abortGraceMs = ABORT_GRACE_MS } = options
  const { log, time, timers } = options.ports
  const jobs = () => [...coordinator.jobs]
  core.stopping.abort()
  core.wakePoll?.()
  for (const { phase, work } of jobs())
    // a preparation is no step: what it makes would be thrown away with the hand-back
    if (phase === 'preparing') work?.driver.stop('shutdown', 'the executor is shutting down')
    else work?.driver.drain()
  const deadline = time.mono() + drainMs
  const allLeft = Promise.all(driversOf(core).map((driver) => driver.left))
  await within(timers, drainMs, Promise.all([allLeft, polling]))
  const rest = jobs().filter((job) => !job.left)
  if (rest.length > 0) {
    log.warn('executor.drain_limit', {
      held: rest.map(({ run }) => run),
      pollInProgress: core.pollInProgress,
      overMs: time.mono() - deadline,
    })
    for (const { work } of rest) work?.driver.stop('shutdown', 'the executor is shutting down')
  }
  if (jobs().some((job) => job.bodies > 0 || job.left))
    await within(timers, abortGraceMs, allSettled(core))
  if (of && !of.over) {
    const unsettled = exiting
      ? []
      : jobs()
          .filter((job) => job.bodies > 0 && !job.left)
          .map(({ run }) => run)
    for (const { run, work } of jobs())
      if (!unsettled.includes(run)) work?.driver.drop('the session is closed')
    await close(core, of, unsettled)
  }
  core.cancelFence?.()
  core.state = 'stopped'
}
