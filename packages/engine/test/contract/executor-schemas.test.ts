import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Schema } from '../../src/executor/authoring/schema.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

/** A schema that asks somebody else: each value waits for a gate, those after the last pass at once. */
const slow = (...gates: { readonly opened: Promise<unknown> }[]): Schema => {
  let asked = 0
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value: unknown) => {
        await gates[asked++]?.opened
        return { value }
      },
    },
  }
}
/** A workflow with a step in its journal whose input is looked at until the gate opens when it goes on. */
const resumed = (second: { readonly opened: Promise<unknown> }) =>
  workflow({ name: 'w', input: slow({ opened: Promise.resolve() }, second) }, async (ctx) => {
    const a = await ctx.step('a', () => 1)
    await ctx.sleep('for a while', '1s')
    return a
  })
const driven = async (w: ReturnType<typeof workflow>) => {
  const { executor } = executorOn(t, { workflows: [w] })
  await executor.start()
  const id = await t.start('w')
  await advance(t, 10)
  return {
    id,
    stop: async () => {
      void executor.stop()
      await advance(t, 60_000)
    },
  }
}

it('DX-04 RUN-26 a schema of the input may take its time where a run goes on: nobody departs from the journal meanwhile', async () => {
  const second = gate()
  const { id, stop } = await driven(resumed(second))
  await advance(t, 1_000)
  await t.pass('wake-due')
  await advance(t, 5_000)
  expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
  second.open()
  await advance(t, 10)
  expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '1' })
  await stop()
})

it('DX-04 RUN-13 a function whose schema looks at a signal is at work: it is not suspended on what else it waits for', async () => {
  const look = gate()
  const w = workflow('w', async (ctx) => {
    const { winner } = await ctx.race('first', {
      async told(inner) {
        await inner.signal('go', { schema: slow(look) })
      },
      late: (inner) => inner.sleep('late', '1h'),
    })
    return winner
  })
  const { id, stop } = await driven(w)
  const signal = { run: id, id: 'sig_1', name: 'go', payload: '1', by: 'ana' }
  expect(await t.engine.signal(signal)).toMatchObject({ ok: true })
  await t.pass('poll-lanes')
  await advance(t, 5_000)
  expect(t.run(id)).toMatchObject({ status: 'running' })
  look.open()
  await advance(t, 10)
  expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '"told"' })
  await stop()
})

it('DX-04 RUN-26 the schema of a signal may take its time where it is replayed', async () => {
  const second = gate()
  const schema = slow({ opened: Promise.resolve() }, second)
  const w = workflow('w', async (ctx) => {
    await ctx.signal('go', { schema })
    const a = await ctx.step('a', () => 1)
    await ctx.sleep('for a while', '1s')
    return a
  })
  const { id, stop } = await driven(w)
  expect(
    await t.engine.signal({ run: id, id: 'sig_1', name: 'go', payload: '1', by: 'ana' }),
  ).toMatchObject({ ok: true })
  await advance(t, 10)
  await t.pass('wake-due', 'poll-lanes')
  await advance(t, 1_010)
  await t.pass('wake-due')
  await advance(t, 5_000)
  expect(t.run(id)).toMatchObject({ status: 'running' })
  second.open()
  await advance(t, 10)
  expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '1' })
  await stop()
})

it('DX-04 EX-11 a schema that never says anything keeps no run from being handed back when its executor stops', async () => {
  const { id, stop } = await driven(resumed(gate()))
  await advance(t, 1_000)
  await t.pass('wake-due')
  await advance(t, 2_000)
  expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
  await stop()
  expect(t.run(id)).toMatchObject({ status: 'queued', attempt: 2, failures: 0 })
})
