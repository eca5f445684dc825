// What an attempt took, and its files, when its work has settled. Neither throws nor takes longer than its limit; what could
// not be done is said, and becomes a marker.
import { inWords } from '../../kernel/duration.ts'
import { messageOf } from '../../kernel/json.ts'
import type { MarkerKind } from '../../model/coordinator.ts'
import { within } from '../session/closing.ts'
import type { AnyWorkflow } from '../authoring/context.ts'
import type { Core, Session, Work } from '../core.ts'

const LIMIT_MS = 30_000

/** What stays behind. */
export interface Behind {
  readonly kind: MarkerKind
  readonly note: string
}

/** Releases what the attempt took and removes `files`; null where nothing stays behind. */
export const cleanUp = async (
  core: Core,
  of: Session,
  { claimed, held, prepared, workflow }: Work,
  files: string | null,
): Promise<Behind | null> => {
  const { run, attempt } = claimed
  const { scratch } = core.options
  const unreleased = held ? await release(core, workflow, prepared, { run, attempt }) : null
  if (held && unreleased === null) await scratch?.forget({ session: of.id, run, attempt })
  const remaining =
    files === null || !scratch
      ? null
      : await bounded(core, () => scratch.remove(files), `${files} cannot be removed`)
  if (unreleased !== null)
    return {
      kind: 'unreleased',
      note: remaining === null ? unreleased : `${unreleased}; ${remaining}`,
    }
  return remaining === null ? null : { kind: 'preparation_not_removed', note: remaining }
}

/** Calls the workflow's release; the sentence of what went wrong, or null. */
export const release = (
  core: Core,
  { name, options }: AnyWorkflow,
  prepared: unknown,
  attempt: { readonly run: string; readonly attempt: number },
): Promise<string | null> => {
  const late = new AbortController()
  return bounded(
    core,
    async () => options.release?.(prepared, { signal: late.signal, ...attempt }),
    `what ${name} had prepared cannot be released`,
  ).finally(() => late.abort(new Error('the release has taken too long')))
}

const bounded = async (
  { options }: Core,
  act: () => Promise<unknown>,
  what: string,
): Promise<string | null> => {
  const done = act().then(
    () => null,
    (error: unknown) => `${what}: ${messageOf(error)}`,
  )
  const told = await within(options.ports.timers, LIMIT_MS, done)
  return told === undefined ? `${what}: it had not ended after ${inWords(LIMIT_MS)}` : told
}

/** Frees the slots that a run's markers hold, and lets the executor take new work where that was what hindered it. */
export const clearMarkers = (core: Core, run: string): number => {
  const { coordinator, options, session } = core
  const marked = coordinator.markers.filter((marker) => marker.run === run)
  const cleared = coordinator.clear(run)
  if (cleared === 0) return 0
  const { log } = options.ports
  log.info('executor.cleared', { run, markers: cleared })
  // a later start is not to ask for it again
  for (const { attempt, kind } of marked)
    if (session && kind === 'unreleased')
      options.scratch
        ?.forget({ session: session.id, run, attempt })
        .catch((error: unknown) => log.warn('scratch.not_forgotten', { run, attempt, error }))
  session?.renewals.soon()
  core.wakePoll?.()
  core.wider?.(true)
  return cleared
}
