import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { heldDigest } from '../../src/model/work.ts'
import { Fault } from '../../src/kernel/errors.ts'
import type { Store } from '../../src/store/store.ts'
import { postgresUrl } from '../support/postgres.ts'
import type { TestStore } from '../support/store.ts'
import { entry, only, openStore } from '../support/store.ts'

// a file has an owner, and a database has none
const onFile = postgresUrl() === null

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const sessionRow = (id: string) => only(t.sql('select * from sessions where id = ?', id))
const sweep = (): Promise<void> => t.pass('reap-sessions')
/** Moves time in steps that a sweep survives without taking them for a stall. */
const live = async (ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 5_000) {
    t.later(Math.min(5_000, left))
    await sweep()
  }
}

describe('RUN-06 the lease belongs to the session', () => {
  it('RUN-06 one renewal renews all that it holds, and writes its session’s row only', async () => {
    const a = await t.session()
    for (let i = 0; i < 50; i++) await t.start('w')
    await a.claim(50)
    const runs = t.sql('select * from runs order by id')
    t.later(10_000)
    const trips = t.engine.store.roundTrips
    const answer = await a.renew()
    expect(t.engine.store.roundTrips - trips).toBe(1)
    expect(answer).toMatchObject({ ok: true, leaseUntil: t.clock.time.now() + 30_000 })
    expect(t.sql('select * from runs order by id')).toEqual(runs)
  })

  it('RUN-06 a session id is used once: neither a live nor an ended one can be registered again by another', async () => {
    const a = await t.session({ id: 'ses_mine' })
    expect(a.answer).toMatchObject({ ok: true, leaseMs: 30_000, renewMs: 10_000 })
    await a.closeSession()
    const again = await t.session({ id: 'ses_mine' })
    expect(again.answer).toMatchObject({ ok: false, code: 'session_ended' })
    expect(sessionRow('ses_mine')).toMatchObject({ state: 'ended' })
  })

  it.runIf(onFile)(
    'RUN-06 sessions in the process that owns the file are not renewed and never lapse',
    async () => {
      const inside = await t.session({ embedded: true })
      expect(inside.answer).toMatchObject({ ok: true, embedded: true })
      const id = await t.start('w')
      await inside.claim()
      await live(120_000)
      expect(sessionRow(inside.id)).toMatchObject({ state: 'live', lease_until: null })
      expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
    },
  )

  it('RUN-06 what the session shows of itself is kept with its renewal', async () => {
    const a = await t.session()
    await a.renew({ status: '{"state":"running"}' })
    await a.renew()
    expect(sessionRow(a.id)['status']).toBe('{"state":"running"}')
  })
})

describe('RUN-08 a lapsed lease', () => {
  it('RUN-08 only makes a session eligible: until a sweep has ended it, its renewal still succeeds', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.claim()
    t.later(90_000)
    expect(await a.renew()).toMatchObject({ ok: true, leaseUntil: t.clock.time.now() + 30_000 })
    await sweep()
    expect(t.run(id)).toMatchObject({ status: 'running', session: a.id })
  })

  it('RUN-08 work that ended a moment late is not thrown away: completing needs only an unbroken hold', async () => {
    const a = await t.session()
    const ids = [await t.start('w'), await t.start('w'), await t.start('w')]
    const [one, two, three] = await a.claim(3)
    if (!one || !two || !three) throw new Error('three runs')
    t.later(90_000)
    expect(await a.complete(one, 'late')).toMatchObject({ ok: true, ended: 'succeeded' })
    expect(await a.checkpoint(two, 'x')).toMatchObject({ ok: true })
    expect(await a.end(three, { kind: 'hand_back', reason: 'shutdown' })).toMatchObject({
      ok: true,
    })
    expect(ids.map((id) => String(t.run(id)['status'])).sort()).toEqual([
      'queued',
      'running',
      'succeeded',
    ])
  })
})

