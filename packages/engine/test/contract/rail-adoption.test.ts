// An attempt that its launcher hands to the session of a process of its own, and the token by which that is done.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readAttemptToken } from '../../src/kernel/attempt-token.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import { adoptionsOf } from '../../src/orchestrator/http/adoptions.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { RouteName } from '../../src/protocol/routes.ts'
import { routes } from '../../src/protocol/routes.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, openStore } from '../support/store.ts'

let t: TestStore
let launcher: Session
let run: ClaimedRun
beforeEach(async () => {
  t = await openStore()
  launcher = await t.session()
  await t.start('w')
  ;[run] = (await launcher.claim(1)) as [ClaimedRun]
})
afterEach(() => t.close())

/** The session of the attempt's own process, which serves nothing. */
const runner = (id = 'ses_own') => t.session({ id, definitions: [] })
const adopt = (session: Session, more: object = {}) =>
  adoptionsOf(t.engine).adopt({
    run: run.run,
    attempt: run.attempt,
    from: launcher.id,
    session: session.id,
    startBy: Number.MAX_SAFE_INTEGER,
    ...more,
  })

describe('RAIL-14 adopting', () => {
  it('RAIL-14 moves the attempt with its journal to the session of its process, which drives it to its end; the launcher’s writes are stale', async () => {
    await launcher.checkpoint(run, 'a')
    const own = await runner()
    const answer = await adopt(own)
    expect(answer).toMatchObject({
      ok: true,
      runs: [{ run: run.run, attempt: 1, entries: 1, journal: [{ key: 'a' }] }],
    })
    expect(t.run(run.run)).toMatchObject({ status: 'running', attempt: 1, session: 'ses_own' })
    expect(await launcher.checkpoint({ ...run, entries: 1 }, 'b')).toMatchObject({
      ok: false,
      code: 'stale_attempt',
    })
    expect(await launcher.end(run, { kind: 'hand_back', reason: 'late' })).toMatchObject({
      ok: false,
    })
    expect(await own.complete({ ...run, entries: 1 }, 'done')).toMatchObject({
      ok: true,
      ended: 'succeeded',
    })
    expect(t.sql('select session, "end" from attempts where run = ?', run.run)).toEqual([
      { session: 'ses_own', end: 'completed' },
    ])
    expect(
      t.sql(`select kind, actor from events where run = ? and kind = 'attempt.adopted'`, run.run),
    ).toEqual([{ kind: 'attempt.adopted', actor: 'ses_own' }])
  })

  it('RAIL-14 may be repeated by the process, whose first answer was lost', async () => {
    const own = await runner()
    const first = await adopt(own)
    const { rev } = t.run(run.run)
    expect(await adopt(own)).toEqual(first)
    expect(t.run(run.run)['rev']).toBe(rev)
    // and by nobody else
    expect(await adopt(await runner('ses_other'))).toMatchObject({ code: 'stale_attempt' })
    expect(t.run(run.run)['session']).toBe('ses_own')
  })

  it('RAIL-14 EX-06 EX-09 what its launcher has begun to stop is not adopted; its next attempt is', async () => {
    await t.engine.write(launcher.id, {
      run: run.run,
      attempt: 1,
      entries: [],
      firstReason: 'attempt_deadline',
    })
    expect(await adopt(await runner())).toMatchObject({ ok: false, code: 'stale_attempt' })
    expect(t.run(run.run)).toMatchObject({ status: 'running', session: launcher.id })
    await launcher.end(run, { kind: 'hand_back', reason: 'shutdown' })
    await t.settle()
    ;[run] = (await launcher.claim(1)) as [ClaimedRun]
    expect(run.attempt).toBe(2)
    expect(await adopt(await runner('ses_second'))).toMatchObject({ ok: true })
  })

  it('RAIL-14 RUN-06 its lease is its own: it lives on when its launcher dies, and is taken back when it has died itself', async () => {
    const own = await runner()
    await adopt(own)
    await t.kill(launcher)
    expect(t.run(run.run)).toMatchObject({ status: 'running', session: 'ses_own' })
    expect(await own.renew()).toMatchObject({ ok: true })
    await t.kill(own)
    expect(t.run(run.run)).toMatchObject({ status: 'queued', session: null, losses: 1 })
  })

  it.each([
    ['another attempt', () => ({ attempt: 2 })],
    ['another run', () => ({ run: 'run_none' })],
    ['another launcher', () => ({ from: 'ses_none' })],
    ['a time to begin that is over', () => ({ startBy: t.clock.time.now() - 60_000 })],
  ])('RAIL-14 of %s it is refused, and nothing changes', async (_what, more) => {
    const own = await runner()
    const before = t.run(run.run)
    expect(await adopt(own, more())).toMatchObject({ ok: false, code: 'stale_attempt' })
    expect(t.run(run.run)).toEqual(before)
  })

  it('RAIL-14 what its launcher has handed back, and a session that has ended, adopt nothing', async () => {
    const own = await runner()
    await t.kill(own)
    expect(await adopt(own)).toMatchObject({ ok: false, code: 'session_ended' })
    const later = await runner('ses_later')
    await launcher.end(run, { kind: 'hand_back', reason: 'start_deadline' })
    expect(await adopt(later)).toMatchObject({ ok: false, code: 'stale_attempt' })
    expect(t.run(run.run)).toMatchObject({ status: 'queued', session: null })
  })

  it('RAIL-14 EX-28 of an adoption and a hand-back at once one wins, and the other changes nothing', async () => {
    const own = await runner()
    const [adopted, handed] = await Promise.all([
      adopt(own),
      launcher.end(run, { kind: 'hand_back', reason: 'start_deadline' }),
    ])
    expect([adopted.ok, handed.ok].filter(Boolean)).toHaveLength(1)
    expect(t.run(run.run)['session']).toBe(adopted.ok ? 'ses_own' : null)
  })
})

