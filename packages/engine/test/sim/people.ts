// Those outside: clients that start runs and repeat what was not answered, and people who cancel, pause, decide twice,
// signal, take runs back and change limits.
import { LeaseholdError } from '../../src/kernel/errors.ts'
import type { Random } from '../../src/kernel/random.ts'
import type { StartCommand } from '../../src/model/start.ts'
import type { Faults, Kind } from './faults.ts'
import type { Net } from './net.ts'
import type { Program } from './programs.ts'
import type { Change, Shadow } from './shadow.ts'
import type { Node, World } from './world.ts'
import { oneOf, pick } from './world.ts'

interface Answer {
  readonly ok: boolean
  readonly code?: string
  readonly id?: string
}

const EXPECTED = new Set([
  'limit_full',
  'key_reused',
  'already_ended',
  'already_decided',
  'approval_lapsed',
  'not_paused',
  'not_held',
  'not_found',
  'already_active',
  'signals_full',
  'command_reused',
])

/** Workflows that wait for signals. */
const LISTENING = new Set(['asker', 'listener', 'racer', 'series', 'pair', 'relay'])

/** Workflows that end with their first step. */
const ONE_STEP = new Set(['one', 'turnstile', 'hasty', 'mourner'])

export interface Crowd {
  readonly runs: number
  readonly overMs: number
  readonly programs: readonly Program[]
  /** People do more than let waiting runs go on. */
  readonly meddle: boolean
  /** They do it at the very moment at which it may go wrong. */
  readonly keen: boolean
}

export class People {
  /** Runs whose start was acknowledged. */
  started = 0
  asked = 0
  answered = 0
  readonly node: Node
  readonly #world: World
  readonly #net: Net
  readonly #faults: Faults
  readonly #shadow: Shadow
  readonly #crowd: Crowd
  readonly #unexpected: (what: string) => void
  readonly #refused: (verb: string, code: string) => void
  readonly #keen: Random
  readonly #lost = new Map<string, number>()
  readonly #counts = new Map<string, number>()
  /** Approvals that nobody decides in time. */
  readonly #ignored = new Set<string>()
  #over = false

  constructor(
    world: World,
    net: Net,
    faults: Faults,
    shadow: Shadow,
    crowd: Crowd,
    unexpected: (what: string) => void,
    refused: (verb: string, code: string) => void,
  ) {
    this.#world = world
    this.#net = net
    this.#faults = faults
    this.#shadow = shadow
    this.#crowd = crowd
    this.#unexpected = unexpected
    this.#refused = refused
    this.#keen = world.chance('keen')
    this.node = world.born('people', { offset: 0 })
  }

  start(): void {
    void this.#clients()
    void this.#people()
  }

  /** Everybody has asked for what they wanted, and does nothing more of their own. */
  leave(): void {
    this.#over = true
  }

  // those who are keen act at the moment, when what they saw has not been told to anybody yet

