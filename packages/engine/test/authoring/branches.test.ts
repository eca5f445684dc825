// `ctx.all`, `ctx.race` and `ctx.any` where a branch fails, and what a failure that was never recorded leaves behind.
import { afterEach, describe, expect, it } from 'vitest'
import type { Context, WorkflowOptions } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { NO_FILTER } from '../../src/store/tables/run-lists.ts'
import { runList } from '../../src/queries/run-list.ts'
import { runDetail } from '../../src/queries/run-detail.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

const once = { retry: { maxAttempts: 1 } } as const
const fails = (): never => {
  throw new Error('no')
}
const run = async (
  body: (ctx: Context) => unknown,
  options: Partial<WorkflowOptions<unknown, unknown>> = {},
): Promise<string> => {
  t = await testEngine({ workflows: [workflow({ name: 'w', ...options }, body), child] })
  return t.start('w', null)
}
let children = 0
const child = workflow('child', () => {
  children += 1
  return null
})

describe('a branch that fails', () => {
  it('RUN-28 DX-02 the first error of `all` ends it: it can be caught, and what the others stood at is closed', async () => {
    const id = await run(async (ctx) => {
      try {
        return await ctx.all('both', {
          a: (c) => c.step('s', fails, once),
          b: (c) => c.sleep('z', '1d'),
          c: (c) => c.signal('never'),
        })
      } catch (error) {
        await ctx.sleep('after', '1h')
        return (error as Error).message
      }
    })
    await t.until(id, 'waiting:time')
    const found = await t.engine.read((tx) => runDetail(tx, id))
    const open = found?.waits.filter(({ state }) => state === 'open') ?? []
    expect(open.map(({ key }) => key)).toEqual(['after'])
    expect(await t.result(id)).toBe('no')
    expect((await t.journal(id)).map(({ key }) => key)).toEqual(['both:a/s', 'after'])
  })

  it('RUN-26 RUN-28 it fails at the same place on replay, also where a body of another branch settles later', async () => {
    const id = await run(async (ctx) => {
      try {
        await ctx.all('both', {
          a: (c) => c.step('s', fails, once),
          b: async (c) => {
            await c.step(
              'slow',
              () => new Promise((r) => t.clock.timers().after(5_000, () => r(1))),
            )
            await c.step('never', () => 1)
          },
        })
      } catch {
        for (const i of [1, 2, 3]) await ctx.sleep(`${i}`, '1h')
      }
      return 'done'
    })
    expect(await t.result(id)).toBe('done')
    expect(t.begun(id, 'never')).toBe(0)
    expect((await t.journal(id)).map(({ key }) => key)).toEqual(['both:a/s', '1', '2', '3'])
  })

  it.each(['race', 'any'] as const)(
    'RUN-28 `%s` takes a branch that throws, or returns a value, before its first promise',
    async (verb) => {
      const untyped = (value: unknown): never => value as never
      const id = await run((ctx) =>
        ctx[verb]('first', {
          waits: (c) => c.sleep('z', '1d'),
          throws: untyped(fails),
          returns: untyped(() => 5),
        }).catch((error: Error) => error.message),
      )
      expect(await t.result(id)).toEqual(verb === 'race' ? 'no' : { winner: 'returns', value: 5 })
    },
  )

  it('RUN-28 `all` of which a branch throws before its first promise can be caught', async () => {
    const id = await run((ctx) =>
      ctx
        .all('both', { waits: (c) => c.sleep('z', '1d'), throws: fails })
        .catch((error: Error) => error.message),
    )
    expect(await t.result(id)).toBe('no')
  })
})

describe('a failure that was not durable when the run was to be driven anew', () => {
  const thrice = { retry: { maxAttempts: 3 } } as const

  it('RUN-26 RUN-27 takes with it the race that it decided', async () => {
    let tries = 0
    const id = await run(
      (ctx) =>
        ctx.race('r', {
          a: (c) => c.step('x', () => (++tries === 1 ? fails() : 'ok'), once),
          b: (c) => c.sleep('z', '1h'),
        }),
      thrice,
    )
    expect(await t.result(id)).toEqual({ winner: 'a', value: 'ok' })
    expect(tries).toBe(2)
  })

  it('RUN-26 RUN-27 takes with it the child that was started because of it, which never runs', async () => {
    let tries = 0
    children = 0
    const id = await run(async (ctx) => {
      try {
        return await ctx.step('x', () => (++tries === 1 ? fails() : 'ok'), once)
      } catch (error) {
        await ctx.spawn(child, undefined)
        throw error
      }
    }, thrice)
    expect(await t.result(id)).toBe('ok')
    expect(children).toBe(0)
    expect((await t.journal(id)).map(({ key }) => key)).toEqual(['x'])
  })

  it('RUN-27 keeps what other branches have come to in the same turn', async () => {
    let tries = 0
    let others = 0
    const id = await run(async (ctx) => {
      const other = ctx.step('other', () => ++others)
      const results = await Promise.allSettled([
        ctx.step('x', () => (++tries === 1 ? fails() : 'ok'), once),
        other,
      ])
      const [x] = results
      if (x.status === 'rejected') {
        ctx.patched('changed')
        throw x.reason
      }
      return x.value
    }, thrice)
    expect(await t.result(id)).toBe('ok')
    expect({ tries, others }).toEqual({ tries: 2, others: 1 })
  })
})

it('RUN-25 RUN-30 a child that returns null gives null, and one that returns nothing gives nothing', async () => {
  const nothing = workflow('nothing', () => undefined)
  const parent = workflow('parent', async (ctx) => {
    const both = [await ctx.run(child, undefined), await ctx.run(nothing, undefined)]
    await ctx.sleep('replay', '1m')
    return both.map((each) => (each === null ? 'null' : typeof each))
  })
  t = await testEngine({ workflows: [parent, child, nothing] })
  expect(await t.result(await t.start(parent, null))).toEqual(['null', 'undefined'])
})

