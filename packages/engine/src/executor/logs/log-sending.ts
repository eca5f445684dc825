// Sends what attempts write, a moment after it was written and beside all else: nothing waits for it, and while the engine
// does not answer, only so much is kept as there is room for.
import type { Growth } from '../../kernel/growing-delay.ts'
import { growingDelayMs } from '../../kernel/growing-delay.ts'
import { messageOf } from '../../kernel/json.ts'
import type { Ports } from '../../kernel/ports.ts'
import { jittered } from '../../kernel/random.ts'
import type { LogAnswer, LogPart } from '../../model/log.ts'
import { PARTS_MAX } from '../../model/log.ts'
import { redaction } from '../../model/redaction.ts'
import { AttemptLog } from './attempt-log.ts'

/** What is written is gathered for so long. */
const GATHER_MS = 250
const RETRY: Growth = { firstMs: 500, maxMs: 10_000 }
/** Attempts whose lines wait to be sent; of more than that the oldest are let go. */
const WAITING_MAX = 500

interface Batch {
  readonly session: string
  readonly parts: readonly LogPart[]
}

export interface LogSendingOptions {
  readonly send: (session: string, parts: readonly LogPart[]) => Promise<LogAnswer>
  readonly ports: Pick<Ports, 'log' | 'random' | 'time' | 'timers'>
  /** Values that must not be read anywhere. */
  readonly secrets: readonly string[]
}

export class LogSending {
  readonly #options: LogSendingOptions
  readonly #redact: (text: string) => string
  readonly #waiting = new Set<AttemptLog>()
  #sent: Batch | null = null
  #cancel: (() => void) | null = null
  #busy = false
  #failures = 0
  #warned = false
  #closed = false

  constructor(options: LogSendingOptions) {
    this.#options = options
    this.#redact = redaction(options.secrets)
  }

  /** The log of an attempt that begins here. */
  open(session: string, run: string, attempt: number, storeOffset: number): AttemptLog {
    const { log, time } = this.#options.ports
    return new AttemptLog({
      session,
      run,
      attempt,
      now: () => time.mono() + storeOffset,
      redact: this.#redact,
      log,
      wants: (written) => {
        if (this.#closed) return
        this.#waiting.add(written)
        this.#letGo()
        this.#soon(GATHER_MS)
      },
    })
  }

  /** What a session's attempts have written and nobody has been told to keep: it goes with the session's close. */
  last(session: string): LogPart[] {
    const parts: LogPart[] = this.#sent?.session === session ? [...this.#sent.parts] : []
    return [...parts, ...this.#taken(new Set(this.#waiting), session)]
  }

  /** Nothing is sent any more. */
  close(): void {
    this.#closed = true
    this.#cancel?.()
    this.#waiting.clear()
  }

  #soon(ms: number): void {
    if (this.#closed || this.#busy || this.#cancel) return
    this.#cancel = this.#options.ports.timers.after(ms, () => {
      this.#cancel = null
      void this.#sendAll()
    })
  }

  /** Sends what waits now; what is written meanwhile is gathered anew. */
  async #sendAll(): Promise<void> {
    const { random } = this.#options.ports
    this.#busy = true
    let wait = GATHER_MS
    const due = new Set(this.#waiting)
    while (!this.#closed && (this.#sent ??= this.#next(due))) {
      if (await this.#isDone(this.#sent)) {
        this.#sent = null
        this.#failures = 0
        continue
      }
      this.#failures += 1
      wait = jittered(random, growingDelayMs(this.#failures, RETRY))
      break
    }
    this.#busy = false
    if (this.#sent !== null || this.#waiting.size > 0) this.#soon(wait)
  }

  /** As many parts of one session as fit a request. */
  #next(due: Set<AttemptLog>): Batch | null {
    const [first] = due
    if (!first) return null
    const parts = this.#taken(due, first.session)
    return parts.length === 0 ? this.#next(due) : { session: first.session, parts }
  }

  #taken(from: Set<AttemptLog>, session: string): LogPart[] {
    const parts: LogPart[] = []
    let size = 0
    for (const log of from) {
      if (log.session !== session) continue
      if ((size += log.size) > PARTS_MAX) break
      from.delete(log)
      if (this.#waiting.delete(log)) parts.push(log.take())
    }
    return parts
  }

  /** Whether it need not be sent again. */
  async #isDone({ session, parts }: Batch): Promise<boolean> {
    const { log } = this.#options.ports
    try {
      const answer = await this.#options.send(session, parts)
      if (!answer.ok) log.warn('logs.refused', { session, message: answer.message })
      this.#warned = false
      return true
    } catch (error) {
      if (!this.#warned) log.warn('logs.not_sent', { session, message: messageOf(error) })
      this.#warned = true
      return false
    }
  }

  #letGo(): void {
    for (const log of this.#waiting) {
      if (this.#waiting.size <= WAITING_MAX) return
      this.#waiting.delete(log)
      const { run, attempt } = log
      const lines = log.take().lines.length
      this.#options.ports.log.warn('logs.dropped', { run, attempt, lines })
    }
  }
}
