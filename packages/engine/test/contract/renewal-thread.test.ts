// The thread that renews: it speaks for a main loop that is busy, and no longer for one that hangs.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import type {
  FromThread,
  HttpThread,
  ThreadData,
  ToThread,
} from '../../src/executor/session/renewal-thread.ts'
import { threadRenewals } from '../../src/executor/session/renewal-thread.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import type { RenewRequest } from '../../src/model/work.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** The source as it stands, without a build. */
const BOOT = `
  const { workerData } = require('node:worker_threads')
  import(workerData.tsx).then(({ register }) => (register(), import(workerData.main)))
`

/** A server that notes each renewal, and the thread, whose main loop is this test. */
const thread = async (data: Partial<ThreadData>) => {
  const renewals: RenewRequest[] = []
  let heard: () => void = () => undefined
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part: Buffer) => (text += part.toString()))
    request.on('end', () => {
      renewals.push(JSON.parse(text) as RenewRequest)
      response.setHeader('content-type', 'application/json')
      response.end('{"ok":true,"now":1,"leaseUntil":2,"told":[],"pending":[],"wantsList":false}')
      heard()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const running = new Worker(BOOT, {
    eval: true,
    workerData: {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      session: 'ses_1',
      renewMs: 50,
      stallLimitMs: 60_000,
      ...data,
      main: new URL('../../src/programs/renewals-http.ts', import.meta.url).href,
      tsx: import.meta.resolve('tsx/esm/api'),
    } satisfies ThreadData & HttpThread & Record<'main' | 'tsx', string>,
  })
  closing.push(
    () => running.terminate(),
    () => {
      server.closeAllConnections()
      server.close()
    },
  )
  const said: FromThread[] = []
  let speak: ((n: number) => RenewRequest) | null = null
  running.on('message', (message: FromThread) => {
    said.push(message)
    if (message.kind === 'say' && speak !== null)
      running.postMessage({
        kind: 'said',
        n: message.n,
        request: speak(message.n),
      } satisfies ToThread)
    heard()
  })
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo())
      await new Promise<void>((resolve) => {
        heard = resolve
      })
  }
  return {
    renewals,
    said,
    until,
    speak: (as: ((n: number) => RenewRequest) | null) => {
      speak = as
    },
  }
}

const request = (status: string): RenewRequest => ({
  session: 'ses_1',
  draining: false,
  status,
  letGo: [],
})

describe('RUN-06 the thread that renews', () => {
  it('RUN-06 says what the main loop says, and tells it when each renewal was sent', async () => {
    const t = await thread({})
    t.speak((n) => request(`"renewal ${n}"`))
    await t.until(() => t.said.filter(({ kind }) => kind === 'answered').length >= 2)
    expect(t.renewals[0]).toEqual(request('"renewal 1"'))
    const answered = t.said.filter((each) => each.kind === 'answered')
    expect(answered[0]).toMatchObject({ n: 1, answer: { ok: true } })
    const [first, second] = answered.map(({ absolute }) => absolute)
    expect(second).toBeGreaterThan(first as number)
  })

  it('RUN-06 renews for a main loop that is too busy to say anything', async () => {
    const t = await thread({})
    await t.until(() => t.renewals.length >= 2)
    expect(t.renewals[0]).toEqual({ session: 'ses_1', draining: false, status: null, letGo: [] })
    expect(t.said.some(({ kind }) => kind === 'note')).toBe(false)
  })

  it('RUN-06 no longer vouches for one that has hung past its limit, and renews again when it is back', async () => {
    const t = await thread({ stallLimitMs: 400 })
    const asked = () => t.said.filter(({ kind }) => kind === 'say').length
    await t.until(() => t.said.some(({ kind }) => kind === 'note'))
    expect(t.said.find(({ kind }) => kind === 'note')).toMatchObject({
      event: 'renewal_thread.stalled',
      facts: { session: 'ses_1', stallLimitMs: 400 },
    })
    const renewed = t.renewals.length
    const before = asked()
    await t.until(() => asked() >= before + 2)
    expect(t.renewals).toHaveLength(renewed)
    t.speak(() => request('"back"'))
    await t.until(() => t.renewals.length > renewed)
    expect(t.renewals.at(-1)).toEqual(request('"back"'))
    expect(t.said.filter(({ kind }) => kind === 'note')).toHaveLength(1)
  })

  it('RUN-06 where the thread fails the main loop renews from then on, and says why', async () => {
    const logged: [string, unknown][] = []
    const log = { ...noLog, error: (event: string, facts: unknown) => logged.push([event, facts]) }
    const renewals = threadRenewals({
      program: new URL('not-there.js', import.meta.url),
      reach: {},
    })
    const heard = await new Promise<RenewRequest>((resolve) => {
      const made = renewals({
        ports: systemPorts(log),
        session: 'ses_1',
        renewMs: 60_000,
        say: () => request('"alive"'),
        send: async (sent) => {
          made.stop()
          resolve(sent)
          return { ok: true, now: 1, leaseUntil: 2, told: [], pending: [], wantsList: false }
        },
        heard: () => undefined,
      })
    })
    expect(heard).toEqual(request('"alive"'))
    expect(logged).toMatchObject([['renewal_thread.failed', { session: 'ses_1' }]])
  })
})
