// Admits those who wait in line for limits: for the keys that a commit named at once, for all keys with waiters each second.
import { admit } from '../transitions/admit.ts'
import { keysWithWaiters } from '../queries/lines.ts'
import type { Sweep } from './loop.ts'
import { patience } from './loop.ts'

export interface AdmitSweep extends Sweep {
  /** These lines may move: look at them in the next pass. */
  want(keys: Iterable<string>): void
}

export const admitWaiting = (): AdmitSweep => {
  let named = new Set<string>()
  let allAt = Number.NEGATIVE_INFINITY
  const again = patience()
  return {
    name: 'admit-waiting',
    intervalMs: 1_000,
    want: (keys) => {
      for (const key of keys) named.add(key)
    },
    async pass(upkeep) {
      const keys = named
      named = new Set()
      const now = upkeep.ports.time.mono()
      if (now - allAt >= 1_000) {
        allAt = now
        for (const key of await upkeep.read(keysWithWaiters)) keys.add(key)
      }
      if (keys.size === 0) return { examined: 0, acted: 0 }
      let acted = 0
      let full: readonly string[] = []
      const busy = new Set<string>()
      for (;;) {
        const list = [...keys].filter((key) => !full.includes(key))
        if (list.length === 0) break
        const pass = await upkeep.act((tx) => admit(tx, list, full))
        acted += pass.count
        full = pass.full
        for (const key of pass.busy) busy.add(key)
        if (!pass.more) break
      }
      for (const key of busy) named.add(key)
      return { examined: keys.size, acted, skipped: busy.size, ...again(busy.size > 0) }
    },
  }
}
