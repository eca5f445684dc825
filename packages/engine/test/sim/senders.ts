// Senders of deliveries: each brings what it has until it is answered, now and then twice at once or again much later, and
// signs it as GitHub does. What must hold of it (S6, S22): a delivery comes to one run, and none is started without one.
import { createHmac } from 'node:crypto'
import type Database from 'better-sqlite3'
import type { TriggerSpec } from '../../src/model/trigger.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { NewTrigger } from '../../src/transitions/set-trigger.ts'
import type { Commit } from './commit.ts'
import type { People } from './people.ts'
import type { World } from './world.ts'
import { oneOf, pick } from './world.ts'

const SECRET = 'of the sender'
const OWN = 'the engine itself'

interface Sent {
  readonly hook: string
  readonly delivery: string
  readonly body: string
}
interface Answer {
  readonly status: number
  readonly code?: string
  readonly outcome?: string
  readonly run?: string | null
}

const spec = (more: Partial<TriggerSpec['rules'][number]>): TriggerSpec => ({
  secrets: ['sender'],
  own: [OWN],
  actorAt: null,
  tokenHeader: null,
  deliveryHeader: null,
  eventHeader: null,
  rules: [
    {
      events: ['push'],
      where: {},
      workflow: 'one',
      key: null,
      owner: null,
      start: { input: { $: '/input' }, queue: null, labels: [], priority: 0 },
      signal: null,
      ...more,
    },
  ],
})

/** Of what a world runs, what waits longest: it can be signaled before it ends. */
const SLOW = ['asker', 'listener', 'sleeper', 'patient', 'keyed']

const triggersOf = (workflows: readonly string[]): readonly NewTrigger[] => [
  { name: 'starts', kind: 'github', spec: spec({}), by: 'people' },
  { name: 'joins', kind: 'github', spec: spec({ key: ['hook-', { $: '/key' }] }), by: 'people' },
  {
    name: 'signals',
    kind: 'github',
    spec: spec({
      workflow: SLOW.find((each) => workflows.includes(each)) ?? 'one',
      key: ['told-', { $: '/key' }],
      signal: { name: 'go', payload: { $: 'delivery' } },
    }),
    by: 'people',
  },
]

