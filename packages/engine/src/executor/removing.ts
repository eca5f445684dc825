// Files of preparations, when nothing needs them any more: those of a settled attempt whose end is stored, and at the start
// those of sessions that are gone.
import { inWords } from '../kernel/duration.ts'
import { messageOf } from '../kernel/json.ts'
import { within } from './closing.ts'
import type { Core } from './core.ts'

const REMOVE_MS = 30_000

/** Removes the files of an attempt; the sentence of what went wrong, or null. It never throws and takes no longer than 30 s. */
export const removeFiles = async (core: Core, directory: string): Promise<string | null> => {
  const { ports, scratch } = core.options
  const removed = scratch?.remove(directory).then(
    () => null,
    (error: unknown) => `${directory} cannot be removed: ${messageOf(error)}`,
  )
  const told = await within(ports.timers, REMOVE_MS, removed ?? Promise.resolve(null))
  return told === undefined ? `${directory} was not removed within ${inWords(REMOVE_MS)}` : told
}

/** Removes what sessions left on this host whose processes are gone. What it cannot do is said, and hinders no start. */
export const recoverFiles = async ({ options }: Core): Promise<void> => {
  const { log } = options.ports
  try {
    const removed = (await options.scratch?.recover()) ?? []
    if (removed.length > 0) log.info('scratch.recovered', { directories: removed })
  } catch (error) {
    log.warn('scratch.not_recovered', { error })
  }
}
