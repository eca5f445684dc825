// Ends an executor that has had nothing to do for so long. One that keeps something for people to see to stays.
import type { Executor } from '../executor/executor.ts'
import type { Ports } from '../kernel/ports.ts'
import { sleep } from '../kernel/timers.ts'

const LOOK_MS = 500

/** Resolves when the executor was idle all the time for so long; never where it was stopped before. */
export const untilIdle = async (
  executor: Pick<Executor, 'status'>,
  { time, timers }: Pick<Ports, 'time' | 'timers'>,
  idleMs: number,
  signal: AbortSignal,
): Promise<'idle' | 'stopped'> => {
  let since = time.mono()
  while ((await sleep(timers, Math.min(LOOK_MS, Math.max(1, idleMs)), signal)) === 'slept') {
    const { jobs, markers, unreleased } = executor.status()
    if (jobs.length + markers.length + unreleased.length > 0) since = time.mono()
    else if (time.mono() - since >= idleMs) return 'idle'
  }
  return 'stopped'
}
