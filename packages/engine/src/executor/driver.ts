// Drives one attempt of one run: the function over its journal. It knows when the function is at rest, gives it recorded
// outcomes in their order and one at a time, records new ones, and suspends when every branch stands at a durable wait.
//
// What must hold here:
// 1. No body begins, and no wait is recorded, while an outcome that the function has received is not durable.
// 2. Entries are numbered in the order in which the function receives them; replay gives them in that order.
// 3. One write of the run is in flight at a time, and whatever is ready joins the next.
// 4. Once the fence is lost, or the attempt has ended, nothing more is written.
// 5. The slot is free only when every body that began has settled.
import { Defect, LeaseholdError, StaleAttemptError } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import type { Ports } from '../kernel/ports.ts'
import type { FirstReason } from '../model/attempt.ts'
import type { RunStatus } from '../model/run.ts'
import type {
  AttemptWrite,
  ChildStart,
  ClaimedRun,
  Directive,
  EndReport,
  Entry,
  EntryKind,
  LiveWait,
  WaitRecord,
  WriteAnswer,
} from '../model/work.ts'
import { Abort } from './abort.ts'
import { failureOf } from './failure.ts'
import type { Ticking, Turns } from './turns.ts'

/** How an attempt left its executor. */
export type Left =
  | { readonly kind: 'ended'; readonly status: RunStatus }
  /** The fence was lost: another holds the run. */
  | { readonly kind: 'stale' }
  /** Let go without a write: the session is over, or the write could not be made. */
  | { readonly kind: 'dropped'; readonly reason: string }

/** An outcome as the function receives it: JSON texts. */
export interface Received {
  readonly output: string | null
  readonly error: string | null
}

/** Where a branch of the function stands: at a name whose outcome it has asked for. */
export interface Branch {
  readonly key: string
  readonly kind: EntryKind
  /** `asked` until the journal is replayed, `body` while this process works on it, `wait` at a durable wait. */
  state: 'asked' | 'body' | 'wait'
  /**
   * Called when the journal holds no outcome for it, and again whenever its recorded wait has changed: begins the body,
   * records the wait, or reports the outcome with `ready`; sets `state`.
   */
  readonly look: (live: LiveWait | undefined) => void
  readonly receive: (received: Received) => void
}

/** An outcome that came about in this process. */
export interface Ready extends Received {
  readonly key: string
  readonly kind: EntryKind
  /** A child that starts with the entry. */
  readonly spawn?: ChildStart & { readonly as: string }
  /** Waits of a race's losers. */
  readonly closes?: readonly string[]
}

export type Returned =
  | { readonly kind: 'value'; readonly output: string | null }
  | { readonly kind: 'continue'; readonly input: string | null; readonly runId: string }

export interface DriverOptions {
  readonly claimed: ClaimedRun
  readonly ports: Ports
  readonly turns: Turns
  /** Sends a write until it is answered; throws when the session is over. */
  readonly write: (write: AttemptWrite) => Promise<WriteAnswer>
  readonly page: (after: number) => Promise<readonly Entry[]>
  /** The store's clock less this process's monotonic clock. */
  readonly storeOffset: number
  /** The workflows whose runs could have the slot that this one has; none while there is room for them beside it. */
  readonly rivals: () => readonly string[]
  /** Steps that one claim drives before a waiting run gets the slot. */
  readonly maxChainDepth: number
  /** Milliseconds before the workflow's own next try, undefined when it has none left for this error. */
  readonly retryInMs: (error: unknown) => number | undefined
}

export interface Driver {
  readonly claimed: ClaimedRun
  readonly signal: AbortSignal
  /** Behind `signal`, for those that may not need one. */
  readonly aborting: Abort
  readonly firstReason: FirstReason | null
  /** Whether the first reason is stored with the attempt's end. */
  readonly reasonSaved: boolean
  /** Bodies that have begun and not settled. */
  readonly bodies: number
  /** Resolves when the attempt has left its executor; bodies may still run. */
  readonly left: Promise<Left>
  /** Resolves when it has left and every body has settled: only then is its slot free. */
  readonly settled: Promise<Left>
  /** Runs the function; called once. */
  start(run: () => Promise<Returned>): void
  readonly over: boolean

