// An executor of the simulator's own: it drives programs through the executor port as the protocol asks, by a script that
// can be read in one sitting. The real executor stands beside it; this one also does what that one would never do.
import { LeaseholdError } from '../../src/kernel/errors.ts'
import type {
  AttemptWrite,
  ClaimedRun,
  Entry,
  EntryKind,
  ExecutorPort,
  LetGo,
  LiveWait,
  RenewRequest,
  Told,
  WaitRecord,
} from '../../src/model/work.ts'
import { heldDigest, PROTOCOL_VERSION } from '../../src/model/work.ts'
import type { Input, Op, Program } from './programs.ts'
import { definitionFor, outputOf, programOf } from './programs.ts'
import type { Node, World } from './world.ts'
import { oneOf, pick } from './world.ts'

export interface Hooks {
  /** The body of a step begins. */
  body(run: string, attempt: number, key: string): void
  /** A body has killed its process. */
  die(): void
  /** The engine refused what it should not have. */
  unexpected(what: string): void
  /** Whether what it has just been given is lost from its memory at once. */
  forgets(run: string): boolean
  /** How long a claim waits for work. */
  claimWaitMs(): number
}

export interface Setup {
  readonly programs: readonly Program[]
  readonly capacity: number
  /** A workflow that it knows and does not serve. */
  readonly without: string | null
}

/** What an executor with this setup announces. */
export const servedBy = ({ programs, without }: Setup): readonly Program[] =>
  programs.filter(({ name }) => name !== without)

interface Life {
  readonly session: string
  readonly leaseMs: number
  readonly renewMs: number
  over: boolean
  claim: number
  received: number
  /** When the last renewal that was answered was sent. */
  sent: { mono: number; wall: number }
  fenced: boolean
  letGo: LetGo[]
  listNext: boolean
  digestAt: number
}

interface Job {
  readonly run: string
  readonly attempt: number
  readonly claim: number
  readonly life: Life
  readonly from: ClaimedRun
  readonly entries: Map<string, Entry>
  readonly waits: Map<string, LiveWait>
  count: number
  pending: Entry[]
  /** Waits that lost a race, sent with the entry that won it. */
  closing: string[]
  chain: Promise<unknown>
  /** The attempt is over for us: ended, lost, or let go. */
  over: boolean
  ending: boolean
  cancel: boolean
  pause: boolean
}

/** Ends a drive whose attempt is over. */
class Halt extends Error {}

export class ScriptedExecutor {
  readonly node: Node
  readonly #world: World
  readonly #port: ExecutorPort
  readonly #setup: Setup
  readonly #hooks: Hooks
  readonly #jobs = new Map<string, Job>()
  #life: Life | null = null
  #stopping = false
  #room: (() => void)[] = []

  constructor(world: World, node: Node, port: ExecutorPort, setup: Setup, hooks: Hooks) {
    this.#world = world
    this.node = node
    this.#port = port
    this.#setup = setup
    this.#hooks = hooks
  }

  get session(): string {
    return this.#life?.session ?? ''
  }

  /** Whether it is driving something or has a request in flight that matters. */
  get busy(): boolean {
    return this.#jobs.size > 0
  }

  get room(): number {
    return this.#stopping || this.#life === null || this.#life.over || this.#life.fenced
      ? 0
      : this.#setup.capacity - this.#jobs.size
  }

  serves(workflow: string): boolean {
    return servedBy(this.#setup).some(({ name }) => name === workflow)
  }

  start(): void {
    void this.#lives()
  }

  settling(run: string): boolean {
    return this.#jobs.has(run)
  }

  /** Loses one of its jobs from memory: it goes on as if it had never heard of it. */
  forget(): boolean {
    const job = [...this.#jobs.values()].find((each) => !each.over)
    if (!job) return false
    job.over = true
    return true
  }

  /** Lets go of everything and ends its session; resolves when the process may exit. */
  async stop(): Promise<void> {
    this.#stopping = true
    const life = this.#life
    if (!life) return
    await Promise.all(
      [...this.#jobs.values()].map((job) =>
        this.#end(job, { kind: 'hand_back', reason: 'shutdown' }).catch(() => undefined),
      ),
    )
    for (let i = 0; i < 5; i++)
      try {
        await this.#port.close({ session: life.session, reason: 'stopped' })
        return
      } catch {
        await this.#pause(200)
      }
  }

  #pause(ms: number): Promise<void> {
    return this.#world.sleep(this.node, ms)
  }

  #jitter(ms: number): number {
    return ms + pick(this.node.ports.random, ms)
  }

