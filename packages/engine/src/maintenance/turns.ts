// Which sweeps are ours: of the servers of one database one at a time looks by itself for what each sweep is for, as an economy
// and never as a condition of being right. A turn is a row with an end, which is put off while its holder lives; when the
// holder is lost another takes it. We trust our own for no longer than it lasts by our clock from before we asked.
import { giveBackTurns, takeTurns } from '../transitions/take-turns.ts'
import type { Upkeep } from './loop.ts'

/** How long a turn lasts where its holder says nothing any more. */
export const TURN_MS = 10_000
/** How often those of others are asked for. Our own are put off when half of them is over. */
const LOOK_MS = 1_000

export interface Turns {
  mine(sweep: string): boolean
  stop(): Promise<void>
}

/** Where one process has the store for itself every turn is its own. */
export const everyTurn: Turns = { mine: () => true, stop: () => Promise.resolve() }

/** `gained` hears of each sweep that has become ours. */
export const startTurns = (
  { ports: { time, timers, log }, store }: Pick<Upkeep, 'ports' | 'store'>,
  sweeps: readonly string[],
  self: string,
  gained: (sweep: string) => void,
): Turns => {
  const until = new Map<string, number>()
  const left = (sweep: string): number => (until.get(sweep) ?? 0) - time.mono()
  let made = false
  let stopped = false
  let cancel: () => void = () => undefined

  const look = async (): Promise<void> => {
    const wanted = sweeps.filter((sweep) => left(sweep) < TURN_MS / 2)
    const asked = time.mono()
    if (wanted.length > 0)
      try {
        const taken = await store.run((tx) => takeTurns(tx, wanted, self, TURN_MS, !made))
        made = true
        for (const sweep of taken) {
          const fresh = left(sweep) <= 0
          until.set(sweep, asked + TURN_MS)
          if (fresh && !stopped) gained(sweep)
        }
      } catch (error) {
        // they lapse by themselves, and somebody who reaches the store takes them
        log.debug('turns.not_taken', { error })
      }
    if (!stopped)
      cancel = timers.after(LOOK_MS, () => {
        looking = look()
      })
  }

  let looking = look()
  return {
    mine: (sweep) => left(sweep) > 0,
    async stop() {
      stopped = true
      cancel()
      await looking
      try {
        await store.run((tx) => giveBackTurns(tx, self))
      } catch (error) {
        log.debug('turns.not_given_back', { error })
      }
    },
  }
}