  /** Something has been committed. */
  saw(change: Change): void {
    if (!this.#crowd.keen || this.#over) return
    const random = this.#keen
    for (const { before, after } of change.runs) {
      if (!before || after.session === null) continue
      const roll = random.next()
      if (before.session === null) {
        if (roll < 0.06) this.#soon(pick(random, 500), () => this.#take(after.id, after.attempt))
        else if (roll < 0.09) this.#soon(pick(random, 400), () => this.#cancel(after.id))
        // before it waits for it
        if (LISTENING.has(after.workflow) && random.next() < 0.4)
          this.#soon(pick(random, pick(random, 2) === 0 ? 2 : 300), () =>
            this.#signal(after.id, '"early"'),
          )
      } else if (after.entries > before.entries) {
        // its last step is recorded, and its end is on the way
        const last = ONE_STEP.has(after.workflow) ? 0.25 : 0.02
        if (roll < last) this.#soon(pick(random, 2), () => this.#cancel(after.id))
        else if (roll < last + 0.02) this.#pauseSoon(after.id, 2_000)
      }
    }
    for (const { before, after } of change.runs)
      if (after.reason === 'continued' && before?.reason !== after.reason) this.#sendAgain(after.id)
    for (const { before, after } of change.waits) {
      if (before || after.state !== 'open') continue
      // when its attempt is about to suspend, which then goes on
      if (after.kind === 'signal' && random.next() < 0.4)
        this.#soon(pick(random, 3), () => this.#signal(after.run, '"at once"'))
      if (after.dueAt === null) continue
      const due = after.dueAt - change.now
      if (random.next() < 0.1) this.#pauseSoon(after.run, 3_000)
      const racing = after.kind === 'time' && this.#shadow.waitsOf(after.run).size > 1
      if (racing ? random.next() < 0.9 : after.kind === 'signal' && random.next() < 0.2)
        this.#soon(due + pick(random, 30) - 18, () => this.#signal(after.run, '"late"'))
    }
    for (const { before, after } of change.approvals) {
      const who = (by: string) => this.#decision(after.id, by, random)
      if (!before && random.next() < 0.35) {
        this.#ignored.add(after.id)
        // paused over its deadline, so that nothing wakes it then
        const forMs = after.deadline - change.now + pick(random, 1_500)
        if (random.next() < 0.5)
          this.#soon(pick(random, 400), () => void this.#pauseFor(after.run, forMs))
      }
      if (!before && random.next() < 0.5) {
        const [late, again] = [who('eve'), who('dan')]
        // about its deadline, or when a look for what has lapsed may have failed
        const past = random.next() < 0.5 ? pick(random, 40) - 15 : pick(random, 900)
        this.#soon(after.deadline - change.now + past, () => {
          void this.#act('decide', [late])
          void this.#act('decide', [again])
        })
      } else if (before && after.state !== 'canceled' && random.next() < 0.4) {
        const again = who('eve')
        this.#soon(pick(random, 5), () => void this.#act('decide', [again]))
      }
    }
    for (const { run, end, reason } of change.attempts)
      if (end === 'handed_back' && (reason === 'unknown_here' || reason === 'lease_lost'))
        this.#lost.set(run, 2)
  }

  /** Something befell a process: those who see their runs stand still pause or cancel them. */
  struck(session: string): void {
    if (!this.#crowd.keen || this.#over) return
    for (const id of this.#shadow.heldBy.get(session) ?? []) {
      const roll = this.#keen.next()
      if (roll < 0.1) this.#soon(pick(this.#keen, 800), () => this.#cancel(id))
      else if (roll < 0.25)
        this.#soon(pick(this.#keen, 800), () => void this.#pauseFor(id, pick(this.#keen, 9_000)))
    }
  }

  /** Whether an executor that is given this run loses it from memory, as the last one did. */
  forgotten(run: string): boolean {
    if (!this.#crowd.keen || this.#over) return false
    const left = this.#lost.get(run) ?? 0
    if (left > 0) this.#lost.set(run, left - 1)
    return this.#keen.next() < (left > 0 ? 0.5 : 0.02) && this.#strikes('executor.forget')
  }

  #soon(ms: number, act: () => void): void {
    this.#world.at(this.#world.now + Math.max(0, ms), this.node, () => {
      if (!this.#over) act()
    })
  }

  #strikes(kind: Kind): boolean {
    return this.#faults.strikes(kind, true)
  }

  #pauseSoon(run: string, ms: number): void {
    const forMs = 200 + pick(this.#keen, ms)
    this.#soon(pick(this.#keen, 2), () => void this.#pauseFor(run, forMs))
  }

  #cancel(run: string): void {
    if (this.#shadow.active.has(run) && this.#strikes('people.cancel'))
      void this.#act('cancel', [{ run, by: 'ann', reason: null }])
  }

  #take(run: string, attempt: number): void {
    const now = this.#shadow.runs.get(run)
    if (now?.session && now.attempt === attempt && this.#strikes('people.take_from'))
      void this.#act('takeFrom', [run, 'ann'])
  }

  /** A run has continued as another: a sender who was not answered sends again what the first has received. */
  #sendAgain(run: string): void {
    const random = this.#keen
    for (const { id, name, payload, read } of this.#shadow.signalsOf(run).values())
      if (read && random.next() < 0.8)
        this.#soon(pick(random, 1_500), () => {
          if (this.#strikes('people.repeat'))
            void this.#act('signal', [{ run, id, name, payload, by: 'bob' }])
        })
  }

  #signal(run: string, payload: string): void {
    const id = this.node.ports.ids.next('sig')
    void this.#act('signal', [{ run, id, name: 'go', payload, by: 'bob' }])
  }

  #decision(approval: string, by: string, random: Random) {
    const decision = random.next() < 0.7 ? 'approved' : 'denied'
    return { approval, decision, by, reason: null, payload: null }
  }

  async #clients(): Promise<void> {
    const random = this.#world.chance('clients')
    let left = this.#crowd.runs
    const gap = this.#crowd.overMs / this.#crowd.runs
    while (left > 0) {
      const many = random.next() < 0.15 ? Math.min(left, 2 + pick(random, 4)) : 1
      left -= many
      const commands = Array.from({ length: many }, () => this.#command(random))
      void this.#starts(commands)
      await this.#world.sleep(this.node, Math.round(2 * gap * many * random.next()))
    }
  }

  /** The world heals: one run more of each workflow, since what comes after a storm must go well too (L9). */
  afresh(): void {
    const random = this.#world.chance('afresh')
    for (const program of this.#crowd.programs)
      if (program.most === undefined) void this.#starts([this.#command(random, program)])
  }

  #command(random: Random, program = this.#program(random)): StartCommand {
    const input = {
      c: oneOf(random, ['x', 'y']),
      u: 1 + pick(random, 2),
      ...(program.name === 'parent' ? { n: pick(random, 2) } : {}),
      ...(program.next ? { n: pick(random, 3) } : {}),
    }
    const keyed = random.next() < 0.3
    const delayed = random.next() < 0.1
    return {
      id: this.node.ports.ids.next('run'),
      command: this.node.ports.ids.next('cmd'),
      workflow: program.name,
      input: JSON.stringify(input),
      owner: oneOf(random, ['', 'ann', 'bob']),
      priority: random.next() < 0.2 ? pick(random, 7) - 3 : 0,
      ...(keyed ? { key: `k${pick(random, 6)}` } : {}),
      ...(delayed ? { delayMs: 200 + pick(random, 2_000) } : {}),
    }
  }

  #program(random: Random): Program {
    for (;;) {
      const program = oneOf(random, this.#crowd.programs)
      const count = (this.#counts.get(program.name) ?? 0) + 1
      if (count > (program.most ?? count)) continue
      this.#counts.set(program.name, count)
      return program
    }
  }

  async #starts(commands: readonly StartCommand[]): Promise<void> {
    const items = commands.map((command) => ({ command, actor: null }))
    this.asked += items.length
    const send = async (): Promise<readonly Answer[]> =>
      items.length === 1
        ? [await this.ask<Answer>('start', [items[0]])]
        : this.ask<readonly Answer[]>('startMany', [items])
    for (;;) {
      const answers = await send()
      const unknown = answers.some((answer) => answer.code === 'unknown_workflow')
      if (unknown) {
        await this.#world.sleep(this.node, 200)
        continue
      }
      this.answered += answers.length
      for (const answer of answers) {
        if (answer.ok) this.started += 1
        else this.#expect('start', answer)
      }
      if (this.#faults.hits('people.repeat')) await send()
      return
    }
  }

  /** Asks until it is answered, under the same ids. */
  async ask<T>(verb: string, args: readonly unknown[]): Promise<T> {
    for (;;) {
      try {
        return await this.#net.call<T>(this.node, verb, args)
      } catch (error) {
        if (!(error instanceof LeaseholdError)) throw error
        await this.#world.sleep(this.node, 100 + pick(this.node.ports.random, 300))
      }
    }
  }

  async #act(verb: string, args: readonly unknown[]): Promise<void> {
    const answer = await this.ask<Answer>(verb, args)
    if (typeof answer === 'object' && answer !== null && !answer.ok && answer.code)
      this.#expect(verb, answer)
    if (!this.#faults.hits('people.repeat')) return
    // a pause that is asked again after its resume is another pause
    const chance = this.#faults.chance('people.repeat')
    if (verb !== 'pause' && chance.next() < 0.5)
      await this.#world.sleep(this.node, pick(chance, 5_000))
    await this.ask(verb, args)
  }

  #expect(verb: string, answer: Answer): void {
    this.#refused(verb, answer.code ?? '')
    if (!EXPECTED.has(answer.code ?? '')) this.#unexpected(`${verb}: ${answer.code}`)
  }

  async #people(): Promise<void> {
    const random = this.#world.chance('people')
    while (!this.#over) {
      await this.#world.sleep(this.node, 200 + pick(random, 500))
      if (this.#over) return
      const active = [...this.#shadow.active]
      if (active.length === 0) continue
      const id = oneOf(random, active)
      const run = this.#shadow.runs.get(id)
      if (!run) continue
      const held = run.session !== null
      const roll = random.next()
      if (this.#crowd.meddle) {
        if (this.#faults.hits('people.cancel', held))
          void this.#act('cancel', [{ run: id, by: 'ann', reason: null }])
        // people know the id that they were given at the start: what has continued is reached by it
        if (held && this.#faults.hits('people.take_from'))
          void this.#act('takeFrom', [run.series, 'ann'])
        if (roll < 0.1) void this.#pauseFor(id, pick(random, 5_000))
        else if (roll < 0.14)
          void this.#act('setLimit', [`owner:ann`, 'whole_run', 2 + pick(random, 3)])
        else if (roll < 0.17)
          void this.#act('setLimit', [`customer:x`, 'while_held', 1 + pick(random, 2)])
        else if (roll < 0.19) void this.#act('pauseQueue', [200 + pick(random, 1_500)])
        else if (roll < 0.23) void this.#again(random)
        else if (roll < 0.28)
          void this.#act('order', [
            {
              id: this.node.ports.ids.next('ord'),
              kind: 'signal',
              run: id,
              payload: JSON.stringify({ name: 'go', payload: '"order"', by: 'ann' }),
            },
          ])
        else if (roll < 0.3)
          void this.#act('order', [
            {
              id: this.node.ports.ids.next('ord'),
              kind: 'start',
              run: '',
              payload: JSON.stringify({ ...this.#command(random), workflow: 'one' }),
            },
          ])
      }
      if (roll > 0.55) await this.#answer(random)
    }
  }

  /** Sends a signal to somebody who waits for one, and decides what is asked, sometimes twice and differently. */
  async #answer(random: Random): Promise<void> {
    const waiting = [...this.#shadow.active].filter((id) =>
      LISTENING.has(this.#shadow.runs.get(id)?.workflow ?? ''),
    )
    if (waiting.length > 0) {
      const command = {
        run: oneOf(random, waiting),
        id: this.node.ports.ids.next('sig'),
        name: 'go',
        payload: random.next() < 0.2 ? null : JSON.stringify(pick(random, 100)),
        by: 'bob',
      }
      void this.#act('signal', [command])
      if (this.#faults.hits('people.repeat')) void this.#act('signal', [command])
    }
    const late = this.#crowd.meddle && random.next() < 0.2 ? 'lapsed' : 'open'
    const asked = [...this.#shadow.approvals.values()].filter(
      (each) => each.state === late && !(late === 'open' && this.#ignored.has(each.id)),
    )
    if (asked.length > 0) {
      const approval = oneOf(random, asked).id
      void this.#act('decide', [this.#decision(approval, 'ann', random)])
      if (this.#crowd.meddle && random.next() < 0.4)
        void this.#act('decide', [this.#decision(approval, 'bob', random)])
    }
  }

  async #pauseFor(run: string, ms: number): Promise<void> {
    await this.#act('pause', [run, 'ann'])
    await this.#world.sleep(this.node, ms)
    await this.#act('resume', [run, 'ann'])
  }

  async #again(random: Random): Promise<void> {
    const over = [...this.#shadow.runs.values()].filter(
      (run) => run.ended_at !== null && run.parent === null && run.on_end_of === null,
    )
    if (over.length === 0) return
    const run = oneOf(random, over)
    const steps = [...this.#shadow.entriesOf(run.id).values()].filter(
      (entry) => entry.kind === 'step',
    )
    const from = random.next() < 0.5 && steps.length > 0 ? oneOf(random, steps).key : null
    await this.#act('retry', [
      { run: run.id, id: this.node.ports.ids.next('run'), from, version: null, by: 'ann' },
    ])
  }

  /** The world heals: resumes what is paused, sends what is waited for, and cancels some of those that do not hear it. */
  async care(): Promise<void> {
    for (const id of this.#shadow.active) {
      const run = this.#shadow.runs.get(id)
      if (!run) continue
      if (run.status === 'paused') void this.#act('resume', [id, 'care'])
      else if (this.#crowd.keen && run.status === 'running' && run.workflow === 'ignorer') {
        if (this.#keen.next() < 0.2)
          void this.#act('cancel', [{ run: id, by: 'care', reason: null }])
      } else if (run.status === 'waiting' && run.wait_on === 'signal' && run.ready_at === null)
        void this.#act('signal', [
          { run: id, id: this.node.ports.ids.next('sig'), name: 'go', payload: '1', by: 'care' },
        ])
    }
    if (this.#shadow.pauses.size > 0) await this.#act('resumeQueue', [])
  }
}
