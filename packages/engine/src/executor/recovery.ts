// At the start: what earlier sessions left on this host. Directories are removed, what they held is released by the workflow
// that took it; what cannot be released keeps this executor from taking anything, as it kept theirs.
import { LeaseholdError } from '../kernel/errors.ts'
import { release } from './clean-up.ts'
import { codecOf } from './codec.ts'
import type { Core, Session } from './core.ts'
import type { Recovered } from './scratch.ts'

/** Never throws: what it could not look at is logged and hinders no start. */
export const recover = async (core: Core, of: Session): Promise<void> => {
  const { ports, scratch } = core.options
  if (!scratch) return
  try {
    const { removed, held } = await scratch.recover(of.id)
    if (removed.length > 0) ports.log.info('scratch.recovered', { directories: removed })
    await Promise.all(held.map((each) => recoverHeld(core, each)))
  } catch (error) {
    ports.log.warn('scratch.not_recovered', { error })
  }
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
