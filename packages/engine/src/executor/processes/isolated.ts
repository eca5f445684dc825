// An attempt that a process of its own drives, as its executor sees it: one body, which begins with the process and has
// settled when nothing of its group is alive. The executor keeps the session, the lease and the slot; the process is handed
// the attempt and asks for its writes.
//
// What must hold here:
// 1. The slot is free only when the group is proven gone, whatever the process has said.
// 2. A process that exits without an end leaves an attempt that is lost, with what was seen of its exit as evidence.
// 3. No write passes that names another run or attempt.
import { inWords } from '../../kernel/duration.ts'
import { messageOf } from '../../kernel/json.ts'
import { sleep } from '../../kernel/timers.ts'
import type { AttemptWrite, WriteAnswer } from '../../model/work.ts'
import type { FromBody } from './body-protocol.ts'
import { answered } from './body-protocol.ts'
import { codecOf } from '../authoring/codec.ts'
import type { Core, Session, Work } from '../core.ts'
import { workflowsOf } from '../core.ts'
import type { Driver, Returned } from '../driving/driver.ts'
import { isolationOf } from '../authoring/isolation.ts'
import { printed } from './printed.ts'
import { ABORT_GRACE_MS, STALL_LIMIT_MS } from '../options.ts'
import type { Prepared } from '../preparing/preparing.ts'
import type { BodyProcess, Processes } from './processes.ts'
import { pages, send } from '../wire.ts'

/** How long what was aborted may take to settle before its group is told to end, and then before it is killed. */
export const KILL_GRACE_MS = 5_000
const LOOK_MS = 50

export class Isolated implements Pick<Driver, 'drain' | 'told'> {
  readonly #core: Core
  readonly #processes: Processes
  #body: BodyProcess | null = null
  #draining = false
  #heardAt = 0
  /** When its group is told to end. */
  #endAt = Number.POSITIVE_INFINITY
  #cancelKill: () => void = () => undefined
  #killed = false
  #loaded = false
  #begun = false

  constructor(core: Core, processes: Processes) {
    this.#core = core
    this.#processes = processes
  }

  drain(): void {
    this.#draining = true
    this.#body?.send({ kind: 'drain' })
  }

  told: Driver['told'] = (directive, note) => {
    this.#body?.send({ kind: 'told', directive, note })
  }

  /** Drives the attempt in a process; resolves when nothing of it is alive. */
  async drive(
    of: Session,
    work: Work,
    context: Prepared['context'],
    storeOffset: number,
  ): Promise<Returned> {
    const { driver } = work
    driver.preparationBegins()
    let evidence: string
    try {
      evidence = await this.#run(of, work, context, storeOffset)
    } catch (error) {
      driver.bodySettles()
      throw error
    }
    const { reason, note } = driver.job
    if (reason === null) driver.lose(evidence)
    driver.bodySettles()
    // a process that was stopped: the attempt settles by its first reason
    if (reason !== null && !driver.over) throw new Error(note)
    return { kind: 'value', output: null }
  }

