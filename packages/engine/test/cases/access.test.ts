// Who may act on one run, and on another.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { adoptionsOf } from '../../src/orchestrator/http/adoptions.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Route } from '../../src/protocol/route.ts'
import type { RouteName } from '../../src/protocol/routes.ts'
import { pathOf, routes } from '../../src/protocol/routes.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import type { Session, TestStore } from '../support/store.ts'
import { entry, only, openStore } from '../support/store.ts'

const SECRET = 'what only A knows'

let t: TestStore
let handler: Handler
let theirs: ClaimedRun
let mine: ClaimedRun
let me: Session
let token: string
beforeEach(async () => {
  t = await openStore()
  handler = makeHandler(t.engine, { tokens: [{ token: 'works', role: 'executor' }] })
  const them = await t.session()
  await t.start('w', { input: JSON.stringify(SECRET), owner: 'A' })
  theirs = only(await them.claim())
  await them.write(theirs, { entries: [entry(1, 'secret', { output: JSON.stringify(SECRET) })] })
  me = await t.session()
  await t.start('w', { owner: 'B' })
  mine = only(await me.claim())
  const granted = await adoptionsOf(t.engine).grant({
    session: me.id,
    run: mine.run,
    attempt: 1,
    runner: 'ses_own',
    startByMs: 60_000,
  })
  if (!granted.ok) throw new Error(granted.message)
  token = granted.token
})
afterEach(async () => {
  handler.stop()
  await t.close()
})

/** Whoever asks is this session, and names the run of somebody else wherever a run can be named. */
const sent = (session: string): Readonly<Record<string, unknown>> => {
  const { run, attempt } = theirs
  return {
    session,
    run,
    attempt,
    after: 0,
    runner: 'ses_x',
    startByMs: 1,
    draining: false,
    status: null,
    letGo: [{ run, attempt, reason: 'x' }],
    reason: 'x',
    except: [run],
    parts: [{ run, attempt, lines: [{ n: 1, at: 1, source: 'log', text: 'x', facts: null }] }],
    writes: [{ run, attempt, entries: [], end: { kind: 'complete', output: '1' } }],
    claim: 1,
    most: 10,
    waitMs: 0,
    runs: [run],
    evidence: 'x',
    mine: [],
  }
}

const shapeOf = (shape: Route['params']): string[] => Object.keys(shape?.shape ?? {})

/** Calls a route with all that it takes of this. */
const ask = async (name: RouteName, bearer: string, session: string) => {
  const route: Route = routes[name]
  const all = sent(session)
  const taken = (keys: readonly string[]): Record<string, unknown> =>
    Object.fromEntries(keys.flatMap((key) => (key in all ? [[key, all[key]]] : [])))
  const params = Object.fromEntries(
    shapeOf(route.params).map((key) => [key, key === 'session' ? session : theirs.run]),
  )
  const query = new URLSearchParams(
    Object.fromEntries(
      Object.entries(taken(shapeOf(route.query))).map(([key, value]) => [key, String(value)]),
    ),
  )
  const over = new AbortController()
  const response = await handler.fetch(
    new Request(`http://localhost${pathOf(route, params)}?${query.toString()}`, {
      method: route.method,
      signal: over.signal,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body: JSON.stringify(all) }),
    }),
  )
  const text = route.stream === true && response.ok ? '' : await response.text()
  over.abort()
  return { status: response.status, text }
}

const state = (): string =>
  JSON.stringify(
    ['runs', 'attempts', 'steps', 'events', 'signals', 'approvals', 'attempt_logs'].map((table) =>
      t.sql(`select * from ${table} where ${table === 'runs' ? 'id' : 'run'} = ?`, theirs.run),
    ),
  )

/** Of an executor: it may come in here, and is judged by what its session holds. */
const judged: readonly RouteName[] = [
  ...(['register', 'claim', 'write', 'renew', 'close', 'logs', 'journal', 'grant'] as const),
  ...(['adopt', 'exited', 'listen', 'beginSpawn', 'settleSpawn'] as const),
]

test.each(Object.keys(routes) as RouteName[])(
  'B135 SEC-02 whoever drives one run neither reads nor changes another by %s',
  async (name) => {
    const { role, raw }: Route = routes[name]
    if (role === 'public' || raw === true) return expect(judged).not.toContain(name)
    const before = state()
    for (const [bearer, session] of [
      ['works', me.id],
      [token, 'ses_own'],
    ] as const) {
      const { status, text } = await ask(name, bearer, session)
      await t.pass('reap-sessions')
      expect(text).not.toContain(SECRET)
      expect(state()).toBe(before)
      // a route that is new is open to nobody who drives runs, or is judged above
      if (!judged.includes(name)) expect([403, 400]).toContain(status)
      if (bearer === 'works' && !judged.includes(name)) expect(status).toBe(403)
    }
    return undefined
  },
)
