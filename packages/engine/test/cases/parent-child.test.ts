import { afterEach, describe, expect, it } from 'vitest'
import type { Workflow } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import type { Bench, Hand } from '../support/cases.ts'
import { complete, definitionOnly, failed, gate, openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const child = workflow('child', (ctx, n: number) => ctx.step('s', () => n * 2))
const parent = workflow('parent', async (ctx, n: number) => {
  const answer = await ctx.run(child, n)
  return ctx.step('after', () => answer + 1)
})
const succeeded = async (run: string): Promise<boolean> =>
  (await bench.get(run)).status === 'succeeded'

describe('parents and children', () => {
  it.each([
    'update on runs',
    'insert on waits',
    'update on waits',
    'insert on receipts',
    'delete on orders',
  ])(
    'B042 B044 a parent whose telling fails once, at its %s, is told again by itself',
    async (statement) => {
      const rejections: unknown[] = []
      const note = (reason: unknown): void => void rejections.push(reason)
      process.on('unhandledRejection', note)
      bench = await openBench()
      await bench.process([child, parent], { embedded: true })
      const open = gate()
      const slow = workflow('slow', (ctx) => ctx.step('s', () => open.opened))
      const waits = workflow('waits', (ctx) => ctx.run(slow, null))
      await bench.process([slow, waits], { embedded: true })
      const run = await bench.start(waits)
      await bench.until(
        () =>
          bench.count(
            "select count(*) from runs where workflow = 'slow' and status = 'running'",
          ) === 1,
        5_000,
      )
      // breaks only in the transaction that tells the parent
      const mend = bench.fail(
        statement,
        statement.includes('runs') ? "old.workflow = 'waits'" : '1',
      )
      open.open()
      await bench.until(() => bench.lines.some(({ event }) => event === 'order.failed'), 5_000)
      expect((await bench.get(run)).status).toBe('waiting')
      mend()
      expect(await bench.until(() => succeeded(run), 10_000)).toBeLessThanOrEqual(2_000)
      expect(bench.count("select count(*) from steps where kind = 'child'")).toBe(1)
      process.off('unhandledRejection', note)
      expect(rejections).toEqual([])
    },
  )

  it('B042 after ten seconds in which nothing could be told, every parent is told within the next few', async () => {
    bench = await openBench()
    await bench.process([child, parent], { embedded: true })
    const mend = bench.fail('insert on receipts')
    const runs = []
    for (let n = 0; n < 20; n++) runs.push(await bench.start(parent, n))
    await bench.advance(10_000)
    expect(
      bench.count("select count(*) from runs where workflow = 'parent' and status = 'waiting'"),
    ).toBe(20)
    mend()
    await bench.until(
      () => bench.count("select count(*) from runs where status = 'succeeded'") === 40,
      15_000,
    )
    for (const [n, run] of runs.entries()) expect((await bench.get(run)).output).toBe(2 * n + 1)
  })

  it('B042 an order that was lost altogether is found missing by the reconciler', async () => {
    bench = await openBench()
    const hand = await bench.hand([child, parent], { embedded: true })
    const run = await bench.start(parent, 1)
    const [held] = await hand.claim()
    await hand.write(held!, {
      waits: [
        {
          key: 'child',
          kind: 'child',
          child: {
            id: 'run_c',
            workflow: 'child',
            input: '1',
            awaited: true,
            onParentEnd: 'cancel',
          },
        },
      ],
    })
    await hand.end(held!, { kind: 'suspend', keys: ['child'] })
    const [mine] = await hand.claim()
    bench.engine.onWanted(() => undefined)
    await hand.end(mine!, complete(2))
    expect(bench.db.prepare('delete from orders').run().changes).toBe(1)
    await bench.until(async () => (await bench.get(run)).status === 'queued', 5_000)
    const [again] = await hand.claim()
    expect(again!.waits).toMatchObject([
      { key: 'child', state: 'satisfied', result: expect.stringContaining('"output":2') },
    ])
  })

  it('B042 L10 one order that cannot be applied holds up no other parent', async () => {
    bench = await openBench()
    await bench.process([child, parent], { embedded: true })
    bench.db
      .prepare(
        "insert into orders (id, kind, run, payload, created_at) values ('0poison', 'child_ended', 'run_none', '{torn', 0)",
      )
      .run()
    const run = await bench.start(parent, 3)
    expect(await bench.until(() => succeeded(run), 60_000)).toBeLessThanOrEqual(2_000)
    // nothing is lost with it: the sweep over families orders anew what is untold
    expect(bench.count("select count(*) from orders where id = '0poison'")).toBe(0)
  })

  it('B045 a child that only waits wakes nobody; its end wakes the parent once, with its output', async () => {
    const asks = workflow('asks', async (ctx) => {
      const { decision } = await ctx.approval('ok', { prompt: '?' })
      await ctx.sleep('nap', '3m')
      return decision
    })
    let woken = 0
    const waits = workflow('waits', async (ctx) => {
      const answer = await ctx.run(asks, null)
      woken += 1
      return answer
    })
    bench = await openBench()
    await bench.process([asks, waits], { embedded: true })
    const run = await bench.start(waits)
    await bench.until(
      () =>
        bench.count("select count(*) from runs where workflow = 'asks' and status = 'waiting'") ===
        1,
      5_000,
    )
    const before = await bench.get(run)
    expect(before).toMatchObject({ status: 'waiting', waitOn: 'child' })
    await bench.advance(60_000)
    expect(await bench.get(run)).toEqual(before)
    const id = bench.db.prepare('select id from approvals').pluck().get() as string
    await bench.engine.decide({
      approval: id,
      decision: 'approved',
      by: 'ana',
      reason: null,
      payload: null,
    })
    await bench.advance(60_000)
    expect(await bench.get(run)).toEqual(before)
    await bench.until(() => succeeded(run), 2 * 3_600_000)
    expect((await bench.get(run)).output).toBe('approved')
    expect(woken).toBe(1)
    expect(await bench.attempts(run)).toMatchObject([{ end: 'suspended' }, { end: 'completed' }])
  })

  it('B045 RUN-34 a child that continues itself wakes its parent with the last of its runs', async () => {
    const long = workflow<number, number>('long', async (ctx, n) => {
      await ctx.sleep('nap', '1m')
      return n === 3 ? n : ctx.continueAs(n + 1)
    })
    const waits = workflow('waits', (ctx) => ctx.run(long, 0))
    bench = await openBench()
    await bench.process([long, waits], { embedded: true })
    const run = await bench.start(waits)
    await bench.advance(150_000)
    expect((await bench.get(run)).status).toBe('waiting')
    await bench.until(() => succeeded(run), 600_000)
    expect((await bench.get(run)).output).toBe(3)
  })

  it.each(['runs', 'waits'])(
    'B047 S6 a child and its parent’s record of it are stored together or not at all (%s breaks)',
    async (table) => {
      bench = await openBench({ manual: true })
      const hand = await bench.hand([child, parent], { embedded: true })
      await bench.start(parent, 1)
      const [held] = await hand.claim()
      const before = bench.dump()
      const mend = bench.fail(`insert on ${table}`)
      const write = {
        waits: [
          {
            key: 'child',
            kind: 'child' as const,
            child: {
              id: 'run_c',
              workflow: 'child',
              input: '1',
              awaited: true,
              onParentEnd: 'cancel' as const,
            },
          },
        ],
      }
      await expect(hand.write(held!, write)).rejects.toThrow()
      expect(bench.dump()).toBe(before)
      mend()
      expect(await hand.write(held!, write)).toMatchObject({ ok: true })
      // sent again, as after an answer that was lost: still one child
      expect(await hand.write(held!, write)).toMatchObject({ ok: true })
      expect(bench.count("select count(*) from runs where workflow = 'child'")).toBe(1)
    },
  )

  it('B047 a child that ends while its parent still runs is heard of in that same attempt', async () => {
    const open = gate<string>()
    const both = workflow('both', (ctx) =>
      Promise.all([ctx.run(child, 4), ctx.step('s', () => open.opened)]),
    )
    bench = await openBench()
    await bench.process([child, both], { embedded: true })
    const run = await bench.start(both)
    await bench.until(
      () =>
        bench.count(
          "select count(*) from runs where workflow = 'child' and status = 'succeeded'",
        ) === 1,
      5_000,
    )
    await bench.advance(5_000)
    expect((await bench.get(run)).status).toBe('running')
    open.open('s')
    await bench.until(() => succeeded(run), 2_000)
    expect(await bench.get(run)).toMatchObject({ attempt: 1, output: [8, 's'] })
  })

  it('B047 a notice for a parent that has ended is dropped with a receipt that says so', async () => {
    bench = await openBench({ manual: true })
    const hand = await bench.hand([child, parent], { embedded: true })
    const run = await bench.start(parent, 1)
    const [held] = await hand.claim()
    await hand.write(held!, {
      waits: [
        {
          key: 'child',
          kind: 'child',
          child: {
            id: 'run_c',
            workflow: 'child',
            input: '1',
            awaited: true,
            onParentEnd: 'detach',
          },
        },
      ],
    })
    const [mine] = await hand.claim()
    await hand.end(mine!, complete(2))
    await hand.end(held!, failed('gone'))
    const before = await bench.get(run)
    await bench.pass('apply-orders')
    expect(await bench.get(run)).toEqual(before)
    expect(bench.count('select count(*) from orders')).toBe(0)
    expect(
      bench.db.prepare("select outcome from receipts where kind = 'parent_told'").pluck().all(),
    ).toEqual(['no_open_wait'])
  })

  it.each(['failed', 'canceled', 'lost for good'])(
    'B048 S8 the children in line of a parent that %s end with it',
    async (how) => {
      bench = await openBench({ settings: { lossesMax: 1 } })
      const slow = definitionOnly('slow', { limits: [{ key: 'slow', value: 1 }] })
      const p = definitionOnly('p')
      const hand = await bench.hand([p])
      const other = await bench.hand([slow], { embedded: true })
      const run = await bench.start(p)
      const [held] = await hand.claim()
      const waits = ['c1', 'c2', 'c3'].map((key) => ({
        key,
        kind: 'child' as const,
        child: {
          id: `run_${key}`,
          workflow: 'slow',
          input: null,
          awaited: true,
          onParentEnd: 'cancel' as const,
        },
      }))
      await hand.write(held!, { waits })
      await bench.settle()
      if (how === 'failed') await hand.end(held!, failed('no'))
      if (how === 'canceled') {
        await bench.engine.cancel({ run, by: 'ana', reason: null })
        await hand.end(held!, failed('no'))
      }
      await bench.until(
        async () => ['failed', 'canceled'].includes((await bench.get(run)).status),
        10_000,
      )
      await bench.until(
        () =>
          bench.count("select count(*) from runs where workflow = 'slow' and ended_at is null") ===
          0,
        6_000,
      )
      expect(await other.claim()).toEqual([])
      expect(bench.used('slow')).toBe(0)
    },
  )

  it('B048 S8 however deep and wide a family is, nothing of it outlives its root but what was detached', async () => {
    // those who hold the runs of this family never answer: each is let be for the grace of a cancel
    bench = await openBench({ settings: { cancelGraceMs: 1_000 } })
    const node = definitionOnly('node')
    const hand = await bench.hand([node], { embedded: true })
    type Tree = {
      readonly detach: boolean
      readonly held: boolean
      readonly children: readonly Tree[]
    }
    const random = seededRandom(48)
    const tree = (depth: number): Tree => ({
      detach: random.next() < 0.3,
      held: random.next() < 0.3,
      children: Array.from({ length: depth === 0 ? 0 : Math.floor(random.next() * 3) }, () =>
        tree(depth - 1),
      ),
    })
    let n = 0
    const grow = async (
      grower: Hand,
      run: string,
      of: Tree,
      bound: boolean,
      ids: { bound: string[]; free: string[] },
    ): Promise<void> => {
      const held = (await grower.claim(100)).find((each) => each.run === run)
      if (!held) throw new Error(`${run} could not be claimed`)
      const born = of.children.map((each) => ({ id: `run_t${++n}`, of: each }))
      if (born.length > 0)
        await grower.write(held, {
          waits: born.map(({ id, of: each }, i) => ({
            key: `c${i}`,
            kind: 'child' as const,
            child: {
              id,
              workflow: 'node',
              input: null,
              awaited: true,
              onParentEnd: each.detach ? ('detach' as const) : ('cancel' as const),
            },
          })),
        })
      for (const each of born) {
        const stays = bound && !each.of.detach
        ids[stays ? 'bound' : 'free'].push(each.id)
      }
      for (const each of born) await grow(grower, each.id, each.of, bound && !each.of.detach, ids)
      if (!of.held && born.length > 0)
        await grower.end(held, { kind: 'suspend', keys: born.map((_each, i) => `c${i}`) })
    }
    for (let i = 0; i < 20; i++) {
      const of = tree(6)
      const ids = { bound: [] as string[], free: [] as string[] }
      const run = await bench.start(node)
      // one claim takes all that is due: what it brings is kept until its turn comes
      const pool: ClaimedRun[] = []
      const lone: Hand = {
        ...hand,
        async claim() {
          pool.push(...(await hand.claim(100)))
          return pool
        },
      }
      await grow(lone, run, of, true, ids)
      await bench.engine.cancel({ run, by: 'ana', reason: null })
      await bench.advance(60_000)
      for (const id of ids.bound) expect((await bench.get(id)).status).toBe('canceled')
      for (const id of ids.free) {
        // free of the root, and bound to its own parent where that has ended
        const { parent: above, policy } = bench.db
          .prepare('select parent, on_parent_end as policy from runs where id = ?')
          .get(id) as { parent: string; policy: string }
        const { status } = await bench.get(id)
        if (policy === 'detach') expect(status).not.toBe('canceled')
        else expect(status === 'canceled').toBe((await bench.get(above)).status === 'canceled')
      }
      for (const id of ids.free) await bench.engine.cancel({ run: id, by: 'ana', reason: null })
      await bench.advance(60_000)
      expect(bench.count('select count(*) from runs where ended_at is null')).toBe(0)
    }
  })
})

describe('recursion', () => {
  it.each(['run', 'spawn'] as const)(
    'B049 S9 two workflows that start each other without end (%s) stop at the depth limit, by name',
    async (how) => {
      const a: Workflow<null, unknown> = workflow('a', (ctx) => ctx[how](b, null))
      const b: Workflow<null, unknown> = workflow('b', (ctx) => ctx[how](a, null))
      const innocent = workflow('innocent', () => 'fine')
      bench = await openBench({ settings: { depthMax: 32 } })
      await bench.process([a, b, innocent], { embedded: true })
      const run = await bench.start(a, null, { owner: 'eve' })
      const other = await bench.start(innocent, null, { owner: 'ana' })
      await bench.until(
        () => bench.count('select count(*) from runs where ended_at is null') === 0,
        60_000,
      )
      expect((await bench.get(other)).output).toBe('fine')
      expect(bench.count("select count(*) from runs where workflow in ('a', 'b')")).toBe(33)
      expect(bench.count('select max(depth) from runs')).toBe(32)
      const deepest = bench.db
        .prepare('select id from runs where depth = 32')
        .pluck()
        .get() as string
      expect(await bench.get(deepest)).toMatchObject({
        status: 'failed',
        reason: 'depth_limit',
        error: { code: 'depth_limit' },
      })
      expect((await bench.get(run)).status).toBe(how === 'run' ? 'failed' : 'succeeded')
    },
  )

  it('B049 S9 one run that starts children without end stops at its own limit', async () => {
    const leaf = definitionOnly('leaf')
    const wide = workflow('wide', async (ctx) => {
      for (let i = 0; ; i++) await ctx.spawn(leaf, null, { as: `c${i}` })
    })
    bench = await openBench({ settings: { childrenMax: 150 } })
    await bench.process([wide], { embedded: true })
    await bench.hand([leaf], { embedded: true })
    const run = await bench.start(wide)
    await bench.until(async () => (await bench.get(run)).status === 'failed', 60_000)
    expect(await bench.get(run)).toMatchObject({ reason: 'fan_out_limit' })
    const started = bench.count("select count(*) from runs where workflow = 'leaf'")
    expect(started).toBe(bench.count('select children from runs where id = ?', run))
    expect(started).toBeLessThanOrEqual(150)
    expect(started).toBeGreaterThan(0)
  })
})