describe('RUN-11 reap', () => {
  it('RUN-11 ends a session whose lease has lapsed, with its evidence, and not one moment before', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.claim()
    await live(30_000)
    expect(sessionRow(a.id)['state']).toBe('live')
    t.later(1)
    await sweep()
    expect(sessionRow(a.id)).toMatchObject({
      state: 'ended',
      end_reason: 'lease_lapsed',
      evidence: expect.stringContaining('lapsed 1 ms') as string,
    })
    expect(t.run(id)).toMatchObject({ status: 'queued', session: null, losses: 1 })
    expect(only(t.sql('select * from attempts where run = ?', id))).toMatchObject({
      attempt: 1,
      session: a.id,
      end: 'expired',
    })
    expect(only(t.sql('select * from events where run = ?', id))).toMatchObject({
      kind: 'attempt.expired',
      actor: 'sweep',
    })
  })

  it('S14 a session that renews in time is never reaped', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.claim()
    for (let i = 0; i < 30; i++) {
      await live(10_000)
      await a.renew()
    }
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
  })

  it('RUN-11 the ended session is told so by whatever it calls, and its late writes are refused', async () => {
    const a = await t.session()
    await t.start('w')
    const run = only(await a.claim())
    await live(35_000)
    expect(await a.renew()).toMatchObject({ ok: false, code: 'session_ended' })
    expect(await a.claimAnswer()).toMatchObject({ ok: false, code: 'session_ended' })
    expect(await a.complete(run)).toMatchObject({ ok: false, code: 'stale_attempt' })
    expect(await a.closeSession()).toMatchObject({ ok: true, handedBack: 0 })
  })

  it('RUN-11 proof that exactly its process has ended takes back at once, as lost', async () => {
    const a = await t.session()
    const b = await t.session()
    const mine = await t.start('w')
    await a.claim(1)
    const theirs = await t.start('w')
    await b.claim(1)
    await t.kill(a)
    expect(t.run(mine)['status']).toBe('queued')
    expect(t.run(theirs)['status']).toBe('running')
    expect(only(t.sql('select * from attempts'))).toMatchObject({ run: mine, end: 'lost' })
    await t.kill(a)
    expect(t.sql('select * from attempts')).toHaveLength(1)
  })

  it('RUN-11 a run whose holder does not exist is taken back', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.claim()
    t.sql(`delete from sessions where id = ? returning id`, a.id)
    await sweep()
    expect(t.run(id)).toMatchObject({ status: 'queued', losses: 1 })
    expect(only(t.sql('select note from attempts'))['note']).toContain('does not exist')
  })

  it('RUN-11 a sweeper whose last pass is over two periods old waits one lease before it reaps', async () => {
    const a = await t.session()
    await t.start('w')
    await a.claim()
    await sweep()
    t.later(40_000)
    await sweep()
    expect(sessionRow(a.id)['state']).toBe('live')
    await live(25_000)
    expect(sessionRow(a.id)['state']).toBe('live')
    await live(10_000)
    expect(sessionRow(a.id)['state']).toBe('ended')
  })

  it('RUN-11 the sweeper waits one lease when the store’s clock jumps', async () => {
    let jump = 0
    const { clock } = t
    const time = { now: () => clock.time.now() + jump, mono: () => clock.time.mono() }
    await t.close()
    t = await openStore({ clock: { ...clock, time } })
    const a = await t.session()
    await t.start('w')
    await a.claim()
    await live(5_000)
    jump = 3_600_000
    await live(5_000)
    expect(sessionRow(a.id)['state']).toBe('live')
    await a.renew()
    await live(35_000)
    expect(sessionRow(a.id)['state']).toBe('ended')
  })

  it.runIf(onFile)(
    'RUN-11 a new owner of the file has proof for what lived in the earlier one, and counts other leases anew',
    async () => {
      const inside = await t.session({ embedded: true })
      const outside = await t.session()
      const first = await t.start('w')
      await inside.claim(1)
      const second = await t.start('w')
      await outside.claim(1)
      t.later(600_000)
      const { takeOverFile } = await import('../../src/transitions/end-session.ts')
      await t.engine.store.run((tx) => takeOverFile(tx, 'another', 'the lock was free'))
      await sweep()
      expect(t.run(first)).toMatchObject({ status: 'queued', losses: 1 })
      expect(t.run(second)).toMatchObject({ status: 'running', session: outside.id })
      expect(sessionRow(outside.id)['lease_until']).toBe(t.clock.time.now() + 30_000)
    },
  )
})

