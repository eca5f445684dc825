// Schedules: people who make, pause, resume and fire them, and what must hold of their ticks (S13). Ticks are reckoned here
// from a period alone, and what became of each is read from the statements of the commits.
import type Database from 'better-sqlite3'
import type { Commit } from './commit.ts'
import type { People } from './people.ts'
import type { Shadow } from './shadow.ts'
import { listed } from './shadow.ts'
import type { World } from './world.ts'
import { oneOf, pick } from './world.ts'

const SECOND = 1_000
/** Expressions with the period that they come to. */
const SHORT: readonly (readonly [cron: string, period: number])[] = [
  ['*/5 * * * * *', 5 * SECOND],
  ['*/15 * * * * *', 15 * SECOND],
  ['* * * * *', 60 * SECOND],
]
/** For schedules that fire all that they missed, while clocks jump by an hour. */
const LONG: typeof SHORT = [['*/10 * * * *', 600 * SECOND]]
const EPOCH = 1_700_000_000_000

interface Row {
  readonly id: string
  readonly name: string
  readonly missed: string
  readonly overlap: string
  readonly next_at: number | null
  readonly paused_at: number | null
}

interface Known {
  readonly period: number
  /** Of ticks that became anything but missed. */
  readonly fired: Set<number>
  readonly runs: Set<string>
}

interface Answer {
  readonly ok: boolean
  readonly code?: string
}

export class Schedules {
  /** Nothing is started by the calendar any more. */
  over = true
  readonly #world: World
  readonly #shadow: Shadow
  readonly #people: People
  readonly #on: boolean
  readonly #jumps: boolean
  readonly #missedAfterMs: number
  readonly #furthest: () => number
  readonly #rows: Database.Statement
  readonly #orphans: Database.Statement
  readonly #waiting: Database.Statement
  readonly #known = new Map<string, Known>()
  readonly #since = new Map<string, number>()
  /** Runs of ticks that wait, with their schedule. */
  readonly #waited = new Map<string, string>()
  #before = new Map<string, Row>()
  #names: string[] = []
  #leaving = false

