// What an attempt has written and nobody has sent yet: bounded, whatever it writes. Its beginning and its end are kept, and
// what is left out between them shows as numbers that are missing.
import { factsText } from '../../kernel/log.ts'
import type { Facts, Log } from '../../kernel/log.ts'
import type { LogLine, LogPart, LogSource } from '../../model/log.ts'
import { cutText, LINE_MAX, logSources } from '../../model/log.ts'
import type { Redact } from '../../model/redaction.ts'
import { redactedValue, REDACTED } from '../../model/redaction.ts'
import type { RawLine } from './kept-lines.ts'
import { KeptLines } from './kept-lines.ts'

/** A key whose end does not come is over after so many lines. */
const KEY_LINES_MAX = 200

export interface AttemptLogOptions {
  readonly session: string
  readonly run: string
  readonly attempt: number
  /** The store's clock. */
  readonly now: () => number
  readonly redact: Redact
  /** The log of this process, which shows these lines too. */
  readonly log: Log
  /** There is something to send. */
  readonly wants: (log: AttemptLog) => void
}

export class AttemptLog {
  readonly session: string
  readonly run: string
  readonly attempt: number
  readonly #options: AttemptLogOptions
  /** One source crowds out no other. */
  readonly #kept: Readonly<Record<LogSource, KeptLines>> = {
    log: new KeptLines(),
    stdout: new KeptLines(),
    stderr: new KeptLines(),
  }
  #n = 0
  /** Lines of a key that is being printed, by where. */
  readonly #inKey = new Map<LogSource, number>()

  constructor(options: AttemptLogOptions) {
    this.#options = options
    this.session = options.session
    this.run = options.run
    this.attempt = options.attempt
  }

  /** What waits to be sent, in characters. */
  get size(): number {
    return logSources.reduce((sum, source) => sum + this.#kept[source].size, 0)
  }

  /** A line that was printed; `missing` characters of its middle are not there. */
  print(source: 'stdout' | 'stderr', text: string, missing: number): void {
    this.#add(source, this.#withoutKey(source, text), missing, null)
  }

  /** What a function has logged. */
  log(message: string, facts: Facts): void {
    this.logText(message, Object.keys(facts).length === 0 ? null : factsText(facts))
  }

  /** As `log`, where the facts have come as JSON text. */
  logText(message: string, facts: string | null): void {
    this.#add('log', message, 0, facts)
    this.#show('run.log', redacted(message, facts, this.#options.redact))
  }

  #add(source: LogSource, text: string, missing: number, facts: string | null): void {
    const wasEmpty = this.size === 0
    this.#n += 1
    const at = Math.floor(this.#options.now())
    this.#kept[source].add({ n: this.#n, at, source, text, missing, facts })
    if (wasEmpty) this.#options.wants(this)
  }

  /** What is kept, without secrets; from here on it is the taker's. */
  take(): LogPart {
    const lines = logSources
      .flatMap((source) => this.#kept[source].take())
      .sort((a, b) => a.n - b.n)
      .map((raw) => this.#shown(raw))
    for (const { source, text } of lines)
      if (source !== 'log') this.#show(`run.${source}`, { message: text })
    return { run: this.run, attempt: this.attempt, lines }
  }

  #show(event: string, facts: Facts): void {
    this.#options.log.info(event, { ...facts, run: this.run, attempt: this.attempt })
  }

  #shown({ n, at, source, text, missing, facts }: RawLine): LogLine {
    const { redact } = this.#options
    return {
      n,
      at,
      source,
      text: cutText(redact(text), LINE_MAX, missing),
      facts: facts === null ? null : shownFacts(facts, redact),
    }
  }

  /** Of a key that is printed over several lines none is shown. */
  #withoutKey(source: LogSource, text: string): string {
    const lines = this.#inKey.get(source)
    if (lines !== undefined) {
      const isLast = /-----END [A-Z ]*PRIVATE KEY-----/.test(text) || lines >= KEY_LINES_MAX
      if (isLast) this.#inKey.delete(source)
      else this.#inKey.set(source, lines + 1)
      return REDACTED
    }
    if (/-----BEGIN [A-Z ]*PRIVATE KEY-----(?!.*-----END)/.test(text)) this.#inKey.set(source, 1)
    return text
  }
}

const redacted = (message: string, facts: string | null, redact: Redact): Facts => ({
  ...(facts === null ? {} : (redactedValue(JSON.parse(facts), redact) as Facts)),
  message: redact(message),
})

const shownFacts = (facts: string, redact: Redact): string => {
  const text = JSON.stringify(redactedValue(JSON.parse(facts), redact))
  return text.length <= LINE_MAX ? text : JSON.stringify({ left_out: `${text.length} characters` })
}
