// The writes of one attempt: one is in flight at a time, and whatever is ready joins the next. It hears what the store
// answers, and knows when the attempt has ended by it.
import { Fault } from '../../kernel/errors.ts'
import { messageOf } from '../../kernel/json.ts'
import type { Job } from '../../model/job.ts'
import { askToStop } from '../../model/job.ts'
import type {
  AttemptWrite,
  Directive,
  EndReport,
  LiveWait,
  WriteAnswer,
  WriteOk,
} from '../../model/work.ts'
import type { Left } from './driver.ts'
import { refusedEnd } from './ends.ts'
import type { Outgoing } from './outgoing.ts'

/** The attempt whose writes these are. */
interface Written {
  readonly retried: () => ReadonlySet<string> | null
  readonly end: () => EndReport | null
  readonly setEnd: (end: EndReport) => void
  /** The end that was sent is none: the attempt goes on. */
  readonly takenBack: () => void
  readonly isOver: () => boolean
  readonly leave: (how: Left) => void
  /** Nobody waits for the slot that was offered: the chain goes on. */
  readonly alone: () => void
  readonly noteWait: (wait: LiveWait) => void
  readonly told: (directive: Directive, note: string | null) => void
  /** All that was ready is stored, and the attempt goes on. */
  readonly written: () => void
}

type Refused = Extract<WriteAnswer, { ok: false }>

export class Writing {
  readonly #job: Job
  readonly #outgoing: Outgoing
  readonly #write: (write: AttemptWrite) => Promise<WriteAnswer>
  readonly #of: Written
  #waiting: ((stored: boolean) => void)[] = []
  #busy = false

  constructor(
    job: Job,
    outgoing: Outgoing,
    write: (write: AttemptWrite) => Promise<WriteAnswer>,
    of: Written,
  ) {
    this.#job = job
    this.#outgoing = outgoing
    this.#write = write
    this.#of = of
  }

  get isBusy(): boolean {
    return this.#busy
  }

  get isDue(): boolean {
    return this.#waiting.length > 0 || this.#outgoing.isDue
  }

  /** Resolves when what is recorded up to now is stored; false when the attempt ended instead. */
  whenStored(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      void this.flush()
    })
  }

  /** The attempt has left: what waits for a write waits in vain. */
  leave(): void {
    answerAll(this.#waiting, false)
    this.#waiting = []
  }

  async flush(): Promise<void> {
    const { end, isOver, leave, written } = this.#of
    if (this.#busy || isOver()) return
    this.#busy = true
    do {
      const waiting = this.#waiting
      this.#waiting = []
      const write = this.#outgoing.take(this.#of.retried(), this.#job.reason, end())
      let answer: WriteAnswer
      try {
        answer = await this.#write(write)
      } catch (error) {
        answerAll(waiting, false)
        this.#unsaved(write, error)
        return
      }
      if (isOver()) return answerAll(waiting, false)
      if (!answer.ok) {
        answerAll(waiting, false)
        this.#refused(answer)
        continue
      }
      if (answer.ended !== null) {
        if (write.firstReason) this.#job.saved = true
        answerAll(waiting, false)
        leave({ kind: 'ended', status: answer.ended })
        return
      }
      this.#goesOn(write, answer, waiting)
    } while (!isOver() && end() !== null)
    this.#busy = false
    if (!isOver()) written()
  }

  #goesOn(write: AttemptWrite, answer: WriteOk, waiting: ((stored: boolean) => void)[]): void {
    const { end, takenBack, alone, noteWait, told } = this.#of
    if (write.firstReason) this.#job.saved = true
    // nobody waits for the slot: the chain goes on
    if (write.end?.kind === 'hand_back') alone()
    for (const wait of answer.satisfied) noteWait(wait)
    // a suspend found one of its waits satisfied; an end that was decided on meanwhile stands
    if (write.end && write.end === end()) takenBack()
    answerAll(waiting, true)
    if (answer.directive !== null) told(answer.directive, answer.note)
  }

  /** The store cannot take the write, and no repeat will mend that. Without a session there is nothing left to save. */
  #unsaved(write: AttemptWrite, error: unknown): void {
    const reason = messageOf(error)
    const { leave } = this.#of
    if (!(error instanceof Fault)) return leave({ kind: 'dropped', reason })
    if (write.phase === 'launched') {
      askToStop(this.#job, 'capture_failure', `that it began could not be stored: ${reason}`)
      return leave({ kind: 'dropped', reason, unsaved: 'start' })
    }
    const isResult =
      write.end?.kind === 'complete' || write.end?.kind === 'continue' || write.end?.kind === 'fail'
    leave({ kind: 'dropped', reason, ...(isResult ? { unsaved: 'result' as const } : {}) })
  }

  #refused(answer: Refused): void {
    const { end, setEnd, leave } = this.#of
    if (answer.code === 'stale_attempt' || answer.code === 'not_found')
      return leave({ kind: 'stale' })
    const last = end()
    if (last?.kind === 'fail' && last.reason === 'result_unsaveable')
      return leave({ kind: 'dropped', reason: answer.message, unsaved: 'result' })
    this.#outgoing.dropRefused()
    setEnd(refusedEnd(answer))
  }
}

const answerAll = (waiting: readonly ((stored: boolean) => void)[], stored: boolean): void => {
  for (const resolve of waiting) resolve(stored)
}