it('RUN-33 what runs at the end of a run stays that when it continues or is started again', async () => {
  const undo = workflow({ name: 'undo', onEnd: 'undo' }, async (ctx, input: { go?: number }) => {
    if (input.go === undefined) return ctx.continueAs({ go: 1 })
    throw new Error('not undone')
  })
  const w = workflow({ name: 'w', onEnd: 'undo' }, () => {
    throw new Error('no')
  })
  t = await testEngine({ workflows: [w, undo], settings: { ownerLimit: 1 } })
  const id = await t.start(w, null, { owner: 'bob' })
  await t.advance('1m')
  const { runs } = await t.engine.read((tx) => runList(tx, NO_FILTER, null, 10))
  const undone = runs.filter(({ workflow: name }) => name === 'undo')
  expect(undone).toHaveLength(2)
  const [newest] = undone
  expect(newest).toMatchObject({ status: 'failed', onEndOf: id, limits: [] })
  await t.engine.retry({ run: newest?.id ?? '', id: 'again', from: null, version: null, by: 'me' })
  await t.advance('1m')
  expect(await t.get('again')).toMatchObject({ status: 'failed' })
  const all = await t.engine.read((tx) => runList(tx, NO_FILTER, null, 10))
  expect(all.runs.filter(({ workflow: name }) => name === 'undo')).toHaveLength(3)
  expect(all.runs.find((each) => each.id === 'again')).toMatchObject({ onEndOf: id, limits: [] })
})

describe('a race in a branch of another', () => {
  it.each([
    [
      'two sleeps that end at one instant',
      (c: Context) =>
        c.race('i', {
          p: (d) => d.sleep('p', '5s'),
          q: (d) => d.approval('ask', { prompt: 'ok?' }),
        }),
      (c: Context) => c.sleep('limit', '5s'),
    ],
    [
      'two steps that end at one instant',
      (c: Context) =>
        c.race('i', { p: (d) => d.step('p', () => later(1_000)), q: (d) => d.signal('never') }),
      (c: Context) => c.step('b', () => later(1_000)),
    ],
  ])(
    'RUN-28 both decided at once, by %s: what the inner loser waited for is closed',
    async (_by, a, b) => {
      const id = await run(async (ctx) => {
        await ctx.race('o', { a, b })
        await ctx.sleep('after', '1h')
        return 'done'
      })
      await t.until(id, 'waiting:time')
      await t.advance('10s')
      const found = await t.engine.read((tx) => runDetail(tx, id))
      const open = found?.waits.filter(({ state }) => state === 'open') ?? []
      expect(open.map(({ key }) => key)).toEqual(['after'])
      expect(await t.result(id)).toBe('done')
    },
  )
})
const later = (ms: number): Promise<void> =>
  new Promise((resolve) => t.clock.timers().after(ms, resolve))

it('RUN-27 RUN-10 a step that fails again in a later attempt of its run is retried as in the first', async () => {
  let tries = 0
  const id = await run(
    (ctx) =>
      ctx.step(
        'b',
        () => {
          if (++tries <= 3) throw new Error(`no ${tries}`)
          return 'ok'
        },
        { retry: { maxAttempts: 2, base: '10s' } },
      ),
    { retry: { maxAttempts: 3, base: '10s' } },
  )
  expect(await t.result(id)).toBe('ok')
  expect(tries).toBe(4)
})

it('RUN-10 EX-21 at the depth of a chain that nobody waits for, the step after a race begins although its loser was about to begin one', async () => {
  const w = workflow('w', async (ctx) => {
    await ctx.race('r', {
      a: (c) => c.step('a1', () => later(1_000)),
      b: async (c) => {
        await c.step('b1', () => later(100))
        await c.step('b2', () => later(5_000))
      },
    })
    return ctx.step('next', () => 'done')
  })
  t = await testEngine({ workflows: [w], executor: { slots: { default: 1 }, maxChainDepth: 2 } })
  expect(await t.result(await t.start(w, null))).toBe('done')
})

it('RUN-26 uuids and random numbers of a run are the same on replay, and differ between runs and scopes', async () => {
  const w = workflow('w', async (ctx) => {
    const first = [ctx.uuid(), ctx.uuid(), ctx.random()]
    await ctx.sleep('replay', '1m')
    const inner = await ctx.scope('inner', (c) => Promise.resolve([c.uuid(), c.random()]))
    return [...first, ...inner]
  })
  t = await testEngine({ workflows: [w] })
  const one = (await t.result(await t.start(w, null))) as (string | number)[]
  const two = (await t.result(await t.start(w, null))) as (string | number)[]
  expect(new Set([...one, ...two]).size).toBe(10)
  for (const each of [...one, ...two])
    expect(String(each)).toMatch(
      typeof each === 'number'
        ? /^0?\.?\d/
        : /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
})

it('OPS-03 the list of runs that no run has started leaves out children and what runs at an end', async () => {
  const undo = workflow('undo', () => 'undone')
  const parent = workflow({ name: 'parent', onEnd: 'undo' }, async (ctx) => {
    await ctx.run(child, undefined)
    throw new Error('no')
  })
  t = await testEngine({ workflows: [parent, child, undo] })
  const ids = [await t.start(parent, null), await t.start(parent, null)]
  await t.advance('1m')
  const list = (roots: boolean) =>
    t.engine.read((tx) => runList(tx, { ...NO_FILTER, roots }, null, 10))
  expect((await list(false)).runs).toHaveLength(6)
  expect((await list(true)).runs.map(({ id }) => id)).toEqual(ids.toReversed())
})
