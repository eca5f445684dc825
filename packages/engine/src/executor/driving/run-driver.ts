// Drives one attempt of one run: the function over its journal. It knows when the function is at rest, gives it recorded
// outcomes in their order and one at a time, records new ones, and suspends when every branch stands at a durable wait.
//
// What must hold here:
// 1. No body begins, and no wait is recorded, while an outcome that the function has received is not durable.
// 2. Entries are numbered in the order in which the function receives them; replay gives them in that order.
// 3. One write of the run is in flight at a time, and whatever is ready joins the next (`writing.ts`).
// 4. Once the fence is lost, or the attempt has ended, nothing more is written.
// 5. It has settled only when every body that began has.
import { LeaseholdError, StaleAttemptError } from '../../kernel/errors.ts'
import type { FirstReason } from '../../model/attempt.ts'
import type { Job } from '../../model/job.ts'
import { askToStop, isSettled, leaveJob } from '../../model/job.ts'
import type {
  ClaimedRun,
  Directive,
  EndReport,
  EntryKind,
  LiveWait,
  WaitRecord,
} from '../../model/work.ts'
import { Abort } from './abort.ts'
import { Branches } from './branches.ts'
import type { Branch, Driver, DriverOptions, Left, Ready, Returned } from './driver.ts'
import { failEnd, limitOf, mayBeTakenBack, returnedEnd, unawaited } from './ends.ts'
import { LateTimers } from './late-timers.ts'
import { LettingGo } from './letting-go.ts'
import { Outgoing } from './outgoing.ts'
import { Receiving } from './receiving.ts'
import { escaped } from './escaped.ts'
import type { Ticking } from './turns.ts'
import { Writing } from './writing.ts'

class RunDriver implements Driver, Ticking {
  readonly claimed: ClaimedRun
  readonly job: Job
  readonly left: Promise<Left>
  readonly settled: Promise<Left>
  readonly aborting = new Abort()
  readonly #options: DriverOptions
  readonly #branches: Branches
  readonly #receiving: Receiving
  readonly #letting: LettingGo
  readonly #outgoing: Outgoing
  readonly #writing: Writing
  readonly #late: LateTimers
  #begins: { key: string; begin: () => void }[] = []
  #end: EndReport | null = null
  #places = 0
  #returned = false
  /** What the function came to while its end was on its way that the store may still answer with "go on". */
  #cameBack: (() => void) | null = null
  #over: Left | null = null
  #quiet = 0
  #resolveLeft: (left: Left) => void = () => undefined
  #resolveSettled: (left: Left) => void = () => undefined

