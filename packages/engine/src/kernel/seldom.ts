// A line that may repeat without end: said at once the first time, then once a minute with how often it was kept back.
import type { Facts, Log } from './log.ts'
import type { Time } from './time.ts'

const EVERY_MS = 60_000
/** Kinds that are told apart; beyond them all is forgotten and begins anew. */
const KINDS_MAX = 1_000

/** Says a line of this kind, unless it has been said within a minute: then it is a line for those who look closely. */
export const seldom = (
  log: Log,
  time: Pick<Time, 'mono'>,
  level: 'error' | 'warn' = 'error',
): ((event: string, kind: string, facts: Facts) => void) => {
  const said = new Map<string, { at: number; kept: number }>()
  return (event, kind, facts) => {
    const key = `${event} ${kind}`
    const last = said.get(key)
    const now = time.mono()
    if (last && now - last.at < EVERY_MS) {
      last.kept += 1
      log.debug(event, facts)
      return
    }
    if (said.size >= KINDS_MAX) said.clear()
    said.set(key, { at: now, kept: 0 })
    log[level](event, last && last.kept > 0 ? { ...facts, repeated: last.kept } : facts)
  }
}