describe('RAIL-14 the token', () => {
  const ALL = 'canary-of-the-server'
  const grant = async (): Promise<string> => {
    const answer = await adoptionsOf(t.engine).grant({
      session: launcher.id,
      run: run.run,
      attempt: 1,
      runner: 'ses_own',
      startByMs: 60_000,
    })
    if (!answer.ok) throw new Error(answer.message)
    return answer.token
  }
  const caller = (token: string) => {
    const { fetch } = makeHandler(t.engine, { tokens: [{ token: ALL, role: 'admin' }] })
    return async (name: RouteName, body: object = {}, params: Record<string, string> = {}) => {
      const { method, path } = routes[name]
      const at = path.replace(/:(\w+)/g, (_whole, key: string) => params[key] ?? 'x')
      const search =
        method === 'GET' ? `?${new URLSearchParams(body as Record<string, string>).toString()}` : ''
      const response = await fetch(
        new Request(`http://localhost${at}${search}`, {
          method,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          ...(method === 'GET' || method === 'DELETE' ? {} : { body: JSON.stringify(body) }),
        }),
      )
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
  }
  const registration = {
    protocol: 1,
    session: 'ses_own',
    build: 'b',
    host: 'h',
    pid: 1,
    queues: [],
    labels: [],
    capacity: 1,
    definitions: [],
  }

  it('RAIL-14 lets its bearer begin one session, adopt one attempt and drive it', async () => {
    const token = await grant()
    expect(readAttemptToken(token)).toMatchObject({ session: 'ses_own', run: run.run, attempt: 1 })
    const call = caller(token)
    expect(await call('register', registration)).toMatchObject({ status: 200 })
    const adopting = { session: 'ses_own', run: run.run, attempt: 1 }
    expect(await call('adopt', adopting)).toMatchObject({
      status: 200,
      body: { runs: [{ run: run.run }] },
    })
    expect(
      await call('write', {
        session: 'ses_own',
        writes: [
          { run: run.run, attempt: 1, entries: [], end: { kind: 'complete', output: '"done"' } },
        ],
      }),
    ).toMatchObject({ status: 200, body: { answers: [{ ok: true, ended: 'succeeded' }] } })
    expect(await call('close', { session: 'ses_own', reason: 'done' })).toMatchObject({
      status: 200,
    })
  })

  it('RAIL-14 is useless for anything else: no other route, session, run or attempt', async () => {
    const call = caller(await grant())
    const open = ['register', 'adopt', 'journal', 'write', 'renew', 'close', 'logs', 'listen']
    const others = (Object.keys(routes) as RouteName[]).filter(
      (name) => !open.includes(name) && routes[name].role !== 'public' && !('raw' in routes[name]),
    )
    expect(others.length).toBeGreaterThan(30)
    for (const name of others) {
      const { status } = await call(name, { session: 'ses_own' })
      // what does not fit its schema is not even judged
      expect([name, status === 403 || status === 400]).toEqual([name, true])
    }
    for (const name of ['claim', 'grant'] as const)
      expect(
        await call(name, {
          session: 'ses_own',
          claim: 1,
          most: 1,
          except: [],
          waitMs: 0,
          run: run.run,
          attempt: 1,
          runner: 'ses_x',
          startByMs: 1,
        }),
      ).toMatchObject({ status: 403, body: { code: 'not_allowed' } })
    const refused = { status: 403, body: { code: 'not_allowed' } }
    expect(await call('register', { ...registration, session: 'ses_x' })).toMatchObject(refused)
    expect(
      await call('register', { ...registration, definitions: [definition('w')] }),
    ).toMatchObject(refused)
    expect(await call('register', { ...registration, queues: ['default'] })).toMatchObject(refused)
    await call('register', registration)
    for (const more of [{ session: launcher.id }, { run: 'run_x' }, { attempt: 2 }])
      expect(
        await call('adopt', { session: 'ses_own', run: run.run, attempt: 1, ...more }),
      ).toMatchObject(refused)
    expect(await call('close', { session: launcher.id, reason: 'x' })).toMatchObject(refused)
    expect(await call('listen', { session: launcher.id })).toMatchObject(refused)
    expect(t.run(run.run)).toMatchObject({ status: 'running', session: launcher.id })
  })

  it('RAIL-14 SEC-01 one that was changed, cut or made by another store opens nothing', async () => {
    const token = await grant()
    const [head = '', body = '', hash = ''] = token.split('.')
    const forged = Buffer.from(
      JSON.stringify({ ...readAttemptToken(token), session: launcher.id }),
    ).toString('base64url')
    for (const bad of [
      `${head}.${forged}.${hash}`,
      `${head}.${body}`,
      `${head}.${body}.${hash}.x`,
      `${head}.${body}.${'A'.repeat(hash.length)}`,
      head,
    ])
      expect(await caller(bad)('register', registration)).toMatchObject({ status: 401 })
  })

  it('RAIL-14 only the session that holds the attempt is given one', async () => {
    const asked = { run: run.run, attempt: 1, runner: 'ses_own', startByMs: 60_000 }
    const { grant: ask } = adoptionsOf(t.engine)
    const other = await t.session()
    for (const more of [{ session: other.id }, { session: launcher.id, attempt: 2 }])
      expect(await ask({ ...asked, ...more })).toMatchObject({
        ok: false,
        code: 'stale_attempt',
      })
  })
})
