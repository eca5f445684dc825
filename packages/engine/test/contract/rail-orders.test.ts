// An order that fails by what it is: it keeps no other from being applied, is tried so many times, and then waits for people,
// who try it anew or drop it. None is lost.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Fault } from '../../src/kernel/errors.ts'
import { ordersAside } from '../../src/queries/orders.ts'
import type { Steps, Tx } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { settleOrder } from '../../src/transitions/settle-order.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
beforeEach(async () => {
  t = await openStore()
  a = await t.session({ definitions: [definition('w'), definition('c')] })
})
afterEach(() => t.close())

const order = (id: string, kind: string, run: string, payload: string): void =>
  void t.sql(
    `insert into orders (id, kind, run, payload, created_at) values (?, ?, ?, ?, 0) returning id`,
    id,
    kind,
    run,
    payload,
  )
const row = (id: string) => only(t.sql('select * from orders where id = ?', id))
const aside = () => t.engine.read(ordersAside)
const settle = (id: string, what: 'retry' | 'drop') =>
  t.engine.act((tx) => settleOrder(tx, id, what, 'ana'))
/** So many passes, each after all that is put off has come due. */
const passes = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) {
    await t.pass('apply-orders')
    t.later(100_000)
  }
}
const most = (): number => t.engine.settings.orderFailuresMax

/** Lets every transaction end in this error that would take an order of this id. */
const failing = (id: string, error: Error): (() => void) => {
  const store = t.engine.store as { run: Store['run'] }
  const { run } = store
  function* watched<T>(steps: Steps<T>): Steps<T> {
    let step = steps.next()
    while (!step.done) {
      for (const { sql, params } of step.value.statements)
        if (sql.name === 'orders.remove' && String(params[0]).includes(`"${id}"`)) throw error
      step = steps.next(yield step.value)
    }
    return step.value
  }
  store.run = (transaction, manner) => run((tx: Tx) => watched(transaction(tx)), manner)
  return () => void (store.run = run)
}

describe('RUN-21 orders that cannot be applied', () => {
  it('RUN-21 RAIL-09 one that cannot be read is tried a bounded number of times, and the others are applied at once', async () => {
    await t.start('w', { id: 'run_2' })
    order('bad', 'start', 'run_1', '{"workflow":')
    order('good', 'cancel', 'run_2', '{}')
    await t.pass('apply-orders')
    expect(t.run('run_2')['status']).toBe('canceled')
    expect(row('bad')).toMatchObject({ failures: 1, set_aside_at: null })
    // put off, and not tried before
    await t.pass('apply-orders')
    expect(row('bad')).toMatchObject({ failures: 1 })
    await passes(most() - 2)
    expect(t.sql('select * from notices')).toEqual([])
    await passes(3)
    expect(row('bad')).toMatchObject({ failures: most(), tries: most() })
    expect(row('bad')['set_aside_at']).not.toBeNull()
    expect((await aside()).orders).toMatchObject([
      { id: 'bad', kind: 'start', run: 'run_1', failures: most(), payload: '{"workflow":' },
    ])
    expect(only(t.sql('select * from notices'))).toMatchObject({
      run: 'bad',
      kind: 'order_set_aside',
      sentence: expect.stringMatching(/^the order bad \(start of run_1\) failed 10 times and is/),
    })
  })

  it('RUN-21 one that was set aside is tried anew when an operator says so, and told of again if it fails again', async () => {
    order('bad', 'start', 'run_1', '{')
    await passes(most())
    expect((await settle('bad', 'retry')).answer).toEqual({
      ok: true,
      order: 'bad',
      run: 'run_1',
      done: 'retried',
    })
    expect(t.sql('select * from notices')).toEqual([])
    await passes(most())
    expect(t.sql('select run from notices')).toEqual([{ run: 'bad' }])
    t.sql(`update orders set payload = '{"id":"run_1","workflow":"w","input":"1"}' returning id`)
    await settle('bad', 'retry')
    await t.pass('apply-orders')
    expect(t.run('run_1')['status']).toBe('queued')
    expect(t.sql('select * from orders')).toEqual([])
    expect(t.sql('select * from notices')).toEqual([])
  })

  it('RUN-21 one that was set aside is dropped with a receipt that says by whom, and what waited for it goes on', async () => {
    order('start:run_1', 'start', 'run_1', '{')
    order('sig', 'signal', 'run_1', '{"name":"go"}')
    await passes(most())
    expect(t.sql('select id from orders order by id')).toEqual([
      { id: 'sig' },
      { id: 'start:run_1' },
    ])
    await settle('start:run_1', 'drop')
    expect(t.sql('select kind, recipient, outcome from receipts')).toEqual([
      { kind: 'start', recipient: 'start:run_1', outcome: 'dropped by ana' },
    ])
    await t.pass('apply-orders')
    expect(t.sql('select * from orders')).toEqual([])
    expect(t.sql('select * from notices')).toEqual([])
  })

  it('RUN-21 only what is set aside can be tried anew or dropped', async () => {
    order('o', 'cancel', 'run_1', '{}')
    for (const what of ['retry', 'drop'] as const) {
      expect((await settle('o', what)).answer).toMatchObject({ ok: false, code: 'not_found' })
      expect((await settle('none', what)).answer).toMatchObject({ ok: false, code: 'not_found' })
    }
    expect(t.sql('select id from orders')).toEqual([{ id: 'o' }])
  })

  it('RUN-21 its notice is kept for as long as it is set aside', async () => {
    order('bad', 'start', 'run_1', '{')
    await passes(most())
    t.later(t.engine.settings.retentionMs + 1_000)
    await t.pass('prune-ended')
    expect(t.sql('select run from notices')).toEqual([{ run: 'bad' }])
    await settle('bad', 'drop')
    expect(t.sql('select run from notices')).toEqual([])
  })

  it('RUN-21 what the store fails at is tried for ever: it says nothing about an order', async () => {
    await t.start('w', { id: 'run_1' })
    order('o', 'cancel', 'run_1', '{}')
    const mend = failing('o', new Fault('store_unavailable', 'gone'))
    await passes(most() + 5)
    mend()
    expect(row('o')).toMatchObject({ tries: most() + 5, failures: 0, set_aside_at: null })
    await t.pass('apply-orders')
    expect(t.run('run_1')['status']).toBe('canceled')
  })

  it('RAIL-09 one bad order of those that are told together is set aside alone', async () => {
    for (const id of ['run_1', 'run_2', 'run_3']) {
      await t.start('w', { id })
      await t.pass('poll-lanes')
      const run = only(await a.claim(1))
      const child = { id: `${id}_kid`, workflow: 'c', input: null, awaited: true } as const
      await a.write(run, {
        waits: [{ key: 'kid', kind: 'child', child: { ...child, onParentEnd: 'cancel' } }],
        end: { kind: 'suspend', keys: ['kid'] },
      })
      await t.engine.cancel({ run: `${id}_kid`, by: 'ana', reason: null })
    }
    const mend = failing('child:run_2_kid', new Error('of its content'))
    await t.pass('apply-orders')
    expect(['run_1', 'run_2', 'run_3'].map((id) => t.run(id)['status'])).toEqual([
      'queued',
      'waiting',
      'queued',
    ])
    t.later(100_000)
    await passes(most())
    expect((await aside()).orders.map(({ id }) => id)).toEqual(['child:run_2_kid'])
    // and the sweep over families does not order it a second time
    await t.pass('reconcile-families')
    mend()
    await settle('child:run_2_kid', 'retry')
    await t.pass('apply-orders')
    expect(t.run('run_2')['status']).toBe('queued')
  })
})