  constructor(
    world: World,
    db: Database.Database,
    shadow: Shadow,
    people: People,
    on: boolean,
    jumps: boolean,
    missedAfterMs: number,
    furthest: () => number,
  ) {
    this.#world = world
    this.#shadow = shadow
    this.#people = people
    this.#on = on
    this.#jumps = jumps
    this.#missedAfterMs = missedAfterMs
    this.#furthest = furthest
    this.#rows = db.prepare(
      'select id, name, missed, overlap, next_at, paused_at from schedules order by id',
    )
    this.#orphans = db.prepare(
      `select t.id from ticks t left join runs r on r.id = t.id where t.outcome = 'started' and r.id is null`,
    )
    this.#waiting = db.prepare(
      `select s.id, min(t.tick) as tick from schedules s join ticks t on t.schedule = s.id and t.outcome = 'waiting' where s.paused_at is null group by s.id`,
    )
  }

  start(): void {
    if (!this.#on) return
    this.over = false
    const random = this.#world.chance('schedules')
    const count = 1 + pick(random, 3)
    for (let i = 0; i < count; i++) {
      const missed = oneOf(random, ['skip', 'one', 'all'])
      const [cron, period] = oneOf(random, missed === 'all' && this.#jumps ? LONG : SHORT)
      const name = `s${i}`
      const id = `sch_${i}`
      this.#names.push(name)
      this.#known.set(id, { period, fired: new Set(), runs: new Set() })
      const overlap = oneOf(random, ['allow', 'skip', 'cancel_running', 'queue'])
      const spec = {
        cron,
        zone: 'UTC',
        workflow: 'one',
        version: null,
        input: '{}',
        owner: '',
        queue: null,
        labels: '[]',
        priority: 0,
        missed,
        overlap,
      }
      void this.#make({ id, name, spec, paused: false, by: 'people' })
    }
    void this.#meddle(random)
  }

  async #make(made: object): Promise<void> {
    for (;;) {
      const answer = await this.#people.ask<Answer>('createSchedule', [made])
      if (answer.code !== 'unknown_workflow') {
        if (!answer.ok) this.#world.violate('refused', `createSchedule: ${answer.code}`)
        return
      }
      await this.#world.sleep(this.#people.node, 200)
    }
  }

  async #meddle(random: ReturnType<World['chance']>): Promise<void> {
    while (!this.#leaving) {
      await this.#world.sleep(this.#people.node, 500 + pick(random, 4_000))
      if (this.#leaving) return
      const name = oneOf(random, this.#names)
      const roll = random.next()
      if (roll < 0.15)
        await this.#people.ask('runSchedule', [name, this.#people.node.ports.ids.next('run')])
      else if (roll < 0.6) {
        await this.#people.ask('pauseSchedule', [name])
        await this.#world.sleep(this.#people.node, pick(random, 3_000))
        await this.#people.ask('resumeSchedule', [name])
      }
    }
  }

  /** The world heals: schedules go on for some seconds, and are then paused for good. */
  leave(): void {
    this.#leaving = true
    this.#world.at(this.#world.now + 12_000, null, () => {
      void Promise.all(this.#names.map((name) => this.#people.ask('pauseSchedule', [name]))).then(
        () => {
          this.over = true
        },
      )
    })
  }

  /** What a commit did to schedules and ticks. */
  check(commit: Commit): void {
    const touches = commit.writes.filter(({ table }) => table === 'schedules' || table === 'ticks')
    if (touches.every(({ rows }) => rows.length === 0)) return
    const before = this.#before
    const after = new Map((this.#rows.all() as Row[]).map((row) => [row.id, row]))
    this.#before = after
    for (const touch of touches)
      if (touch.name === 'ticks.put')
        for (const item of listed(touch))
          if (touch.rows.some((row) => row['id'] === item['id']))
            this.#tick(item, before.get(String(item['schedule'])), commit.now)
    for (const touch of touches)
      if (touch.name === 'ticks.settle' && touch.params[2] === 'started')
        for (const { id } of touch.rows) this.#started(String(id), before)
    for (const touch of touches)
      if (touch.name === 'schedules.move')
        for (const { id } of touch.rows) this.#moved(before.get(String(id)), after.get(String(id)))
  }

  #tick(item: Readonly<Record<string, unknown>>, before: Row | undefined, now: number): void {
    const say = (message: string): void => this.#world.violate('S13', message)
    const id = String(item['schedule'])
    const known = this.#known.get(id)
    const tick = Number(item['tick'])
    const outcome = String(item['outcome'])
    if (!known || !before) return say(`${id} has a tick and is not there`)
    if (item['cause'] === 'time') {
      if (tick % known.period !== 0) say(`${tick} is no tick of ${id}`)
      if (tick > now) say(`the tick ${tick} of ${id} came at ${now}, before its time`)
      if (before.paused_at !== null) say(`${id} is paused and its tick ${tick} was ${outcome}`)
      if (outcome !== 'missed') {
        if (known.fired.has(tick)) say(`the tick ${tick} of ${id} fired twice`)
        known.fired.add(tick)
      }
    }
    if (outcome === 'waiting') this.#waited.set(String(item['id']), id)
    if (outcome !== 'started') return
    if (item['cause'] === 'time') this.#alone(before, known, String(item['id']))
    known.runs.add(String(item['id']))
  }

  /** A tick that waited has started; the id of its run says whose it is. */
  #started(run: string, before: ReadonlyMap<string, Row>): void {
    const row = before.get(this.#waited.get(run) ?? '')
    const known = this.#known.get(row?.id ?? '')
    if (!row || !known) return
    if (row.paused_at !== null)
      this.#world.violate('S13', `${row.id} is paused and ${run} of it was started`)
    this.#alone({ ...row, overlap: 'queue' }, known, run)
    known.runs.add(run)
  }

  #alone(before: Row, known: Known, id: string): void {
    if (before.overlap === 'allow') return
    const active = [...known.runs].find((run) => run !== id && this.#shadow.active.has(run))
    if (active !== undefined)
      this.#world.violate(
        'S13',
        `${id} of ${before.id} (${before.overlap}) started beside ${active}`,
      )
  }

  /** No tick is passed over but by the policy. */
  #moved(before: Row | undefined, after: Row | undefined): void {
    const known = this.#known.get(before?.id ?? '')
    if (!known || !before || !after || before.next_at === null || after.next_at === null) return
    const border = EPOCH + this.#world.now + this.#furthest() - this.#missedAfterMs
    for (let tick = before.next_at; tick < after.next_at; tick += known.period) {
      if (known.fired.has(tick)) continue
      const last = tick + known.period >= after.next_at
      if (before.missed === 'all' || (before.missed === 'one' && last) || tick > border)
        this.#world.violate(
          'S13',
          `the tick ${tick} of ${before.id} (${before.missed}) was passed over`,
        )
    }
    if (after.next_at <= before.next_at)
      this.#world.violate('S13', `${before.id} fired and did not move on`)
  }

  /** Looked at while the world heals: what is due fires, and what waits starts. */
  look(now: number): void {
    if (!this.#on || this.over) return
    const wrong = new Set<string>()
    for (const { id, next_at: due } of this.#before.values())
      if (due !== null && due < now) wrong.add(`${id} is due since ${due} and does not fire`)
    for (const { id, tick } of this.#waiting.all() as { id: string; tick: number }[]) {
      const active = [...(this.#known.get(id)?.runs ?? [])].some((run) =>
        this.#shadow.active.has(run),
      )
      if (!active) wrong.add(`the tick ${tick} of ${id} waits for nothing`)
    }
    for (const what of wrong) {
      const since = this.#since.get(what) ?? this.#world.now
      this.#since.set(what, since)
      if (this.#world.now - since > 3_000) this.#world.violate('L6', what)
    }
    for (const what of this.#since.keys()) if (!wrong.has(what)) this.#since.delete(what)
  }

  audit(): void {
    const orphan = this.#orphans.pluck().get() as string | undefined
    if (orphan !== undefined)
      this.#world.violate('S13', `the tick ${orphan} has started and its run is not there`)
  }
}
