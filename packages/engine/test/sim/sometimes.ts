// Points that a batch of worlds must reach: rare meetings that the checks are there for. A simulator that never comes to
// one of them proves nothing about it.
import type { WriteAnswer } from '../../src/model/work.ts'
import type { Change, Shadow } from './shadow.ts'

export const points = [
  'a stale attempt writes while another holds its run',
  'an end is repeated and answered as the first time',
  'a cancel meets a completion and wins',
  'a cancel meets a completion and loses',
  'a canceled run is ended at the end of its grace',
  'a canceled run is ended with its dead holder',
  'a pause takes effect at a loss',
  'a pause takes effect at a suspend',
  'a run is resumed to what it waited for',
  'an attempt expires',
  'an attempt is lost on evidence',
  'a run is lost twice in a row and driven alone',
  'a run is lost until it fails',
  'hand-backs in a row delay a run',
  'a session does not know what it holds',
  'a session lets go of what it was fenced from',
  'the limit of an attempt is enforced',
  'the total limit of a run is enforced',
  'a run waits in line and is admitted',
  'a start is rejected at a full limit',
  'a key is used for another input',
  'a parent is told of a success',
  'a parent is told of a failure',
  'a parent is told of a cancel',
  'a child ends with its parent',
  'a signal satisfies a wait',
  'a signal meets a time-out',
  'a race closes a wait whose signal had come',
  'a run continues with unread signals',
  'an approval is decided twice',
  'an approval lapses',
  'a decision comes too late',
  'a retry suspends its run',
  'a run is parked for want of an executor',
  'a lane is claimed from while wake-ups are dropped',
  'a delivery is brought twice at once and taken once',
  'a delivery signals the run of its key',
] as const
export type Point = (typeof points)[number]

export class Sometimes {
  /** How often the world came to each point. */
  readonly reached = new Map<Point, number>()
  readonly #shadow: Shadow

  constructor(shadow: Shadow) {
    this.#shadow = shadow
  }

  #at(point: Point, here: boolean): void {
    if (here) this.reached.set(point, (this.reached.get(point) ?? 0) + 1)
  }

  write(answer: WriteAnswer, end: string | undefined, heldAtArrival: boolean): void {
    if (!answer.ok) {
      const holder = answer.detail['holder']
      this.#at('a stale attempt writes while another holds its run', typeof holder === 'string')
      return
    }
    this.#at('an end is repeated and answered as the first time', !heldAtArrival)
    this.#at(
      'a cancel meets a completion and wins',
      end === 'complete' && answer.ended === 'canceled',
    )
  }

  refused(verb: string, code: string): void {
    this.#at('a cancel meets a completion and loses', verb === 'cancel' && code === 'already_ended')
    this.#at('a start is rejected at a full limit', code === 'limit_full')
    this.#at('a key is used for another input', code === 'key_reused')
    this.#at('an approval is decided twice', code === 'already_decided')
    this.#at('a decision comes too late', code === 'approval_lapsed')
  }

  committed(change: Change, silent: boolean): void {
    this.#runs(change, silent)
    for (const { before, after } of change.waits) {
      const was = before?.state
      this.#at('a signal satisfies a wait', after.kind === 'signal' && after.state === 'satisfied')
      this.#at('a signal meets a time-out', after.kind === 'signal' && after.state === 'lapsed')
      this.#at('an approval lapses', after.kind === 'approval' && after.state === 'lapsed')
      this.#at(
        'a race closes a wait whose signal had come',
        was === 'satisfied' && after.state === 'closed' && change.released.length > 0,
      )
      if (after.kind !== 'child' || after.state !== 'satisfied' || was === 'satisfied') continue
      const { status } = JSON.parse(after.result ?? '{}') as { status?: string }
      this.#at('a parent is told of a success', status === 'succeeded')
      this.#at('a parent is told of a failure', status === 'failed')
      this.#at('a parent is told of a cancel', status === 'canceled')
    }
    for (const { reason } of change.attempts) {
      this.#at('a session does not know what it holds', reason === 'unknown_here')
      this.#at('a session lets go of what it was fenced from', reason === 'lease_lost')
      this.#at('the limit of an attempt is enforced', reason === 'attempt_deadline')
      this.#at('a canceled run is ended at the end of its grace', reason === 'cancel_grace')
    }
    this.#at(
      'a child ends with its parent',
      [...change.orders].some((id) => id.startsWith('cancel:')),
    )
    for (const { name, params, rows } of change.writes) {
      this.#at(
        'a delivery is brought twice at once and taken once',
        name === 'arrivals.claim' && rows.some((row) => row['outcome'] !== 'refused'),
      )
      this.#at(
        'a delivery signals the run of its key',
        name === 'arrivals.settle' && params[2] === 'signaled',
      )
    }
    this.#at(
      'a run continues with unread signals',
      change.writes.some((touch) => touch.name === 'signals.inherit' && touch.rows.length > 0),
    )
  }

  #runs(change: Change, silent: boolean): void {
    for (const { before, after } of change.runs) {
      if (!before) continue
      const end = change.attempts.find((each) => each.run === after.id)?.end
      const lost = end === 'expired' || end === 'lost'
      const claimed = after.attempt > before.attempt
      this.#at('an attempt expires', end === 'expired')
      this.#at('an attempt is lost on evidence', end === 'lost')
      this.#at('a canceled run is ended with its dead holder', lost && after.status === 'canceled')
      this.#at('a pause takes effect at a loss', lost && after.status === 'paused')
      this.#at(
        'a pause takes effect at a suspend',
        end === 'suspended' && after.status === 'paused',
      )
      this.#at(
        'a run is resumed to what it waited for',
        before.status === 'paused' && after.status === 'waiting' && after.wait_on !== 'slot',
      )
      this.#at(
        'a run is lost twice in a row and driven alone',
        claimed && after.suspect_since !== null,
      )
      this.#at('a run is lost until it fails', after.reason === 'attempts_exhausted')
      this.#at('hand-backs in a row delay a run', after.reason === 'handed_back')
      this.#at('the total limit of a run is enforced', after.reason === 'time_limit')
      this.#at(
        'a run waits in line and is admitted',
        before.wait_on === 'slot' && before.reason === 'limit' && after.status === 'queued',
      )
      this.#at('a run is parked for want of an executor', after.reason === 'no_executor')
      this.#at('a lane is claimed from while wake-ups are dropped', claimed && silent)
      this.#at(
        'a retry suspends its run',
        end === 'suspended' &&
          [...this.#shadow.waitsOf(after.id).values()].some(
            (wait) => wait.kind === 'retry' && wait.state === 'open',
          ),
      )
    }
  }
}
