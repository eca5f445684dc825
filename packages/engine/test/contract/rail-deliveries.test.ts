// What becomes of a notice on its way to a sink: written with its cause, sent at least once under one name, and settled once.
import { afterEach, describe, expect, it } from 'vitest'
import type { Message, Sent, Sink } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { Session, TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
afterEach(() => t.close())

interface Fake extends Sink {
  readonly got: Message[]
  answer: (message: Message, signal: AbortSignal) => Promise<Sent>
}
const taken: Sent = { ok: true, note: 'taken' }
const refused: Sent = { ok: false, why: 'it answered 500' }
const fake = (name = 'ops', more: Partial<Sink> = {}): Fake => {
  const sink: Fake = {
    name,
    type: 'fake',
    kinds: noticeKinds,
    got: [],
    answer: () => Promise.resolve(taken),
    send(message, signal) {
      sink.got.push(message)
      return sink.answer(message, signal)
    },
    ...more,
  }
  return sink
}
const deliveries = () =>
  t.sql('select id, run, kind, sink, state, refusals, lapses from deliveries order by seq, id')
const fail = async (session: Session, id: string): Promise<void> => {
  await t.start('w', { id })
  const run = only(await session.claim(1))
  await session.end(run, { kind: 'fail', reason: 'error', note: 'boom', error: '{}' })
}

describe('RAIL-02 the relay', () => {
  it('RAIL-01 RAIL-05 a failure is told of with one row for each sink, sent, and receipted once', async () => {
    const ops = fake()
    t = await openStore({ sinks: [ops, fake('mail', { kinds: ['attempt_lost'] })] })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    expect(deliveries()).toMatchObject([{ run: 'run_1', kind: 'run_failed', state: 'due' }])
    await t.settle('relay')
    expect(ops.got).toMatchObject([
      { kind: 'run_failed', run: 'run_1', workflow: 'w', data: { reason: 'error', note: 'boom' } },
    ])
    expect(only(deliveries())).toMatchObject({ state: 'delivered', refusals: 0 })
    expect(t.sql('select kind, recipient, outcome from receipts')).toEqual([
      {
        kind: 'notice.run_failed',
        recipient: `${ops.got[0]?.id}_ops`,
        outcome: 'delivered: taken',
      },
    ])
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
  })

  it('RAIL-02 what a sink refuses is tried again ever later, and is dead after so many refusals', async () => {
    const ops = fake()
    ops.answer = () => Promise.resolve(refused)
    t = await openStore({
      sinks: [ops],
      settings: { deliveryRefusalsMax: 3, deliveryBackoffMs: 1_000 },
    })
    await t.pass('relay')
    await fail(await t.session(), 'run_1')
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
    t.later(700)
    await t.settle('relay')
    expect(ops.got).toHaveLength(1)
    t.later(600)
    await t.settle('relay')
    expect(ops.got).toHaveLength(2)
    t.later(2_500)
    await t.settle('relay')
    expect(ops.got).toHaveLength(3)
    expect(new Set(ops.got.map(({ id }) => id)).size).toBe(1)
    expect(only(deliveries())).toMatchObject({ state: 'dead', refusals: 3, lapses: 0 })
    expect(t.sql('select * from receipts')).toEqual([])
  })
})
