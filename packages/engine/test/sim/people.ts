// Those outside: clients that start runs and repeat what was not answered, and people who cancel, pause, decide twice,
// signal, take runs back and change limits.
import { LeaseholdError } from '../../src/kernel/errors.ts'
import type { StartCommand } from '../../src/model/start.ts'
import type { Faults } from './faults.ts'
import type { Net } from './net.ts'
import type { Program } from './programs.ts'
import type { Shadow } from './shadow.ts'
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

export interface Crowd {
  readonly runs: number
  readonly overMs: number
  readonly programs: readonly Program[]
  /** People do more than let waiting runs go on. */
  readonly meddle: boolean
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

  #command(random: ReturnType<World['chance']>): StartCommand {
    const program = oneOf(random, this.#crowd.programs)
    const input = {
      c: oneOf(random, ['x', 'y']),
      u: 1 + pick(random, 2),
      ...(program.name === 'parent' ? { n: pick(random, 2) } : {}),
      ...(program.name === 'series' ? { n: pick(random, 3) } : {}),
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
    if (this.#faults.hits('people.repeat')) await this.ask(verb, args)
  }

  #expect(verb: string, answer: Answer): void {
    this.#refused(verb, answer.code ?? '')
    if (!EXPECTED.has(answer.code ?? '')) this.#unexpected(`${verb}: ${answer.code}`)
  }

  async #people(): Promise<void> {
    const random = this.#world.chance('people')
    while (!this.#over) {
      await this.#world.sleep(this.node, 120 + pick(random, 240))
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
        if (held && this.#faults.hits('people.take_from')) void this.#act('takeFrom', [id, 'ann'])
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
  async #answer(random: ReturnType<World['chance']>): Promise<void> {
    const waiting = [...this.#shadow.active].filter((id) =>
      /^(asker|listener|racer|series|pair)$/.test(this.#shadow.runs.get(id)?.workflow ?? ''),
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
    const asked = [...this.#shadow.approvals.values()].filter((each) => each.state === late)
    if (asked.length > 0) {
      const approval = oneOf(random, asked).id
      const by = (who: string) => ({
        approval,
        decision: random.next() < 0.7 ? 'approved' : 'denied',
        by: who,
        reason: null,
        payload: null,
      })
      void this.#act('decide', [by('ann')])
      if (this.#crowd.meddle && random.next() < 0.4) void this.#act('decide', [by('bob')])
    }
  }

  async #pauseFor(run: string, ms: number): Promise<void> {
    await this.#act('pause', [run, 'ann'])
    await this.#world.sleep(this.node, ms)
    await this.#act('resume', [run, 'ann'])
  }

  async #again(random: ReturnType<World['chance']>): Promise<void> {
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

  /** The world heals: resumes what is paused, sends what is waited for. */
  async care(): Promise<void> {
    for (const id of this.#shadow.active) {
      const run = this.#shadow.runs.get(id)
      if (!run) continue
      if (run.status === 'paused') void this.#act('resume', [id, 'care'])
      else if (run.status === 'waiting' && run.wait_on === 'signal' && run.ready_at === null)
        void this.#act('signal', [
          { run: id, id: this.node.ports.ids.next('sig'), name: 'go', payload: '1', by: 'care' },
        ])
    }
    if (this.#shadow.pauses.size > 0) await this.#act('resumeQueue', [])
  }
}
