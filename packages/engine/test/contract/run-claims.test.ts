import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { definitionKey } from '../../src/model/definition.ts'
import type { TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

describe('RUN-05 claim', () => {
  it('RUN-05 makes attempt n+1 the holder and says all that driving needs', async () => {
    const a = await t.session()
    const id = await t.start('w', { input: '{"n":1}', totalLimitMs: 60_000, attemptLimitMs: 5_000 })
    t.later(10)
    const run = only(await a.claim())
    const now = t.clock.time.now()
    expect(run).toMatchObject({
      run: id,
      attempt: 1,
      leasedAt: now,
      seed: id,
      firstAt: now - 10,
      deadline: now - 10 + 60_000,
      attemptDeadline: now + 5_000,
      input: '{"n":1}',
      journal: [],
      waits: [],
    })
    expect(t.run(id)).toMatchObject({ status: 'running', session: a.id, attempt: 1, claim: 1 })
    const answer = await a.claimAnswer()
    expect(answer).toMatchObject({ leaseUntil: now - 10 + 30_000, now })
  })

  it('RUN-05 gives the journal of earlier steps and the waits that the function has not received', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const first = only(await a.claim())
    await a.write(first, {
      entries: [entry(1, 'x', { output: '"one"' }), entry(2, 'y', { output: null, error: '{}' })],
      waits: [{ key: 'nap', kind: 'time', dueInMs: 50 }],
    })
    await a.end(first, { kind: 'hand_back', reason: 'shutdown' })
    const again = only(await a.claim())
    expect(again).toMatchObject({
      run: id,
      attempt: 2,
      entries: 2,
      journal: [
        { n: 1, key: 'x', output: '"one"' },
        { n: 2, key: 'y', error: '{}' },
      ],
      waits: [{ key: 'nap', kind: 'time', state: 'open' }],
    })
  })

  it('RUN-05 pages a journal that is too long for one claim', async () => {
    await t.close()
    t = await openStore({ settings: { claimJournalMaxBytes: 1_000 } })
    const a = await t.session()
    await t.start('w')
    const first = only(await a.claim())
    const big = JSON.stringify('x'.repeat(400))
    const entries = [1, 2, 3, 4, 5].map((n) => entry(n, `s${n}`, { output: big }))
    await a.write(first, { entries })
    await a.end(first, { kind: 'hand_back', reason: 'shutdown' })
    const again = only(await a.claim())
    expect(again.entries).toBe(5)
    expect(again.journal.map(({ n }) => n)).toEqual([1])
    const rest = await t.port.journal(a.id, again.run, again.journal.length)
    expect(rest.map(({ n, output }) => [n, output])).toEqual([2, 3, 4, 5].map((n) => [n, big]))
    expect(await t.port.journal(a.id, again.run, 5)).toEqual([])
  })

  it('RUN-05 takes no more than asked for, in the order of the line', async () => {
    const a = await t.session()
    const ids = [await t.start('w'), await t.start('w'), await t.start('w')]
    const urgent = await t.start('w', { priority: 1 })
    expect((await a.claim(2)).map(({ run }) => run).sort()).toEqual([ids[0], urgent].sort())
    expect((await a.claim(9)).map(({ run }) => run).sort()).toEqual([ids[1], ids[2]].sort())
  })

  it('RUN-05 gives only queues, versions and labels that the session announced', async () => {
    const everything = await t.session({
      definitions: [
        definition('w'),
        definition('w', { version: '2' }),
        definition('g', { labels: ['gpu'] }),
        definition('q', { queue: 'slow' }),
      ],
      labels: ['gpu'],
    })
    const one = await t.start('w', { version: '1' })
    const two = await t.start('w', { version: '2' })
    const gpu = await t.start('g')
    const eu = await t.start('w', { version: '1', labels: ['eu'] })
    const slow = await t.start('q')
    const named = await t.start('w', { version: '1', queue: 'fast' })

    const plain = await t.session({
      definitions: [definition('w'), definition('g', { labels: ['gpu'] })],
    })
    expect((await plain.claim()).map(({ run }) => run)).toEqual([one])
    const fast = await t.session({ definitions: [definition('w')], queues: ['fast'] })
    expect((await fast.claim()).map(({ run }) => run)).toEqual([named])
    const inEurope = await t.session({ definitions: [definition('w')], labels: ['eu', 'x'] })
    expect((await inEurope.claim()).map(({ run }) => run)).toEqual([eu])
    const rest = (await everything.claim()).map(({ run }) => run)
    expect(rest.sort()).toEqual([two, gpu, slow].sort())
  })

  it('RUN-05 leaves out the runs that the session still has a job or marker for', async () => {
    const a = await t.session()
    const ids = [await t.start('w'), await t.start('w')]
    expect((await a.claim(9, { except: [ids[0] ?? ''] })).map(({ run }) => run)).toEqual([ids[1]])
    t.engine.lanes.refresh([String(t.run(ids[0] ?? '')['lane'])])
    expect((await a.claim()).map(({ run }) => run)).toEqual([ids[0]])
  })

  it('RUN-05 RUN-09 what one session may not have, another gets without waiting for the poll, in its old place', async () => {
    const a = await t.session()
    const b = await t.session()
    const first = await t.start('w')
    const run = only(await a.claim(1))
    const second = await t.start('w')
    await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
    expect((await a.claim(10, { except: [first] })).map((each) => each.run)).toEqual([second])
    expect((await b.claim(10)).map((each) => each.run)).toEqual([first])
  })

  it('RUN-05 a session that may not have what is there waits for something else, or for another answer to what it may have', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.end(only(await a.claim(1)), { kind: 'hand_back', reason: 'shutdown' })
    expect(await a.claim(10, { except: [id] })).toEqual([])
    const trips = t.engine.store.roundTrips
    const waiting = a.claim(10, { except: [id], waitMs: 60_000 })
    await Promise.resolve()
    expect(t.engine.store.roundTrips).toBe(trips)
    const other = await t.start('w')
    expect((await waiting).map((each) => each.run)).toEqual([other])
    expect((await a.claim()).map((each) => each.run)).toEqual([id])
  })

  it('RUN-12 a busy session that may not have a run that is driven alone hides it from none that may', async () => {
    const busy = await t.session()
    await t.start('w')
    await busy.claim(1)
    const suspect = await t.start('w')
    for (let i = 0; i < 2; i++) {
      const dying = await t.session()
      expect(only(await dying.claim(1)).run).toBe(suspect)
      await t.kill(dying)
    }
    expect(await busy.claim(10)).toEqual([])
    const empty = await t.session()
    expect((await empty.claim(10)).map((each) => each.run)).toEqual([suspect])
  })

  it('RUN-29 a claim itself makes due what is due, in all its lanes, and takes it', async () => {
    const definitions = [definition('w'), definition('v')]
    const a = await t.session({ definitions })
    const sleeps = await t.start('w')
    const [run] = await a.claim(1)
    await a.write(run as never, {
      waits: [{ key: 'nap', kind: 'time', dueInMs: 5_000 }],
      end: { kind: 'suspend', keys: ['nap'] },
    })
    const delayed = await t.start('v', { delayMs: 5_000 })
    t.later(4_999)
    expect(await a.claim()).toEqual([])
    t.later(1)
    const v = await a.claim(10, { only: [definitionKey('v', '1')] })
    expect(v.map((each) => each.run)).toEqual([delayed])
    expect(t.run(sleeps)['status']).toBe('queued')
    const w = only(await a.claim())
    expect(w).toMatchObject({ run: sleeps, waits: [{ key: 'nap', state: 'lapsed' }] })
  })

  it('RUN-29 what a claim makes due takes its place before what stands in line, and waits for a slot that it does not hold', async () => {
    const limits = [{ key: 'one', value: 1 }]
    const definitions = [definition('w'), definition('limited', { limits })]
    const a = await t.session({ definitions })
    const early = await t.start('w', { delayMs: 100, priority: 5 })
    const holder = await t.start('limited')
    const second = await t.start('limited', { delayMs: 100 })
    const late = await t.start('w')
    t.later(100)
    const taken = (await a.claim(2)).map((each) => each.run)
    expect(taken).toContain(early)
    expect(taken).not.toContain(second)
    expect(t.run(second)).toMatchObject({ status: 'waiting', wait_on: 'slot', ready_at: null })
    const rest = (await a.claim()).map((each) => each.run)
    expect([...taken, ...rest].sort()).toEqual([early, holder, late].sort())
  })

  it('B131 one run among hundreds of idle sessions is looked for by one of them, a line by as many as it needs', async () => {
    const sessions = await Promise.all(Array.from({ length: 300 }, () => t.session()))
    // once somebody has looked, it is known that there is nothing
    const first = await t.session()
    await first.claim()
    const got: string[] = []
    const waiting = new Set<Promise<void>>()
    for (const each of sessions) {
      const claimed = each.claim(2, { waitMs: 60_000 }).then((runs) => {
        waiting.delete(claimed)
        got.push(...runs.map(({ run }) => run))
      })
      waiting.add(claimed)
    }
    const asked = (): unknown =>
      t.sql('select count(*) as n from sessions where claim_no > 0 and id <> ?', first.id)
    await Promise.resolve()
    expect(asked()).toEqual([{ n: 0 }])
    expect(waiting.size).toBe(300)
    const id = await t.start('w')
    await Promise.race(waiting)
    expect(got).toEqual([id])
    await t.pass('poll-lanes')
    expect(asked()).toEqual([{ n: 1 }])
    const commands = Array.from({ length: 400 }, (_each, i) => ({
      command: { id: `run_line_${i}`, workflow: 'w', input: 'null' },
    }))
    await t.engine.startMany(commands)
    while (got.length < 401) await Promise.race(waiting)
    expect(new Set(got).size).toBe(401)
    await t.pass('poll-lanes')
    // some come too late for the last of the line, two for each that found something
    expect(waiting.size).toBeGreaterThan(300 - 1 - 200 - 10)
  })

  it('RUN-05 two claims never both get the same run', async () => {
    const sessions = await Promise.all(Array.from({ length: 9 }, () => t.session()))
    for (let i = 0; i < 30; i++) await t.start('w')
    const got = await Promise.all(sessions.map((each) => each.claim(4)))
    const runs = got.flat().map(({ run }) => run)
    expect(new Set(runs).size).toBe(runs.length)
    expect(runs.length).toBe(30)
  })

  it('RUN-05 an ended, draining or retired session claims nothing', async () => {
    const closed = await t.session()
    await t.start('w')
    await closed.closeSession()
    expect(await closed.claimAnswer()).toMatchObject({ ok: false, code: 'session_ended' })
    const draining = await t.session()
    await draining.renew({ draining: true })
    expect(await draining.claimAnswer()).toMatchObject({ ok: false, code: 'session_ended' })
    const retired = await t.session()
    await retired.closeSession(['run_that_lives_on'])
    expect(await retired.claimAnswer()).toMatchObject({ ok: false, code: 'session_ended' })
    expect(t.sql(`select id from runs where session is not null`)).toEqual([])
  })
})

