// What must come about once the faults are over, within its bound. Looked at every quarter of a second; what stays wrong
// for longer than its bound is a violation.
import type { Hosts } from './hosts.ts'
import type { Orchestrator } from './orchestrator.ts'
import { ended } from './rules.ts'
import type { RunRow, Shadow } from './shadow.ts'
import type { Usage } from './slot-table.ts'
import { limitsOf, unitsOf } from './slot-table.ts'
import type { World } from './world.ts'

export interface Bounds {
  readonly leaseMs: number
  readonly sweepMs: number
  readonly cancelGraceMs: number
  readonly limitGraceMs: number
}

interface Wrong {
  readonly rule: string
  readonly what: string
  readonly withinMs: number
}

export class Liveness {
  readonly #world: World
  readonly #shadow: Shadow
  readonly #usage: Usage
  readonly #hosts: Hosts
  readonly #orchestrator: Orchestrator
  readonly #bounds: Bounds
  readonly #since = new Map<string, number>()
  readonly #from: number

  /** Watches from now on: the faults are over. */
  constructor(
    world: World,
    shadow: Shadow,
    usage: Usage,
    hosts: Hosts,
    orchestrator: Orchestrator,
    bounds: Bounds,
  ) {
    this.#world = world
    this.#shadow = shadow
    this.#usage = usage
    this.#hosts = hosts
    this.#orchestrator = orchestrator
    this.#bounds = bounds
    this.#from = world.now
  }

  look(): void {
    const now = this.#world.now
    // an engine that has just come up, or a world that has just healed, is given its ten seconds (L9)
    if (this.#orchestrator.upFor < 3_000 || now - this.#from < 3_000) return
    const seen = new Set<string>()
    for (const id of this.#shadow.active) {
      const run = this.#shadow.runs.get(id)
      if (!run) continue
      for (const wrong of this.#wrongs(run)) {
        const key = `${wrong.rule} ${id}#${run.attempt} ${wrong.what}`
        seen.add(key)
        const since = this.#since.get(key) ?? now
        this.#since.set(key, since)
        if (now - since > wrong.withinMs)
          this.#world.violate(
            wrong.rule,
            `${id} (${run.workflow}) ${wrong.what} for ${Math.round(now - since)} ms`,
          )
      }
    }
    for (const key of this.#since.keys()) if (!seen.has(key)) this.#since.delete(key)
  }

  *#wrongs(run: RunRow): Generator<Wrong> {
    const shadow = this.#shadow
    const { leaseMs, sweepMs, cancelGraceMs, limitGraceMs } = this.#bounds
    const storeNow = this.#orchestrator.node?.ports.time.now() ?? 0
    const wrong = (rule: string, what: string, withinMs: number): Wrong => ({
      rule,
      what,
      withinMs,
    })
    if (run.deadline !== null && storeNow > run.deadline + limitGraceMs)
      yield wrong('RUN-13', 'is past its total limit', 2_000)
    switch (run.status) {
      case 'running':
      case 'canceling': {
        const session = shadow.sessions.get(run.session ?? '')
        if (session === undefined || session.state === 'ended')
          yield wrong('L1', `is held by ${run.session}, which has ended`, 2 * sweepMs + 1_000)
        else if (this.#hosts.dead.has(session.id))
          yield wrong(
            'L1',
            `is held by ${run.session}, whose process is dead`,
            2 * leaseMs + 2 * sweepMs + 2_000,
          )
        if (run.status === 'canceling')
          yield wrong('L5', 'is being canceled', cancelGraceMs + 2_000)
        if (run.attempt_deadline !== null && storeNow > run.attempt_deadline + limitGraceMs)
          yield wrong('RUN-13', 'is past the limit of its attempt', 2_000)
        return
      }
      case 'queued':
        if (run.suspect_since === null && this.#roomSomewhere(run) && shadow.pauses.size === 0)
          yield wrong('L3', 'is due and an executor has room', 3_500)
        return
      case 'waiting':
        if (run.ready_at !== null && storeNow > run.ready_at)
          yield wrong('L6', `has been due since ${run.ready_at}`, 1_500)
        if (run.wait_on === 'slot') {
          if (run.ready_at === null && run.reason !== 'no_executor' && this.#fits(run))
            yield wrong('SLOT-04', 'is first in line and its slots are free', 3_000)
          if (run.reason === 'no_executor' && this.#served(run.workflow))
            yield wrong('RUN-32', 'waits for an executor and they are there', 3 * sweepMs + 2_000)
        } else yield* this.#silent(run)
        if (run.wait_on === 'child') yield* this.#untold(run)
        return
      case 'paused':
        if (run.pause_requested_at === null) yield wrong('L11', 'is paused by nobody', 0)
        return
      default:
    }
  }

  #served(workflow: string): boolean {
    return this.#hosts.living.some(
      (driver) =>
        driver.serves(workflow) && this.#shadow.sessions.get(driver.session)?.state === 'live',
    )
  }

  /**
   * Whether a living executor may claim the run: a session that holds a suspect run claims nothing else, and one in
   * which a body of the run's last attempt has not settled does not start a second one beside it.
   */
  #roomSomewhere(run: RunRow): boolean {
    const shadow = this.#shadow
    // those that were lost twice go first, one to a session
    for (const id of shadow.active) if (shadow.runs.get(id)?.suspect_since !== null) return false
    return this.#hosts.living.some(
      (driver) =>
        driver.room > 0 &&
        driver.serves(run.workflow) &&
        !driver.settling(run.id) &&
        driver.node.stalledUntil < this.#world.now - 1_000 &&
        shadow.sessions.get(driver.session)?.state === 'live' &&
        [...(shadow.heldBy.get(driver.session) ?? [])].every(
          (id) => shadow.runs.get(id)?.suspect_since === null,
        ),
    )
  }

