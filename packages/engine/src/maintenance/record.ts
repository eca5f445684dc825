// The record of passes: each sweep's last pass, written together once a second, since a commit of its own for each loop
// would keep the disk of an idle engine busy.
import type { PassRow } from '../transitions/beat.ts'
import { beat } from '../transitions/beat.ts'
import type { Upkeep } from './loop.ts'

export interface Recorder {
  add(row: PassRow): Promise<void>
  /** Writes what is collected; the last thing before the store is closed. */
  flush(): Promise<void>
}

const TOGETHER_MS = 1_000

/** `atOnce`: each pass is written by itself, for tests that own the clock. */
export const makeRecorder = (
  upkeep: Pick<Upkeep, 'ports' | 'store'>,
  atOnce: boolean,
): Recorder => {
  let collected = new Map<string, PassRow>()
  let cancel: (() => void) | null = null

  const flush = async (): Promise<void> => {
    cancel?.()
    cancel = null
    const rows = [...collected.values()]
    collected = new Map()
    if (rows.length === 0) return
    try {
      await upkeep.store.run((tx) => beat(tx, rows))
    } catch (error) {
      upkeep.ports.log.warn('sweeps.not_recorded', { sweeps: rows.map(({ name }) => name), error })
    }
  }

  return {
    async add(row) {
      const known = collected.get(row.name)
      // what several passes of a second did is told as one
      collected.set(
        row.name,
        known
          ? {
              ...row,
              examined: known.examined + row.examined,
              acted: known.acted + row.acted,
              skipped: known.skipped + row.skipped,
              error: row.error ?? known.error,
            }
          : row,
      )
      if (atOnce) return flush()
      cancel ??= upkeep.ports.timers.after(TOGETHER_MS, () => void flush())
    },
    flush,
  }
}
