// An attempt that a pod of its own drives, as the executor sees it that starts the pod. Until the pod adopts the attempt it is this
// executor's: its stops, limits and drain end it, and what the pod would do then is refused by the store. From then on it is the
// pod's, and what stays here is its slot, up to the proof that nothing of the pod is alive.
//
// What must hold here:
// 1. The slot is free only when the pod is proven gone; a stop of this executor alone lets go of it before.
// 2. A pod that is gone leaves no attempt waiting for a lease: it is lost here, or its session is reported to have ended.
// 3. Nothing of an attempt that has been handed on is stopped by this executor while the pod has it.
import { Defect, StaleAttemptError } from '../../kernel/errors.ts'
import { messageOf } from '../../kernel/json.ts'
import { growingDelayMs } from '../../kernel/growing-delay.ts'
import { jittered } from '../../kernel/random.ts'
import { seldom } from '../../kernel/seldom.ts'
import { sleep } from '../../kernel/timers.ts'
import type { Core, Session, Work } from '../core.ts'
import { RETRY } from '../core.ts'
import type { Driver, Returned } from '../driving/driver.ts'
import type { Launcher, PodLabel, PodOrder, PodSeen } from './launcher.ts'
import { OrderRefused } from './launcher.ts'
import { send } from '../wire.ts'

export const START_BY_MS = 5 * 60_000
/** How long after its limit a pod may be shown as not started though it was in time. */
export const SHOWN_LATE_MS = 60_000

/** How often it is asked whether a pod that goes its own way still has its attempt. */
const HELD_MS = 30_000
/** After the last entry of any journal. */
const NO_ENTRIES = 2_147_483_647

const NONE: Returned = { kind: 'value', output: null }

export class Launched implements Pick<Driver, 'drain' | 'told'> {
  readonly #core: Core
  readonly #launcher: Launcher
  readonly #say: ReturnType<typeof seldom>
  #driver: Driver | null = null
  #label: PodLabel = { session: '', run: '', attempt: 0 }
  #startBy = Number.POSITIVE_INFINITY
  /** Why it is not to begin here after all, where that was said before it was driven. */
  #unwanted: string | null = null
  #now: () => number = () => 0
  #runner = ''
  #made = false
  #reported = false
  /** When it is asked next whether the pod has the attempt, and since when it is known that it has not. */
  #heldAt = 0
  #unheldSince: number | null = null

  constructor(core: Core, launcher: Launcher) {
    this.#core = core
    this.#launcher = launcher
    this.#say = seldom(core.options.ports.log, core.options.ports.time, 'warn')
  }

  drain(): void {
    this.#handBack('shutdown')
  }

  told: Driver['told'] = (directive) => {
    // waits are looked at by whoever adopts it
    if (directive !== 'waits')
      this.#handBack(directive === 'pause' ? 'pause' : 'directive_unreadable')
  }