  // for the verbs
  ask(branch: Branch): void
  ready(ready: Ready): void
  record(wait: WaitRecord): void
  /** Resolves when this failed try is durable; false when the attempt ended instead. */
  failedTry(record: WaitRecord): Promise<boolean>
  /** Calls `begin` when all that the function has received is durable and bodies may begin; perhaps never. */
  whenDurable(key: string, begin: () => void): void
  bodyBegins(): void
  bodySettles(): void
  /** A short wait in this process begins or ends: the attempt does not suspend meanwhile. */
  inPlace(change: 1 | -1): void
  /** A scope has lost its race: its branches are dropped, and the keys of its waits are returned, to be closed. */
  closeScope(prefix: string): string[]
  isClosed(key: string): boolean
  /** A mark received at once, without waiting for rest. */
  mark(key: string, kind: EntryKind): boolean
  readonly replaying: boolean
  now(): number
  setState(text: string | null): void
  progress(text: string): void
  append(stream: string, data: string | null): void

  // for the executor
  stop(reason: FirstReason, note: string): void
  drain(): void
  told(directive: Directive, note: string | null): void
  drop(reason: string): void
  /** A body ignored its limit: the attempt ends so that the next try, if there is one, has a higher fence. */
  revoke(record: WaitRecord | null, note: string): void
  fail(reason: string, error: unknown, retryInMs?: number): void
}

const STREAM_MAX = 10_000
const STREAM_STRIDE = 1_000_000
const DEPARTS_MS = 1_000
const LOOK_MS = 1_000
const SHOW_MS = 200
const NOTE_MAX = 2_000
const UNSENT_MAX = 100

class RunDriver implements Driver, Ticking {
  readonly claimed: ClaimedRun
  readonly left: Promise<Left>
  readonly settled: Promise<Left>
  readonly #options: DriverOptions
  readonly aborting = new Abort()
  readonly #branches = new Map<string, Branch>()
  // most runs have none of these, and a thousand are driven at once: made when needed
  #live: Map<string, LiveWait> | null = null
  #unreached: Set<string> | null = null
  #retried: Set<string> | null = null
  #consumed: Set<string> | null = null
  readonly #closed: string[] = []

  #journal: readonly Entry[]
  #at = 0
  #lastAt: number

  // received or recorded, and not yet sent
  #count: number
  #unsent: Entry[] = []
  #waits: WaitRecord[] = []
  #spawns: (ChildStart & { as: string })[] = []
  #closes: string[] = []
  #state: { text: string | null } | null = null
  #shown: string | null = null
  #items: { stream: string; seq: number; data: string | null }[] = []
  #itemCount = 0
  #looks = false
  #end: EndReport | null = null

  readonly #queue: Ready[] = []
  #begins: { key: string; begin: () => void }[] = []
  #tries: ((durable: boolean) => void)[] = []
  #bodies = 0
  #steps = 0
  /** At so many steps the store said that nobody waits for this slot. */
  #aloneAt = 0
  #places = 0
  #writing = false
  #firstReason: FirstReason | null = null
  #firstNote = ''
  #reasonSaved = false
  #draining = false
  #pausing = false
  #misled = false
  #returned = false
  #over: Left | null = null
  #quiet = 0
  #departs: (() => void) | null = null
  #looking: (() => void) | null = null
  #showing = false
  #resolveLeft: (left: Left) => void = () => undefined
  #resolveSettled: (left: Left) => void = () => undefined

