// What must hold of a real executor, seen at its port: each thing that it asks of the engine is looked at beside what it shows
// of itself. Two faults strike here, since no network can make them: a claim that is neither answered nor refused for seconds,
// and an end that the store cannot take however often it is sent.
import { Fault } from '../../src/kernel/errors.ts'
import type { ExecutorStatus } from '../../src/executor/executor.ts'
import type { AttemptWrite, ClaimAnswer, ClaimRequest, ExecutorPort } from '../../src/model/work.ts'
import type { Faults } from './faults.ts'
import type { Machine } from './machine.ts'
import type { Node, World } from './world.ts'
import { pick } from './world.ts'

export const DRAIN_MS = 300
export const ABORT_GRACE_MS = 200
/** Within which an executor gives up on the answer to its close. */
const CLOSE_MS = 2_000
const SLACK_MS = 50
/** How long a marker stands before somebody has seen to it. */
const SEEN_TO_MS = 4_000

interface Watched {
  readonly world: World
  readonly node: Node
  readonly faults: Faults
  readonly machine: Machine | null
  status(): ExecutorStatus
  clear(run: string): void
}

const nameOf = ({ run, attempt }: { readonly run: string; readonly attempt: number }): string =>
  `${run}#${attempt}`

export class ExecutorWatch {
  readonly #of: Watched
  /** First reasons to stop, as they were seen first. */
  readonly #reasons = new Map<string, string>()
  /** Attempts that a claim has brought, that were handed back, and those without a job that were. */
  readonly #given = new Set<string>()
  readonly #handedBack = new Set<string>()
  readonly #askedOnce = new Set<string>()
  /** Attempts that the store did not take what it had to, until somebody has seen to them. */
  readonly #unsaved = new Set<string>()
  readonly #startedAt: () => number
  #told: { readonly at: number; readonly preparing: ReadonlySet<string> } | null = null
  #over = false

  constructor(of: Watched, startedAt: () => number) {
    this.#of = of
    this.#startedAt = startedAt
  }

  /** The same port, watched. */
  around(port: ExecutorPort): ExecutorPort {
    return {
      ...port,
      write: (session, write) => {
        this.#look()
        this.#writes(write)
        return this.#cannotTake(write) ?? port.write(session, write)
      },
      renew: async (request) => {
        this.#look()
        this.#overdue()
        const answer = await port.renew(request)
        if (!answer.ok) this.#over = true
        return answer
      },
      claim: async (request, signal) => {
        this.#look()
        this.#overdue()
        this.#left()
        const { world, node, faults } = this.#of
        try {
          const answer = await port.claim(request, signal)
          if (faults.hits('net.hang')) await world.sleep(node, this.#hangMs())
          this.#brought(request, answer)
          return answer
        } catch (error) {
          if (faults.hits('net.hang')) await world.sleep(node, this.#hangMs())
          throw error
        }
      },
      close: (request) => {
        this.#look()
        if (request.reason === 'stopped') this.#within(DRAIN_MS + ABORT_GRACE_MS, 'closes')
        this.#over = true
        return port.close(request)
      },
    }
  }

  /** It is told to stop, in this turn. */
  stops(): void {
    const { state, jobs } = this.#of.status()
    if (state !== 'running') return
    const preparing = jobs.filter(({ phase }) => phase === 'preparing').map(nameOf)
    this.#told = { at: this.#of.world.now, preparing: new Set(preparing) }
  }

  stopped(): void {
    this.#within(DRAIN_MS + ABORT_GRACE_MS + CLOSE_MS, 'has stopped')
  }

  #hangMs(): number {
    return 500 + pick(this.#of.faults.chance('net.hang'), 2_500)
  }

  #look(): void {
    this.#stopReasons()
    this.#slots()
    this.#marked()
  }

  /** EX-09: the first reason to stop an attempt stays. EX-17: a step at work may end within the drain limit. */
  #stopReasons(): void {
    const { world, status } = this.#of
    for (const job of status().jobs) {
      const { firstReason } = job
      const name = nameOf(job)
      const known = this.#reasons.get(name)
      if (firstReason !== null) this.#reasons.set(name, known ?? firstReason)
      if (known !== undefined && firstReason !== known)
        world.violate('EX-09', `${name} was to stop for ${known}, and now for ${firstReason}`)
      const told = this.#told
      if (known !== undefined || firstReason !== 'shutdown' || told === null) continue
      if (world.now < told.at + DRAIN_MS && !told.preparing.has(name))
        world.violate(
          'EX-17',
          `${name} is aborted ${world.now - told.at} ms after its executor was told to stop`,
        )
    }
  }

