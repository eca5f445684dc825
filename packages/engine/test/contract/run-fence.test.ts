import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimedRun, EndReport } from '../../src/model/work.ts'
import type { Session, TestStore } from '../support/store.ts'
import { entry, only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const ends: EndReport[] = [
  { kind: 'complete', output: '1' },
  { kind: 'continue', input: null, runId: 'run_next' },
  { kind: 'fail', reason: 'error', note: 'boom', error: '{}' },
  { kind: 'fail', reason: 'error', note: 'boom', error: '{}', retryInMs: 5 },
  { kind: 'suspend', keys: ['nap'] },
  { kind: 'hand_back', reason: 'shutdown' },
  { kind: 'hand_back', reason: 'chain', toEnd: true },
  { kind: 'park', reason: 'nondeterminism', note: 'x' },
  { kind: 'stale', note: 'x' },
  { kind: 'revoke', reason: 'step_limit', note: 'x' },
]
const nameOf = (end: EndReport): string =>
  `${end.kind}${'retryInMs' in end ? ' with a retry' : ''}${'toEnd' in end ? ' to the end' : ''}`

/** Everything that the store has of a run, to see that nothing changed. */
const everything = (id: string): unknown => ({
  run: t.run(id),
  ...Object.fromEntries(
    ['steps', 'attempts', 'waits', 'signals', 'approvals', 'events', 'streams'].map((table) => [
      table,
      t.sql(`select * from ${table} where run = ?`, id),
    ]),
  ),
  orders: t.sql('select * from orders'),
  runs: t.sql('select count(*) as n from runs'),
})

describe('RUN-07 the fence', () => {
  /** A run that another session has taken since. */
  const taken = async (): Promise<{
    old: Session
    stale: ClaimedRun
    holder: Session
    id: string
  }> => {
    const old = await t.session()
    const holder = await t.session()
    const id = await t.start('w')
    const stale = only(await old.claim())
    await t.engine.takeFrom(id, 'op', 'test')
    only(await holder.claim())
    return { old, stale, holder, id }
  }

  for (const end of ends)
    it(`RUN-07 a stale attempt's ${nameOf(end)} is refused, names the holder, and changes no row`, async () => {
      const { old, stale, holder, id } = await taken()
      const before = everything(id)
      const answer = await old.write(stale, {
        entries: [entry(1)],
        waits: [{ key: 'nap', kind: 'time', dueInMs: 1 }],
        state: '"mine"',
        progress: '{}',
        stream: [{ stream: 'log', seq: 1, data: '1' }],
        end,
      })
      expect(answer).toMatchObject({
        ok: false,
        code: 'stale_attempt',
        detail: { run: id, attempt: 2, holder: holder.id, status: 'running' },
      })
      expect(everything(id)).toEqual(before)
    })

  it("RUN-07 a stale attempt's checkpoint is refused and changes no row", async () => {
    const { old, stale, id } = await taken()
    const before = everything(id)
    expect(await old.checkpoint(stale, 'a')).toMatchObject({ ok: false, code: 'stale_attempt' })
    expect(everything(id)).toEqual(before)
  })

  it('RUN-07 the number alone is not enough: another session, or a number too high, is refused', async () => {
    const { old, stale, holder, id } = await taken()
    const before = everything(id)
    expect(await old.complete({ ...stale, attempt: 2 })).toMatchObject({ code: 'stale_attempt' })
    expect(await holder.complete({ ...stale, attempt: 1 })).toMatchObject({ code: 'stale_attempt' })
    expect(await holder.complete({ ...stale, attempt: 3 })).toMatchObject({ code: 'stale_attempt' })
    expect(everything(id)).toEqual(before)
    expect(await holder.complete({ ...stale, attempt: 2 })).toMatchObject({ ok: true })
  })

  it('RUN-07 the number only rises, whichever way attempts end', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const seen: number[] = []
    for (let i = 0; i < 4; i++) {
      const run = only(await a.claim())
      seen.push(run.attempt)
      if (i === 0) await a.end(run, { kind: 'hand_back', reason: 'shutdown' })
      else if (i === 1) await t.engine.takeFrom(id, 'op', 'x')
      else if (i === 2) {
        await a.write(run, { waits: [{ key: 'n', kind: 'time', dueInMs: 0 }] })
        await a.end(run, { kind: 'revoke', reason: 'step_limit', note: 'x' })
      }
    }
    expect(seen).toEqual([1, 2, 3, 4])
    expect(t.sql('select attempt from attempts where run = ? order by attempt', id)).toEqual([
      { attempt: 1 },
      { attempt: 2 },
      { attempt: 3 },
    ])
  })

  for (const end of ends)
    it(`RUN-07 a repeat of ${nameOf(end)} by the attempt that made it gets the first answer, and nothing is done twice`, async () => {
      const a = await t.session()
      const id = await t.start('w')
      const run = only(await a.claim())
      const write = {
        entries: [entry(1)],
        ...(end.kind === 'suspend'
          ? { waits: [{ key: 'nap', kind: 'time' as const, dueInMs: 60_000 }] }
          : {}),
        end,
      }
      const first = await a.write(run, write)
      const after = everything(id)
      const again = await a.write(run, write)
      expect(again).toMatchObject({ ok: true })
      if (first.ok && again.ok) expect(again.ended).toBe(first.ended)
      expect(everything(id)).toEqual(after)
    })

  it('RUN-07 a repeat of one end as another end is refused', async () => {
    const a = await t.session()
    await t.start('w')
    const run = only(await a.claim())
    await a.complete(run, 1)
    expect(
      await a.end(run, { kind: 'fail', reason: 'error', note: 'x', error: '{}' }),
    ).toMatchObject({
      code: 'stale_attempt',
      detail: { status: 'succeeded', holder: null },
    })
  })

  it('RUN-07 a checkpoint that is sent twice is stored once', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const run = only(await a.claim())
    const write = { entries: [entry(1, 'a'), entry(2, 'b')] }
    expect(await a.write(run, write)).toMatchObject({ ok: true, ended: null })
    expect(await a.write(run, write)).toMatchObject({ ok: true, ended: null })
    expect(t.sql('select n, key from steps where run = ? order by n', id)).toEqual([
      { n: 1, key: 'a' },
      { n: 2, key: 'b' },
    ])
    expect(t.run(id)['entries']).toBe(2)
  })

  it('RUN-24 two entries of one key are refused, not half stored', async () => {
    const a = await t.session()
    const id = await t.start('w')
    const run = only(await a.claim())
    await a.write(run, { entries: [entry(1, 'a')] })
    const again = await a.write(run, { entries: [entry(2, 'a', { output: '2' })] })
    expect(again).toMatchObject({ ok: false, code: 'invalid_request' })
    expect(t.run(id)['entries']).toBe(1)
    expect(t.sql('select n, output from steps where run = ?', id)).toEqual([{ n: 1, output: '1' }])
  })

  it('RUN-07 the loss of the fence is never the run’s error', async () => {
    const { old, stale, holder, id } = await taken()
    await old.end(stale, {
      kind: 'fail',
      reason: 'error',
      note: 'mine',
      error: '{"message":"mine"}',
    })
    await holder.complete({ ...stale, attempt: 2 }, 'good')
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '"good"', error: null })
  })

  it('RUN-07 the store has a generation, which each session is told', async () => {
    const a = await t.session()
    expect(a.answer).toMatchObject({ ok: true, generation: 1 })
  })
})

