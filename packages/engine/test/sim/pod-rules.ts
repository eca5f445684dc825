// What must hold of attempts that pods drive, beside what holds of all (RAIL-14, EX-10, EX-24, EX-26): an attempt has one pod, which
// nobody kills while it drives it; what is said to be gone is gone; and nothing is left when all is quiet.
import type Database from 'better-sqlite3'
import type { KubernetesObject } from '../../src/executor/pods/kubernetes-api.ts'
import { orderOf } from '../../src/executor/pods/pod-template.ts'
import type { ExecutorStatus } from '../../src/executor/status.ts'
import { launcherOf } from './pod-cluster.ts'
import type { World } from './world.ts'

/** A pod's process that is alive. */
export interface Alive {
  readonly job: KubernetesObject
  readonly runner: string
  readonly place: string
  readonly bornAt: number
  /** It hangs, from its beginning or later. */
  readonly hangs: boolean
}

/** A launcher, by the name that its jobs have. */
export interface Seen {
  readonly name: string
  readonly status: ExecutorStatus
}

/** What is seen to be gone may have been so a while ago. */
const SEEN_MS = 2_000

export class PodRules {
  readonly #world: World
  readonly #held: Database.Statement
  /** Of each attempt, the session that has driven it. */
  readonly #drivers = new Map<string, string>()

  constructor(world: World, db: Database.Database) {
    this.#world = world
    this.#held = db
      .prepare(`select id || '#' || attempt from runs where session = ? and status = 'running'`)
      .pluck()
  }

  /** A function of the attempt is at work in the pod of this runner. */
  drives(place: string, { runner, place: own }: Alive): void {
    if (place !== own) this.#world.violate('RAIL-14', `the pod of ${own} drives ${place}`)
    const first = this.#drivers.get(place) ?? runner
    this.#drivers.set(place, first)
    if (first !== runner)
      this.#world.violate('RAIL-14', `${place} is driven by ${runner}; ${first} has driven it`)
  }

  /** The session of a runner has taken the attempt over. */
  adopted(runner: string | null, now: number, alive: Iterable<Alive>): void {
    for (const { runner: own, place, job } of alive) {
      const startBy = orderOf(job)?.startBy ?? 0
      if (own === runner && now > startBy)
        this.#world.violate(
          'RAIL-14',
          `${place} is adopted ${now - startBy} ms after it was to begin`,
        )
    }
  }

  /** A launcher asks for the end of a job. */
  removing(job: KubernetesObject, alive: Iterable<Alive>): void {
    const runner = orderOf(job)?.runner ?? ''
    const held = this.#held.get(runner) as string | undefined
    // what has died is removed before its run is taken from it
    if (held !== undefined && [...alive].some((each) => each.runner === runner))
      this.#world.violate('RAIL-14', `the pod of ${held} is removed, and drives it`)
  }

  /** A launcher says that nothing of the process of a session is alive. */
  reports(runner: string, alive: Iterable<Alive>): void {
    for (const each of alive)
      if (each.runner === runner && this.#world.now - each.bornAt > SEEN_MS)
        this.#world.violate('EX-26', `${runner} is said to be gone, and its process is alive`)
  }

  /** The slot of a pod is held for as long as anything of it is alive (EX-10). */
  slots(launchers: readonly Seen[], alive: Iterable<Alive>, late: ReadonlySet<string>): void {
    const all = [...alive]
    for (const { name, status } of launchers) {
      if (status.state !== 'running') continue
      const held = new Set(status.jobs.map(({ run, attempt }) => `${run}#${attempt}`))
      for (const { job, place } of all)
        if (launcherOf(job) === name && !held.has(place) && !late.has(job.metadata.name))
          this.#world.violate(
            'EX-10',
            `the pod of ${place} is alive, and no slot of ${name} is held`,
          )
    }
  }

  /** When all runs have ended and all that could be left has had its time. */
  audit(
    launchers: readonly string[],
    alive: Iterable<Alive>,
    unfinished: readonly KubernetesObject[],
  ): void {
    const hung = new Set<string>()
    // to whoever comes after its launcher a process that hangs is at work
    for (const { place, hangs, job } of alive)
      if (hangs && !launchers.includes(launcherOf(job))) hung.add(job.metadata.name)
      else this.#world.violate('EX-26', `the pod of ${place} is still alive`)
    const left = unfinished.find(({ metadata: { name } }) => !hung.has(name))
    if (left) this.#world.violate('EX-26', `the job ${left.metadata.name} is left`)
  }
}