describe('RUN-09 hand back', () => {
  it('RUN-09 the run is claimable at once in its old place, without a loss, a failure or a delay', async () => {
    const a = await t.session()
    const first = await t.start('w')
    const second = await t.start('w')
    const run = only(await a.claim(1))
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    expect(t.run(first)).toMatchObject({ status: 'queued', losses: 0, failures: 0, hand_backs: 0 })
    expect((await a.claim(1)).map((each) => each.run)).toEqual([first])
    expect((await a.claim(1)).map((each) => each.run)).toEqual([second])
  })

  it('RUN-09 a waiting claim is answered by it', async () => {
    const a = await t.session()
    const b = await t.session()
    const id = await t.start('w')
    const run = only(await a.claim())
    const waiting = b.claim(1, { waitMs: 60_000 })
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    expect((await waiting).map((each) => each.run)).toEqual([id])
  })

  it('RUN-09 a canceling run is canceled, one with a pause asked is paused', async () => {
    const a = await t.session()
    const canceled = await t.start('w')
    const paused = await t.start('w')
    const runs = await a.claim(2)
    await t.engine.cancel({ run: canceled, by: 'ana', reason: null })
    await t.engine.pause(paused, 'ana', null)
    for (const run of runs) await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    expect([t.run(canceled)['status'], t.run(paused)['status']]).toEqual(['canceled', 'paused'])
  })

  it('RUN-09 closeSession ends the session and hands back all that it holds, also what it never heard of', async () => {
    const a = await t.session()
    const ids = await Promise.all([1, 2, 3].map(() => t.start('w')))
    await a.claim(3)
    const trips = t.engine.store.roundTrips
    expect(await a.closeSession()).toEqual({ ok: true, handedBack: 3 })
    expect(t.engine.store.roundTrips - trips).toBeLessThanOrEqual(4)
    for (const id of ids)
      expect(t.run(id)).toMatchObject({ status: 'queued', losses: 0, hand_backs: 0 })
    expect(sessionRow(a.id)).toMatchObject({ state: 'ended', end_reason: 'stopped' })
    expect(await a.closeSession()).toEqual({ ok: true, handedBack: 0 })
  })

  it.each([true, false])(
    'EX-18 a session with bodies that have not settled is retired (embedded: %s): one last lease, no claims, then reaped',
    async (embedded) => {
      const a = await t.session({ embedded })
      const keeps = await t.start('w')
      await a.claim(1)
      const free = await t.start('w')
      await a.claim(1)
      expect(await a.closeSession([keeps])).toEqual({ ok: true, handedBack: 1 })
      expect(t.run(free)['status']).toBe('queued')
      expect(t.run(keeps)).toMatchObject({ status: 'running', session: a.id })
      t.later(10_000)
      expect(await a.renew()).toMatchObject({ ok: true })
      expect(sessionRow(a.id)).toMatchObject({
        state: 'retired',
        lease_until: t.clock.time.now() - 10_000 + 30_000,
      })
      await live(35_000)
      expect(t.run(keeps)).toMatchObject({ status: 'queued' })
    },
  )
})