/** The side of the server: a delivery as it comes over the wire. */
export const hookVerb = (world: World, engine: Engine): ((sent: Sent) => Promise<Answer>) => {
  const handler = makeHandler(engine, {
    hookSecrets: { sender: SECRET },
    onDefect: (error) => world.violate('defect', String((error as Error).stack ?? error)),
  })
  return async ({ hook, delivery, body }) => {
    const signature = createHmac('sha256', SECRET).update(body).digest('hex')
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1:7400/hooks/${hook}`, {
        method: 'POST',
        headers: {
          'x-hub-signature-256': `sha256=${signature}`,
          'x-github-delivery': delivery,
          'x-github-event': 'push',
        },
        body,
      }),
    )
    return { ...((await answer.json()) as object), status: answer.status }
  }
}

export class Senders {
  /** Everything that was to be brought has been answered. */
  over = true
  readonly #world: World
  readonly #people: People
  readonly #on: boolean
  readonly #triggers: readonly NewTrigger[]
  readonly #db: Database.Database
  /** The run of each delivery that was answered, and of each that has started one. */
  readonly #answered = new Map<string, string>()
  readonly #started = new Map<string, string>()
  #leaving = false
  #open = 0

  constructor(
    world: World,
    db: Database.Database,
    people: People,
    workflows: readonly string[],
    on: boolean,
  ) {
    this.#triggers = triggersOf(workflows)
    this.#world = world
    this.#db = db
    this.#people = people
    this.#on = on
  }

  start(): void {
    if (!this.#on) return
    this.over = false
    void this.#all()
  }

  async #all(): Promise<void> {
    const random = this.#world.chance('senders')
    await Promise.all(this.#triggers.map((each) => this.#make(each)))
    for (let n = 0; !this.#leaving && n < 40; n++) {
      const { name } = oneOf(random, this.#triggers)
      const own = random.next() < 0.1
      const sent: Sent = {
        hook: name,
        delivery: `delivery-${n}`,
        body: JSON.stringify({
          input: { c: 'a' },
          key: Math.floor(n / 5),
          sender: { login: own ? OWN.toUpperCase() : 'ann', id: 1 },
        }),
      }
      this.#open += 1
      void this.#bring(sent, own).finally(() => (this.#open -= 1))
      // both before anybody has answered either
      for (let i = pick(random, 3); i > 0; i--) void this.#bring(sent, own)
      // as one that an operator sends again
      if (random.next() < 0.3)
        void this.#world
          .sleep(this.#people.node, 2_000 + pick(random, 80_000))
          .then(() => (this.#leaving ? undefined : this.#bring(sent, own)))
      if (random.next() < 0.1) await this.#people.ask('pauseTrigger', [name])
      await this.#world.sleep(this.#people.node, 200 + pick(random, 3_000))
      await this.#people.ask('resumeTrigger', [name])
    }
    while (!this.#leaving || this.#open > 0) await this.#world.sleep(this.#people.node, 200)
    this.over = true
  }

  async #make(made: NewTrigger): Promise<void> {
    for (;;) {
      const answer = await this.#people.ask<{ ok: boolean; code?: string }>('setTrigger', [made])
      if (answer.ok) return
      if (answer.code !== 'unknown_workflow')
        this.#world.violate('refused', `setTrigger: ${answer.code}`)
      await this.#world.sleep(this.#people.node, 200)
    }
  }

  async #bring(sent: Sent, own: boolean): Promise<void> {
    for (;;) {
      const answer = await this.#people.ask<Answer>('hook', [sent])
      if (answer.status === 200) return this.#came(sent, answer, own)
      if (answer.status !== 503 && answer.code !== 'unknown_workflow')
        this.#world.violate('refused', `a delivery: ${answer.status} ${answer.code}`)
      await this.#world.sleep(this.#people.node, 300)
      // a copy of a pause may come late
      if (answer.code === 'trigger_paused' && this.#leaving)
        await this.#people.ask('resumeTrigger', [sent.hook])
    }
  }

  #came({ hook, delivery }: Sent, { outcome, run }: Answer, own: boolean): void {
    if (own) {
      if (outcome !== 'ignored')
        this.#world.violate('RAIL-15', `${delivery} of the engine’s own actor was ${outcome}`)
      return
    }
    if (typeof run !== 'string')
      // its run has ended, which is final
      return outcome === 'ignored' && hook === 'signals'
        ? undefined
        : this.#world.violate('S22', `${delivery} of ${hook} was ${outcome} and has no run`)
    const known = this.#answered.get(delivery)
    if (known !== undefined && known !== run)
      this.#world.violate('S22', `${delivery} was answered with ${known} and with ${run}`)
    this.#answered.set(delivery, run)
  }

  leave(): void {
    this.#leaving = true
  }

  /** What a commit did to deliveries: a run is inserted with the row that says so, once. */
  check(commit: Commit): void {
    for (const touch of commit.writes) {
      if (touch.name !== 'arrivals.settle' || touch.rows.length === 0) continue
      const [, delivery, outcome, run] = touch.params.map(String)
      if (outcome !== 'started' || delivery === undefined || run === undefined) continue
      const first = this.#started.get(delivery)
      if (first !== undefined)
        this.#world.violate('S22', `${delivery} has started ${first}, and now ${run}`)
      this.#started.set(delivery, run)
      const inserted = commit.writes.some(
        (each) => each.table === 'runs' && each.rows.some((row) => row['id'] === run),
      )
      if (!inserted)
        this.#world.violate('S6', `${delivery} was taken, and not in one with its run ${run}`)
    }
  }

  audit(): void {
    const orphan = this.#db
      .prepare(
        `select e.run from events e left join arrivals a on a.run = e.run and a.outcome = 'started'
          where e.kind = 'run.started' and e.actor like 'trigger:%' and a.run is null`,
      )
      .pluck()
      .get() as string | undefined
    if (orphan !== undefined)
      this.#world.violate('S6', `a trigger has started ${orphan}, and no delivery says so`)
    const lost = this.#db.prepare('select run from arrivals where delivery = ?').pluck()
    for (const [delivery, run] of this.#answered)
      if (lost.get(delivery) !== run)
        this.#world.violate('S6', `${delivery} was answered with ${run}, and nothing says so`)
  }
}
