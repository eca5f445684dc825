// Ports of a test: a clock that moves when it is told, timers on that clock, and chance from a seed.
import { mintIds } from '../../src/kernel/ids.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { Time } from '../../src/kernel/time.ts'
import type { Timers } from '../../src/kernel/timers.ts'

export interface TestPorts {
  readonly ports: Ports
  /** Moves the clock and runs what has become due, in order, letting promises run between. */
  advance(ms: number): Promise<void>
}

/** Lets everything that is ready run: promises, and what they started. */
export const settled = async (turns = 20): Promise<void> => {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
}

export const testPorts = (start = 1_700_000_000_000, seed = 1): TestPorts => {
  let now = start
  let order = 0
  const due: { at: number; order: number; run: () => void }[] = []
  const time: Time = { now: () => now, mono: () => now - start }
  const timers: Timers = {
    after(ms, run) {
      const timer = { at: now + ms, order: order++, run }
      due.push(timer)
      return () => {
        const at = due.indexOf(timer)
        if (at >= 0) due.splice(at, 1)
      }
    },
    soon: (run) => void setImmediate(run),
  }
  const random = seededRandom(seed)
  return {
    ports: { time, timers, random, ids: mintIds(time, random), log: noLog },
    async advance(ms) {
      const until = now + ms
      await settled()
      for (;;) {
        due.sort((a, b) => a.at - b.at || a.order - b.order)
        const next = due[0]
        if (!next || next.at > until) break
        due.shift()
        now = Math.max(now, next.at)
        next.run()
        await settled()
      }
      now = until
      await settled()
    },
  }
}
