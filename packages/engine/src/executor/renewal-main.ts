// The thread behind `renewal-thread.ts`: a renewal each interval, again each second while none is answered, and none at all
// once the main loop has hung past its limit.
import * as thread from 'node:worker_threads'
import { assert } from '../kernel/errors.ts'
import { jittered, systemRandom } from '../kernel/random.ts'
import { systemTime } from '../kernel/time.ts'
import { systemTimers } from '../kernel/timers.ts'
import type { RenewAnswer, RenewRequest } from '../model/work.ts'
import type { FromThread, ThreadData, ToThread } from './renewal-thread.ts'

const SAY_MS = 200
const ANSWER_MS = 1_000

const { url, token, session, renewMs, stallLimitMs = 60_000 } = thread.workerData as ThreadData
const port = thread.parentPort
assert(port, 'renewal-main runs as a thread')

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
    const response = await fetch(new URL('/v1/executor/renew', url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(said ?? { session, draining: false, status: null, letGo: [] }),
      signal: AbortSignal.timeout(5 * ANSWER_MS),
    })
    const body = (await response.json()) as Record<string, unknown>
    const answer = response.ok ? (body as unknown as RenewAnswer) : refusalOf(response.status, body)
    if (!answer) return
    tell({ kind: 'answered', n: number, answer, wall, absolute })
    arm(renewMs)
  } catch {
    // not answered: the repeat is armed, and the main loop fences itself when none succeeds
  }
}

/** A problem that is the engine's word on this session; anything else is no answer. */
const refusalOf = (status: number, body: Record<string, unknown>): RenewAnswer | null =>
  typeof body['code'] === 'string' && body['code'] === 'session_ended'
    ? {
        ok: false,
        code: 'session_ended',
        message:
          typeof body['detail'] === 'string' ? body['detail'] : `the server answered ${status}`,
        detail: {},
      }
    : null

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
  }
})
arm(renewMs)