describe('RUN-10 a claim whose answer did not arrive', () => {
  it('RUN-10 is sent again under its number, answered with what is still held under it, and claims nothing new', async () => {
    const a = await t.session()
    for (let i = 0; i < 5; i++) await t.start('w')
    const first = await a.claim(3)
    await a.complete(only(first.slice(0, 1)))
    const again = await a.claim(3, { claim: 1 })
    const named = (each: { run: string; attempt: number }): string => `${each.run}#${each.attempt}`
    expect(again.map(named)).toEqual(first.slice(1).map(named).sort())
    expect(t.sql(`select count(*) as n from runs where status = 'queued'`)).toEqual([{ n: 2 }])
  })

  it('RUN-10 a repeat gives journals and waits like the first', async () => {
    const a = await t.session()
    await t.start('w')
    const run = only(await a.claim())
    await a.write(run, { entries: [entry(1)], waits: [{ key: 'z', kind: 'signal', name: 'z' }] })
    expect(only(await a.claim(1, { claim: 1 }))).toMatchObject({
      journal: [{ n: 1, key: 's1' }],
      waits: [{ key: 'z' }],
    })
  })

  it('RUN-10 a lower number is refused and changes nothing', async () => {
    const a = await t.session()
    await t.start('w')
    await a.claim(0, { claim: 5 })
    expect(await a.claimAnswer(9, { claim: 4 })).toMatchObject({
      ok: false,
      code: 'claim_superseded',
      detail: { claim: 5 },
    })
    expect(t.sql(`select count(*) as n from runs where status = 'queued'`)).toEqual([{ n: 1 }])
  })

  it('RUN-10 a run that was claimed anew later is not given again under the old number', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.end(only(await a.claim(1, { claim: 1 })), { kind: 'hand_back', reason: 'shutdown' })
    expect(only(await a.claim(1, { claim: 2 })).run).toBe(id)
    expect(await a.claimAnswer(1, { claim: 1 })).toMatchObject({ code: 'claim_superseded' })
    expect(only(await a.claim(1, { claim: 2 }))).toMatchObject({ run: id, attempt: 2 })
  })
})

describe('RUN-04 who holds it, since when, until when', () => {
  it('RUN-04 is one query, and the history has a row for each attempt that ended', async () => {
    const a = await t.session()
    const id = await t.start('w')
    await a.end(only(await a.claim()), { kind: 'hand_back', reason: 'shutdown' })
    t.later(5)
    const run = only(await a.claim())
    const now = t.clock.time.now()
    expect(
      t.sql(
        `select r.session, r.attempt, r.leased_at, s.lease_until from runs r join sessions s on s.id = r.session where r.id = ?`,
        id,
      ),
    ).toEqual([{ session: a.id, attempt: 2, leased_at: now, lease_until: now - 5 + 30_000 }])
    await a.complete(run)
    expect(
      t.sql(`select attempt, session, "end", leased_at, ended_at from attempts where run = ?`, id),
    ).toEqual([
      { attempt: 1, session: a.id, end: 'handed_back', leased_at: now - 5, ended_at: now - 5 },
      { attempt: 2, session: a.id, end: 'completed', leased_at: now, ended_at: now },
    ])
  })
})