describe('RUN-10 nothing is stranded by a living session', () => {
  it('RUN-10 what a renewal lists as let go is handed back, under exactly that hold', async () => {
    const a = await t.session()
    const b = await t.session()
    const gone = await t.start('w')
    const moved = await t.start('w')
    const runs = await a.claim(2)
    await t.engine.takeFrom(moved, 'op', 'x')
    await b.claim(1)
    const letGo = runs.map(({ run, attempt }) => ({ run, attempt, reason: 'lease_lost' }))
    expect(await a.renew({ letGo })).toMatchObject({ ok: true })
    await t.engine.idle()
    expect(t.run(gone)).toMatchObject({ status: 'queued', losses: 0 })
    expect(t.run(moved)).toMatchObject({ status: 'running', session: b.id, attempt: 2 })
    const before = t.sql('select * from runs order by id')
    expect(await a.renew({ letGo })).toMatchObject({ pending: [] })
    await t.engine.idle()
    expect(t.sql('select * from runs order by id')).toEqual(before)
  })

  it('RUN-10 a list names holds exactly: neither a later attempt of its own nor another session’s is touched', async () => {
    const a = await t.session()
    const b = await t.session()
    const mine = await t.start('w')
    const first = only(await a.claim(1))
    await t.engine.takeFrom(mine, 'op', 'x')
    await t.pass('poll-lanes')
    expect(only(await a.claim(1))).toMatchObject({ run: mine, attempt: 2 })
    const theirs = await t.start('w')
    const other = only(await b.claim(1))
    await a.renew({
      letGo: [first, other].map(({ run, attempt }) => ({ run, attempt, reason: 'lease_lost' })),
    })
    expect(t.run(mine)).toMatchObject({ status: 'running', attempt: 2, session: a.id })
    expect(t.run(theirs)).toMatchObject({ status: 'running', attempt: 1, session: b.id })
  })

  it('RUN-10 a digest that agrees asks for nothing; one that differs asks for the list', async () => {
    const a = await t.session()
    for (let i = 0; i < 3; i++) await t.start('w')
    const held = (await a.claim(3)).map(({ run, attempt }) => ({ run, attempt }))
    const ask = (list: typeof held, claim = 1) =>
      a.renew({ held: { claim, digest: heldDigest(list) } })
    expect(await ask(held)).toMatchObject({ wantsList: false })
    // the answer does not wait for the comparison: what differed is said with the next
    expect(await ask(held.slice(1))).toMatchObject({ wantsList: false })
    await t.engine.idle()
    expect(await a.renew()).toMatchObject({ wantsList: true })
    expect(await a.renew({ held: { claim: 1, runs: held } })).toMatchObject({ wantsList: false })
    await t.engine.idle()
    expect(await a.renew()).toMatchObject({ wantsList: false })
  })

  it('RUN-10 a renewal is answered whatever becomes of what it lists, and that stays pending until it is done', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const unknown = await t.start('w')
    const runs = await a.claim(2)
    const letGo = runs
      .filter(({ run }) => run === id)
      .map(({ run, attempt }) => ({ run, attempt, reason: 'lease_lost' }))
    const store = t.engine.store as { run: Store['run'] }
    const { run } = store
    let calls = 0
    // the renewal’s own transaction is done, and none that follows
    store.run = ((steps: never) =>
      ++calls === 1
        ? run.call(store, steps)
        : Promise.reject(new Fault('store_unavailable', 'broken on purpose'))) as Store['run']
    t.later(10_000)
    const asked = { letGo, held: { claim: 1, runs: letGo } }
    expect(await a.renew(asked)).toMatchObject({
      ok: true,
      leaseUntil: t.clock.time.now() + 30_000,
      pending: [{ run: id, attempt: 1 }],
    })
    await t.engine.idle()
    for (const each of [id, unknown]) expect(t.run(each)['status']).toBe('running')
    expect(calls).toBeGreaterThan(1)
    store.run = run
    expect(await a.renew(asked)).toMatchObject({ pending: [{ run: id, attempt: 1 }] })
    await t.engine.idle()
    for (const each of [id, unknown]) expect(t.run(each)['status']).toBe('queued')
    expect(await a.renew(asked)).toMatchObject({ pending: [] })
  })

  it('RUN-10 only runs of claims that were received count, both in the digest and in the list', async () => {
    const a = await t.session()
    await t.start('w')
    const first = (await a.claim(1)).map(({ run, attempt }) => ({ run, attempt }))
    const unheard = await t.start('w')
    await a.claim(1)
    expect(await a.renew({ held: { claim: 1, digest: heldDigest(first) } })).toMatchObject({
      wantsList: false,
    })
    await a.renew({ held: { claim: 1, runs: [] } })
    await t.engine.idle()
    expect(t.run(unheard)).toMatchObject({ status: 'running' })
    expect(t.run(first[0]?.run ?? '')).toMatchObject({ status: 'queued' })
  })

  it('RUN-10 the list hands back, as unknown_here, what the session does not know, and nothing else', async () => {
    const a = await t.session()
    const known = await t.start('w')
    const unknown = await t.start('w')
    const runs = await a.claim(2)
    const list = runs
      .filter(({ run }) => run === known)
      .map(({ run, attempt }) => ({ run, attempt }))
    expect(await a.renew({ held: { claim: 1, runs: list } })).toMatchObject({ wantsList: false })
    await t.engine.idle()
    expect(t.run(unknown)).toMatchObject({ status: 'queued', losses: 0 })
    expect(only(t.sql('select run, "end", reason from attempts'))).toEqual({
      run: unknown,
      end: 'handed_back',
      reason: 'unknown_here',
    })
    expect(t.run(known)).toMatchObject({ status: 'running', session: a.id })
  })

  it('RUN-10 another attempt of the same run on the list does not keep this one', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const run = only(await a.claim(1))
    await a.renew({ held: { claim: 1, runs: [{ run: run.run, attempt: run.attempt + 5 }] } })
    await t.engine.idle()
    expect(t.run(id)['status']).toBe('queued')
  })

  it('RUN-10 a renewal tells of cancels and pauses of what it holds', async () => {
    const a = await t.session()
    const canceled = await t.start('w')
    const paused = await t.start('w')
    await a.claim(2)
    await t.engine.cancel({ run: canceled, by: 'ana', reason: 'enough' })
    await t.engine.pause(paused, 'bob', null)
    const answer = await a.renew()
    expect(answer).toMatchObject({
      ok: true,
      told: [
        { run: canceled, attempt: 1, directive: 'cancel', note: 'canceled by ana: enough' },
        { run: paused, attempt: 1, directive: 'pause' },
      ],
    })
  })
})