  /** EX-24: a slot is never free while anything of its attempt is alive. */
  #slots(): void {
    const { world, node, machine, status } = this.#of
    const { jobs, markers } = status()
    for (const label of machine?.alive({ owner: node }) ?? [])
      if (![...jobs, ...markers].some((each) => nameOf(each) === nameOf(label)))
        world.violate('EX-24', `${nameOf(label)} is alive at ${node.name} and has no slot`)
  }

  /** EX-14: what could not be saved keeps the slot, first as a job and then as a marker, until somebody has seen to it. */
  #marked(): void {
    const { world, node, status } = this.#of
    if (this.#unsaved.size === 0) return
    const { jobs, markers, unreleased } = status()
    const standing = new Set([...jobs, ...markers, ...unreleased].map(nameOf))
    for (const name of this.#unsaved)
      if (!standing.has(name))
        world.violate('EX-14', `${name} could not be saved at ${node.name} and has no marker there`)
  }

  /** EX-24, EX-26: what hangs, or is left behind by a process that has gone, is killed in time. */
  #overdue(): void {
    const { world, node, machine } = this.#of
    for (const label of machine?.overdue(node) ?? [])
      world.violate(
        'EX-26',
        `${nameOf(label)} is still alive at ${node.name}, which was to kill it`,
      )
  }

  /** EX-26: what earlier lives left on the machine is gone before anything is taken, or is held by a marker. */
  #left(): void {
    const { world, node, machine, status } = this.#of
    const { markers } = status()
    for (const label of machine?.alive({ endedBy: this.#startedAt() }) ?? [])
      if (!markers.some((each) => nameOf(each) === nameOf(label)))
        world.violate(
          'EX-26',
          `${node.name} takes work beside ${nameOf(label)}, which an earlier life left`,
        )
  }

  /** EX-17: what a claim brings after the executor was told to stop goes back at once, each run of it. */
  #brought(request: ClaimRequest, answer: ClaimAnswer): void {
    if (!answer.ok) {
      if (answer.code === 'session_ended') this.#over = true
      return
    }
    const { world, node, status } = this.#of
    const names = answer.runs.map(nameOf)
    for (const name of names) this.#given.add(name)
    const { state, fenced, session } = status()
    if (state === 'running' || fenced || this.#over || session !== request.session) return
    world.at(world.now, node, () => {
      for (const name of names)
        if (!this.#handedBack.has(name))
          world.violate('EX-17', `${name} came after ${node.name} was told to stop, and is kept`)
    })
  }

  /** EX-17, EX-19: a hand-back is of an attempt that came here and has no step at work; one without a job is asked once. */
  #writes(write: AttemptWrite): void {
    if (write.end?.kind !== 'hand_back') return
    const { world, node, machine, status } = this.#of
    const name = nameOf(write)
    this.#handedBack.add(name)
    if (!this.#given.has(name))
      world.violate('EX-19', `${node.name} hands ${name} back, which never came there`)
    const job = status().jobs.find((each) => nameOf(each) === name)
    if (job && !job.left) {
      // the steps of an isolated attempt are those of its process
      const isDrained = write.end.reason === 'shutdown' && job.firstReason === null
      if (machine?.hasRun(write) !== true && job.bodies > 0 && isDrained)
        world.violate('EX-17', `${name} is handed back by ${node.name} while it is at work on it`)
      return
    }
    if (this.#askedOnce.has(name))
      world.violate('EX-19', `${node.name} hands ${name} back a second time`)
    this.#askedOnce.add(name)
  }

  /** Now and then the store cannot take an end, or that the function began, and no repeat will mend that. */
  #cannotTake(write: AttemptWrite): Promise<never> | null {
    const { faults, machine } = this.#of
    const isResult =
      write.end?.kind === 'complete' || write.end?.kind === 'continue' || write.end?.kind === 'fail'
    if (!isResult && write.phase !== 'launched') return null
    // a process may be killed before it hears of it, and its attempt is lost instead
    if (machine?.hasRun(write) === true || !faults.hits('executor.unsaved')) return null
    this.#unsaved.add(nameOf(write))
    this.#seeTo(write)
    return Promise.reject(
      new Fault('row_unreadable', 'the row of the run cannot be read', { retryable: false }),
    )
  }

  /** After a while somebody sees to what was left of a run, all its attempts at once, so that the slots are free again. */
  #seeTo(write: AttemptWrite): void {
    const { world, node, status, clear } = this.#of
    world.at(world.now + SEEN_TO_MS, node, () => {
      if (!this.#unsaved.has(nameOf(write))) return
      const marked = status()
        .markers.filter((each) => each.run === write.run)
        .map(nameOf)
      if (!marked.includes(nameOf(write))) return this.#seeTo(write)
      for (const name of marked) this.#unsaved.delete(name)
      clear(write.run)
    })
  }

  /** EX-18: the limits of a stop hold whatever the network does; a process that stood still meanwhile is no measure. */
  #within(ms: number, what: string): void {
    const { world, node } = this.#of
    if (this.#told === null || node.stalledUntil > this.#told.at) return
    const took = world.now - this.#told.at
    if (took > ms + SLACK_MS)
      world.violate('EX-18', `${node.name} ${what} ${took} ms after it was told to stop`)
  }
}