  /** L11: what is waited for is there and can come. */
  *#silent(run: RunRow): Generator<Wrong> {
    if (run.ready_at !== null) return
    const waits = [...this.#shadow.waitsOf(run.id).values()].filter((wait) => wait.state === 'open')
    const lives = waits.some(
      (wait) =>
        wait.kind === 'signal' ||
        (wait.kind === 'approval' &&
          this.#shadow.approvals.get(`${run.id}:${wait.key}`)?.state === 'open') ||
        (wait.kind === 'child' && this.#shadow.runs.has(wait.name ?? '')),
    )
    if (!lives)
      yield { rule: 'L11', what: `waits on ${run.wait_on}, which cannot come`, withinMs: 1_000 }
  }

  /** L3, S8: a child that has ended is told within a second, or found by the sweep. */
  *#untold(run: RunRow): Generator<Wrong> {
    for (const wait of this.#shadow.waitsOf(run.id).values()) {
      if (wait.state !== 'open' || wait.kind !== 'child') continue
      const first = this.#shadow.runs.get(wait.name ?? '')
      const newest =
        this.#shadow.runs.get(this.#shadow.series.get(first?.series ?? '')?.at(-1) ?? '') ?? first
      if (newest && ended(newest.status))
        yield {
          rule: 'S8',
          what: `waits for ${newest.id}, which has ended`,
          withinMs: 2 * this.#bounds.sweepMs + 2_000,
        }
    }
  }

  /** Whether nobody stands before it in any of its lines and each has room. */
  #fits(run: RunRow): boolean {
    for (const { key } of limitsOf(run, this.#shadow)) {
      const limit = this.#shadow.limits.get(key)?.value ?? null
      if (limit !== null && (this.#usage.units.get(key) ?? 0) + unitsOf(run, key) > limit)
        return false
      for (const id of this.#shadow.active) {
        const other = this.#shadow.runs.get(id)
        if (!other || other.id === run.id || other.status !== 'waiting' || other.wait_on !== 'slot')
          continue
        if (limitsOf(other, this.#shadow).every((each) => each.key !== key)) continue
        if (before(other, run)) return false
      }
    }
    return true
  }
}

const before = (a: RunRow, b: RunRow): boolean =>
  a.resumed !== b.resumed
    ? a.resumed > b.resumed
    : a.rank !== b.rank
      ? a.rank < b.rank
      : a.id < b.id