  constructor(options: DriverOptions) {
    const { claimed } = options
    this.#options = options
    this.claimed = claimed
    this.job = options.job
    this.#letting = new LettingGo(this.job, options)
    this.#branches = new Branches(claimed.waits)
    this.#outgoing = new Outgoing(claimed)
    this.#late = new LateTimers(options.ports.timers)
    this.#receiving = new Receiving(claimed, {
      branches: this.#branches,
      outgoing: this.#outgoing,
      late: this.#late,
      clock: () => options.ports.time.mono() + options.storeOffset,
      stir: () => this.#stir(),
      departs: (note) => this.#park(note),
    })
    this.#writing = new Writing(this.job, this.#outgoing, options.write, {
      retried: () => this.#branches.retried,
      end: () => this.#end,
      setEnd: (end) => (this.#end = end),
      takenBack: () => this.#takenBack(),
      isOver: () => this.#over !== null,
      leave: (how) => this.#leave(how),
      alone: () => this.#letting.alone(),
      noteWait: (wait) => this.#noteWait(wait),
      told: (directive, note) => this.told(directive, note),
      written: () => {
        if (this.#quiet >= 2 && !this.#receiving.isWaiting) this.#goOn()
        else this.#stir()
      },
    })
    this.left = new Promise((resolve) => (this.#resolveLeft = resolve))
    this.settled = new Promise((resolve) => (this.#resolveSettled = resolve))
  }

  // ── where the attempt stands ─────────────────────────────────────────────────────────────────────

  get signal(): AbortSignal {
    return this.aborting.signal
  }

  now(): number {
    return this.#receiving.lastAt
  }

  get over(): boolean {
    return this.#over !== null
  }

  get ending(): boolean {
    return this.#over !== null || this.#end !== null
  }

  /** Whether it ends whatever the store answers. Until then nothing that happens may be dropped. */
  get #isFinal(): boolean {
    return this.#over !== null || (this.#end !== null && !mayBeTakenBack(this.#end))
  }

  get replaying(): boolean {
    return this.#receiving.isReplaying || this.#branches.hasUnreached
  }

  isClosed(key: string): boolean {
    return this.#branches.isClosed(key)
  }

  #leave(how: Left): void {
    if (this.#over) return
    this.#over = how
    leaveJob(this.job)
    this.#late.cancel()
    this.#begins = []
    this.#writing.leave()
    if (this.job.bodies > 0 && !this.aborting.aborted)
      this.aborting.abort(
        new Error(how.kind === 'stale' ? 'another attempt holds the run' : 'the attempt has ended'),
      )
    this.#resolveLeft(how)
    if (isSettled(this.job)) this.#resolveSettled(how)
  }

  // ── rest: what the function receives next ────────────────────────────────────────────────────────

  /** Something moved: the function is at rest again two turns from now at the earliest. */
  #stir(): void {
    this.#quiet = 0
    this.#late.moved()
    if (!this.#over) this.#options.turns.add(this)
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

  #atRest(): void {
    if (this.#over || this.#end) return
    if (this.#receiving.isReplaying) {
      // no step begins before the journal is given: what is at work is its preparation, which is awaited; what settles stirs
      if (this.job.bodies > 0) return
      if (this.#mustLetGo()) this.#letGo()
      // the function is not at rest while a schema looks at a value for it
      else if (this.#places === 0) this.#receiving.replayNext()
      return
    }
    if (this.#receiving.isWaiting) {
      if (!this.#receiving.next()) void this.#writing.flush()
      return
    }
    if (this.#returned) return
    if (
      this.#mustLetGo() &&
      !this.#writing.isBusy &&
      this.job.bodies === 0 &&
      this.#branches.all().some((branch) => branch.state !== 'wait' && branch.kind === 'step')
    ) {
      this.#letGo()
      return
    }
    if (this.#branches.lookAsked()) this.#stir()
    this.#goOn()
  }

  /** At rest with nothing to give: store what is unsent, let bodies begin, suspend, or let go. */
  #goOn(): void {
    if (
      this.#over ||
      this.#end ||
      this.#writing.isBusy ||
      this.#receiving.isReplaying ||
      this.#receiving.isWaiting
    )
      return
    const standing = this.#branches.all()
    const idle = this.job.bodies === 0 && this.#begins.length === 0 && this.#places === 0
    if (idle && standing.length > 0 && standing.every((branch) => branch.state === 'wait')) {
      if (this.job.reason !== null) return this.#letGo()
      return this.#endWith({ kind: 'suspend', keys: standing.map((branch) => branch.key) })
    }
    if (this.#mustLetGo() && this.job.bodies === 0) return this.#letGo()
    if (this.#writing.isDue) return void this.#writing.flush()
    if (this.#begins.length > 0 && !this.#mustLetGo()) {
      const now = this.#begins
      this.#begins = []
      for (const { begin } of now) begin()
    }
    if (this.#branches.all().some((branch) => branch.state === 'wait'))
      this.#late.look(() => {
        this.#outgoing.looks = true
        this.#goOn()
      })
  }

  #noteWait(wait: LiveWait): void {
    this.#branches.note(wait)
    const branch = this.#branches.get(wait.key)
    if (branch?.state === 'wait' && !this.#receiving.has(wait.key)) branch.look(wait)
  }

  // ── ends ─────────────────────────────────────────────────────────────────────────────────────────

  #endWith(end: EndReport): void {
    this.#end = end
    void this.#writing.flush()
  }

  /** The store has answered that the attempt goes on. */
  #takenBack(): void {
    this.#end = null
    const cameBack = this.#cameBack
    this.#cameBack = null
    cameBack?.()
    // what the function has asked for meanwhile was not looked at
    this.#stir()
  }

  /** Whether no further body may begin: the run is to be let go of at the next end of a step. */
  #mustLetGo(): boolean {
    return this.#letting.isDue(this.#begins.length > 0)
  }

  #letGo(): void {
    if (this.#end) return
    const limit = limitOf(this.job)
    if (limit) {
      const error = Object.assign(new Error(this.job.note), { code: limit })
      const retryInMs = limit === 'attempt_deadline' ? this.#options.retryInMs(error) : undefined
      return this.fail(limit, error, retryInMs)
    }
    this.#endWith(this.#letting.end())
  }

  #park(note: string): void {
    if (this.#isFinal) return
    this.#end = { kind: 'park', reason: 'nondeterminism', note }
    if (this.job.bodies > 0) this.aborting.abort(new Error(note))
    void this.#writing.flush()
  }

  fail(reason: string, error: unknown, retryInMs?: number): void {
    if (this.#isFinal) return
    if (retryInMs !== undefined) this.#outgoing.dropFailures()
    this.#endWith(failEnd(reason, error, retryInMs))
  }

  #escaped(error: unknown): void {
    escaped(this, this.#options.ports, error)
  }

  // ── the function ─────────────────────────────────────────────────────────────────────────────────

  start(run: () => Promise<Returned>): void {
    this.#drive(run).catch((error: unknown) => {
      if (error instanceof StaleAttemptError) this.#leave({ kind: 'stale' })
      else if (error instanceof LeaseholdError && error.code === 'session_ended')
        this.#leave({ kind: 'dropped', reason: error.message })
      else this.#escaped(error)
    })
  }

  async #drive(run: () => Promise<Returned>): Promise<void> {
    while (this.#receiving.length < this.claimed.entries && !this.#over) {
      const more = await this.#options.page(this.#receiving.length)
      if (more.length === 0) break
      this.#receiving.extend(more)
    }
    if (this.#over) return
    this.#stir()
    let settle: () => void
    try {
      const result = await run()
      settle = () => this.#finishWith(result)
    } catch (error) {
      settle = () => this.#failWith(error)
    }
    this.#returned = true
    if (this.#isFinal) return
    if (this.#end === null) settle()
    else this.#cameBack = settle
  }

  #failWith(error: unknown): void {
    // an error after a stop was asked is the stop's doing: it settles by its first reason (RUN-17)
    if (this.job.reason !== null) this.#letGo()
    else this.fail('error', error, this.#options.retryInMs(error))
  }

  #finishWith(result: Returned): void {
    if (limitOf(this.job) || this.job.reason === 'stale') return this.#letGo()
    if (this.#receiving.isReplaying)
      return this.#park(
        `the function returned while the journal has ${this.#receiving.replayed?.key} as entry ${this.#receiving.replayed?.n}`,
      )
    const dangling = this.#branches.all().find((branch) => !this.isClosed(branch.key))
    if (dangling) return this.fail('unawaited_step', unawaited(dangling.key))
    this.#endWith(returnedEnd(result))
  }

  // ── for the verbs ────────────────────────────────────────────────────────────────────────────────

  ask(branch: Branch): void {
    this.#branches.add(branch)
    this.#stir()
  }

  ready(ready: Ready): void {
    if (this.#over) return
    this.#receiving.add(ready)
    this.#stir()
  }

  record(wait: WaitRecord): void {
    this.#outgoing.wait(wait)
  }

  failedTry(record: WaitRecord): Promise<boolean> {
    // the body of a branch that has lost its race fails for nobody
    if (this.#isFinal || this.isClosed(record.key)) return Promise.resolve(false)
    this.#outgoing.wait(record)
    this.#branches.mayRetry(record.key)
    return this.#writing.whenStored()
  }

  whenDurable(key: string, begin: () => void): void {
    if (this.#isFinal) return
    this.#begins.push({ key, begin })
  }

  bodyBegins(): void {
    this.job.bodies += 1
    this.#letting.stepBegins()
  }

  bodySettles(): void {
    this.job.bodies -= 1
    if (!this.#over) return this.#stir()
    if (this.job.bodies === 0) this.#resolveSettled(this.#over)
  }

  inPlace(change: 1 | -1): void {
    this.#places += change
    this.#stir()
  }

  closeScope(prefix: string, race: string): string[] {
    return this.#close(prefix, race)
  }

  endScope(prefix: string): void {
    this.#outgoing.close(this.#close(prefix, null))
    this.#stir()
  }

  #close(prefix: string, race: string | null): string[] {
    const closed = this.#branches.close(prefix, this.#outgoing, race)
    this.#begins = this.#begins.filter(({ key }) => !this.isClosed(key))
    return closed
  }

  mark(key: string, kind: EntryKind): boolean {
    if (this.#receiving.takeMark(key)) return true
    if (this.replaying) return false
    if (!this.#outgoing.hasEntry(key)) this.#outgoing.mark(key, kind, this.#receiving.stamp())
    return true
  }

  setState(text: string | null): void {
    if (this.replaying) return
    this.#outgoing.setState(text)
    this.#show()
  }

  progress(text: string): void {
    this.#outgoing.show(text)
    this.#show()
  }

  append(stream: string, data: string | null): void {
    if (!this.#over && this.#outgoing.append(stream, data)) this.#show()
  }

  /** What is only shown waits a moment for more, and for a write that goes anyway. */
  #show(): void {
    if (this.#over) return
    this.#late.show(() => {
      if (!this.#over && !this.#end && !this.#writing.isBusy && this.#outgoing.hasShown)
        void this.#writing.flush()
    })
  }

  preparationBegins(): void {
    this.job.bodies += 1
  }

  says(phase: 'preparing' | 'launched'): void {
    if (this.#over || this.#end) return
    this.#outgoing.phase = phase
    void this.#writing.flush()
  }

  giveBack(reason: string): void {
    if (this.#over || this.#letting.gaveBack !== null) return
    this.#letting.gaveBack = reason
    this.#stir()
  }

  handBack(reason: string): void {
    if (this.#isFinal) return
    this.#letting.gaveBack ??= reason
    this.#letGo()
  }

  // ── for the executor ─────────────────────────────────────────────────────────────────────────────

  stop(reason: FirstReason, note: string): void {
    if (!askToStop(this.job, reason, note)) return
    this.aborting.abort(Object.assign(new Error(note), { name: 'AbortError', reason }))
    // what has no body at work ends at once, and its reason with it; a lost lease can store nothing
    if (this.job.bodies > 0 && !this.job.saved && reason !== 'lease_lost') {
      this.#outgoing.saysReason = true
      void this.#writing.flush()
    }
    this.#stir()
  }

  drain(): void {
    this.#letting.draining = true
    this.#options.relay?.drain()
    this.#stir()
  }

  told(directive: Directive, note: string | null): void {
    if (this.#over) return
    if (directive === 'cancel') {
      // the store has told it: there is nothing to save
      if (this.job.reason === null) this.job.saved = true
      return this.stop('canceled', note ?? 'canceled')
    }
    this.#options.relay?.told(directive, note)
    if (directive === 'pause') this.#letting.pausing = true
    else if (directive === 'waits') this.#outgoing.looks = true
    else {
      // what it was told cannot be followed, so it is not to go on: somebody else may know better
      const { run, attempt } = this.claimed
      this.#options.ports.log.warn('directive.unreadable', { run, attempt, directive })
      this.#letting.gaveBack = 'directive_unreadable'
    }
    this.#stir()
  }

  drop(reason: string): void {
    if (!this.aborting.aborted)
      this.aborting.abort(Object.assign(new Error(reason), { name: 'AbortError' }))
    this.#leave({ kind: 'dropped', reason })
  }

  leaveAs(how: Left): void {
    this.#leave(how)
  }

  lose(note: string): void {
    if (!this.#isFinal) this.#endWith({ kind: 'lose', note })
  }

  revoke(record: WaitRecord | null, note: string): void {
    if (this.#isFinal) return
    if (record && !this.isClosed(record.key)) this.#outgoing.wait(record)
    this.#endWith({ kind: 'revoke', reason: 'step_limit', note })
  }
}

/** The driver of an attempt that is about to begin. */
export const makeDriver = (options: DriverOptions): Driver => new RunDriver(options)
