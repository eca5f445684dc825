// An executor on two databases of one store, one of which is taken away.
import { expect, onTestFinished, test } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import { join, ownerOn } from '../support/shards.ts'
import type { TestStore } from '../support/store.ts'

test('RUN-08 RUN-09 an executor lets go of what is on a shard that its renewals do not reach, before anyone else can have it, and keeps the rest', async () => {
  const t = await join()
  const signals = new Map<string, AbortSignal>()
  const bodies = new Map<string, ReturnType<typeof gate<string>>>()
  const w = workflow('w', (ctx, name: string) =>
    ctx.step('a', (step) => {
      const body = gate<string>()
      signals.set(name, step.signal)
      bodies.set(name, body)
      return body.opened
    }),
  )
  const [first] = t.stores as [TestStore]
  const on = { ...first, opened: { ...first.opened, remote: t.shards.port } }
  const x = executorOn(on, { workflows: [w] })
  await x.executor.start()
  onTestFinished(async () => {
    void x.executor.stop()
    await advance(on, 60_000)
  })
  const [here, there] = [
    await t.start('w', { owner: ownerOn(0), input: '"here"' }),
    await t.start('w', { owner: ownerOn(1), input: '"there"' }),
  ]
  await advance(on, 25_000)
  expect([...signals.keys()].sort()).toEqual(['here', 'there'])
  t.away(1, true)
  // the last renewal that came there is not four fifths of a lease old
  await advance(on, 12_000)
  expect(signals.get('there')?.aborted).toBe(false)
  await advance(on, 13_000)
  expect(signals.get('there')?.reason).toMatchObject({ reason: 'lease_lost' })
  expect(signals.get('here')?.aborted).toBe(false)
  expect(x.logged).toContainEqual(
    expect.objectContaining({
      event: 'session.fenced',
      facts: expect.objectContaining({ shard: 1, held: 1 }) as unknown,
    }),
  )
  // what belongs to the other goes on for longer than any lease: what it holds, and what is started there
  await t.start('w', { owner: ownerOn(0), input: '"later"' })
  await advance(on, 60_000)
  expect(signals.get('here')?.aborted).toBe(false)
  expect(signals.get('later')?.aborted).toBe(false)
  bodies.get('here')?.open('done')
  await advance(on, 1_000)
  expect(t.stores[0]?.run(here)).toMatchObject({ status: 'succeeded', attempt: 1 })

  bodies.get('there')?.open('late')
  t.away(1, false)
  // by the time that anyone could have taken its runs they were let go: they are handed back and go on
  await advance(on, 20_000)
  expect(t.stores[1]?.run(there)).toMatchObject({ status: 'running', attempt: 2 })
  bodies.get('there')?.open('done')
  bodies.get('later')?.open('done')
  await advance(on, 2_000)
  expect(await t.statuses()).toEqual({ succeeded: 3 })
  expect(x.count('register')).toBe(1)
})