  #handBack(reason: string): void {
    this.#unwanted ??= reason
    this.#driver?.handBack(reason)
  }

  /** Resolves when it is known here how the attempt goes on; the body that it counts as settles when the pod is gone. */
  async drive(of: Session, work: Work, _context: unknown, storeOffset: number): Promise<Returned> {
    const { claimed, driver } = work
    const { time } = this.#core.options.ports
    this.#driver = driver
    this.#label = { session: of.id, run: claimed.run, attempt: claimed.attempt }
    this.#now = () => time.mono() + storeOffset
    // a server that gives no token is waited for no longer than a pod
    this.#startBy = this.#now() + (this.#launcher.startByMs ?? START_BY_MS)
    if (this.#unwanted !== null) driver.handBack(this.#unwanted)
    driver.preparationBegins()
    const aborted = new Promise<void>((resolve) => {
      driver.aborting.onAbort(() => resolve())
    })
    const known = this.#launch(of)
    // whatever became of the launch, what it may have made is seen to its end
    void known
      .catch(() => undefined)
      .then(() => this.#settle(driver))
      .finally(() => driver.bodySettles())
    await Promise.race([known, aborted])
    const { reason, note } = driver.job
    if (reason !== null && !driver.over) throw new Error(note)
    // a value would be taken for the result of the run
    if (!driver.ending) throw new Defect(`the launch of ${claimed.run} came to nothing`)
    return NONE
  }

  /** Makes the pod and sees it adopt the attempt, or end before; over as soon as the attempt is not this executor's. */
  async #launch(of: Session): Promise<void> {
    const order = await this.#order(of)
    if (order === null) return
    await this.#untilMade(order)
    while (!this.#isOver) {
      const seen = await this.#look()
      if (this.#isOver) return
      if (seen?.state === 'ended' || seen?.state === 'none') {
        // where it had adopted the attempt, that is so by the report
        await this.#report(seen)
        return this.#driver?.lose(seen.note)
      }
      if (this.#now() >= this.#startBy) return this.#driver?.handBack('start_deadline')
      // one that is about to be gone may have adopted it as well
      if (seen?.state === 'running' || seen?.state === 'going') await this.#ask(of)
    }
  }

  get #isOver(): boolean {
    return this.#driver === null || this.#driver.ending || this.#driver.aborting.aborted
  }

  /** What the pod is made with; null where the attempt is not to begin here any more. */
  async #order(of: Session): Promise<PodOrder | null> {
    const { ids } = this.#core.options.ports
    const { startByMs = START_BY_MS } = this.#launcher
    const runner = ids.next('ses')
    this.#runner = runner
    const answer = await this.#again('grant.failed', () =>
      this.#launcher.grant({ ...this.#label, session: of.id, runner, startByMs }),
    )
    if (answer === null) {
      if (!this.#isOver) this.#driver?.handBack('start_deadline')
      return null
    }
    if (!answer.ok) {
      this.#driver?.leaveAs({ kind: 'stale' })
      return null
    }
    this.#startBy = answer.startBy
    return { label: this.#label, runner, token: answer.token, startBy: answer.startBy }
  }

  /** What got no answer may have been done: it is repeated until there is one, or the pod would come too late. */
  async #untilMade(order: PodOrder): Promise<void> {
    this.#made = true
    await this.#again('pod.not_made', () => this.#launcher.pods.make(order))
    if (!this.#isOver && this.#now() >= this.#startBy) this.#driver?.handBack('start_deadline')
  }

  /** Asks until there is an answer; null where the attempt is over here before, or its limit has passed. */
  async #again<T>(event: string, ask: () => Promise<T>): Promise<T | null> {
    const { random, timers } = this.#core.options.ports
    for (let failures = 1; !this.#isOver && this.#now() < this.#startBy; failures++) {
      try {
        return await ask()
      } catch (error) {
        if (error instanceof OrderRefused) throw error
        this.#say(event, event, { ...this.#label, error: messageOf(error) })
      }
      const wait = jittered(random, growingDelayMs(failures, RETRY))
      await sleep(timers, wait, this.#driver?.signal)
    }
    return null
  }

  /** Whether the attempt is still this executor's. */
  async #ask(of: Session): Promise<void> {
    const { run, attempt } = this.#label
    const driver = this.#driver
    if (driver === null) return
    try {
      const write = { run, attempt, entries: [], look: true }
      const answer = await send(this.#core, of, write, () => this.#isOver)
      if (!answer.ok && (answer.code === 'stale_attempt' || answer.code === 'not_found'))
        driver.leaveAs({ kind: 'handed_on' })
      else if (answer.ok && answer.directive !== null) driver.told(answer.directive, answer.note)
    } catch (error) {
      if (!this.#isOver) this.#say('pod.not_asked', 'ask', { ...this.#label, error })
    }
  }

  /** Null where it could not be seen. */
  async #look(): Promise<PodSeen | null> {
    const { random, timers } = this.#core.options.ports
    try {
      return await this.#launcher.pods.look(this.#label)
    } catch (error) {
      // without proof the slot stays held
      this.#say('pod.not_seen', 'look', { ...this.#label, error: messageOf(error) })
      await sleep(timers, jittered(random, RETRY.maxMs))
      return null
    }
  }

  /** Until nothing of the pod is alive. One that no attempt is left for is removed; one that may have adopted it goes its own way. */
  async #settle(driver: Driver): Promise<void> {
    const left = await driver.left
    if (!this.#made) return
    const isItsOwn = left.kind !== 'ended'
    let removed = !isItsOwn && (await this.#remove())
    while (!this.#isLetGo(isItsOwn)) {
      const seen = await this.#look()
      if (seen?.state === 'none' || seen?.state === 'ended') {
        await this.#report(seen)
        if (!removed) await this.#remove()
        return
      }
      if (removed || seen === null) continue
      if (!isItsOwn || (await this.#isForNothing(seen))) removed = await this.#remove()
    }
  }

  /**
   * Whether a pod that may have adopted its attempt has not, or has it no more, and does not end: whoever lost the lease before that
   * was known would hold a slot for a process that hangs.
   */
  async #isForNothing({ state }: PodSeen): Promise<boolean> {
    const now = this.#now()
    // from then on nothing is adopted
    if (now < this.#startBy + SHOWN_LATE_MS) return false
    if (state === 'waiting') return true
    if (now < this.#heldAt) return false
    this.#heldAt = now + HELD_MS
    try {
      await this.#core.options.port.journal(this.#runner, this.#label.run, NO_ENTRIES)
      return false
    } catch (error) {
      if (!(error instanceof StaleAttemptError)) {
        this.#say('pod.not_asked', 'held', { ...this.#label, error: messageOf(error) })
        return false
      }
    }
    this.#unheldSince ??= now
    return now - this.#unheldSince >= SHOWN_LATE_MS
  }

  /** An executor that stops waits for no pod that has an attempt of its own; of the others it has asked for the end. */
  #isLetGo(isItsOwn: boolean): boolean {
    const { state } = this.#core
    return state === 'stopped' || (isItsOwn && state === 'draining')
  }

  /** The session of a process that is gone holds nothing until its lease ends. */
  async #report({ note }: PodSeen): Promise<void> {
    if (this.#reported) return
    try {
      await this.#launcher.exited(this.#runner, note)
      this.#reported = true
    } catch (error) {
      // its lease is the net
      this.#say('pod.not_reported', 'report', { ...this.#label, error: messageOf(error) })
    }
  }

  async #remove(): Promise<boolean> {
    try {
      await this.#launcher.pods.remove(this.#label, this.#runner)
      return true
    } catch (error) {
      this.#say('pod.not_removed', 'remove', { ...this.#label, error: messageOf(error) })
      return false
    }
  }
}
