import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

describe('waits, from the author’s seat', () => {
  it('RUN-28 a wait that is over while another branch works resolves in the same attempt', async () => {
    const order: string[] = []
    const w = workflow('w', async (ctx) => {
      await Promise.all([
        ctx.sleep('short', '1s').then(() => order.push('slept')),
        ctx
          .step(
            'long',
            () => new Promise<void>((resolve) => t.clock.timers().after(10_000, () => resolve())),
          )
          .then(() => order.push('stepped')),
      ])
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.result(run)
    expect(order).toEqual(['slept', 'stepped'])
    expect(await t.attempts(run)).toHaveLength(1)
  })

  it('RUN-28 no executor slot is held while every branch stands at a wait', async () => {
    const w = workflow('w', (ctx) =>
      Promise.all([
        ctx.sleep('a', '1h').then(() => null),
        ctx.signal('b', { timeout: '2h' }),
        ctx.approval('c', { prompt: '?', deadline: '3h' }),
      ]),
    )
    t = await testEngine({ workflows: [w], executor: { slots: { default: 1 } } })
    const runs = [await t.start(w, null), await t.start(w, null)]
    for (const run of runs) await t.until(run, 'waiting:time')
    expect(t.executors[0]!.status()).toMatchObject({ jobs: [], slots: [{ used: 0 }] })
    for (const run of runs)
      expect(await t.result(run)).toMatchObject([
        null,
        { ok: false, timedOut: true },
        { decision: 'lapsed' },
      ])
  })

  it('DX-06 an approval without a deadline has the one of the server’s settings', async () => {
    const w = workflow('w', (ctx) => ctx.approval('c', { prompt: '?' }))
    t = await testEngine({ workflows: [w], settings: { approvalMs: 60_000 } })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:approval')
    const from = t.clock.time.now()
    expect(await t.result(run)).toEqual({ decision: 'lapsed' })
    expect(t.clock.time.now() - from).toBe(60_000)
  })

  it.each([
    ['the signal', { winner: 'signal', value: 'yes' }],
    ['the time', { winner: 'time', value: 'late' }],
  ])(
    'RUN-28 a race that %s wins closes the other’s waits in the same transaction',
    async (what, expected) => {
      const w = workflow('w', async (ctx) => {
        const first = await ctx.race('first', {
          signal: (inner) => inner.signal<string>('answer'),
          time: async (inner) => {
            await inner.sleep('limit', '1h')
            return 'late'
          },
        })
        // the loser's signal was not taken: it is there for whoever asks next
        const second = what === 'the time' ? await ctx.signal('answer') : null
        return { first, second }
      })
      t = await testEngine({ workflows: [w] })
      const run = await t.start(w, null)
      await t.until(run, 'waiting:signal')
      if (what === 'the signal') await t.signal(run, 'answer', 'yes')
      else {
        await t.until(run, 'waiting:signal')
        await t.advance('2h')
        await t.until(run, 'waiting:signal')
        await t.signal(run, 'answer', 'later')
      }
      expect(await t.result(run)).toEqual({
        first: expected,
        second: what === 'the time' ? 'later' : null,
      })
      const open = await t.engine.read(function* () {
        const [rows] = (yield {
          statements: [
            {
              sql: {
                name: 'test.open',
                text: "select key from waits where state in ('open', 'satisfied', 'lapsed')",
              },
              params: [],
            },
          ],
          last: false,
        }) as unknown as [unknown[]]
        return rows
      })
      expect(open).toEqual([])
    },
  )

  it('RUN-28 any gives the first that succeeds, and fails with all errors when none does', async () => {
    const once = { retry: { maxAttempts: 1 } }
    const boom = (text: string) => (): never => {
      throw new Error(text)
    }
    const w = workflow('w', async (ctx) => {
      const won = await ctx.any('some', {
        bad: (inner) => inner.step('s', boom('bad'), once),
        good: async (inner) => (await inner.sleep('nap', '1h'), 'good'),
      })
      const none = await ctx
        .any('none', {
          a: (inner) => inner.step('s', boom('a'), once),
          b: (inner) => inner.step('s', boom('b'), once),
        })
        .catch((error: AggregateError) => error.errors.map((each: Error) => each.message))
      return { won, none }
    })
    t = await testEngine({ workflows: [w] })
    expect(await t.result(await t.start(w, null))).toEqual({
      won: { winner: 'good', value: 'good' },
      none: ['a', 'b'],
    })
  })

  it('RUN-28 a race is decided once: a crash behind it does not decide it anew', async () => {
    let flip = false
    const w = workflow('w', async (ctx) => {
      const { winner } = await ctx.race('r', {
        a: (inner) => inner.step('s', () => (flip ? new Promise<never>(() => undefined) : 'a')),
        b: (inner) => inner.step('s', () => (flip ? 'b' : new Promise<never>(() => undefined))),
      })
      flip = true
      await ctx.step('after', () => 1)
      return winner
    })
    t = await testEngine({ workflows: [w] })
    t.crashAt('after', 'before')
    expect(await t.result(await t.start(w, null))).toBe('a')
  })

  it('RUN-30 signals are taken first in, first out, by the earliest wait, also those that came before it', async () => {
    const w = workflow('w', async (ctx) => {
      await ctx.sleep('nap', '1h')
      const [a, b] = await Promise.all([ctx.signal('s', { as: 'a' }), ctx.signal('s', { as: 'b' })])
      return [a, b, await ctx.signal('s', { as: 'c' })]
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.settle()
    await t.signal(run, 's', 1, 'one')
    await t.signal(run, 's', 1, 'one')
    await t.signal(run, 'other', 0)
    await t.signal(run, 's', 2)
    await t.signal(run, 's', 3)
    expect(await t.result(run)).toEqual([1, 2, 3])
  })

  it('RUN-30 a run that asks for no signal keeps a bounded number of them, and an ended one takes none', async () => {
    const w = workflow('w', (ctx) => ctx.sleep('nap', '1h'))
    t = await testEngine({ workflows: [w], settings: { signalsMax: 5, signalsMaxBytes: 100 } })
    const run = await t.start(w, null)
    await t.settle()
    for (let i = 0; i < 5; i++) await t.signal(run, 's', i)
    await expect(t.signal(run, 's', 6)).rejects.toMatchObject({ code: 'signals_full' })
    const other = await t.start(w, null)
    await expect(t.signal(other, 's', 'x'.repeat(200))).rejects.toMatchObject({
      code: 'signals_full',
    })
    await t.result(run)
    await expect(t.signal(run, 's', 7)).rejects.toMatchObject({ code: 'already_ended' })
  })

  it('RUN-29 a canceled run’s timer never fires, and a paused one’s is recorded and waits for the resume', async () => {
    const woken: string[] = []
    const w = workflow('w', async (ctx, name: string) => {
      await ctx.sleep('nap', '1h')
      await ctx.step('s', () => woken.push(name))
    })
    t = await testEngine({ workflows: [w] })
    const [canceled, paused] = [await t.start(w, 'canceled'), await t.start(w, 'paused')]
    await t.settle()
    await t.cancel(canceled)
    await t.pause(paused)
    await t.advance('3h')
    expect(woken).toEqual([])
    await t.resume(paused)
    await t.result(paused)
    await t.advance('3h')
    expect(woken).toEqual(['paused'])
  })

  it('RUN-34 a run that continues itself keeps its key and its unread signals, and starts with the new input', async () => {
    const w = workflow<number, unknown>('w', async (ctx, n) => {
      if (n < 3) return ctx.continueAs(n + 1)
      return [n, await ctx.signal('s')]
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, 0, { key: 'k' })
    await t.signal(run, 's', 'kept').catch(() => undefined)
    await t.settle()
    expect(await t.get(run)).toMatchObject({ status: 'succeeded', reason: 'continued' })
    const newest = await t.start(w, 0, { key: 'k' })
    expect(newest).not.toBe(run)
    if ((await t.get(newest)).status === 'waiting') await t.signal(run, 's', 'kept')
    expect(await t.result(newest)).toEqual([3, 'kept'])
  })

  it('DX-01 a child that fails is an error with its run, its status and its cause', async () => {
    const child = workflow({ name: 'child', stepRetry: { maxAttempts: 1 } }, (ctx) =>
      ctx.step('s', () => {
        throw new RangeError('deep')
      }),
    )
    const w = workflow('w', (ctx) =>
      ctx.run(child, null).catch((error: Error & { code: string; detail: object }) => ({
        name: error.name,
        code: error.code,
        detail: error.detail,
        cause: (error.cause as Error).name,
      })),
    )
    t = await testEngine({ workflows: [w, child] })
    expect(await t.result(await t.start(w, null))).toMatchObject({
      name: 'ChildFailedError',
      code: 'child_failed',
      detail: { status: 'failed', reason: 'error' },
      cause: 'RangeError',
    })
  })

  it('DX-03 what only a person can move is said in words', async () => {
    const w = workflow('w', (ctx) => ctx.signal('never'))
    t = await testEngine({ workflows: [w] })
    await expect(t.result(await t.start(w, null))).rejects.toThrow(
      /does not come to an end by itself: it is waiting on signal/,
    )
  })

  it('DX-03 the same seed gives the same history, bit for bit', async () => {
    const w = workflow('w', (ctx) =>
      ctx.map(
        'm',
        [1, 2, 3],
        async (each, n) => (
          await each.sleep('nap', n * 1_000),
          each.step('s', ({ tryNumber }) => {
            if (n === 2 && tryNumber === 1) throw new Error('once')
            return [n, each.random()]
          })
        ),
      ),
    )
    const histories = []
    for (let i = 0; i < 2; i++) {
      t = await testEngine({ workflows: [w], seed: 42 })
      const run = await t.start(w, null)
      await t.result(run)
      histories.push(
        JSON.stringify([run, await t.journal(run), await t.attempts(run), t.clock.time.now()]),
      )
      if (i === 0) await t.close()
    }
    expect(histories[1]).toBe(histories[0])
  })

  it('SLOT-04 a parent under a limit of its own goes on at the instant at which its child ends, also after another wait', async () => {
    const child = workflow('child', (ctx) => ctx.step('a', () => 1))
    const parent = workflow({ name: 'parent', limits: [{ key: 'one', value: 1 }] }, async (ctx) => {
      await ctx.approval('ship', { prompt: '?', deadline: '7d' })
      return ctx.run(child, null)
    })
    t = await testEngine({ workflows: [child, parent] })
    const run = await t.start(parent, null, { totalLimit: '30d' })
    await t.until(run, 'waiting:approval')
    await t.advance('3d')
    await t.approve(run, 'ship', { by: 'ana' })
    const approved = t.clock.time.now()
    expect(await t.result(run)).toBe(1)
    expect(t.clock.time.now()).toBe(approved)
  })

  it('RUN-26 a branch that has lost its race and does not heed its limit fails nobody', async () => {
    const w = workflow('w', async (ctx) => {
      const { winner } = await ctx.race('r', {
        limit: (branch) => branch.sleep('nap', 100),
        work: (branch) =>
          branch.step('s', () => pause(90_000), {
            timeout: 1_000,
            retry: { maxAttempts: 1 },
          }),
      })
      await ctx.step('later', () => pause(60_000))
      return winner
    })
    const pause = (ms: number) =>
      new Promise<void>((resolve) => t.clock.timers().after(ms, () => resolve()))
    t = await testEngine({ workflows: [w] })
    const id = await t.start(w, null)
    expect(await t.result(id)).toBe('limit')
  })

  it.each([
    ['has failed and waits for its next try', 10, 1_000, 100],
    ['fails after it has lost', 5_000, 500, 20_000],
  ])(
    'RUN-26 a branch that %s does not hold up the run when another wins the race',
    async (_what, bodyMs, limitMs, laterMs) => {
      const pause = (ms: number) =>
        new Promise<void>((resolve) => t.clock.timers().after(ms, () => resolve()))
      const w = workflow('w', async (ctx) => {
        const { winner } = await ctx.race('r', {
          limit: (branch) => branch.sleep('nap', limitMs),
          work: (branch) =>
            branch.step(
              's',
              async () => {
                await pause(bodyMs)
                throw new Error('boom')
              },
              { retry: { maxAttempts: 3, base: 1_900, factor: 1 } },
            ),
        })
        await ctx.step('later', () => pause(laterMs))
        await ctx.sleep('after', '1m')
        return winner
      })
      t = await testEngine({ workflows: [w] })
      expect(await t.result(await t.start(w, null))).toBe('limit')
    },
  )
})

it('RUN-13 RUN-22 `startBy` counts from when a delayed run may start', async () => {
  const w = workflow({ name: 'w', startBy: '10m' }, () => 'ok')
  t = await testEngine({ workflows: [w] })
  expect(await t.result(await t.start(w, null, { delay: '1h' }))).toBe('ok')
})

it('RUN-16 RUN-29 a run that was paused and resumed in the delay of its own retry is not woken by a signal', async () => {
  let tries = 0
  const begun: number[] = []
  const w = workflow({ name: 'w', retry: { maxAttempts: 3, base: '1h' } }, async (ctx) => {
    begun.push(t.clock.time.now())
    await ctx.all('x', {
      a: (c) => c.signal('go'),
      b: (c) =>
        c.step(
          's',
          () => {
            if (++tries === 1) throw new Error('no')
          },
          { retry: { maxAttempts: 1 } },
        ),
    })
    return 'ok'
  })
  t = await testEngine({ workflows: [w] })
  const run = await t.start(w, null)
  await t.advance('1s')
  await t.pause(run)
  await t.resume(run)
  await t.signal(run, 'go', 1)
  await t.advance('1s')
  expect(begun).toHaveLength(1)
  expect(await t.result(run)).toBe('ok')
})
