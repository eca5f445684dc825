// Executors that are started because a queue waits, as the store has them: decided once for all spawners, recorded before anything is
// started, and settled once, by evidence.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BeginSpawn } from '../../src/model/spawn.ts'
import { begunSpawn } from '../../src/orchestrator/http/answer-spawns.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import { settleSpawn } from '../../src/transitions/settle-spawn.ts'
import type { TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => {
  t = await openStore({ settings: { retentionMs: 600_000 } })
  const known = await t.session()
  await known.closeSession()
})
afterEach(() => t.close())

const asked: BeginSpawn = {
  queue: 'default',
  spawner: 'host:1',
  kind: 'process',
  max: 3,
  slots: 2,
  afterMs: 0,
  cooldownMs: 0,
  startByMs: 60_000,
  mine: [],
}
const begin = (more: Partial<BeginSpawn> = {}) => begunSpawn(t.engine, { ...asked, ...more })
const settle = (session: string, evidence: string) =>
  t.engine.act((tx) => settleSpawn(tx, session, evidence))
const spawns = () => t.sql('select session, n, state, evidence from spawns order by queue, n')
const wait = async (runs: number): Promise<void> => {
  for (let i = 0; i < runs; i++) await t.start('w')
}

describe('OPS-05 whether one is started', () => {
  it('OPS-05 its row is there with the reason before anything is started; none is where a slot is free', async () => {
    expect(await begin()).toMatchObject({ session: null, reason: 'nothing waits' })
    await wait(3)
    t.later(2_000)
    const { session, reason } = await begin()
    expect(reason).toBe('3 runs wait, the oldest for 2 s, and no executor serves the queue')
    expect(t.sql('select * from spawns')).toMatchObject([
      {
        session,
        queue: 'default',
        n: 1,
        spawner: 'host:1',
        reason,
        state: 'open',
        kind: 'process',
      },
    ])
    await t.session({ id: session ?? '' })
    expect(await begin({ mine: [session ?? ''] })).toEqual({
      session: null,
      reason: '10 of 10 slots are free',
      mine: [{ session, seen: 'live' }],
    })
  })

  it('OPS-05 those on their way count with their slots, and spawners that ask at once never start more than the most', async () => {
    await wait(3)
    await begin()
    // room for two of three
    expect((await begin()).session).not.toBeNull()
    expect(await begin()).toMatchObject({
      session: null,
      reason: '2 that are on their way have room for the 3 that wait',
    })
    await wait(100)
    const many = await Promise.all(
      Array.from({ length: 12 }, (_, i) => begin({ spawner: `host:${i}` })),
    )
    expect(many.filter(({ session }) => session !== null)).toHaveLength(1)
    expect(spawns().map(({ n }) => n)).toEqual([1, 2, 3])
    // of another queue they are others
    expect((await begin({ queue: 'other' })).reason).toBe('nothing waits')
  })

  it('OPS-05 after one was started, and ever longer after failures, none is', async () => {
    await wait(50)
    const cooling = { cooldownMs: 10_000 }
    const first = await begin(cooling)
    expect((await begin(cooling)).reason).toBe('the last was started less than 10 s ago')
    t.later(10_000)
    await settle(first.session ?? '', 'its process exited with 1')
    expect((await begin(cooling)).reason).toBe(
      'the last 1 came to nothing; none is started for 20 s',
    )
    t.later(20_000)
    const second = await begin(cooling)
    await settle(second.session ?? '', 'its process exited with 1')
    t.later(39_000)
    expect((await begin(cooling)).reason).toContain('the last 2 came to nothing')
    t.later(1_000)
    const third = await begin(cooling)
    // one that comes ends the series
    await t.session({ id: third.session ?? '' })
    await settle(third.session ?? '', 'its process exited with 0')
    t.later(10_000)
    expect((await begin(cooling)).session).not.toBeNull()
    expect(spawns().map(({ state }) => state)).toEqual(['failed', 'failed', 'ended', 'open'])
  })
})

describe('OPS-05 RUN-11 what becomes of one', () => {
  const spawned = async (): Promise<string> => (await begin()).session ?? ''

  it('RUN-11 the end of its process settles it once, and what it held is taken back on that evidence', async () => {
    await wait(1)
    const id = await spawned()
    const session = await t.session({ id })
    const { run } = only(await session.claim())
    expect(await settle(id, 'process 7 was ended by SIGKILL')).toMatchObject({ ended: true })
    await t.pass('reap-sessions')
    expect(t.run(run)).toMatchObject({ status: 'queued', losses: 1 })
    expect(await settle(id, 'said again')).toMatchObject({ found: true, ended: false })
    expect(spawns()).toMatchObject([{ state: 'ended', evidence: 'process 7 was ended by SIGKILL' }])
    expect(await settle('ses_none', 'x')).toMatchObject({ found: false })
  })

  it('OPS-05 of one whose spawner says nothing the end of its session settles it, or that it never came', async () => {
    await wait(3)
    const [came, never] = [await spawned(), await spawned()]
    const session = await t.session({ id: came })
    await session.closeSession()
    await t.pass('settle-spawns')
    expect(spawns()).toMatchObject([{ session: came, state: 'ended' }, { state: 'open' }])
    t.later(89_999)
    await t.pass('settle-spawns')
    expect(spawns()[1]).toMatchObject({ session: never, state: 'open' })
    t.later(1)
    await t.pass('settle-spawns')
    expect(spawns()[1]).toMatchObject({
      state: 'failed',
      evidence: 'it has not registered, 30 s after its time',
    })
    // the newest stays, since numbers go on from it
    t.later(700_000)
    await t.pass('settle-spawns')
    expect(spawns()).toMatchObject([{ session: never, n: 2 }])
    expect((await begin()).session).not.toBeNull()
    expect(spawns().map(({ n }) => n)).toEqual([2, 3])
  })

  it('OPS-02 SEC-02 spawners ask with a token of executors, and people read by pages what they did', async () => {
    await wait(9)
    const handler = makeHandler(t.engine, {
      tokens: [
        { token: 'works', role: 'executor' },
        { token: 'sees', role: 'viewer' },
      ],
    })
    const ask = async (token: string, path: string, body?: object) => {
      const response = await handler.fetch(
        new Request(`http://localhost${path}`, {
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        }),
      )
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    expect((await ask('sees', '/v1/executor/spawns', asked)).status).toBe(403)
    const made: unknown[] = []
    for (let i = 0; i < 3; i++) {
      const { body } = await ask('works', '/v1/executor/spawns', asked)
      made.unshift(body['session'])
      t.later(1)
    }
    const path = `/v1/executor/spawns/${String(made[0])}/settle`
    expect(await ask('works', path, { evidence: 'it exited' })).toEqual({
      status: 200,
      body: { ok: true, ended: false },
    })
    expect((await ask('works', '/v1/executor/spawns/none/settle', { evidence: 'x' })).status).toBe(
      404,
    )
    const first = (await ask('sees', '/v1/spawns?limit=2')).body
    const rest = (await ask('sees', `/v1/spawns?limit=2&cursor=${String(first['next'])}`)).body
    expect([first, rest].flatMap(({ spawns: all }) => all)).toMatchObject(
      made.map((session) => ({ session })),
    )
    expect(rest['next']).toBeNull()
    handler.stop()
  })
})
