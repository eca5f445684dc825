import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

describe('the journal, from the author’s seat', () => {
  it('RUN-24 identity is the name within its scope, whatever the order and time of calls', async () => {
    const order: string[] = []
    let flip = false
    const w = workflow('w', async (ctx) => {
      const branches = {
        left: () => ctx.scope('left', (inner) => inner.step('same', () => order.push('left'))),
        right: () => ctx.scope('right', (inner) => inner.step('same', () => order.push('right'))),
      }
      // the order of these calls is another on replay: that is no departure, since names are what counts
      const names = flip ? (['right', 'left'] as const) : (['left', 'right'] as const)
      await Promise.all(names.map((name) => branches[name]()))
      flip = true
      await ctx.sleep('nap', '1h')
      return order.length
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect(await t.result(run)).toBe(2)
    expect((await t.journal(run)).map(({ key }) => key).sort()).toEqual([
      'left/same',
      'nap',
      'right/same',
    ])
  })

  it.each(['step', 'sleep', 'signal', 'approval', 'child', 'map', 'scope', 'race'])(
    'RUN-24 a name used twice by a %s is refused in the first execution, and the message shows the way out',
    async (verb) => {
      const child = workflow('child', () => 1)
      const w = workflow('w', async (ctx) => {
        await ctx.step('name', () => 1)
        if (verb === 'step') await ctx.step('name', () => 1)
        if (verb === 'sleep') await ctx.sleep('name', 1)
        if (verb === 'signal') await ctx.signal('name')
        if (verb === 'approval') await ctx.approval('name', { prompt: '?' })
        if (verb === 'child') await ctx.run(child, null, { as: 'name' })
        if (verb === 'map') await ctx.map('name', [1], async () => 1)
        if (verb === 'scope') await ctx.scope('name', async () => 1)
        if (verb === 'race') await ctx.race('name', { a: async () => 1 })
      })
      t = await testEngine({ workflows: [w, child] })
      const view = await t.until(await t.start(w, null), 'failed')
      expect(view.error).toMatchObject({
        code: 'duplicate_name',
        message: expect.stringMatching(/"name-2".*ctx\.map or ctx\.scope/),
      })
    },
  )

  it('L10 an entry that somebody changed in the database ends its own run, with a sentence that says so', async () => {
    const w = workflow('w', async (ctx) => {
      const stepped = await ctx.step('a', () => 1)
      await ctx.sleep('nap', '1h')
      return stepped
    })
    t = await testEngine({ workflows: [w] })
    const [broken, fine] = [await t.start(w, null), await t.start(w, null)]
    await t.until(broken, 'waiting:time')
    const { db } = t.engine.store as SqliteStore
    db.exec(`update steps set output = '{' where run = '${broken}'`)
    expect(await t.result(fine)).toBe(1)
    expect(await t.until(broken, 'failed')).toMatchObject({
      error: {
        code: 'row_unreadable',
        message: expect.stringMatching(/since somebody changed it in the database/) as string,
      },
    })
  })

  it('RUN-25 a body begins only when what the function has received is stored', async () => {
    const seen: number[] = []
    const w = workflow('w', async (ctx) => {
      for (const name of ['a', 'b', 'c'])
        await ctx.step(name, async () => seen.push((await t.journal(ctx.info.run)).length))
    })
    t = await testEngine({ workflows: [w] })
    await t.result(await t.start(w, null))
    expect(seen).toEqual([0, 1, 2])
  })

  it('RUN-25 no step that has been seen to end is done again after a crash at any later step', async () => {
    const names = ['a', 'b', 'c', 'd']
    for (const crash of names)
      for (const when of ['before', 'after'] as const) {
        const w = workflow('w', async (ctx) => {
          const out: number[] = []
          for (const [i, name] of names.entries()) out.push(await ctx.step(name, () => i))
          return out
        })
        t = await testEngine({ workflows: [w] })
        t.crashAt(crash, when)
        const run = await t.start(w, null)
        expect(await t.result(run)).toEqual([0, 1, 2, 3])
        for (const name of names)
          expect(t.begun(run, name), `${name} with a crash ${when} ${crash}`).toBe(
            name === crash ? 2 : 1,
          )
        if (!(crash === 'd' && when === 'after')) await t.close()
      }
  })

  it('RUN-26 a function that departs from its journal is parked with both sides shown, and goes on when it is mended', async () => {
    let version = 1
    const w = workflow('w', async (ctx) => {
      await ctx.step(version === 1 ? 'old' : 'new', () => 1)
      await ctx.sleep('nap', '1h')
      return 'over'
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    version = 2
    const parked = await t.until(run, 'paused')
    expect(parked).toMatchObject({
      reason: 'nondeterminism',
      note: expect.stringMatching(/old.*new/),
    })
    version = 1
    await t.resume(run)
    expect(await t.result(run)).toBe('over')
  })

  it('RUN-26 a name that is asked for as another kind is a departure', async () => {
    let version = 1
    const w = workflow('w', async (ctx) => {
      if (version === 1) await ctx.step('x', () => 1)
      else await ctx.sleep('x', 1)
      await ctx.sleep('nap', '1h')
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    version = 2
    expect(await t.until(run, 'paused')).toMatchObject({
      reason: 'nondeterminism',
      note: expect.stringMatching(/x as step.*as time/),
    })
  })

  it('RUN-26 DX-04 a branch on the clock of the process is found at the next replay', async () => {
    const w = workflow('w', async (ctx) => {
      // the author meant ctx.now()
      const late = t.clock.time.now() > Date.UTC(2026, 0, 1, 0, 30)
      await ctx.step(late ? 'late' : 'early', () => 1)
      await ctx.sleep('nap', '1h')
    })
    t = await testEngine({ workflows: [w] })
    expect(await t.until(await t.start(w, null), 'paused')).toMatchObject({
      reason: 'nondeterminism',
    })
  })

  it('RUN-26 a function that returns before its journal is over is a departure, and loses nothing', async () => {
    let version = 1
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', () => 1)
      if (version === 2) return 'early'
      await ctx.step('b', () => 2)
      await ctx.sleep('nap', '1h')
      return 'over'
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    version = 2
    expect(await t.until(run, 'paused')).toMatchObject({
      reason: 'nondeterminism',
      note: expect.stringContaining('b'),
    })
    expect((await t.journal(run)).map(({ key }) => key)).toEqual(['a', 'b'])
  })

  it('RUN-26 now, random and uuid are the same on replay, differ by scope and run, and now never falls', async () => {
    const seen: unknown[][] = []
    const w = workflow('w', async (ctx) => {
      const drawn: unknown[] = [ctx.now(), ctx.random(), ctx.uuid()]
      await ctx.step('a', () => 1)
      drawn.push(ctx.now(), await ctx.scope('in', async (inner) => [inner.random(), inner.uuid()]))
      await ctx.sleep('nap', '1h')
      seen.push([...drawn, ctx.now()])
      return [...drawn, ctx.now()]
    })
    t = await testEngine({ workflows: [w] })
    const [a, b] = [await t.start(w, null), await t.start(w, null)]
    const [first, second] = [(await t.result(a)) as unknown[], (await t.result(b)) as unknown[]]
    expect(first[1]).not.toBe(second[1])
    expect(first[2]).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect((first[4] as unknown[])[0]).not.toBe(first[1])
    const times = [first[0], first[3], first[5]] as number[]
    expect([...times].sort((x, y) => x - y)).toEqual(times)
    expect(times[2]! - times[0]!).toBeGreaterThanOrEqual(3_600_000)
    // the same again in a run that is replayed to its end by another executor
    const c = await t.start(w, null)
    await t.until(c, 'waiting:time')
    await t.crash()
    await t.result(c)
    expect(seen).toHaveLength(3)
  })

  it('RUN-26 what was drawn before a crash is drawn again after it', async () => {
    const drawn: unknown[] = []
    const w = workflow('w', async (ctx) => {
      const mine = [ctx.random(), ctx.uuid(), ctx.now()]
      await ctx.step('a', () => 1)
      mine.push(ctx.now())
      drawn.push(mine)
      await ctx.step('b', () => 2)
    })
    t = await testEngine({ workflows: [w] })
    t.crashAt('b', 'before')
    await t.result(await t.start(w, null))
    expect(drawn).toHaveLength(2)
    expect(drawn[1]).toEqual(drawn[0])
  })

  it('RUN-32 patched is false for a run that passed its place before the change, and true for one that comes later', async () => {
    let changed = false
    const w = workflow('w', async (ctx) => {
      const took = changed && ctx.patched('p') ? 'new' : 'old'
      await ctx.step('s', () => took)
      await ctx.sleep('nap', '1h')
      return [took, changed && ctx.scope !== undefined]
    })
    t = await testEngine({ workflows: [w] })
    const before = await t.start(w, null)
    await t.until(before, 'waiting:time')
    changed = true
    const after = await t.start(w, null)
    expect(await t.result(before)).toEqual(['old', true])
    expect(await t.result(after)).toEqual(['new', true])
  })
})