  async #lives(): Promise<void> {
    while (!this.#stopping) {
      const life = await this.#register()
      this.#life = life
      const stop = this.#port.listen(life.session, (told) => this.#told(told))
      void this.#renewing(life)
      await this.#claiming(life)
      stop()
      for (const job of this.#jobs.values()) if (job.life === life) job.over = true
    }
  }

  async #register(): Promise<Life> {
    for (;;) {
      const session = this.node.ports.ids.next('ses')
      for (let i = 0; i < 6; i++) {
        const { mono, now } = this.node.ports.time
        const sent = { mono: mono(), wall: now() }
        try {
          const answer = await this.#port.register({
            protocol: PROTOCOL_VERSION,
            session,
            build: 'sim',
            host: this.node.name,
            pid: 1,
            queues: [],
            labels: [],
            capacity: this.#setup.capacity,
            definitions: servedBy(this.#setup).map(definitionFor),
          })
          if (!answer.ok) break
          return {
            session,
            leaseMs: answer.leaseMs,
            renewMs: answer.renewMs,
            over: false,
            claim: 0,
            received: 0,
            sent,
            fenced: false,
            letGo: [],
            listNext: false,
            digestAt: sent.mono,
          }
        } catch (error) {
          this.#failed(error)
          await this.#pause(this.#jitter(150))
        }
      }
    }
  }

  /** Whatever the network or the store did is tried again; the rest is ours. */
  #failed(error: unknown): void {
    if (!(error instanceof LeaseholdError)) throw error
  }

  #over(life: Life): void {
    life.over = true
    for (const job of this.#jobs.values()) if (job.life === life) job.over = true
    this.#free()
  }

  #free(): void {
    const waiting = this.#room
    this.#room = []
    for (const go of waiting) go()
  }

  // renewals and the fence

  async #renewing(life: Life): Promise<void> {
    this.#watch(life)
    let wait = life.renewMs
    while (!life.over) {
      await this.#pause(wait)
      if (life.over) return
      const { mono, now } = this.node.ports.time
      const sent = { mono: mono(), wall: now() }
      const listed = [...life.letGo]
      try {
        const answer = await this.#port.renew({
          session: life.session,
          draining: false,
          status: null,
          letGo: listed,
          ...this.#held(life, sent.mono),
        })
        if (!answer.ok) return this.#over(life)
        life.sent = sent
        life.letGo = life.letGo.filter(
          (each) =>
            !listed.includes(each) ||
            answer.pending.some(({ run, attempt }) => run === each.run && attempt === each.attempt),
        )
        life.listNext = answer.wantsList
        if (life.fenced && life.letGo.length === 0) {
          life.fenced = false
          this.#free()
        }
        this.#watch(life)
        for (const told of answer.told) this.#told(told)
        wait = life.renewMs
      } catch (error) {
        this.#failed(error)
        wait = this.#jitter(300)
      }
    }
  }

  /** Once a lease a digest of what is held; the list of it where the store found another. */
  #held(life: Life, now: number): Pick<RenewRequest, 'held'> {
    const all = [...this.#jobs.values()].filter((job) => job.life === life && !job.over)
    const claim = life.received
    if (life.listNext)
      return { held: { claim, runs: all.map(({ run, attempt }) => ({ run, attempt })) } }
    if (now - life.digestAt < life.leaseMs / 2) return {}
    life.digestAt = now
    return { held: { claim, digest: heldDigest(all.filter((job) => !job.ending)) } }
  }

  /** Without an answered renewal for four fifths of the lease, nothing here is ours any more. */
  #watch(life: Life): void {
    const { sent } = life
    const limit = Math.floor((life.leaseMs * 4) / 5)
    this.node.ports.timers.after(
      Math.max(0, sent.mono + limit - this.node.ports.time.mono()),
      () => {
        if (life.sent !== sent || life.over) return
        life.fenced = true
        for (const job of this.#jobs.values()) {
          if (job.life !== life || job.over) continue
          job.over = true
          life.letGo.push({ run: job.run, attempt: job.attempt, reason: 'lease_lost' })
        }
      },
    )
  }

  #told(told: Told): void {
    const job = this.#jobs.get(told.run)
    if (!job || job.attempt !== told.attempt) return
    if (told.directive === 'cancel') job.cancel = true
    if (told.directive === 'pause') job.pause = true
  }

  // claims

  async #claiming(life: Life): Promise<void> {
    while (!life.over && !this.#stopping) {
      const most = this.#setup.capacity - this.#jobs.size
      if (most <= 0 || life.fenced) {
        await new Promise<void>((resolve) => this.#room.push(resolve))
        continue
      }
      life.claim += 1
      const request = {
        session: life.session,
        claim: life.claim,
        most,
        except: [...this.#jobs.keys()],
        waitMs: this.#hooks.claimWaitMs(),
      }
      for (;;) {
        try {
          const answer = await this.#port.claim(request)
          if (!answer.ok) {
            if (answer.code !== 'session_ended') this.#hooks.unexpected(`claim: ${answer.code}`)
            return this.#over(life)
          }
          life.received = request.claim
          for (const run of answer.runs) this.#take(life, request.claim, run)
          break
        } catch (error) {
          this.#failed(error)
          if (life.over) return
          await this.#pause(this.#jitter(100))
        }
      }
    }
  }

  #take(life: Life, claim: number, from: ClaimedRun): void {
    if (this.#jobs.has(from.run)) return
    const job: Job = {
      run: from.run,
      attempt: from.attempt,
      claim,
      life,
      from,
      entries: new Map(from.journal.map((entry) => [entry.key, entry])),
      waits: new Map(from.waits.map((wait) => [wait.key, wait])),
      count: from.entries,
      pending: [],
      closing: [],
      chain: Promise.resolve(),
      over: life.over,
      ending: false,
      cancel: false,
      pause: false,
    }
    if (life.fenced) {
      job.over = true
      life.letGo.push({ run: job.run, attempt: job.attempt, reason: 'lease_lost' })
      return
    }
    if (this.#hooks.forgets(job.run)) job.over = true
    this.#jobs.set(job.run, job)
    void this.#drive(job)
  }

  // driving

  async #drive(job: Job): Promise<void> {
    try {
      for (let page = job.from.journal; job.entries.size < job.from.entries;) {
        page = await this.#again(job, () =>
          this.#port.journal(job.life.session, job.run, page.at(-1)?.n ?? job.entries.size),
        )
        if (page.length === 0) break
        for (const entry of page) job.entries.set(entry.key, entry)
      }
      if (job.entries.size !== job.from.entries)
        this.#hooks.unexpected(
          `${job.run} has ${job.from.entries} entries; its journal shows ${job.entries.size}`,
        )
      const program = programOf(job.from.workflow)
      const input = JSON.parse(job.from.input ?? '{}') as Input
      for (const op of program.ops(input)) {
        await this.#perform(job, program, op)
        await this.#heed(job)
      }
      const next = program.next?.(input) ?? null
      await this.#end(
        job,
        next === null
          ? { kind: 'complete', output: this.#output(job) }
          : {
              kind: 'continue',
              input: JSON.stringify(next),
              runId: this.node.ports.ids.next('run'),
            },
      )
    } catch (error) {
      if (!(error instanceof Halt)) throw error
    } finally {
      job.over = true
      this.#jobs.delete(job.run)
      this.#free()
    }
  }

  #output(job: Job): string {
    const entries = [...job.entries.values()].sort((a, b) => a.n - b.n)
    return JSON.stringify(entries.map((entry) => [entry.key, entry.output, entry.error]))
  }

  async #perform(job: Job, program: Program, op: Op): Promise<void> {
    switch (op.do) {
      case 'step':
        return this.#step(job, op.key, op.ms, op.failing ?? 0, op.retryMs ?? 0)
      case 'parallel': {
        await this.#flush(job)
        await Promise.all(
          op.keys.map(async (key, i) => {
            if (job.entries.has(key)) return
            await this.#body(job, key, op.ms + 37 * ((i * 2) % 3))
            this.#receive(job, key, 'step', outputOf(job.run, key), null)
            await this.#flush(job)
          }),
        )
        return
      }
      case 'sleep':
        return this.#wait(job, { key: op.key, kind: 'time', dueInMs: op.ms })
      case 'signal':
        return this.#wait(job, {
          key: op.key,
          kind: 'signal',
          name: op.name,
          ...(op.ms === null ? {} : { dueInMs: op.ms }),
        })
      case 'approval':
        return this.#wait(job, {
          key: op.key,
          kind: 'approval',
          dueInMs: op.ms,
          approval: { prompt: `${op.key}?`, data: null, deciders: [] },
        })
      case 'child':
        return this.#wait(job, {
          key: op.key,
          kind: 'child',
          child: { ...this.#child(op.workflow, op.input), awaited: true, onParentEnd: 'cancel' },
        })
      case 'spawn': {
        if (job.entries.has(op.key)) return
        const child = this.#child(op.workflow, op.input)
        this.#receive(job, op.key, 'spawn', JSON.stringify(child.id), null)
        await this.#write(job, {
          spawns: [
            { ...child, as: op.key, awaited: false, onParentEnd: op.bound ? 'cancel' : 'detach' },
          ],
        })
        return
      }
      case 'race':
        return this.#race(job, op)
      case 'contest':
        return this.#contest(job, op)
      case 'both':
        return this.#both(job, op)
      case 'watch': {
        if (job.waits.has(op.key)) return
        const record: WaitRecord = { key: op.key, kind: 'signal', name: op.name }
        job.waits.set(op.key, openWait(record))
        return this.#write(job, { waits: [record] })
      }
      case 'deaf':
        if (job.entries.has(op.key)) return
        await this.#flush(job)
        this.#hooks.body(job.run, job.attempt, op.key)
        await this.#pause(op.ms)
        this.#receive(job, op.key, 'step', outputOf(job.run, op.key), null)
        return
      case 'die':
        await this.#flush(job)
        this.#hooks.body(job.run, job.attempt, op.key)
        await this.#pause(10)
        if (!job.over) this.#hooks.die()
        return
      case 'chain':
        if (job.entries.has(op.key)) return
        this.#receive(job, op.key, 'step', null, null)
        return this.#end(job, { kind: 'hand_back', reason: 'chain', toEnd: true })
      case 'show':
        await this.#write(job, { progress: JSON.stringify(`attempt ${job.attempt}`) })
        return
      case 'throw': {
        if (job.from.failures >= op.times) return
        const left = (program.retry?.maxAttempts ?? 1) - job.from.failures - 1
        return this.#end(job, {
          kind: 'fail',
          reason: 'error',
          note: 'thrown by the program',
          error: JSON.stringify({ name: 'Error', message: 'thrown' }),
          ...(left > 0 ? { retryInMs: Number(program.retry?.base ?? 500) } : {}),
        })
      }
    }
  }

  #child(workflow: string, input: Input) {
    return { id: this.node.ports.ids.next('run'), workflow, input: JSON.stringify(input) }
  }

  async #body(job: Job, key: string, ms: number): Promise<void> {
    if (job.over) throw new Halt()
    this.#hooks.body(job.run, job.attempt, key)
    await this.#pause(ms)
    if (job.over) throw new Halt()
  }

  async #step(job: Job, key: string, ms: number, failing: number, retryMs: number): Promise<void> {
    if (job.entries.has(key)) return
    await this.#flush(job)
    while (job.waits.get(key)?.state === 'open') await this.#suspend(job, [key])
    for (let tries = job.waits.get(key)?.tries ?? 0; tries < failing;) {
      await this.#body(job, key, ms)
      tries += 1
      const retry: WaitRecord = {
        key,
        kind: 'retry',
        dueInMs: retryMs,
        tries,
        error: JSON.stringify({ name: 'Error', message: `try ${tries}` }),
      }
      await this.#write(job, { waits: [retry] })
      await this.#heed(job)
      job.waits.set(key, openWait(retry))
      if (retryMs <= 2_000) await this.#pause(retryMs)
      else {
        while (job.waits.get(key)?.state === 'open') await this.#suspend(job, [key])
      }
    }
    await this.#body(job, key, ms)
    this.#receive(job, key, 'step', outputOf(job.run, key), null)
    if (this.node.ports.random.next() < 0.7) await this.#flush(job)
  }

  async #wait(job: Job, record: WaitRecord): Promise<void> {
    const { key } = record
    if (job.entries.has(key)) return
    if (!job.waits.has(key)) {
      job.waits.set(key, openWait(record))
      if (this.node.ports.random.next() < 0.5) await this.#write(job, { waits: [record] })
      else await this.#end(job, { kind: 'suspend', keys: [key] }, { waits: [record] })
    }
    while (job.waits.get(key)?.state === 'open') await this.#suspend(job, [key])
    this.#came(job, key)
  }

  #came(job: Job, key: string): void {
    const wait = job.waits.get(key)
    if (!wait) return
    job.waits.delete(key)
    if (wait.state === 'lapsed' && wait.kind !== 'time')
      this.#receive(job, key, wait.kind as EntryKind, null, JSON.stringify({ code: 'timeout' }))
    else this.#receive(job, key, wait.kind as EntryKind, wait.result, null)
  }

  async #race(job: Job, op: Extract<Op, { do: 'race' }>): Promise<void> {
    const keys = [op.signal, op.timer]
    if (keys.some((key) => job.entries.has(key))) return
    if (!keys.some((key) => job.waits.has(key))) {
      const waits: WaitRecord[] = [
        { key: op.signal, kind: 'signal', name: op.name },
        { key: op.timer, kind: 'time', dueInMs: op.ms },
      ]
      for (const record of waits) job.waits.set(record.key, openWait(record))
      await this.#write(job, { waits })
    }
    const winner = (): string | undefined =>
      keys.find((key) => job.waits.get(key)?.state !== 'open')
    while (winner() === undefined) await this.#suspend(job, keys)
    // where both have come, either may be seen first
    const come = keys.filter((key) => job.waits.get(key)?.state !== 'open')
    const won = oneOf(this.node.ports.random, come)
    const lost = keys.filter((key) => key !== won)
    this.#came(job, won)
    for (const key of lost) job.waits.delete(key)
    job.closing.push(...lost)
    await this.#flush(job)
  }

  async #contest(job: Job, op: Extract<Op, { do: 'contest' }>): Promise<void> {
    const { key, timer } = op
    if (job.entries.has(key) || job.entries.has(timer)) return
    if (!job.waits.has(timer)) {
      const record: WaitRecord = { key: timer, kind: 'time', dueInMs: op.timerMs }
      job.waits.set(timer, openWait(record))
      await this.#write(job, { waits: [record] })
    }
    const isOver = (): boolean => job.waits.get(timer)?.state !== 'open'
    for (let tries = job.waits.get(key)?.tries ?? 0; !isOver();) {
      await this.#body(job, key, op.ms)
      if (tries === op.failing) break
      tries += 1
      const retry: WaitRecord = { key, kind: 'retry', dueInMs: op.retryMs, tries }
      await this.#write(job, { waits: [retry] })
      job.waits.set(key, openWait(retry))
      if (isOver()) break
      await this.#pause(op.retryMs)
      await this.#write(job, { look: true })
    }
    const won = isOver()
    job.closing.push(won ? key : timer)
    if (won) this.#came(job, timer)
    else this.#receive(job, key, 'step', outputOf(job.run, key), null)
    await this.#flush(job)
    job.waits.delete(won ? key : timer)
  }

  async #both(job: Job, op: Extract<Op, { do: 'both' }>): Promise<void> {
    const left = op.keys.filter((key) => !job.entries.has(key))
    const waits = left
      .filter((key) => !job.waits.has(key))
      .map((key): WaitRecord => ({ key, kind: 'signal', name: op.name, dueInMs: op.ms }))
    for (const record of waits) job.waits.set(record.key, openWait(record))
    if (waits.length > 0) await this.#write(job, { waits })
    while (left.length > 0) {
      const at = left.findIndex((key) => job.waits.get(key)?.state !== 'open')
      if (at < 0) await this.#suspend(job, left)
      else this.#came(job, left.splice(at, 1)[0] ?? '')
    }
  }

  #suspend(job: Job, keys: readonly string[]): Promise<void> {
    return this.#end(job, { kind: 'suspend', keys })
  }

  /** Cancel and pause, at the end of a step. */
  async #heed(job: Job): Promise<void> {
    if (job.over) throw new Halt()
    if (job.cancel) await this.#end(job, { kind: 'hand_back', reason: 'canceled' })
    if (job.pause) await this.#end(job, { kind: 'hand_back', reason: 'pause' })
  }

  #receive(
    job: Job,
    key: string,
    kind: EntryKind,
    output: string | null,
    error: string | null,
  ): void {
    job.count += 1
    const entry = { n: job.count, key, kind, at: this.node.ports.time.now(), output, error }
    job.entries.set(key, entry)
    job.pending.push(entry)
  }

  #flush(job: Job): Promise<void> {
    return job.pending.length === 0 ? Promise.resolve() : this.#write(job, {})
  }

  #end(
    job: Job,
    end: NonNullable<AttemptWrite['end']>,
    more: Partial<AttemptWrite> = {},
  ): Promise<void> {
    return this.#write(job, { ...more, end })
  }

  /** One write at a time; repeated until it is answered. Halts when the attempt is over. */
  #write(job: Job, what: Partial<AttemptWrite>): Promise<void> {
    const mine = job.chain.then(
      () => this.#send(job, what),
      () => this.#send(job, what),
    )
    job.chain = mine.catch(() => undefined)
    return mine
  }

  async #send(job: Job, what: Partial<AttemptWrite>): Promise<void> {
    if (job.over) throw new Halt()
    const entries = job.pending
    job.pending = []
    const closes = job.closing
    job.closing = []
    if (entries.length === 0 && Object.keys(what).length === 0) return
    job.ending = what.end !== undefined
    // the entry of a step that was tried again takes its retry, which the store must look at
    const look = entries.some((entry) => job.waits.delete(entry.key)) ? { look: true } : {}
    const write: AttemptWrite = {
      run: job.run,
      attempt: job.attempt,
      entries,
      ...look,
      ...what,
      ...(closes.length > 0 ? { closes } : {}),
    }
    const answer = await this.#again(job, () => this.#port.write(job.life.session, write))
    job.ending = false
    if (!answer.ok) {
      // as in an executor, a call of what nobody has brought yet is an error of the function, with all that it has received
      if (answer.code === 'unknown_workflow' && what.end === undefined) {
        const { message: note } = answer
        const error = JSON.stringify({ name: 'LeaseholdError', message: note })
        job.pending = entries.filter(({ kind }) => kind !== 'spawn')
        job.closing = closes
        return this.#send(job, { end: { kind: 'fail', reason: answer.code, note, error } })
      }
      if (answer.code !== 'stale_attempt' && answer.code !== 'not_found')
        this.#hooks.unexpected(`write of ${job.run}: ${answer.code}: ${answer.message}`)
      job.over = true
      throw new Halt()
    }
    if (answer.directive === 'cancel') job.cancel = true
    if (answer.directive === 'pause') job.pause = true
    for (const wait of answer.satisfied) job.waits.set(wait.key, wait)
    if (answer.ended !== null || (what.end && what.end.kind !== 'suspend')) {
      job.over = true
      throw new Halt()
    }
  }

  async #again<T>(job: Job, call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        this.#failed(error)
        if (job.over) throw new Halt()
        await this.#pause(this.#jitter(80))
        if (job.over) throw new Halt()
      }
    }
  }
}

const openWait = (record: WaitRecord): LiveWait => ({
  key: record.key,
  kind: record.kind,
  name: record.name ?? null,
  dueAt: null,
  state: 'open',
  result: null,
  tries: record.tries ?? 0,
  error: record.error ?? null,
})
