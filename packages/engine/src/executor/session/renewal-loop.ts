// What a thread that renews does, however it speaks to the engine: a renewal each interval, again each second while none is
// answered, and none at all once the main loop has hung past its limit.
import * as thread from 'node:worker_threads'
import { assert } from '../../kernel/errors.ts'
import { jittered, systemRandom } from '../../kernel/random.ts'
import { systemTime } from '../../kernel/time.ts'
import { systemTimers } from '../../kernel/timers.ts'
import type { RenewAnswer, RenewRequest } from '../../model/work.ts'
import type { FromThread, ThreadData, ToThread } from './renewal-thread.ts'

const SAY_MS = 200
const ANSWER_MS = 1_000
/** How long a renewal may take. */
export const RENEWAL_MS = 5 * ANSWER_MS

export interface Renewer {
  /** Sends one renewal; null where nobody answered it. An error is as none. */
  renew(request: RenewRequest): Promise<RenewAnswer | null>
  close(): Promise<void>
}

/** Runs in the thread until the main loop says `stop`. */
export const renewInThread = ({ renew, close }: Renewer): void => {
  const { session, renewMs, stallLimitMs } = thread.workerData as ThreadData
  const port = thread.parentPort
  assert(port, 'renewals run in a thread')

  let n = 0
  let cancel: (() => void) | null = null
  let lastSaid = systemTime.mono()
  let stalled = false
  let waiting: ((request: RenewRequest | null) => void) | null = null

  const tell = (message: FromThread): void => port.postMessage(message)

  /** What the main loop wants said, or null when it is too busy to say. */
  const ask = (number: number): Promise<RenewRequest | null> =>
    new Promise((resolve) => {
      const give = systemTimers.after(SAY_MS, () => {
        waiting = null
        resolve(null)
      })
      waiting = (request) => {
        give()
        waiting = null
        resolve(request)
      }
      tell({ kind: 'say', n: number })
    })

  const arm = (ms: number): void => {
    cancel?.()
    cancel = systemTimers.after(ms, () => void beat())
  }

  const beat = async (): Promise<void> => {
    const number = ++n
    arm(jittered(systemRandom, ANSWER_MS))
    const said = await ask(number)
    const silent = systemTime.mono() - lastSaid
    if (said === null && silent > stallLimitMs) {
      if (!stalled)
        tell({
          kind: 'note',
          event: 'renewal_thread.stalled',
          facts: { session, silentMs: Math.round(silent), stallLimitMs },
        })
      stalled = true
      return
    }
    const wall = systemTime.now()
    const absolute = performance.timeOrigin + systemTime.mono()
    try {
      const answer = await renew(said ?? { session, draining: false, status: null, letGo: [] })
      if (!answer) return
      tell({ kind: 'answered', n: number, answer, wall, absolute })
      arm(renewMs)
    } catch {
      // not answered: the repeat is armed, and the main loop fences itself when none succeeds
    }
  }

  port.on('message', (message: ToThread) => {
    switch (message.kind) {
      case 'said':
        lastSaid = systemTime.mono()
        stalled = false
        waiting?.(message.request)
        return
      case 'soon':
        arm(0)
        return
      case 'stop':
        cancel?.()
        port.close()
        void close()
    }
  })
  arm(renewMs)
}
