// Contexts of the workflows in a world: what each attempt read before and after its preparation, so that none is launched with
// one that has changed since (EX-06).
import type { Faults } from './faults.ts'
import type { World } from './world.ts'

export class Contexts {
  readonly #world: World
  readonly #faults: Faults
  readonly #reads = new WeakMap<AbortSignal, string[]>()
  readonly #attempts = new Map<string, readonly string[]>()
  #current = 0

  constructor(world: World, faults: Faults) {
    this.#world = world
    this.#faults = faults
  }

  /** The context now; the signal is the attempt's. */
  read(signal: AbortSignal): string {
    if (this.#faults.hits('context.change')) this.#current += 1
    const now = `context ${this.#current}`
    this.#of(signal).push(now)
    return now
  }

  prepares(signal: AbortSignal, run: string, attempt: number): void {
    this.#attempts.set(`${run}#${attempt}`, this.#of(signal))
  }

  /** The function is called. */
  launched(run: string, attempt: number): void {
    const [captured, current] = this.#attempts.get(`${run}#${attempt}`) ?? []
    if (captured !== current)
      this.#world.violate(
        'EX-06',
        `${run}#${attempt} is launched with ${captured}; before that it was ${current} already`,
      )
  }

  #of(signal: AbortSignal): string[] {
    let reads = this.#reads.get(signal)
    if (!reads) this.#reads.set(signal, (reads = []))
    return reads
  }
}