describe('RUN-12 losses at the store', () => {
  const lose = async (): Promise<void> => {
    const a = await t.session()
    only(await a.claim(1))
    await t.kill(a)
    await t.pass('poll-lanes')
  }

  it('RUN-12 after two losses in a row only a session that holds nothing else may claim it, and that one claims nothing more', async () => {
    const busy = await t.session()
    const other = await t.start('w', { priority: 5 })
    only(await busy.claim(1))
    const suspect = await t.start('w')
    await lose()
    await lose()
    expect(t.run(suspect)).toMatchObject({ losses: 2, status: 'queued' })
    const innocent = await t.start('w')
    expect((await busy.claim(5)).map(({ run }) => run)).toEqual([innocent])
    const empty = await t.session()
    await t.start('w')
    await t.pass('poll-lanes')
    expect((await empty.claim(5)).map(({ run }) => run)).toEqual([suspect])
    expect(await empty.claim(5)).toEqual([])
    expect(t.run(other)['status']).toBe('running')
  })

  it('RUN-12 a session that sees such a run due for a minute claims nothing else until it is empty, in no lane', async () => {
    await t.close()
    t = await openStore()
    const { definition } = await import('../support/store.ts')
    const definitions = [definition('w'), definition('v')]
    const busy = await t.session({ definitions })
    await t.start('v')
    const held = only(await busy.claim(1))
    const suspect = await t.start('w')
    await lose()
    await lose()
    const one = await t.start('v')
    await t.start('w')
    t.later(59_000)
    await t.pass('poll-lanes')
    expect((await busy.claim(1)).length).toBe(1)
    t.later(1_001)
    await t.start('v')
    await t.start('w')
    await t.pass('poll-lanes')
    expect(await busy.claim(5)).toEqual([])
    for (const row of t.sql('select id, attempt from runs where session = ?', busy.id))
      await busy.complete({ ...held, run: String(row['id']), attempt: Number(row['attempt']) })
    await t.pass('poll-lanes')
    expect((await busy.claim(5)).map(({ run }) => run)).toEqual([suspect])
    expect(one).not.toBe('')
  })

  it('RUN-12 a new entry makes it an innocent run again; interruptions spend no retry', async () => {
    const id = await t.start('w').catch(() => '')
    expect(id).toBe('')
    const a = await t.session()
    const run = await t.start('w')
    await a.closeSession()
    await lose()
    await lose()
    const b = await t.session()
    const held = only(await b.claim(1))
    expect(t.run(run)).toMatchObject({ losses: 2 })
    await b.checkpoint(held, 'x')
    expect(t.run(run)).toMatchObject({ losses: 0, suspect_since: null, failures: 0 })
    expect(t.run(run)['progress_at']).toBe(t.clock.time.now())
    await t.start('w')
    expect((await b.claim(5)).length).toBe(1)
  })

  it('RUN-12 five losses in a row end the run attempts_exhausted', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.closeSession()
    for (let i = 0; i < 5; i++) await lose()
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'attempts_exhausted', losses: 5 })
    expect(JSON.parse(String(t.run(id)['error']))).toMatchObject({ code: 'attempts_exhausted' })
  })

  it('RUN-12 hand-backs in a row delay the next claim, and the tenth parks the run until somebody resumes it', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const delays: unknown[] = []
    for (let i = 0; i < 10; i++) {
      await t.pass('poll-lanes')
      await a.end(only(await a.claim(1)), { kind: 'hand_back', reason: 'marker' })
      const row = t.run(id)
      delays.push(
        row['ready_at'] === null ? row['status'] : Number(row['ready_at']) - t.clock.time.now(),
      )
      if (row['ready_at'] !== null) {
        t.later(Number(row['ready_at']) - t.clock.time.now() - 1)
        await t.pass('wake-due', 'poll-lanes')
        expect(await a.claim(1)).toEqual([])
        t.later(1)
        await t.pass('wake-due')
      }
    }
    expect(delays).toEqual(['queued', 1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3, 128e3, 'paused'])
    expect(t.run(id)).toMatchObject({ reason: 'no_progress' })
    await t.engine.resume(id, 'ana')
    expect(t.run(id)).toMatchObject({ status: 'queued', hand_backs: 0, losses: 0 })
    const run = only(await a.claim(1))
    await a.write(run, { entries: [entry(1)], end: { kind: 'hand_back', reason: 'marker' } })
    expect(t.run(id)).toMatchObject({ status: 'queued', hand_backs: 1 })
  })

  it('RUN-12 a signal does not cut the delay short', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const first = only(await a.claim(1))
    await a.write(first, {
      waits: [{ key: 'go', kind: 'signal', name: 'go' }],
      end: { kind: 'hand_back', reason: 'marker' },
    })
    await a.end(only(await a.claim(1)), { kind: 'hand_back', reason: 'marker' })
    expect(t.run(id)).toMatchObject({ status: 'waiting', wait_on: 'time' })
    await t.engine.signal({ run: id, id: 's1', name: 'go', payload: '1', by: null })
    expect(t.run(id)).toMatchObject({ status: 'waiting', reason: 'handed_back' })
    t.later(1_000)
    await t.pass('wake-due')
    expect(only(await a.claim(1)).waits).toMatchObject([{ key: 'go', state: 'satisfied' }])
  })
})
