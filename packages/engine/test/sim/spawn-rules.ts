// What must hold of executors that are started because a queue waits: after each commit, and at the end of a world of them.
import type Database from 'better-sqlite3'
import type { SpawnPolicy } from '../../src/model/spawn.ts'
import type { World } from './world.ts'

interface Row {
  readonly session: string
  readonly n: number
  readonly state: 'open' | 'ended' | 'failed'
  readonly asked_at: number
  readonly settled_at: number | null
  readonly evidence: string | null
  readonly registered: number
  readonly live: number
}

export class SpawnRules {
  readonly #world: World
  readonly #db: Database.Database
  readonly #policy: SpawnPolicy
  #before = new Map<string, Row>()

  constructor(world: World, db: Database.Database, policy: SpawnPolicy) {
    this.#world = world
    this.#db = db
    this.#policy = policy
  }

  rows(): Row[] {
    return this.#db
      .prepare(
        `select p.session, p.n, p.state, p.asked_at, p.settled_at, p.evidence,
                (select count(*) from sessions s where s.id = p.session) as registered,
                (select count(*) from sessions s where s.id = p.session and s.ended_at is null) as live from spawns p order by p.n`,
      )
      .all() as Row[]
  }

  /** After each commit. */
  check(): void {
    const { max, cooldownMs } = this.#policy
    const rows = this.rows()
    const open = rows.filter(({ state }) => state === 'open')
    if (open.length > max) this.#violate(`${open.length} are open, of at most ${max}`)
    for (const [i, row] of rows.entries()) {
      const known = this.#before.get(row.session)
      const last = rows[i - 1]
      if (!known && last) {
        if (row.n !== last.n + 1) this.#violate(`${row.n} follows ${last.n}`)
        if (row.asked_at - last.asked_at < cooldownMs)
          this.#violate(
            `${row.session} is started ${row.asked_at - last.asked_at} ms after the last`,
          )
        // by what was settled when it was asked for, the newest last
        const settled = rows.slice(0, i).filter(({ state }) => state !== 'open')
        const failed = settled.at(-1)
        if (failed?.state === 'failed' && row.asked_at - (failed.settled_at ?? 0) < 2 * cooldownMs)
          this.#violate(`${row.session} is started at once after ${failed.session} came to nothing`)
      }
      if (known && known.state !== 'open' && known.state !== row.state)
        this.#violate(`${row.session} was ${known.state} and is ${row.state}`)
      if (row.state !== 'open' && (row.evidence ?? '') === '')
        this.#violate(`${row.session} is ${row.state} without evidence`)
      if (row.state === 'ended' && row.live > 0)
        this.#violate(
          `${row.session} is ended, and its session is not: what it holds waits for its lease`,
        )
      // a process that is given up gives itself up before
      if (known && known.state === 'failed' && known.registered === 0 && row.registered > 0)
        this.#violate(`${row.session} registers after it was said that it never will`)
    }
    this.#before = new Map(rows.map((row) => [row.session, row]))
  }

  /** What a spawner says is gone is gone; what it starts was recorded before. */
  settling(session: string, alive: boolean): void {
    if (alive) this.#violate(`${session} is settled while its process lives`)
  }
  starting(session: string): void {
    if (!this.rows().some((row) => row.session === session && row.state === 'open'))
      this.#violate(`${session} is started, and no row says why`)
  }

  /** When all spawners have stopped in order, and what could not tell has run out its time. */
  audit(alive: readonly string[]): void {
    if (alive.length > 0) this.#violate(`${alive.join(', ')} outlives its spawner`)
    const open = this.rows().filter(({ state }) => state === 'open')
    if (open.length > 0) this.#violate(`${open.length} were never settled: ${open[0]?.session}`)
    const left = this.#db
      .prepare('select count(*) from runs where ended_at is null')
      .pluck()
      .get() as number
    if (left > 0) this.#world.violate('L11', `${left} runs have not ended`)
  }

  #violate(what: string): void {
    this.#world.violate('OPS-05', what)
  }
}