describe('RUN-03 terminal is final', () => {
  const terminal: [string, (a: Session, run: ClaimedRun) => Promise<unknown>][] = [
    ['succeeded', (a, run) => a.complete(run, 'out')],
    [
      'failed',
      (a, run) =>
        a.end(run, { kind: 'fail', reason: 'error', note: 'n', error: '{"message":"e"}' }),
    ],
    [
      'canceled',
      async (a, run) => {
        await t.engine.cancel({ run: run.run, by: 'ana', reason: null })
        await a.end(run, { kind: 'hand_back', reason: 'canceled' })
      },
    ],
  ]
  for (const [status, finish] of terminal)
    it(`RUN-03 nothing, however late, changes a ${status} run`, async () => {
      const a = await t.session()
      const id = await t.start('w', {
        totalLimitMs: 1_000,
        attemptLimitMs: 1_000,
        startByMs: 1_000,
      })
      const run = only(await a.claim())
      await a.write(run, { waits: [{ key: 'go', kind: 'signal', name: 'go' }] })
      await finish(a, run)
      const after = t.run(id)
      expect(after['status']).toBe(status)
      expect(await t.engine.cancel({ run: id, by: 'x', reason: null })).toMatchObject({
        code: 'already_ended',
      })
      expect(await t.engine.pause(id, 'x', null)).toMatchObject({ code: 'already_ended' })
      expect(await t.engine.resume(id, 'x')).toMatchObject({ code: 'already_ended' })
      expect(
        await t.engine.signal({ run: id, id: 's', name: 'go', payload: null, by: null }),
      ).toMatchObject({ code: 'already_ended' })
      expect(await t.engine.takeFrom(id, 'op', 'x')).toMatchObject({ code: 'not_held' })
      expect(await t.engine.reversion(id, '1', 'op')).toMatchObject({ code: 'already_ended' })
      for (const end of ends) await a.end(run, end)
      await a.checkpoint(run, 'late')
      await t.kill(a)
      t.later(3_600_000)
      await t.settle()
      expect(t.run(id)).toEqual(after)
    })
})
