// A machine as the executors on it see it: the processes of isolated attempts, and a scratch directory. Both outlive the
// executor that made them. A process is a node of its own; it is killed, hangs, ignores SIGTERM and leaves things behind.
import type { FromBody, ToBody } from '../../src/executor/processes/body-protocol.ts'
import { serveBody } from '../../src/executor/processes/body.ts'
import type { AnyWorkflow } from '../../src/executor/authoring/context.ts'
import type {
  ProcessGroup,
  ProcessHears,
  ProcessLabel,
  Processes,
} from '../../src/executor/processes/processes.ts'
import type { LeftProcess, Scratch } from '../../src/executor/preparing/scratch.ts'
import type { Faults } from './faults.ts'
import type { Clock, Node, World } from './world.ts'
import { pick } from './world.ts'

/** `child` is in the group of the leader; `stray` has left it, and carries its label. */
type Member = 'leader' | 'child' | 'stray'

interface SimProcess {
  readonly pid: number
  readonly began: string
  readonly label: ProcessLabel
  readonly node: Node
  readonly owner: Node
  readonly hears: ProcessHears
  readonly members: Set<Member>
  readonly heeds: boolean
  /** When its executor has killed it at the latest: since it hangs, or its leader has gone. */
  doomedBy: number | null
}

const FOR_EVER = 1e9
/** What an executor may take to kill what hangs (its stall limit is 1.2 s), and what a leader has left (a grace of 5 s). */
const HUNG_MS = 4_000
const LEFT_MS = 8_000
const copied = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const placeOf = ({ session, run, attempt }: ProcessLabel): string => `${session}/${run}.${attempt}`

export class Machine {
  readonly #world: World
  readonly #faults: Faults
  readonly #name: string
  readonly #clock: Clock
  readonly #all: SimProcess[] = []
  readonly #notes = new Map<string, { readonly left: LeftProcess; readonly owner: Node }>()
  readonly #ended = new Map<Node, number>()

  constructor(world: World, faults: Faults, name: string, clock: Clock) {
    this.#world = world
    this.#faults = faults
    this.#name = name
    this.#clock = clock
  }

  /** Attempts of which something is alive here: of this executor, or of those that had ended by an instant. */
  alive(of: { readonly owner: Node } | { readonly endedBy: number }): ProcessLabel[] {
    return this.#all
      .filter(({ members, owner }) => {
        if (members.size === 0) return false
        if ('owner' in of) return owner === of.owner
        return (this.#ended.get(owner) ?? Number.POSITIVE_INFINITY) <= of.endedBy
      })
      .map(({ label }) => label)
  }

  /** Whether the attempt has, or has had, a process here. */
  hasRun({ run, attempt }: { readonly run: string; readonly attempt: number }): boolean {
    return this.#all.some(({ label }) => label.run === run && label.attempt === attempt)
  }

  /** Attempts of this executor of which something is alive that it was to kill; what it stood still for does not count. */
  overdue(owner: Node): ProcessLabel[] {
    return this.#all
      .filter(
        (it) =>
          it.owner === owner &&
          it.members.size > 0 &&
          it.doomedBy !== null &&
          Math.max(it.doomedBy, owner.stalledUntil + LEFT_MS) < this.#world.now,
      )
      .map(({ label }) => label)
  }

  /** Whether anything is alive that its executor, which is, has to kill. */
  hasDoomed(): boolean {
    return this.#all.some(
      ({ doomedBy, members, owner }) => doomedBy !== null && members.size > 0 && owner.alive,
    )
  }

