// The claim loop: room is reserved in the turn that decides to claim, and what the claim did not use comes back in the turn
// that hears of its answer.
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { jittered } from '../kernel/random.ts'
import { sleep } from '../kernel/timers.ts'
import type { Room } from '../model/coordinator.ts'
import type { ClaimAnswer } from '../model/work.ts'
import { take } from './attempts.ts'
import type { Core, Session } from './core.ts'
import { heldBy, isFenced, RETRY, workflowsOf } from './core.ts'
import { CLAIM_WAIT_MS } from './options.ts'
import { loseSession } from './session/session.ts'
import { handBack } from './wire.ts'

export const poll = async (core: Core): Promise<void> => {
  const { coordinator, options } = core
  const { random, timers } = options.ports
  while (core.state === 'running') {
    const of = core.session
    const room = of && !of.fenced && !of.over ? coordinator.reserve() : null
    if (!of || !room) {
      await new Promise<void>((resolve) => {
        core.wakePoll = resolve
      })
      core.wakePoll = null
      continue
    }
    core.pollInProgress = true
    const answer = await claim(core, of, room)
    core.pollInProgress = false
    core.wider = null
    if (answer?.ok) {
      taken(core, of, room, answer)
      coordinator.release(room)
      continue
    }
    coordinator.release(room)
    if (answer === null) continue
    if (answer.code === 'session_ended') await loseSession(core, of, answer.message)
    else await sleep(timers, jittered(random, RETRY.firstMs), core.stopping.signal)
  }
}

/** An answer that did not come is asked for again under its number, until it has come or the session is over. */
const claim = async (core: Core, of: Session, room: Room): Promise<ClaimAnswer | null> => {
  const { coordinator, stopping } = core
  if (!room.partial && coordinator.except().length === 0) return asked(core, of, room, null)
  // a claim that waits for the classes with room ends its wait when another class gets some; and one that is not to be given
  // what was lost here and is still at work, when that has settled: it may be queued, with nobody else to drive it
  const hurry = new AbortController()
  core.wider = (isRunFree) => {
    if (isRunFree || coordinator.hasMoreThan(room)) hurry.abort()
  }
  // by hand: `AbortSignal.any` leaves a trace of every claim on the signal that lives on (Node 20)
  const stop = (): void => hurry.abort()
  stopping.signal.addEventListener('abort', stop)
  try {
    return await asked(core, of, room, hurry.signal)
  } finally {
    stopping.signal.removeEventListener('abort', stop)
  }
}

/** `hurry` cuts the wait of the claim, where it is one that may be cut. */
const asked = async (
  core: Core,
  of: Session,
  room: Room,
  hurry: AbortSignal | null,
): Promise<ClaimAnswer | null> => {
  const { coordinator, options, stopping } = core
  const { log, random, timers } = options.ports
  const number = of.claimNo + 1
  of.claimNo = number
  let failures = 0
  let isLast = false
  while (!of.over) {
    if (core.state !== 'running') {
      // what it has brought would wait for all that still drains: it is asked once more, and handed back
      if (isLast || failures === 0 || heldBy(core).length === 0) return null
      isLast = true
    }
    try {
      const answer = await options.port.claim(
        {
          session: of.id,
          claim: number,
          most: room.most,
          except: coordinator.except(),
          waitMs: failures > 0 || hurry?.aborted ? 0 : (options.claimWaitMs ?? CLAIM_WAIT_MS),
          ...(room.partial ? { only: workflowsOf(core, room.classes) } : {}),
        },
        // its repeat waits for nothing, and is not to be cut by what has cut the first
        isLast ? undefined : hurry === null || hurry.aborted ? stopping.signal : hurry,
      )
      if (answer.ok) of.received = Math.max(of.received, number)
      return answer
    } catch (error) {
      failures += 1
      log.debug('claim.failed', { session: of.id, claim: number, error })
      await sleep(timers, jittered(random, growingDelayMs(failures, RETRY)), stopping.signal)
    }
  }
  return null
}

const taken = (
  core: Core,
  of: Session,
  room: Room,
  answer: Extract<ClaimAnswer, { ok: true }>,
): void => {
  const offset = answer.now - core.options.ports.time.mono()
  for (const run of answer.runs) {
    if (of.over || of !== core.session || isFenced(of, run.run))
      of.letGo.push({ run: run.run, attempt: run.attempt, reason: 'lease_lost' })
    else if (core.state !== 'running') void handBack(core, of, run, 'shutdown')
    else take(core, of, room, run, offset)
  }
}
