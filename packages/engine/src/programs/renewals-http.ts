// The program of a thread that renews over HTTP.
import * as thread from 'node:worker_threads'
import type { RenewAnswer } from '../model/work.ts'
import { renewInThread, RENEWAL_MS } from '../executor/session/renewal-loop.ts'
import type { HttpThread } from '../executor/session/renewal-thread.ts'

const { url, token } = thread.workerData as HttpThread

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

renewInThread({
  async renew(request) {
    const response = await fetch(new URL('/v1/executor/renew', url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(RENEWAL_MS),
    })
    const body = (await response.json()) as Record<string, unknown>
    return response.ok ? (body as unknown as RenewAnswer) : refusalOf(response.status, body)
  },
  close: async () => undefined,
})
