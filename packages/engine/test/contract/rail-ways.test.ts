// What an executor may rely on, whichever way it comes in: one suite, over each of them.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { definitionKey } from '../../src/model/definition.ts'
import { sleep, systemTimers } from '../../src/kernel/timers.ts'
import type { ExecutorPort, Told } from '../../src/model/work.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import { finish } from '../../src/store/sql.ts'
import { putPause, removePause } from '../../src/store/tables/limits.ts'
import type { Session, SessionOptions, TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'
import type { Way } from '../support/ways.ts'
import { wayInto, ways } from '../support/ways.ts'

/** Turns of the event loop until something is so. */
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await sleep(systemTimers, 0)
}

describe.each(ways)('an executor that comes in by %s', (way: Way) => {
  let t: TestStore
  let port: ExecutorPort
  beforeEach(async () => {
    t = await openStore()
    port = wayInto(t, way)
  })
  afterEach(() => t.close())
  const session = (options: SessionOptions = {}): Promise<Session> =>
    t.session({ port, ...options })

  test('RAIL-10 claims a run with all that it needs, records steps and completes it', async () => {
    const s = await session()
    const id = await t.start('w', { input: '{"tag":"v1","__proto__":{"x":1}}' })
    const run = only(await s.claim())
    expect(run).toMatchObject({
      run: id,
      attempt: 1,
      input: '{"tag":"v1","__proto__":{"x":1}}',
      journal: [],
    })
    const output = JSON.stringify({ a: [1, null, '\u0000'] })
    expect(await s.write(run, { entries: [entry(1, 'build', { output })] })).toMatchObject({
      ok: true,
      ended: null,
    })
    expect(await port.journal(s.id, id, 0)).toMatchObject([{ n: 1, key: 'build', output }])
    expect(await s.complete(run)).toMatchObject({ ok: true, ended: 'succeeded' })
    // a repeat gets the first answer
    expect(await s.complete(run)).toMatchObject({ ok: true, ended: 'succeeded' })
    expect(t.run(id)).toMatchObject({ status: 'succeeded', entries: 1 })
  })

  test('RAIL-10 RUN-07 is refused a write of a run that another has taken since, with its holder', async () => {
    const [first, second] = [await session(), await session()]
    await t.start('w')
    const run = only(await first.claim())
    await t.kill(first)
    only(await second.claim())
    expect(await second.write({ ...run, attempt: 1 }, { look: true })).toMatchObject({
      ok: false,
      code: 'stale_attempt',
      detail: { attempt: 2 },
    })
    await expect(port.journal(second.id, 'run_none', 0)).rejects.toMatchObject({
      code: 'stale_attempt',
    })
  })

  test('RAIL-10 RAIL-09 a bad write harms no other of its batch', async () => {
    const s = await session()
    await Promise.all(Array.from({ length: 20 }, () => t.start('w')))
    const runs = await s.claim(20)
    expect(runs).toHaveLength(20)
    const answers = await Promise.all(
      runs.map((run, i) =>
        s.write({ ...run, attempt: i === 3 ? 9 : run.attempt }, { entries: [entry(1, 'build')] }),
      ),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(19)
    expect(answers[3]).toMatchObject({ ok: false, code: 'stale_attempt' })
  })

  test('RAIL-10 RUN-10 a claim that is asked for again gets what the first took, and an older one nothing', async () => {
    const s = await session()
    const ids = [await t.start('w'), await t.start('w')]
    const first = await s.claim(1)
    expect(await s.claim(1, { claim: 1 })).toEqual(first)
    expect((await s.claim(1)).map(({ run }) => run)).toEqual([ids[1]])
    expect(await s.claimAnswer(1, { claim: 1 })).toMatchObject({
      ok: false,
      code: 'claim_superseded',
    })
  })

  test('RAIL-10 RUN-05 gets what its queues, labels, workflows and exclusions let it have, in order, and no more than it has room for', async () => {
    const definitions = [definition('w'), definition('gpu', { labels: ['gpu'] })]
    const s = await session({ definitions })
    const other = await session({ definitions, labels: ['gpu'] })
    const ids = [await t.start('w'), await t.start('w'), await t.start('w')]
    const labeled = await t.start('gpu', { labels: ['gpu'] })
    const elsewhere = await t.start('w', { queue: 'elsewhere' })
    expect((await s.claim(1, { except: [ids[0] ?? ''] })).map(({ run }) => run)).toEqual([ids[1]])
    expect(
      (await s.claim(10, { only: [definitionKey('gpu', '1')] })).map(({ run }) => run),
    ).toEqual([])
    expect((await s.claim(10)).map(({ run }) => run).sort()).toEqual([ids[0], ids[2]].sort())
    expect((await other.claim()).map(({ run }) => run)).toEqual([labeled])
    expect(t.run(elsewhere)).toMatchObject({ status: 'queued' })
  })

  test('RAIL-10 RUN-16 gets nothing of a queue that is paused', async () => {
    const s = await session()
    await t.start('w')
    await t.engine.store.run(() => finish(putPause('queue', 'default', 'ada', null, null)))
    expect(await s.claim()).toEqual([])
    await t.engine.store.run(() => finish(removePause('queue', 'default')))
    await t.pass('poll-lanes')
    only(await s.claim())
  })

  test('RAIL-10 RUN-12 gets a run that was lost twice in a row alone, and only while it holds nothing', async () => {
    const s = await session()
    const id = await t.start('w')
    for (let i = 0; i < 2; i++) {
      const lost = await session()
      only(await lost.claim())
      await t.kill(lost)
    }
    expect(t.run(id)['suspect_since']).not.toBeNull()
    const more = await t.start('w')
    expect((await s.claim()).map(({ run }) => run)).toEqual([id])
    expect(await s.claim()).toEqual([])
    const free = await session()
    expect((await free.claim()).map(({ run }) => run)).toEqual([more])
  })

  test('RAIL-10 a claim that waits gets a run as soon as there is one', async () => {
    const s = await session()
    expect(await s.claim()).toEqual([])
    const waiting = s.claim(10, { waitMs: 20_000 })
    const id = await t.start('w')
    expect((await waiting).map(({ run }) => run)).toEqual([id])
  })

  test('RAIL-10 RUN-14 is told of a cancel at once, and settles it', async () => {
    const s = await session()
    const told: Told[] = []
    const leave = port.listen(s.id, (each) => void told.push(each))
    const id = await t.start('w')
    const run = only(await s.claim())
    await t.engine.cancel({ run: id, by: 'ada', reason: null })
    await until(() => told.length > 0)
    expect(told[0]).toEqual({ run: id, attempt: 1, directive: 'cancel', note: 'canceled by ada' })
    expect((await s.renew()) as object).toMatchObject({ ok: true, told: [{ run: id }] })
    await s.end(run, { kind: 'hand_back', reason: 'canceled' })
    expect(t.run(id)).toMatchObject({ status: 'canceled' })
    leave()
  })

  test('RAIL-10 RUN-09 what it closes with comes back at once, and a session that has ended is told so', async () => {
    const s = await session()
    const id = await t.start('w')
    only(await s.claim())
    expect(await s.closeSession()).toMatchObject({ ok: true, handedBack: 1 })
    expect(t.run(id)).toMatchObject({ status: 'queued', session: null })
    expect(await s.renew()).toMatchObject({ ok: false, code: 'session_ended' })
    expect(await s.claimAnswer()).toMatchObject({ ok: false, code: 'session_ended' })
    const other = await session()
    only(await other.claim())
    await t.kill(other)
    expect(await other.renew()).toMatchObject({ ok: false, code: 'session_ended' })
    expect(await other.claimAnswer()).toMatchObject({ ok: false, code: 'session_ended' })
  })

  test('RAIL-11 an executor of another protocol is refused with a sentence that says what to upgrade', async () => {
    const { answer } = await session({ protocol: PROTOCOL_VERSION + 1 })
    expect(answer).toMatchObject({
      ok: false,
      code: 'incompatible_protocol',
      message: `the executor (build test) speaks protocol ${PROTOCOL_VERSION + 1}, this server ${PROTOCOL_VERSION}; upgrade the server`,
    })
    expect(t.sql('select id from sessions')).toEqual([])
  })
})