  constructor(options: DriverOptions) {
    const { claimed } = options
    this.#options = options
    this.claimed = claimed
    this.#journal = claimed.journal
    this.#lastAt = claimed.createdAt
    this.#count = claimed.entries
    if (claimed.waits.length > 0) {
      this.#live = new Map(claimed.waits.map((wait) => [wait.key, wait]))
      this.#unreached = new Set(this.#live.keys())
      this.#retried = new Set(
        claimed.waits.filter((wait) => wait.kind === 'retry').map((wait) => wait.key),
      )
    }
    this.left = new Promise((resolve) => (this.#resolveLeft = resolve))
    this.settled = new Promise((resolve) => (this.#resolveSettled = resolve))
  }

  #leave(how: Left): void {
    if (this.#over) return
    this.#over = how
    this.#departs?.()
    this.#looking?.()
    this.#begins = []
    for (const resolve of this.#tries) resolve(false)
    this.#tries = []
    if (this.#bodies > 0 && !this.aborting.aborted)
      this.aborting.abort(
        new Error(how.kind === 'stale' ? 'another attempt holds the run' : 'the attempt has ended'),
      )
    this.#resolveLeft(how)
    if (this.#bodies === 0) this.#resolveSettled(how)
  }

  #replaying(): boolean {
    return this.#at < this.#journal.length
  }

  /** Something moved: the function is at rest again two turns from now at the earliest. */
  #stir(): void {
    this.#quiet = 0
    this.#departs?.()
    if (!this.#over) this.#options.turns.add(this)
  }

  #give(key: string, received: Received): void {
    const branch = this.#branches.get(key)
    this.#branches.delete(key)
    this.#live?.delete(key)
    this.#unreached?.delete(key)
    this.#stir()
    branch?.receive(received)
  }

  #atRest(): void {
    if (this.#over || this.#end) return
    if (this.#replaying()) {
      if (this.#mustLetGo()) this.#letGo()
      else this.#replayNext()
      return
    }
    const next = this.#queue[0]
    if (next) {
      // a function that never comes to rest (it starts children in a loop) is stored in parts all the same
      if (this.#unsent.length >= UNSENT_MAX) return void this.#flush()
      this.#queue.shift()
      this.#receive(next)
      return
    }
    if (this.#returned) return
    if (
      this.#mustLetGo() &&
      !this.#writing &&
      this.#bodies === 0 &&
      [...this.#branches.values()].some(
        (branch) => branch.state !== 'wait' && branch.kind === 'step',
      )
    ) {
      this.#letGo()
      return
    }
    let asked = false
    for (const branch of this.#branches.values()) {
      if (branch.state !== 'asked') continue
      asked = true
      this.#unreached?.delete(branch.key)
      branch.look(this.#live?.get(branch.key))
    }
    if (asked) this.#stir()
    this.#goOn()
  }

  #receive(next: Ready): void {
    if (this.isClosed(next.key)) {
      this.#stir()
      return
    }
    this.#count += 1
    this.#unsent.push({
      n: this.#count,
      key: next.key,
      kind: next.kind,
      at: this.#stamp(),
      output: next.output,
      error: next.error,
    })
    if (next.spawn) this.#spawns.push(next.spawn)
    if (next.closes) this.#closes.push(...next.closes)
    this.#give(next.key, next)
  }

  #stamp(): number {
    this.#lastAt = Math.max(
      this.#lastAt,
      Math.floor(this.#options.ports.time.mono() + this.#options.storeOffset),
    )
    return this.#lastAt
  }

  #pending(): boolean {
    return (
      this.#unsent.length > 0 ||
      this.#waits.length > 0 ||
      this.#closes.length > 0 ||
      this.#tries.length > 0 ||
      this.#state !== null ||
      this.#looks
    )
  }

  /** At rest with nothing to give: store what is unsent, let bodies begin, suspend, or let go. */
  #goOn(): void {
    if (this.#over || this.#end || this.#writing || this.#replaying() || this.#queue.length > 0)
      return
    const standing = [...this.#branches.values()]
    const idle = this.#bodies === 0 && this.#begins.length === 0 && this.#places === 0
    if (idle && standing.length > 0 && standing.every((branch) => branch.state === 'wait')) {
      if (this.#firstReason !== null) return this.#letGo()
      this.#end = { kind: 'suspend', keys: standing.map((branch) => branch.key) }
      void this.#flush()
      return
    }
    if (this.#mustLetGo() && this.#bodies === 0) return this.#letGo()
    if (this.#pending()) {
      void this.#flush()
      return
    }
    if (this.#begins.length > 0 && !this.#mustLetGo()) {
      const now = this.#begins
      this.#begins = []
      for (const { key, begin } of now) if (!this.isClosed(key)) begin()
    }
    this.#armLook()
  }

  /** Whether no further body may begin: the run is to be let go of at the next end of a step. */
  #mustLetGo(): boolean {
    return (
      this.#firstReason !== null ||
      this.#draining ||
      this.#pausing ||
      this.#misled ||
      (this.#begins.length > 0 &&
        this.#steps > this.#aloneAt &&
        this.#steps >= this.#options.maxChainDepth &&
        this.#options.rivals().length > 0)
    )
  }

  #letGo(): void {
    if (this.#end) return
    if (this.#firstReason === 'time_limit' || this.#firstReason === 'attempt_deadline') {
      const error = Object.assign(new Error(this.#firstNote), { code: this.#firstReason })
      this.fail(
        this.#firstReason,
        error,
        this.#firstReason === 'attempt_deadline' ? this.#options.retryInMs(error) : undefined,
      )
      return
    }
    if (this.#firstReason === 'stale') this.#end = { kind: 'stale', note: this.#firstNote }
    else if (this.#firstReason !== null)
      this.#end = { kind: 'hand_back', reason: this.#firstReason }
    else if (this.#draining) this.#end = { kind: 'hand_back', reason: 'shutdown' }
    else if (this.#pausing) this.#end = { kind: 'hand_back', reason: 'pause' }
    else if (this.#misled) this.#end = { kind: 'hand_back', reason: 'directive_unreadable' }
    else
      this.#end = {
        kind: 'hand_back',
        reason: 'chain',
        toEnd: true,
        ifWaiting: this.#options.rivals(),
      }
    void this.#flush()
  }

  #park(note: string): void {
    if (this.#end || this.#over) return
    this.#end = { kind: 'park', reason: 'nondeterminism', note }
    if (this.#bodies > 0) this.aborting.abort(new Error(note))
    void this.#flush()
  }

  #replayNext(): void {
    const entry = this.#journal[this.#at]
    if (!entry) return
    const branch = this.#branches.get(entry.key)
    if (this.#consumed?.has(entry.key) || this.isClosed(entry.key)) {
      this.#at += 1
      this.#stir()
    } else if (branch && branch.kind !== entry.kind)
      this.#park(
        `entry ${entry.n} of the journal is ${entry.key} as ${entry.kind}; the function asks for it as ${branch.kind}`,
      )
    else if (branch) {
      this.#at += 1
      this.#lastAt = entry.at
      this.#give(entry.key, entry)
    } else if (!this.#departs) {
      const cancel = this.#options.ports.timers.after(DEPARTS_MS, () => {
        this.#departs = null
        const asked = [...this.#branches.keys()]
        this.#park(
          `entry ${entry.n} of the journal is ${entry.key} (${entry.kind}); the function ${asked.length === 0 ? 'asks for nothing' : `asks for ${asked.join(', ')}`}`,
        )
      })
      this.#departs = () => {
        cancel()
        this.#departs = null
      }
    }
  }

  /** While other branches work, a wait of this run may be satisfied or due: look now and then, in case nobody tells. */
  #armLook(): void {
    if (this.#looking || ![...this.#branches.values()].some((branch) => branch.state === 'wait'))
      return
    const cancel = this.#options.ports.timers.after(LOOK_MS, () => {
      this.#looking = null
      this.#looks = true
      this.#goOn()
    })
    this.#looking = () => {
      cancel()
      this.#looking = null
    }
  }

  #take(): AttemptWrite {
    const write: AttemptWrite = {
      run: this.claimed.run,
      attempt: this.claimed.attempt,
      entries: this.#unsent,
      ...(this.#waits.length > 0 ? { waits: this.#waits } : {}),
      ...(this.#spawns.length > 0 ? { spawns: this.#spawns } : {}),
      ...(this.#closes.length > 0 ? { closes: this.#closes } : {}),
      ...(this.#state ? { state: this.#state.text } : {}),
      ...(this.#shown !== null ? { progress: this.#shown } : {}),
      ...(this.#items.length > 0 ? { stream: this.#items } : {}),
      ...(this.#looks || this.#unsent.some((entry) => this.#retried?.has(entry.key))
        ? { look: true }
        : {}),
      ...(this.#firstReason !== null ? { firstReason: this.#firstReason } : {}),
      ...(this.#end ? { end: this.#end } : {}),
    }
    this.#unsent = []
    this.#waits = []
    this.#spawns = []
    this.#closes = []
    this.#state = null
    this.#shown = null
    this.#items = []
    this.#looks = false
    return write
  }

  async #flush(): Promise<void> {
    if (this.#writing || this.#over) return
    this.#writing = true
    do {
      const trying = this.#tries
      this.#tries = []
      const write = this.#take()
      let answer: WriteAnswer
      try {
        answer = await this.#options.write(write)
      } catch (error) {
        for (const resolve of trying) resolve(false)
        this.#leave({ kind: 'dropped', reason: messageOf(error) })
        return
      }
      if (this.#over) {
        for (const resolve of trying) resolve(false)
        return
      }
      if (!answer.ok) {
        for (const resolve of trying) resolve(false)
        this.#refused(answer)
        continue
      }
      if (answer.ended !== null) {
        this.#reasonSaved = this.#firstReason !== null
        for (const resolve of trying) resolve(false)
        this.#leave({ kind: 'ended', status: answer.ended })
        return
      }
      // the suspend found one of its waits satisfied: the attempt goes on
      if (write.end?.kind === 'suspend') this.#end = null
      // nobody waits for the slot: the chain goes on
      if (write.end?.kind === 'hand_back' && write.end.ifWaiting) {
        this.#end = null
        this.#aloneAt = this.#steps
      }
      for (const wait of answer.satisfied) this.#noteWait(wait)
      for (const resolve of trying) resolve(true)
      if (answer.directive !== null) this.told(answer.directive, answer.note)
    } while (this.#over === null && this.#end !== null)
    this.#writing = false
    if (this.#over) return
    if (this.#quiet >= 2 && this.#queue.length === 0) this.#goOn()
    else this.#stir()
  }

  #refused(answer: Extract<WriteAnswer, { ok: false }>): void {
    if (answer.code === 'stale_attempt' || answer.code === 'not_found')
      return this.#leave({ kind: 'stale' })
    if (this.#end?.kind === 'fail' && this.#end.reason === 'result_unsaveable')
      return this.#leave({ kind: 'dropped', reason: answer.message })
    // the store refuses the content: the run fails by name, and nothing else is touched
    this.#unsent = []
    this.#waits = []
    this.#spawns = []
    this.#closes = []
    const reason = answer.code === 'payload_too_large' ? 'result_unsaveable' : answer.code
    this.#end = {
      kind: 'fail',
      reason,
      note: answer.message,
      error: JSON.stringify({ name: 'LeaseholdError', message: answer.message, code: answer.code }),
    }
  }

  #noteWait(wait: LiveWait): void {
    this.#live ??= new Map()
    this.#live.set(wait.key, wait)
    const branch = this.#branches.get(wait.key)
    if (branch?.state === 'wait' && !this.#queue.some((each) => each.key === wait.key))
      branch.look(wait)
  }

  isClosed(key: string): boolean {
    return this.#closed.some((prefix) => key.startsWith(prefix))
  }

  #show(): void {
    if (this.#showing || this.#over) return
    this.#showing = true
    this.#options.ports.timers.after(SHOW_MS, () => {
      this.#showing = false
      if (
        !this.#over &&
        !this.#end &&
        !this.#writing &&
        (this.#shown !== null || this.#items.length > 0 || this.#state !== null)
      )
        void this.#flush()
    })
  }

  tick(): boolean {
    if (this.#over) return false
    this.#quiet += 1
    if (this.#quiet < 2) return true
    try {
      this.#atRest()
    } catch (error) {
      this.#escaped(error)
    }
    return this.#quiet < 2 && this.#over === null
  }

  /**
   * An error that is not the function's: what is stored for this run cannot be read, or a mistake of our own. The run ends
   * `failed` with it and the other runs of this process go on; a mistake is then thrown on, as it came (SLOT-06).
   */
  #escaped(error: unknown): void {
    const { log, timers } = this.#options.ports
    const { run, attempt } = this.claimed
    log.error('driver.escaped', { run, attempt, error })
    this.fail('error', error)
    void this.left.then((left) => {
      if (left.kind === 'dropped')
        log.error('driver.end_not_saved', { run, attempt, reason: left.reason })
      if (error instanceof Defect)
        timers.soon(() => {
          throw error
        })
    })
  }

  get signal(): AbortSignal {
    return this.aborting.signal
  }

  now(): number {
    return this.#lastAt
  }

  get firstReason(): FirstReason | null {
    return this.#firstReason
  }

  get reasonSaved(): boolean {
    return this.#reasonSaved
  }

  get bodies(): number {
    return this.#bodies
  }

  get over(): boolean {
    return this.#over !== null
  }

  get replaying(): boolean {
    return this.#replaying() || (this.#unreached?.size ?? 0) > 0
  }

  start(run: () => Promise<Returned>): void {
    const drive = async (): Promise<void> => {
      let known = this.#journal
      while (known.length < this.claimed.entries && !this.#over) {
        const more = await this.#options.page(known.length)
        if (more.length === 0) break
        known = [...known, ...more]
      }
      this.#journal = known
      if (this.#over) return
      this.#stir()
      try {
        finishWith(await run())
      } catch (error) {
        this.#returned = true
        // an error after a stop was asked is the stop's doing: it settles by its first reason (RUN-17)
        if (this.#firstReason !== null && !this.#over && !this.#end) this.#letGo()
        else if (!this.#over && !this.#end)
          this.fail('error', error, this.#options.retryInMs(error))
      }
    }
    const finishWith = (result: Returned): void => {
      this.#returned = true
      if (this.#over || this.#end) return
      if (
        this.#firstReason === 'time_limit' ||
        this.#firstReason === 'attempt_deadline' ||
        this.#firstReason === 'stale'
      )
        return this.#letGo()
      if (this.#replaying())
        return this.#park(
          `the function returned while the journal has ${this.#journal[this.#at]?.key} as entry ${this.#journal[this.#at]?.n}`,
        )
      const dangling = [...this.#branches.values()].find((branch) => !this.isClosed(branch.key))
      if (dangling) {
        const message = `the function returned while ${dangling.key} was not awaited; await every step, or use ctx.race`
        return this.fail(
          'unawaited_step',
          Object.assign(new Error(message), { code: 'unawaited_step' }),
        )
      }
      this.#end =
        result.kind === 'value'
          ? { kind: 'complete', output: result.output }
          : { kind: 'continue', input: result.input, runId: result.runId }
      void this.#flush()
    }
    drive().catch((error: unknown) => {
      if (error instanceof StaleAttemptError) this.#leave({ kind: 'stale' })
      else if (error instanceof LeaseholdError && error.code === 'session_ended')
        this.#leave({ kind: 'dropped', reason: error.message })
      else this.#escaped(error)
    })
  }

  ask(branch: Branch): void {
    this.#branches.set(branch.key, branch)
    this.#stir()
  }

  ready(ready: Ready): void {
    if (this.#over) return
    this.#queue.push(ready)
    this.#stir()
  }

  record(wait: WaitRecord): void {
    this.#waits.push(wait)
  }

  failedTry(record: WaitRecord): Promise<boolean> {
    // the body of a branch that has lost its race fails for nobody
    if (this.#over || this.#end || this.isClosed(record.key)) return Promise.resolve(false)
    this.#waits.push(record)
    // from here on it may stand open in the store, and a race that this branch loses is to close it
    this.#retried ??= new Set()
    this.#retried.add(record.key)
    return new Promise((resolve) => {
      this.#tries.push(resolve)
      void this.#flush()
    })
  }

  whenDurable(key: string, begin: () => void): void {
    if (this.#over || this.#end) return
    this.#begins.push({ key, begin })
  }

  bodyBegins(): void {
    this.#bodies += 1
    this.#steps += 1
  }

  bodySettles(): void {
    this.#bodies -= 1
    if (!this.#over) return this.#stir()
    if (this.#bodies === 0) this.#resolveSettled(this.#over)
  }

  inPlace(change: 1 | -1): void {
    this.#places += change
    this.#stir()
  }

  closeScope(prefix: string): string[] {
    this.#closed.push(prefix)
    const lost = new Set<string>()
    for (const [key, branch] of this.#branches) {
      if (!key.startsWith(prefix)) continue
      this.#branches.delete(key)
      if (branch.state === 'wait' && !this.#waits.some((record) => record.key === key))
        lost.add(key)
    }
    for (const key of this.#live?.keys() ?? []) if (key.startsWith(prefix)) lost.add(key)
    for (const key of this.#retried ?? []) if (key.startsWith(prefix)) lost.add(key)
    for (const key of lost) {
      this.#live?.delete(key)
      this.#unreached?.delete(key)
    }
    this.#waits = this.#waits.filter((record) => !record.key.startsWith(prefix))
    return [...lost]
  }

  mark(key: string, kind: EntryKind): boolean {
    if (this.#journal.some((entry) => entry.key === key)) {
      this.#consumed ??= new Set()
      this.#consumed.add(key)
      if (this.#journal[this.#at]?.key === key) this.#at += 1
      return true
    }
    if (this.replaying) return false
    if (this.#unsent.some((entry) => entry.key === key)) return true
    this.#count += 1
    this.#unsent.push({ n: this.#count, key, kind, at: this.#stamp(), output: null, error: null })
    return true
  }

  setState(text: string | null): void {
    if (this.replaying) return
    this.#state = { text }
    this.#show()
  }

  progress(text: string): void {
    this.#shown = text
    this.#show()
  }

  append(stream: string, data: string | null): void {
    if (this.#itemCount >= STREAM_MAX || this.#over) return
    this.#itemCount += 1
    this.#items.push({ stream, seq: this.claimed.attempt * STREAM_STRIDE + this.#itemCount, data })
    this.#show()
  }

  stop(reason: FirstReason, note: string): void {
    if (this.#firstReason !== null || this.#over) return
    this.#firstReason = reason
    this.#firstNote = note
    this.aborting.abort(Object.assign(new Error(note), { name: 'AbortError', reason }))
    this.#stir()
  }

  drain(): void {
    this.#draining = true
    this.#stir()
  }

  told(directive: Directive, note: string | null): void {
    if (this.#over) return
    if (directive === 'cancel') this.stop('canceled', note ?? 'canceled')
    else if (directive === 'pause') {
      this.#pausing = true
      this.#stir()
    } else if (directive === 'waits') {
      this.#looks = true
      this.#stir()
    } else {
      // what it was told cannot be followed, so it is not to go on: somebody else may know better
      const { run, attempt } = this.claimed
      this.#options.ports.log.warn('directive.unreadable', { run, attempt, directive })
      this.#misled = true
      this.#stir()
    }
  }

  drop(reason: string): void {
    if (!this.aborting.aborted)
      this.aborting.abort(Object.assign(new Error(reason), { name: 'AbortError' }))
    this.#leave({ kind: 'dropped', reason })
  }

  revoke(record: WaitRecord | null, note: string): void {
    if (this.#over || this.#end) return
    if (record && !this.isClosed(record.key)) this.#waits.push(record)
    this.#end = { kind: 'revoke', reason: 'step_limit', note }
    void this.#flush()
  }

  fail(reason: string, error: unknown, retryInMs?: number): void {
    if (this.#over || (this.#end !== null && this.#end.kind !== 'suspend')) return
    const failure = JSON.stringify(failureOf(error))
    this.#end = {
      kind: 'fail',
      reason,
      note: messageOf(error).slice(0, NOTE_MAX),
      error: failure,
      ...(retryInMs === undefined ? {} : { retryInMs }),
    }
    if (retryInMs !== undefined) {
      // errors that are not durable yet are not recorded: their steps are tried anew by the next attempt
      const base = this.#count - this.#unsent.length
      this.#closes.push(
        ...this.#unsent.filter((entry) => entry.error !== null).map((entry) => entry.key),
      )
      this.#unsent = this.#unsent
        .filter((entry) => entry.error === null)
        .map((entry, i) => ({ ...entry, n: base + i + 1 }))
      this.#count = base + this.#unsent.length
    }
    void this.#flush()
  }
}

export const makeDriver = (options: DriverOptions): Driver => new RunDriver(options)
