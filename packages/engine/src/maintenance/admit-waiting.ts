// Admits those who wait in line for limits: at once for the keys that a commit named and has not handed on itself, and each
// second for all keys that have both waiters and room, since what a commit names can be lost.
import { Fault } from '../kernel/errors.ts'
import { keysWithRoom, keysWithWaiters } from '../queries/lines.ts'
import type { Freed, Look } from '../transitions/admit.ts'
import { admit, firstLook, nextLook } from '../transitions/admit.ts'
import type { Sweep, Upkeep } from './loop.ts'
import { patience } from './loop.ts'

export interface AdmitSweep extends Sweep {
  /** These lines may move: look at them in the next pass. */
  want(keys: Iterable<string>): void
}

/** Admits until nobody more can be; answers how many were, and the keys that another transaction had locked. */
const admitAll = async (
  upkeep: Upkeep,
  freed: Freed,
): Promise<{ acted: number; busy: ReadonlySet<string> }> => {
  const busy = new Set<string>()
  let acted = 0
  for (let look: Look | null = firstLook(freed); look;) {
    const { lines, full }: Look = look
    const pass = await upkeep.act((tx) => admit(tx, lines, full))
    acted += pass.count
    for (const key of pass.busy) busy.add(key)
    look = nextLook(look, pass)
  }
  return { acted, busy }
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
      const room = [...(await upkeep.read((tx) => keysWithRoom(tx, [...keys])))]
      let acted = 0
      const busy = new Set<string>()
      for (let from = 0; from < room.length; from += LINES) {
        const pass = await admitAll(upkeep, new Map(room.slice(from, from + LINES)))
        acted += pass.acted
        for (const key of pass.busy) busy.add(key)
      }
      for (const key of busy) named.add(key)
      return { examined: keys.size, acted, skipped: busy.size, ...again(busy.size > 0) }
    },
  }
}

/** So many lines are looked at in one transaction. */
const LINES = 100

export interface Admissions {
  /** So much of these limits was freed, or so many have come into their lines: admits without waiting for a pass. */
  now(freed: Freed): void
  /** Resolves when nothing that was named is still to be admitted. */
  idle(): Promise<void>
}

/** What cannot be admitted at once, since the store is away or a limit is locked, is left to `later`. */
export const admissions = (upkeep: Upkeep, later: (keys: Iterable<string>) => void): Admissions => {
  let named = new Map<string, number>()
  let running: Promise<void> | null = null
  const run = async (): Promise<void> => {
    while (named.size > 0) {
      const lines = [...named].slice(0, LINES)
      for (const [key] of lines) named.delete(key)
      try {
        const { busy } = await admitAll(upkeep, new Map(lines))
        if (busy.size > 0) later(busy)
      } catch (error) {
        if (!(error instanceof Fault)) upkeep.ports.log.error('admission.failed', { error })
        later(lines.map(([key]) => key))
      }
    }
  }
  return {
    now(freed) {
      for (const [key, units] of freed) named.set(key, (named.get(key) ?? 0) + units)
      running ??= run().finally(() => {
        running = null
      })
    },
    async idle() {
      await running
    },
  }
}
