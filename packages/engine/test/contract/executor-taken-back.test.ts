// What happens in an attempt while its end is on its way that the store then answers with "go on": a suspend whose wait was
// satisfied meanwhile, a hand-back at the end of a chain for which nobody waits.
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { AttemptWrite } from '../../src/model/work.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { afterRestore } from '../../src/transitions/end-session.ts'
import { advance, executorOn } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const later = (ms: number): Promise<void> =>
  new Promise((resolve) => t.clock.timers().after(ms, resolve))

/** Writes with such an end take their time: on their way, or on the way back. */
const slow = (kind: 'suspend' | 'hand_back', way: 'there' | 'back', ms: number): AttemptWrite[] => {
  const port = t.opened.remote as { write: typeof t.opened.remote.write }
  const real = port.write.bind(port)
  const held: AttemptWrite[] = []
  port.write = async (session, write) => {
    const isHeld = write.end?.kind === kind
    if (isHeld) held.push(write)
    if (isHeld && way === 'there') await later(ms)
    const answer = await real(session, write)
    if (isHeld && way === 'back') await later(ms)
    return answer
  }
  return held
}

it('RUN-10 RUN-27 EX-21 a retry that falls due while a chain offers its slot is tried when nobody takes it', async () => {
  let tries = 0
  const begun: string[] = []
  const w = workflow('w', async (ctx) => {
    await ctx.step('warm', () => 1)
    const b = ctx.sleep('moment', '50ms').then(() => ctx.step('b', () => void begun.push('b')))
    const a = ctx.step(
      'a',
      () => {
        begun.push('a')
        if (++tries === 1) throw new Error('no')
      },
      { retry: { base: 100, maxAttempts: 3 } },
    )
    await Promise.all([a, b])
    return 'done'
  })
  const { executor } = executorOn(t, { workflows: [w], slots: { default: 1 }, maxChainDepth: 1 })
  await executor.start()
  const held = slow('hand_back', 'back', 500)
  const id = await t.start('w')
  for (let i = 0; i < 100; i++) await advance(t, 100)
  expect(held.length).toBeGreaterThan(0)
  expect(begun.toSorted()).toEqual(['a', 'a', 'b'])
  expect(t.run(id)).toMatchObject({ status: 'succeeded' })
  void executor.stop()
  await advance(t, 0)
})

it.each([
  ['returns', 'unawaited_step', /x was not awaited/],
  ['throws', 'error', /^late$/],
] as const)(
  'RUN-28 EX-08 a function that %s while its suspend is on its way ends so when the suspend is taken back',
  async (how, reason, note) => {
    const w = workflow('w', (ctx) => {
      // an author's own time-out beside a durable wait
      const late = later(50).then(() => {
        if (how === 'throws') throw new Error('late')
        return 'late'
      })
      return Promise.race([ctx.signal('x'), late])
    })
    const { executor } = executorOn(t, { workflows: [w] })
    await executor.start()
    const held = slow('suspend', 'there', 100)
    const id = await t.start('w')
    await advance(t, 20)
    await t.engine.signal({ run: id, id: 's1', name: 'x', payload: '1', by: null })
    for (let i = 0; i < 20; i++) await advance(t, 100)
    expect(held).toHaveLength(1)
    expect(t.run(id)).toMatchObject({
      status: 'failed',
      reason,
      note: expect.stringMatching(note) as string,
    })
    expect(executor.status().jobs).toEqual([])
    void executor.stop()
    await advance(t, 0)
  },
)

it('RUN-34 a state that was set just before the run continues is the successor’s', async () => {
  const w = workflow('w', async (ctx, input: string) => {
    if (input === 'first') {
      ctx.setState({ cursor: 1 })
      return ctx.continueAs('second')
    }
    return ctx.signal('x')
  })
  const { executor } = executorOn(t, { workflows: [w] })
  await executor.start()
  await t.start('w', { input: '"first"' })
  for (let i = 0; i < 5; i++) {
    await advance(t, 500)
    await t.pass('poll-lanes')
  }
  expect(t.sql('select state from runs order by id')).toEqual([
    { state: '{"cursor":1}' },
    { state: '{"cursor":1}' },
  ])
  void executor.stop()
  await advance(t, 0)
})

it('RUN-13 RUN-17 RUN-27 an attempt’s limit that passes while its end waits for a write is retried as its workflow says', async () => {
  let bodies = 0
  const w = workflow(
    { name: 'w', attemptLimit: '2s', retry: { maxAttempts: 3, base: '1s' } },
    async (ctx) => {
      await ctx.step('b', async ({ progress }) => {
        if (++bodies > 1) return
        progress(1)
        await later(1_000)
      })
      return 'done'
    },
  )
  const port = t.opened.remote as { write: typeof t.opened.remote.write }
  const real = port.write.bind(port)
  port.write = async (session, write) => {
    const answer = await real(session, write)
    if (write.progress !== undefined) await later(3_000)
    return answer
  }
  const { executor } = executorOn(t, { workflows: [w] })
  await executor.start()
  const id = await t.start('w')
  for (let i = 0; i < 40; i++) {
    await advance(t, 500)
    await t.pass('poll-lanes', 'wake-due')
  }
  expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 2 })
  void executor.stop()
  await advance(t, 0)
})

it('RUN-10 RAIL-12 what is ready goes in writes that a message can hold: entries, items of a stream, and then the end', async () => {
  const text = '"'.repeat(250_000)
  const w = workflow('w', async (ctx) => {
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        ctx.step(`s${i}`, ({ append }) => {
          append('out', text)
          return text
        }),
      ),
    )
    return 'done'
  })
  const made = executorOn(t, { workflows: [w], slots: { default: 1 } })
  await made.executor.start()
  const id = await t.start('w')
  for (let i = 0; i < 20; i++) await advance(t, 100)
  expect(t.run(id)).toMatchObject({ status: 'succeeded', entries: 40 })
  expect(t.sql('select count(*) as n from streams')).toEqual([{ n: 40 }])
  const writes = made.calls.filter(({ call }) => call === 'write')
  for (const { sent } of writes) expect(JSON.stringify(sent).length).toBeLessThan(32 * 1024 * 1024)
  expect(writes.length).toBeGreaterThan(4)
  void made.executor.stop()
  await advance(t, 0)
})

it('RUN-07 a server that is up during a restore hands out the generation that it raised', async () => {
  const { generation } = await t.engine.store.run((tx) => afterRestore(tx))
  const { answer } = await t.session()
  expect(answer).toMatchObject({ ok: true, generation })
})
