// EX-28: orders of events in which a slot could be freed early, a run driven twice, or a body forgotten. Every promise is the
// test's to settle.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

/** A workflow of one step, each try of which waits for a gate of its own. */
const gated = (timeout?: number) => {
  const gates: ReturnType<typeof gate<string>>[] = []
  const signals: AbortSignal[] = []
  const w = workflow('w', (ctx) =>
    ctx.step(
      'a',
      ({ signal }) => {
        const one = gate<string>()
        gates.push(one)
        signals.push(signal)
        return one.opened
      },
      timeout === undefined ? {} : { timeout },
    ),
  )
  return { gates, signals, w }
}
const slots = (x: ReturnType<typeof executorOn>) => only([...x.executor.status().slots])

describe('EX-28 the races', () => {
  it('EX-28 a clock that jumps past the lease, then a retry while the original still runs: one slot each, the late one writes nothing', async () => {
    const { gates, signals, w } = gated()
    const x = executorOn(t, { workflows: [w], slots: { default: 2 } })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    x.cut.renew = 'before'
    await advance(t, 25_000)
    expect(x.executor.status()).toMatchObject({ fenced: true, slots: [{ used: 1 }] })
    expect(signals[0]?.aborted).toBe(true)
    x.cut.renew = undefined
    await advance(t, 15_000)
    // the run is not given here again while its body is at work
    expect(x.executor.status().jobs).toMatchObject([{ run: id, attempt: 1, left: true, bodies: 1 }])
    const other = executorOn(t, { workflows: [w], seed: 8 })
    await other.executor.start()
    await advance(t, 100)
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
    gates[0]?.open('late')
    await advance(t, 10)
    expect(slots(x)).toMatchObject({ used: 0 })
    gates[1]?.open('in time')
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '"in time"', attempt: 2 })
    void x.executor.stop()
    void other.executor.stop()
    await advance(t, 1_000)
  })

  it('EX-28 a time-out whose body has not settled, then the retry: never two in one slot', async () => {
    const { gates, w } = gated(1_000)
    const x = executorOn(t, { workflows: [w], slots: { default: 1 } })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 1_000 + 10_000)
    expect(t.run(id)).toMatchObject({ status: 'queued' })
    await advance(t, 20_000)
    await t.pass('poll-lanes')
    await advance(t, 10)
    expect(gates).toHaveLength(1)
    expect(slots(x)).toMatchObject({ used: 1 })
    gates[0]?.open('late')
    await advance(t, 10)
    await t.pass('poll-lanes')
    await advance(t, 500)
    expect(gates).toHaveLength(2)
    gates[1]?.open('second')
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '"second"' })
    void x.executor.stop()
    await advance(t, 1_000)
  })

  it('EX-28 a shutdown, then a new request: it is not taken, and what was in flight is handed back', async () => {
    const { gates, w } = gated()
    const x = executorOn(t, { workflows: [w], slots: { default: 2 } })
    await x.executor.start()
    const first = await t.start('w')
    await advance(t, 10)
    const stopping = x.executor.stop()
    const second = await t.start('w')
    await advance(t, 1_000)
    expect(t.run(second)['status']).toBe('queued')
    expect(gates).toHaveLength(1)
    await expect(x.executor.start()).rejects.toThrow(/draining/)
    gates[0]?.open('done')
    await advance(t, 10)
    await stopping
    // its last step had ended: the result goes with it, or the run goes back; nothing stays held
    expect(t.run(first)['session']).toBeNull()
    expect(slots(x)).toMatchObject({ used: 0, reserved: 0 })
  })

  it('EX-28 an abort whose work settles late: the slot is its own until then, and the late error changes nothing', async () => {
    const { gates, signals, w } = gated()
    const x = executorOn(t, { workflows: [w], slots: { default: 1 } })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 10)
    expect(signals[0]?.aborted).toBe(true)
    // the store does not wait for ever: at the end of its grace the run is canceled
    for (let i = 0; i < 8; i++) {
      await advance(t, 5_000)
      await t.pass('enforce-limits')
    }
    expect(t.run(id)['status']).toBe('canceled')
    const next = await t.start('w')
    await advance(t, 5_000)
    expect(slots(x)).toMatchObject({ used: 1 })
    expect(t.run(next)['status']).toBe('queued')
    gates[0]?.fail(new Error('late'))
    await advance(t, 10)
    await t.pass('poll-lanes')
    await advance(t, 5_000)
    expect(t.run(id)).toMatchObject({ status: 'canceled', reason: 'canceled' })
    expect(t.run(next)['status']).toBe('running')
    gates[1]?.open('done')
    void x.executor.stop()
    await advance(t, 1_000)
  })
})

it('EX-02 EX-03 two versions of a workflow in two slot classes: what has room for one brings no run of the other', async () => {
  const open = gate<void>()
  let at = 0
  let most = 0
  const first = workflow({ name: 'w', version: '1' }, (ctx) => ctx.step('s', () => 1))
  const second = workflow({ name: 'w', version: '2', slotClass: 'write' }, (ctx) =>
    ctx.step('s', async () => {
      most = Math.max(most, ++at)
      await open.opened
      at -= 1
    }),
  )
  const { executor } = executorOn(t, {
    workflows: [first, second],
    slots: { default: 4, write: 1 },
  })
  await executor.start()
  for (let i = 0; i < 4; i++) await t.start('w', { version: '2' })
  const other = await t.start('w', { version: '1' })
  for (let i = 0; i < 5; i++) {
    await advance(t, 200)
    await t.pass('poll-lanes')
  }
  expect(most).toBe(1)
  expect(t.run(other)).toMatchObject({ status: 'succeeded' })
  open.open()
  void executor.stop()
  await advance(t, 0)
})
