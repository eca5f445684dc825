// The outside, together: what every part that acts is handed.
import type { Ids } from './ids.ts'
import { mintIds } from './ids.ts'
import type { Log } from './log.ts'
import { noLog } from './log.ts'
import type { Random } from './random.ts'
import { systemRandom } from './random.ts'
import type { Time } from './time.ts'
import { systemTime } from './time.ts'
import type { Timers } from './timers.ts'
import { systemTimers } from './timers.ts'

export interface Ports {
  readonly time: Time
  readonly timers: Timers
  readonly random: Random
  readonly ids: Ids
  readonly log: Log
}

/** The real clock, timers, chance and ids, with a log; silent without one. */
export const systemPorts = (log: Log = noLog): Ports => ({
  time: systemTime,
  timers: systemTimers,
  random: systemRandom,
  ids: mintIds(systemTime, systemRandom),
  log,
})
