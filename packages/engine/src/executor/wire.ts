// What an attempt sends: each write until it is answered, the pages of its journal, and its hand-back, which is asked once.
import { Fault, LeaseholdError, StaleAttemptError } from '../kernel/errors.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { jittered } from '../kernel/random.ts'
import { sleep } from '../kernel/timers.ts'
import type { FirstReason } from '../model/attempt.ts'
import type { AttemptWrite, Entry, WriteAnswer } from '../model/work.ts'
import type { Core, Session } from './core.ts'
import { RETRY } from './core.ts'

/** Sends a write until it is answered: it can be repeated, since the store knows its own attempt's writes. */
export const send = async (
  core: Core,
  of: Session,
  write: AttemptWrite,
  over: () => boolean,
): Promise<WriteAnswer> => {
  const { port, ports } = core.options
  for (let failures = 1; ; failures++) {
    if (of.over || over())
      throw new LeaseholdError('session_ended', 'the session is over', { session: of.id })
    try {
      return await port.write(of.id, write)
    } catch (error) {
      if (error instanceof Fault && !error.retryable) throw error
      ports.log.debug('write.failed', { run: write.run, attempt: write.attempt, error })
    }
    await sleep(ports.timers, jittered(ports.random, growingDelayMs(failures, RETRY)))
  }
}

export const pages = async (
  core: Core,
  of: Session,
  run: string,
  after: number,
): Promise<readonly Entry[]> => {
  const { port, ports } = core.options
  for (let failures = 1; ; failures++) {
    if (of.over)
      throw new LeaseholdError('session_ended', 'the session is over', { session: of.id })
    try {
      return await port.journal(of.id, run, after)
    } catch (error) {
      // somebody else holds the run: what its journal says is not for this attempt
      if (error instanceof StaleAttemptError) throw error
      ports.log.debug('journal.failed', { run, after, error })
    }
    await sleep(ports.timers, jittered(ports.random, growingDelayMs(failures, RETRY)))
  }
}

/** One request, no retry, never an error: what fails is listed in the next renewals. */
export const handBack = async (
  core: Core,
  of: Session,
  { run, attempt }: { run: string; attempt: number },
  reason: string,
  firstReason: FirstReason | null = null,
): Promise<void> => {
  const { port, ports } = core.options
  try {
    await port.write(of.id, {
      run,
      attempt,
      entries: [],
      ...(firstReason === null ? {} : { firstReason }),
      end: { kind: 'hand_back', reason },
    })
  } catch (error) {
    if (error instanceof Fault && error.detail['unknownCall'] === true) {
      if (!core.warnedUnknownCall) ports.log.warn('hand_back.unknown', { run, attempt, error })
      else ports.log.debug('hand_back.unknown', { run, attempt })
      core.warnedUnknownCall = true
    } else ports.log.warn('hand_back.failed', { run, attempt, reason, error })
    of.letGo.push({ run, attempt, reason })
  }
}
