// Whether an attempt is to go no further, though its function could: it was asked to stop, its executor drains, its run is to
// pause or is given back, or its chain is so long that it gives way to another run.
import type { Job } from '../../model/job.ts'
import type { EndReport } from '../../model/work.ts'
import { letGoEnd } from './ends.ts'

export class LettingGo {
  draining = false
  pausing = false
  /** A reason of this executor's own for handing the run back. */
  gaveBack: string | null = null
  readonly #job: Job
  readonly #rivals: () => readonly string[]
  readonly #maxChainDepth: number
  #steps = 0
  /** At so many steps the store said that nobody waits for this slot. */
  #aloneAt = 0

  constructor(
    job: Job,
    {
      rivals,
      maxChainDepth,
    }: { readonly rivals: () => readonly string[]; readonly maxChainDepth: number },
  ) {
    this.#job = job
    this.#rivals = rivals
    this.#maxChainDepth = maxChainDepth
  }

  stepBegins(): void {
    this.#steps += 1
  }

  /** Nobody waits for the slot: the chain goes on from here. */
  alone(): void {
    this.#aloneAt = this.#steps
  }

  /** Whether no further body may begin; `wantsMore`: whether one would. */
  isDue(wantsMore: boolean): boolean {
    return (
      this.#job.reason !== null ||
      this.draining ||
      this.pausing ||
      this.gaveBack !== null ||
      (wantsMore &&
        this.#steps > this.#aloneAt &&
        this.#steps >= this.#maxChainDepth &&
        this.#rivals().length > 0)
    )
  }

  /** What the attempt ends as by it. */
  end(): EndReport {
    const { draining, pausing, gaveBack } = this
    return letGoEnd(this.#job, { draining, pausing, gaveBack, rivals: this.#rivals })
  }
}
