// At the start: what earlier sessions left on this host. Directories are removed, what they held is released by the workflow
// that took it; what cannot be released keeps this executor from taking anything, as it kept theirs.
import { inWords } from '../../kernel/duration.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import { growingDelayMs } from '../../kernel/growing-delay.ts'
import { jittered } from '../../kernel/random.ts'
import { release } from './clean-up.ts'
import { sleep } from '../../kernel/timers.ts'
import { codecOf } from '../authoring/codec.ts'
import type { Core, Session } from '../core.ts'
import { RETRY } from '../core.ts'
import { SHOWN_LATE_MS } from '../pods/launched.ts'
import type { LeftPod } from '../pods/launcher.ts'
import type { LeftProcess, Recovered } from './scratch.ts'

/** Never throws: what it could not look at is logged and hinders no start. */
export const recover = async (core: Core, of: Session): Promise<void> => {
  const { ports, scratch } = core.options
  if (!scratch) return
  try {
    const { removed, held, alive } = await scratch.recover(of.id, (left) => endLeft(core, left))
    for (const left of alive) holdFor(core, left)
    if (removed.length > 0) ports.log.info('scratch.recovered', { directories: removed })
    await Promise.all(held.map((each) => recoverHeld(core, each)))
  } catch (error) {
    ports.log.warn('scratch.not_recovered', { error })
  }
}

/**
 * Reports the end of pods whose launchers may be gone, so that what they held waits for no lease, and removes those that never began
 * and may not any more, at the latest when that is so. One that is at work has a lease of its own, and is left alone. Never throws.
 */
export const recoverPods = async (core: Core, of: Session): Promise<void> => {
  const { launcher, ports } = core.options
  if (!launcher) return
  const { log, random, time, timers } = ports
  const storeOffset = of.answer.now - time.mono()
  /** Sees to one of them; milliseconds until it is to be looked at again: Infinity for never, null where it could not. */
  const seeTo = async ({ label, runner, startBy, seen }: LeftPod): Promise<number | null> => {
    const { state, note } = seen
    try {
      if (state === 'ended') await launcher.exited(runner, note)
      if (state !== 'waiting') return Number.POSITIVE_INFINITY
      const early = startBy + SHOWN_LATE_MS - (time.mono() + storeOffset)
      if (early > 0) return Math.max(early, NEXT_RECOVERY_MS)
      log.warn('pod.recovered', { ...label, note })
      await launcher.pods.remove(label, runner)
      return Number.POSITIVE_INFINITY
    } catch (error) {
      log.warn('pod.not_recovered', { ...label, error })
      return null
    }
  }
  // by runner; null before the first look: what others make after it is theirs to see to
  let open = null as ReadonlySet<string> | null
  for (let failures = 0; core.state === 'running';) {
    const waits = new Map<string, number | null>()
    try {
      for (const left of await launcher.pods.left())
        if (open?.has(left.runner) !== false) waits.set(left.runner, await seeTo(left))
      open = new Set(
        [...waits].flatMap(([runner, wait]) => (wait === Number.POSITIVE_INFINITY ? [] : [runner])),
      )
    } catch (error) {
      log.warn('pods.not_recovered', { error })
      waits.set('', null)
    }
    if (open?.size === 0) return
    failures = [...waits.values()].includes(null) ? failures + 1 : 0
    const retry = { ...RETRY, maxMs: LAST_RECOVERY_MS }
    const again = [...waits.values()].map(
      (wait) => wait ?? jittered(random, growingDelayMs(failures, retry)),
    )
    await sleep(timers, Math.min(...again), core.stopping.signal)
  }
}

const LAST_RECOVERY_MS = 60_000
/** Those that began at about the same time are looked at together. */
const NEXT_RECOVERY_MS = 5_000
const LIMIT_MS = 10_000
const LOOK_MS = 50

/** Kills what an attempt of a dead session left; whether nothing of it is alive. Its session is gone: nobody waits for it. */
const endLeft = async (core: Core, { label, leader }: LeftProcess): Promise<boolean> => {
  const { ports, processes } = core.options
  if (!processes) return false
  const { log, time, timers } = ports
  const until = time.mono() + LIMIT_MS
  let killed = false
  while (await processes.isAlive({ leader, label })) {
    if (time.mono() >= until) return false
    killed = true
    await processes.signal({ leader, label }, 'SIGKILL')
    await sleep(timers, LOOK_MS)
  }
  if (killed) log.warn('process.recovered', { ...label, pid: leader.pid })
  return true
}

/** Something of it works on, whatever was done: this executor takes nothing new beside it. */
const holdFor = (core: Core, { label, leader }: LeftProcess): void => {
  const { coordinator, options } = core
  const { run, attempt, session } = label
  const note = options.processes
    ? `process ${leader.pid} of session ${session} was still alive ${inWords(LIMIT_MS)} after it was killed`
    : `process ${leader.pid} of session ${session} may be alive, and this executor starts no processes; start one that does`
  options.ports.log.error('process.not_recovered', { ...label, pid: leader.pid })
  coordinator.hold({
    kind: 'unreleased',
    run,
    attempt,
    slotClass: 'default',
    since: options.ports.time.now(),
    note,
  })
}

const recoverHeld = async (
  core: Core,
  { label, note }: Recovered['held'][number],
): Promise<void> => {
  const { coordinator, options, workflows } = core
  const { run, attempt } = label
  const workflow = workflows.get(`${note.workflow}@${note.version}`)
  const failure = workflow
    ? await release(core, workflow, codecOf(workflow.options.codec).decode(note.prepared), label)
    : new LeaseholdError(
        'not_found',
        `${note.workflow} version ${note.version} has something to release here, and this executor does not have it; start one that does, or clear ${run}`,
      ).message
  if (failure === null) {
    await options.scratch?.forget(label)
    options.ports.log.info('scratch.released', { run, attempt })
    return
  }
  options.ports.log.error('scratch.unreleased', { run, attempt, failure })
  coordinator.hold({
    kind: 'unreleased',
    run,
    attempt,
    slotClass: workflow?.definition.slotClass ?? 'default',
    since: options.ports.time.now(),
    note: failure,
  })
}
