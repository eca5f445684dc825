// Closing a session: the last thing an executor asks of the engine, which hands back all that it still held.
import { inWords } from '../../kernel/duration.ts'
import { messageOf } from '../../kernel/json.ts'
import type { Timers } from '../../kernel/timers.ts'
import { sleep } from '../../kernel/timers.ts'
import type { Core, Session } from '../core.ts'

/** With what goes before and after it, an executor whose server is silent is gone within 2 s of its grace. */
const CLOSE_MS = 1_500

/** `unsettled`: runs whose bodies go on in a program that lives on; the session is closed for good when they have settled. */
export const close = async (
  core: Core,
  of: Session,
  unsettled: readonly string[],
): Promise<void> => {
  const { port, ports } = core.options
  const { log, timers } = ports
  const last = core.logs.last(of.id)
  const closing = port.close({
    session: of.id,
    reason: 'stopped',
    ...(last.length > 0 ? { logs: last } : {}),
    ...(unsettled.length > 0 ? { except: unsettled } : {}),
  })
  const told = closing.then(
    (answer) => (answer.ok ? null : answer.message),
    (error: unknown) => messageOf(error),
  )
  const answer = await within(timers, CLOSE_MS, told)
  const bounded = answer === undefined ? `no answer within ${inWords(CLOSE_MS)}` : answer
  if (bounded !== null) log.warn('session.not_closed', { session: of.id, message: bounded })
  closeLocally(of)
  if (unsettled.length > 0)
    void allSettled(core)
      .then(() => port.close({ session: of.id, reason: 'settled', logs: core.logs.last(of.id) }))
      .catch((error: unknown) => log.warn('session.not_closed', { session: of.id, error }))
      .finally(() => core.logs.close())
  else core.logs.close()
}

export const closeLocally = (of: Session): void => {
  of.over = true
  of.renewals.stop()
  of.unlisten()
}

/** Resolves when no job is left. */
export const allSettled = async (core: Core): Promise<void> => {
  while (core.coordinator.jobs.size > 0)
    await new Promise<void>((resolve) => {
      core.settledOne = resolve
    })
}

/** What a promise comes to, or undefined once `ms` have passed; its timer does not outlive it, nor keep a program alive. */
export const within = async <T>(
  timers: Timers,
  ms: number,
  promise: Promise<T>,
): Promise<T | undefined> => {
  const come = new AbortController()
  try {
    return await Promise.race([promise, sleep(timers, ms, come.signal).then(() => undefined)])
  } finally {
    come.abort()
  }
}
