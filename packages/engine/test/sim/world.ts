// The world: one virtual clock, one heap of events, one seed. A node is one life of a process: its events end with it.
// After each event every promise that can run has run before the next, since a real turn of the loop stands between.
import { mintIds } from '../../src/kernel/ids.ts'
import type { Log } from '../../src/kernel/log.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import type { Random } from '../../src/kernel/random.ts'
import { seededRandom, seedOf } from '../../src/kernel/random.ts'
import type { Cancel } from '../../src/kernel/timers.ts'

const EPOCH = 1_700_000_000_000
/** A hundred times what a world needs. */
const EVENTS_MAX = 2_000_000

/** A machine's wall clock: how far it is off, in milliseconds. It outlives the processes on it. */
export interface Clock {
  offset: number
}

export interface Node {
  readonly name: string
  readonly clock: Clock
  readonly ports: Ports
  alive: boolean
  /** Its events wait until then: the process is stopped, its clocks are not. */
  stalledUntil: number
}

interface Happening {
  at: number
  seq: number
  readonly node: Node | null
  run: (() => void) | null
}

/** Ends the world at once; the text is the violation. */
export class Violation extends Error {
  /** The promise or invariant that does not hold: `S5`, `RUN-12`. */
  readonly rule: string
  constructor(rule: string, message: string) {
    super(message)
    this.name = 'Violation'
    this.rule = rule
  }
}

export class World {
  now = 0
  events = 0
  readonly seed: number
  violation: Violation | null = null
  readonly #heap: Happening[] = []
  readonly #log: ((line: string) => void) | null
  #seq = 0
  #hash = 0x811c9dc5
  #lives = 0

  constructor(seed: number, log: ((line: string) => void) | null = null) {
    this.seed = seed
    this.#log = log
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0')
  }

  get talks(): boolean {
    return this.#log !== null
  }

  /** Adds to the running hash of the history. */
  record(text: string): void {
    let hash = this.#hash
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
    this.#hash = Math.imul(hash ^ this.now, 0x01000193)
  }

  say(what: () => string): void {
    this.#log?.(`${this.now.toFixed(0).padStart(7)} ${what()}`)
  }

  violate(rule: string, message: string): void {
    if (this.violation) return
    this.violation = new Violation(rule, message)
    this.say(() => `VIOLATION ${rule}: ${message}`)
  }

  /** Chance of its own for each purpose, so that one that is asked less often moves no other. */
  chance(purpose: string): Random {
    return seededRandom(seedOf(`${this.seed}/${purpose}`))
  }

  born(name: string, clock: Clock): Node {
    this.#lives += 1
    const random = this.chance(`node ${name} ${this.#lives}`)
    const time = {
      now: () => EPOCH + Math.floor(this.now + clock.offset),
      mono: () => this.now,
    }
    const node: Node = {
      name,
      clock,
      alive: true,
      stalledUntil: 0,
      ports: {
        time,
        random,
        ids: mintIds(time, random),
        log: this.#log ? this.#nodeLog(name) : noLog,
        timers: {
          after: (ms, run) => this.at(this.now + ms, node, run),
          soon: (run) => void this.at(this.now, node, run),
        },
      },
    }
    return node
  }

  #nodeLog(name: string): Log {
    const at =
      (level: string) =>
      (event: string, facts: object = {}): void =>
        this.say(
          () =>
            `${name} ${level} ${event} ${JSON.stringify(facts, (_key, value: unknown) => (value instanceof Error ? String(value) : value))}`,
        )
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  /** Calls `run` at this instant, if the node still lives then. */
  at(at: number, node: Node | null, run: () => void): Cancel {
    const happening: Happening = { at, seq: this.#seq++, node, run }
    this.#push(happening)
    return () => {
      happening.run = null
    }
  }

  sleep(node: Node | null, ms: number): Promise<void> {
    return new Promise((resolve) => this.at(this.now + ms, node, resolve))
  }

  /** Plays events in order until this instant, until `done`, or until something does not hold. */
  async play(until: number, done: () => boolean = () => false): Promise<void> {
    for (;;) {
      const next = this.#heap[0]
      if (!next || next.at > until) {
        this.now = Math.max(this.now, until)
        return
      }
      this.#pop()
      const { run, node } = next
      if (run === null || node?.alive === false) continue
      this.now = Math.max(this.now, next.at)
      if (node !== null && node.stalledUntil > this.now) {
        next.at = node.stalledUntil
        next.seq = this.#seq++
        this.#push(next)
        continue
      }
      this.events += 1
      if (this.events > EVENTS_MAX) this.violate('L9', 'the world never comes to rest')
      run()
      await turn()
      if (this.violation || done()) return
    }
  }

  #push(item: Happening): void {
    const heap = this.#heap
    let i = heap.length
    heap.push(item)
    while (i > 0) {
      const parent = (i - 1) >> 1
      const above = heap[parent] as Happening
      if (above.at < item.at || (above.at === item.at && above.seq < item.seq)) break
      heap[i] = above
      i = parent
    }
    heap[i] = item
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Happening
    const size = heap.length
    if (size === 0) return
    let i = 0
    for (;;) {
      const left = 2 * i + 1
      if (left >= size) break
      let child = left
      let least = heap[left] as Happening
      const right = heap[left + 1]
      if (right && left + 1 < size && before(right, least)) {
        child = left + 1
        least = right
      }
      if (!before(least, last)) break
      heap[i] = least
      i = child
    }
    heap[i] = last
  }
}

const before = (a: Happening, b: Happening): boolean =>
  a.at < b.at || (a.at === b.at && a.seq < b.seq)

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A whole number from 0 to `n` - 1. */
export const pick = (random: Random, n: number): number => Math.floor(random.next() * n)

export const oneOf = <T>(random: Random, list: readonly T[]): T =>
  list[pick(random, list.length)] as T