  /** An executor has ended: the channels of its processes close, and each that can ends itself with its group. */
  closed(owner: Node): void {
    this.#ended.set(owner, this.#world.now)
    for (const it of this.#all)
      if (it.owner === owner && it.members.has('leader'))
        this.#world.at(this.#world.now + 5, it.node, () => {
          it.members.delete('child')
          this.#exit(it, 'its executor is gone')
        })
  }

  /** Where an executor starts its processes; `workflows` are what their module exports. */
  processesOf(owner: Node, workflows: (node: Node, die: () => void) => AnyWorkflow[]): Processes {
    return {
      spawn: (order, hears) => {
        const it = this.#spawn(owner, order.label, hears)
        const { node } = it
        const send = (message: FromBody): void => {
          const text = copied(message)
          if (it.members.has('leader'))
            this.#world.at(this.#world.now + 1, owner, () => hears.message(text))
        }
        const hear = serveBody(
          workflows(node, () => this.#exit(it, 'its process was ended by SIGKILL')),
          node.ports,
          { send, end: () => this.#exit(it, 'its process exited with 0') },
        )
        send({ kind: 'loaded' })
        return Promise.resolve({
          group: groupOf(it),
          send: (message: ToBody) => {
            const text = copied(message)
            this.#world.at(this.#world.now + 1, node, () => hear(text))
          },
          flow: () => undefined,
          leaveOutput: () => undefined,
        })
      },
      isAlive: ({ leader }) => Promise.resolve((this.#found(leader)?.members.size ?? 0) > 0),
      signal: ({ leader }, signal) => {
        const it = this.#found(leader)
        if (it && signal === 'SIGKILL') this.#die(it, signal)
        // what hangs hears no signal that it could answer
        else if (it?.heeds)
          this.#world.at(this.#world.now + 3, it.members.has('leader') ? it.node : null, () =>
            this.#die(it, signal),
          )
        return Promise.resolve()
      },
    }
  }

  /** What executors write down of their processes, on the disk of this machine. */
  scratchOf(owner: Node): Scratch {
    return {
      make: (label) => Promise.resolve(`/scratch/${placeOf(label)}`),
      remove: () => Promise.resolve(),
      note: () => Promise.resolve(),
      forget: () => Promise.resolve(),
      noteProcess: (label, leader) => {
        this.#notes.set(placeOf(label), { left: { label, leader }, owner })
        return Promise.resolve()
      },
      forgetProcess: (label) => {
        this.#notes.delete(placeOf(label))
        return Promise.resolve()
      },
      recover: async (_session, end) => {
        const alive: LeftProcess[] = []
        for (const [place, { left, owner: of }] of this.#notes)
          if (!of.alive) {
            if (await end(left)) this.#notes.delete(place)
            else alive.push(left)
          }
        return { removed: [], held: [], alive }
      },
    }
  }

  #spawn(owner: Node, label: ProcessLabel, hears: ProcessHears): SimProcess {
    const world = this.#world
    const pid = 100 + this.#all.length
    const node = world.born(`${this.#name}-body`, this.#clock)
    const { random } = node.ports
    const it: SimProcess = {
      pid,
      began: String(world.now),
      label,
      node,
      owner,
      hears,
      members: new Set(['leader']),
      heeds: !this.#faults.hits('process.deaf'),
      doomedBy: null,
    }
    this.#all.push(it)
    if (this.#faults.hits('process.leaves')) {
      it.members.add('child')
      it.members.add('stray')
    }
    const later = (run: () => void): void =>
      void world.at(world.now + pick(random, 1_500), node, run)
    if (this.#faults.hits('process.kill'))
      later(() => this.#exit(it, 'its process was ended by SIGKILL'))
    if (this.#faults.hits('process.hang'))
      later(() => {
        it.doomedBy = world.now + HUNG_MS
        node.stalledUntil = world.now + FOR_EVER
      })
    return it
  }

  /** All of it goes. */
  #die(it: SimProcess, signal: string): void {
    it.members.delete('child')
    it.members.delete('stray')
    this.#exit(it, `its process was ended by ${signal}`)
  }

  /** The leader goes. */
  #exit(it: SimProcess, how: string): void {
    if (!it.members.delete('leader')) return
    it.node.alive = false
    it.doomedBy = this.#world.now + LEFT_MS
    this.#world.at(this.#world.now + 1, it.owner, () => it.hears.exited(how))
  }

  #found({ pid, began }: ProcessGroup['leader']): SimProcess | undefined {
    return this.#all.find((each) => each.pid === pid && each.began === began)
  }
}

const groupOf = ({ pid, began, label }: SimProcess): ProcessGroup => ({
  leader: { pid, began },
  label,
})
