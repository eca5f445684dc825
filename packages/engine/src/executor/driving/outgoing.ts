// What an attempt has received, recorded or shown, and not yet sent: it joins the run's next write.
import type {
  AttemptWrite,
  ChildStart,
  ClaimedRun,
  EndReport,
  Entry,
  EntryKind,
  WaitRecord,
} from '../../model/work.ts'
import { ITEMS_MAX, itemsBefore } from '../../model/stream.ts'
import type { FirstReason } from '../../model/attempt.ts'
import type { Ready } from './driver.ts'

/** A function that never comes to rest (it starts children in a loop) is stored in parts all the same. */
const UNSENT_MAX = 100
/** About so many characters of entries, and of items, go into one write: a message of any way to a server must hold it. */
const PART_CHARS = 4 * 1024 * 1024

export class Outgoing {
  /** Settle what is due and answer it, though nothing is recorded. */
  looks = false
  /** The first reason is to be stored, though nothing else is. */
  saysReason = false
  phase: 'preparing' | 'launched' | null = null
  readonly #run: string
  readonly #attempt: number
  readonly #itemsBefore: number
  #count: number
  #unsent: Entry[] = []
  /** About how long they are. */
  #chars = 0
  #waits: readonly WaitRecord[] = []
  #spawns: readonly (ChildStart & { as: string })[] = []
  #closes: readonly string[] = []
  /** What was unsent when the first of the unsent failures was received. */
  #beforeFailure: {
    readonly entries: number
    readonly waits: readonly WaitRecord[]
    readonly spawns: readonly (ChildStart & { as: string })[]
    readonly closes: readonly string[]
  } | null = null
  #state: { text: string | null } | null = null
  #shown: string | null = null
  #items: { stream: string; seq: number; data: string | null }[] = []
  #itemCount = 0
  /** Items were left over by the last write. */
  #cut = false

  constructor({
    run,
    attempt,
    entries,
    items,
  }: Pick<ClaimedRun, 'run' | 'attempt' | 'entries' | 'items'>) {
    this.#run = run
    this.#attempt = attempt
    this.#count = entries
    this.#itemsBefore = itemsBefore(attempt, items)
  }

  /** Whether there is so much of it that it is to be stored before the function receives more. */
  get isFull(): boolean {
    return this.#unsent.length >= UNSENT_MAX || this.#chars >= PART_CHARS
  }

  /** Whether something of it must be durable before a body may begin. */
  get isDue(): boolean {
    return (
      this.#unsent.length > 0 ||
      this.#waits.length > 0 ||
      this.#closes.length > 0 ||
      this.#state !== null ||
      this.#cut ||
      this.looks ||
      this.saysReason ||
      this.phase !== null
    )
  }

  /** Whether something waits to be shown that need not be sent at once. */
  get hasShown(): boolean {
    return this.#shown !== null || this.#items.length > 0 || this.#state !== null
  }

  receive(next: Ready, at: number): void {
    const { key, kind, output, error } = next
    if (error !== null)
      this.#beforeFailure ??= {
        entries: this.#unsent.length,
        waits: this.#waits,
        spawns: this.#spawns,
        closes: this.#closes,
      }
    this.#count += 1
    this.#unsent.push({ n: this.#count, key, kind, at, output, error })
    this.#chars += (output?.length ?? 0) + (error?.length ?? 0)
    if (next.spawn) this.#spawns = [...this.#spawns, next.spawn]
    if (next.closes) this.close(next.closes)
  }

  hasEntry(key: string): boolean {
    return this.#unsent.some((entry) => entry.key === key)
  }

  mark(key: string, kind: EntryKind, at: number): void {
    this.#count += 1
    this.#unsent.push({ n: this.#count, key, kind, at, output: null, error: null })
  }

  wait(record: WaitRecord): void {
    this.#waits = [...this.#waits, record]
  }

  hasWait(key: string): boolean {
    return this.#waits.some((record) => record.key === key)
  }

  /** Waits of a scope that has ended. */
  close(keys: readonly string[]): void {
    this.#closes = [...this.#closes, ...keys]
  }

  dropWaits(prefix: string): void {
    this.#waits = this.#waits.filter((record) => !record.key.startsWith(prefix))
  }

  setState(text: string | null): void {
    this.#state = { text }
  }

  show(text: string): void {
    this.#shown = text
  }

  append(stream: string, data: string | null): boolean {
    if (this.#itemCount >= ITEMS_MAX) return false
    this.#itemCount += 1
    this.#items.push({ stream, seq: this.#itemsBefore + this.#itemCount, data })
    return true
  }

  /** What the store has refused for its content is not sent again. */
  dropRefused(): void {
    this.#unsent = []
    this.#waits = []
    this.#spawns = []
    this.#closes = []
    this.#beforeFailure = null
  }

  /**
   * Errors that are not durable yet are not recorded: their steps are tried anew by the next attempt. What the function did
   * because of them would be beyond its reach then: after the first of them outcomes alone are kept, which the function had
   * asked for before it, since nothing begins while a failure is unsent.
   */
  dropFailures(): void {
    const before = this.#beforeFailure
    if (before === null) return
    const base = this.#count - this.#unsent.length
    const failed = this.#unsent.filter((entry) => entry.error !== null).map(({ key }) => key)
    this.#unsent = this.#unsent
      .filter((entry, i) => i < before.entries || (entry.error === null && isOutcome(entry.kind)))
      .map((entry, i) => ({ ...entry, n: base + i + 1 }))
    this.#count = base + this.#unsent.length
    this.#waits = before.waits
    this.#spawns = before.spawns
    this.#closes = [...before.closes, ...failed]
    this.#beforeFailure = null
  }

  #firstItems(): { stream: string; seq: number; data: string | null }[] {
    let chars = 0
    const over = this.#items.findIndex(({ data }, i) => {
      chars += data?.length ?? 0
      return i > 0 && chars > PART_CHARS
    })
    return over === -1 ? this.#items : this.#items.slice(0, over)
  }

  /** All of it as one write, or as much of it as one may hold, and from here on nothing of that. */
  take(
    retried: ReadonlySet<string> | null,
    firstReason: FirstReason | null,
    end: EndReport | null,
  ): AttemptWrite {
    const items = this.#firstItems()
    this.#cut = items.length < this.#items.length
    const write: AttemptWrite = {
      run: this.#run,
      attempt: this.#attempt,
      entries: this.#unsent,
      ...(this.#waits.length > 0 ? { waits: this.#waits } : {}),
      ...(this.#spawns.length > 0 ? { spawns: this.#spawns } : {}),
      ...(this.#closes.length > 0 ? { closes: this.#closes } : {}),
      ...(this.#state ? { state: this.#state.text } : {}),
      ...(this.#shown !== null ? { progress: this.#shown } : {}),
      ...(items.length > 0 ? { stream: items } : {}),
      ...(this.looks || (retried && this.#unsent.some((entry) => retried.has(entry.key)))
        ? { look: true }
        : {}),
      ...(firstReason !== null ? { firstReason } : {}),
      ...(this.phase !== null ? { phase: this.phase } : {}),
      // what is left over goes before the end
      ...(end && !this.#cut ? { end } : {}),
    }
    this.#unsent = []
    this.#chars = 0
    this.#waits = []
    this.#spawns = []
    this.#closes = []
    this.#beforeFailure = null
    this.#state = null
    this.#shown = null
    this.#items = this.#items.slice(items.length)
    this.looks = false
    this.saysReason = false
    this.phase = null
    return write
  }
}

/** Of something that was begun or waited for; the others stand for what the function does. */
const isOutcome = (kind: EntryKind): boolean =>
  kind !== 'race' && kind !== 'spawn' && kind !== 'patch'