  async #run(
    of: Session,
    work: Work,
    context: Prepared['context'],
    storeOffset: number,
  ): Promise<string> {
    const { claimed, driver, workflow } = work
    const { scratch } = this.#core.options
    const { env, memoryMb, sandbox } = isolationOf(workflow.options)
    const label = { session: of.id, run: claimed.run, attempt: claimed.attempt }
    let exited: (how: string) => void = () => undefined
    const exit = new Promise<string>((resolve) => (exited = resolve))
    const prints = printed(work.log, this.#core.options.ports)
    const body = await this.#processes.spawn(
      { label, workflow: workflow.name, version: workflow.version, env, memoryMb, sandbox },
      {
        message: (message) => this.#hear(of, work, context, storeOffset, message),
        printed: prints.hear,
        exited: (how) => {
          prints.exited()
          exited(how)
        },
      },
    )
    prints.of(body)
    const unlisten = driver.aborting.onAbort(() => this.#stop(driver))
    const unwatch = this.#watch()
    try {
      // written down before it is given anything to do: a start on this host finds it where this process is killed
      await scratch?.noteProcess(label, body.group.leader)
      this.#body = body
      this.#begin(of, work, context, storeOffset)
      if (driver.aborting.aborted) this.#stop(driver)
      const how = await exit
      await this.#gone(body)
      await scratch?.forgetProcess(label)
      return how
    } catch (error) {
      await this.#gone(body)
      throw error
    } finally {
      prints.gone()
      unwatch()
      unlisten()
    }
  }

  /** Begins when it has both been written down and said that its module is loaded. */
  #begin(of: Session, work: Work, context: Prepared['context'], storeOffset: number): void {
    const { claimed, driver, prepared, workflow } = work
    if (!this.#loaded || this.#body === null || this.#begun || driver.aborting.aborted) return
    this.#begun = true
    const { options } = this.#core
    const { generation, limits } = of.answer
    this.#body.send({
      kind: 'begin',
      begin: {
        claimed,
        generation,
        limits,
        prepared: codecOf(workflow.options.codec).encode(prepared) ?? null,
        context,
        now: Math.floor(options.ports.time.mono() + storeOffset),
        maxChainDepth: options.maxChainDepth ?? 50,
        rivals: workflowsOf(this.#core, [driver.job.slotClass]),
      },
    })
    if (this.#draining) this.#body.send({ kind: 'drain' })
  }

  #hear(
    of: Session,
    work: Work,
    context: Prepared['context'],
    storeOffset: number,
    message: FromBody,
  ): void {
    const { driver, claimed } = work
    this.#heardAt = this.#core.options.ports.time.mono()
    switch (message.kind) {
      case 'loaded':
        this.#loaded = true
        return this.#begin(of, work, context, storeOffset)
      case 'write': {
        const { n } = message
        void answered(this.#write(of, work, message.write)).then((answer) =>
          this.#body?.send({ kind: 'written', n, answer }),
        )
        return
      }
      case 'journal': {
        const { n } = message
        void answered(pages(this.#core, of, claimed.run, message.after)).then((answer) =>
          this.#body?.send({ kind: 'page', n, answer }),
        )
        return
      }
      case 'left':
        // how it ended is known by what was written; that it could not be is the process's to say
        if (message.left.kind === 'dropped' && message.left.unsaved) driver.leaveAs(message.left)
        return
      case 'unfit':
        return driver.fail('invalid_config', new Error(message.message))
      case 'log':
        return work.log.logText(message.message, message.facts)
      case 'pong':
        return
    }
  }

  async #write(of: Session, work: Work, write: AttemptWrite): Promise<WriteAnswer> {
    const { claimed, driver } = work
    if (write.run !== claimed.run || write.attempt !== claimed.attempt)
      throw new Error(
        `the process of ${claimed.run}#${claimed.attempt} wrote for ${write.run}#${write.attempt}`,
      )
    const { job } = driver
    // what this executor was asked first goes with it, also where the process has not heard of it
    const whole = job.reason === null ? write : { ...write, firstReason: job.reason }
    const answer = await send(this.#core, of, whole, () => driver.over)
    if (answer.ok && job.reason !== null) job.saved = true
    if (answer.ok && answer.ended !== null) driver.leaveAs({ kind: 'ended', status: answer.ended })
    else if (!answer.ok && (answer.code === 'stale_attempt' || answer.code === 'not_found'))
      driver.leaveAs({ kind: 'stale' })
    else if (answer.ok && answer.directive === 'cancel') driver.told('cancel', answer.note)
    return answer
  }

  /** Its attempt is to stop or is over: it is told, and what has not gone after a grace is made to. */
  #stop(driver: Driver): void {
    const { reason, note } = driver.job
    const { abortGraceMs = ABORT_GRACE_MS } = this.#core.options
    this.#body?.send({ kind: 'stop', reason: driver.over ? null : reason, note })
    // nobody waits for what comes of it now
    if (reason === 'shutdown' || reason === 'lease_lost' || !this.#begun)
      this.#kill(0, abortGraceMs / 2)
    else this.#kill(KILL_GRACE_MS, KILL_GRACE_MS)
  }

  /** Tells the group to end after a while, or sooner where that is asked later, and kills it a grace after that. */
  #kill(afterMs: number, graceMs: number): void {
    const { time, timers } = this.#core.options.ports
    const body = this.#body
    const at = time.mono() + afterMs
    if (body === null || at >= this.#endAt) return
    this.#endAt = at
    this.#cancelKill()
    this.#cancelKill = timers.after(afterMs, () => {
      this.#endAt = Number.NEGATIVE_INFINITY
      this.#signal(body, 'SIGTERM')
      this.#cancelKill = timers.after(graceMs, () => {
        this.#killed = true
        this.#signal(body, 'SIGKILL')
      })
    })
  }

  #signal(body: BodyProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
    if (this.#body !== body) return
    this.#processes.signal(body.group, signal).catch((error: unknown) => {
      this.#core.options.ports.log.error('process.not_signalled', { ...body.group.label, error })
    })
  }

  /** Waits until nothing of the group is alive. What its leader leaves behind is told to end, and then killed. */
  async #gone(body: BodyProcess): Promise<void> {
    const { log, timers } = this.#core.options.ports
    this.#body = body
    this.#kill(0, KILL_GRACE_MS)
    for (;;) {
      try {
        if (!(await this.#processes.isAlive(body.group))) break
      } catch (error) {
        // without proof the slot stays held
        log.error('process.not_seen', { ...body.group.label, error: messageOf(error) })
      }
      await sleep(timers, LOOK_MS)
      // what was started in between is of the group too
      if (this.#killed) this.#signal(body, 'SIGKILL')
    }
    this.#cancelKill()
    this.#body = null
  }

  /** Pings, and kills what has not answered within the limit: a body that keeps its loop busy cannot be asked anything. */
  #watch(): () => void {
    const { log, time, timers } = this.#core.options.ports
    const limitMs = this.#core.options.stallLimitMs ?? STALL_LIMIT_MS
    this.#heardAt = time.mono()
    let cancel: () => void
    const look = (): void => {
      const body = this.#body
      if (body !== null && time.mono() - this.#heardAt >= limitMs) {
        log.warn('process.stalled', { ...body.group.label, limit: inWords(limitMs) })
        return this.#signal(body, 'SIGKILL')
      }
      body?.send({ kind: 'ping' })
      cancel = timers.after(limitMs / 4, look)
    }
    cancel = timers.after(limitMs / 4, look)
    return () => cancel()
  }
}
