// Signals inside this process: which lanes may have work, which sessions are to be told what, which runs have changed.
// All of them are hints; whoever waits here also looks for itself now and then.
import type { Told } from '../model/work.ts'

export interface Hub {
  /**
   * A run of this lane became claimable: the first of those who wait, the longest there, who takes it up is told and no
   * other, so that one run among hundreds of idle executors is looked for once. False where nobody does.
   */
  lane(lane: string): boolean
  /** `hear` answers whether it takes the wake-up; what it then leaves it passes on by `lane`. */
  onLane(hear: (lane: string) => boolean): () => void
  tell(session: string, told: Told): void
  onTold(session: string, hear: (told: Told) => void): () => void
  changed(run: string): void
  /** Lines of a run were kept. */
  logged(run: string): void
  onLogged(run: string, hear: () => void): () => void
  /** `run` null hears of every run. */
  onChanged(run: string | null, hear: (run: string) => void): () => void
}

type Hear<T> = (value: T) => void

const listeners = <T>() => {
  const all = new Map<string, Set<Hear<T>>>()
  return {
    add(key: string, hear: Hear<T>): () => void {
      const set = all.get(key) ?? new Set()
      all.set(key, set)
      set.add(hear)
      return () => {
        set.delete(hear)
        if (set.size === 0 && all.get(key) === set) all.delete(key)
      }
    },
    call(key: string, value: T): void {
      for (const hear of all.get(key) ?? []) hear(value)
    },
  }
}

export const makeHub = (): Hub => {
  const waiting = new Set<(lane: string) => boolean>()
  const sessions = listeners<Told>()
  const runs = listeners<string>()
  const logs = listeners<string>()
  return {
    lane(lane) {
      for (const hear of waiting) if (hear(lane)) return true
      return false
    },
    onLane(hear) {
      waiting.add(hear)
      return () => void waiting.delete(hear)
    },
    tell: (session, told) => sessions.call(session, told),
    onTold: (session, hear) => sessions.add(session, hear),
    changed(run) {
      runs.call(run, run)
      runs.call('', run)
    },
    logged: (run) => logs.call(run, run),
    onLogged: (run, hear) => logs.add(run, hear),
    onChanged: (run, hear) => runs.add(run ?? '', hear),
  }
}
