import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'
import type { Bench } from '../support/cases.ts'
import { openBench } from '../support/cases.ts'

let t: TestEngine | null = null
let bench: Bench | null = null
afterEach(async () => {
  await t?.close()
  await bench?.close()
  t = null
  bench = null
})

const approvals = (engine: TestEngine): Promise<{ id: string; state: string }[]> =>
  engine.engine.read(function* () {
    const [rows] = (yield {
      statements: [
        {
          sql: { name: 'test.approvals', text: 'select id, state from approvals order by id' },
          params: [],
        },
      ],
      last: false,
    }) as unknown as [{ id: string; state: string }[]]
    return [...rows]
  })

describe('approvals in loops', () => {
  it('B052 S10 each turn of a loop asks anew, and an answer serves its own turn only', async () => {
    const w = workflow('w', async (ctx) => {
      const out = []
      for (let turn = 0; turn < 3; turn++)
        out.push(
          await ctx.scope(`turn-${turn}`, (inner) =>
            inner.approval<number>('ok', { prompt: `turn ${turn}?` }),
          ),
        )
      return out.map((each) => ('payload' in each ? each.payload : 'lapsed'))
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    for (let turn = 0; turn < 3; turn++) {
      await t.until(run, 'waiting:approval')
      expect(await approvals(t)).toHaveLength(turn + 1)
      await t.approve(run, `turn-${turn}/ok`, { by: `p${turn}`, payload: turn })
      // answering again does not answer the next
      expect(
        await t.engine.decide({
          approval: `${run}:turn-${turn}/ok`,
          decision: 'approved',
          by: 'eve',
          reason: null,
          payload: '99',
        }),
      ).toMatchObject({ code: 'already_decided' })
      if (turn === 1) await t.crash()
    }
    expect(await t.result(run)).toEqual([0, 1, 2])
    expect((await approvals(t)).map(({ state }) => state)).toEqual([
      'approved',
      'approved',
      'approved',
    ])
  })

  it('B052 DX-04 a loop that asks under one name is told so in its second turn', async () => {
    const w = workflow('w', async (ctx) => {
      for (let turn = 0; turn < 3; turn++) await ctx.approval('ok', { prompt: '?' })
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:approval')
    await t.approve(run, 'ok')
    const view = await t.until(run, 'failed')
    expect(view.error).toMatchObject({
      code: 'duplicate_name',
      message: expect.stringContaining('"ok-2"'),
    })
  })

  it('B051 B052 an answer to one item of a fan-out moves that item alone', async () => {
    const done: string[] = []
    const w = workflow('w', (ctx) =>
      ctx.map(
        'items',
        ['a', 'b', 'c'],
        async (each, item) => {
          const { decision } = await each.approval('ok', { prompt: item })
          await each.step('after', () => done.push(item))
          return decision
        },
        { key: (item) => item },
      ),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:approval')
    expect(
      await t.engine.decide({
        approval: `${run}:ok`,
        decision: 'approved',
        by: 'ana',
        reason: null,
        payload: null,
      }),
    ).toMatchObject({ ok: false, code: 'not_found' })
    await t.approve(run, 'items:b/ok')
    expect(done).toEqual(['b'])
    expect((await t.get(run)).status).toBe('waiting')
    await t.deny(run, 'items:c/ok')
    await t.approve(run, 'items:a/ok')
    expect(await t.result(run)).toEqual(['approved', 'approved', 'denied'])
  })

  it('B055 what stands behind an approval in a loop runs in every turn, in order, also with a crash in each', async () => {
    const w = workflow('w', async (ctx) => {
      for (let turn = 0; turn < 3; turn++)
        await ctx.scope(`turn-${turn}`, async (inner) => {
          await inner.step('s1', () => order.push(`s1 ${turn}`))
          await inner.approval('ok', { prompt: '?' })
          await inner.step('s2', () => order.push(`s2 ${turn}`))
        })
    })
    const order: string[] = []
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    for (let turn = 0; turn < 3; turn++) {
      await t.until(run, 'waiting:approval')
      await t.crash()
      await t.approve(run, `turn-${turn}/ok`)
    }
    await t.result(run)
    expect(order).toEqual(['s1 0', 's2 0', 's1 1', 's2 1', 's1 2', 's2 2'])
    for (let turn = 0; turn < 3; turn++)
      for (const step of ['s1', 's2']) expect(t.begun(run, `turn-${turn}/${step}`)).toBe(1)
  })
})

describe('items of a fan-out', () => {
  it('B058 S11 each branch reads what it wrote itself, whatever the order of a thousand schedules', async () => {
    const w = workflow('w', async (ctx, seed: number) =>
      ctx.map(
        'items',
        ['alpha', 'beta', 'gamma'],
        async (each, item) => {
          const first = await each.step('s1', () => late(seed, item))
          if (seed % 3 === 0) await each.sleep('nap', 1 + (seed % 7))
          return each.step('s2', () => late(seed + 1, `${first} again`))
        },
        { key: (item) => item, concurrency: 1 + (seed % 4) },
      ),
    )
    const chance = seededRandom(58)
    const late = (seed: number, value: string): Promise<string> | string => {
      const ms = Math.floor(chance.next() * 20)
      return (seed + ms) % 2 === 0
        ? value
        : new Promise((resolve) => bench!.clock.timers().after(ms, () => resolve(value)))
    }
    bench = await openBench({ settings: { leaseMs: 600_000, renewMs: 60_000 } })
    await bench.process([w], { slots: { default: 100 }, embedded: true, claimWaitMs: 60_000 })
    await bench.process([w], { slots: { default: 100 }, embedded: true, claimWaitMs: 60_000 })
    const runs = []
    for (let seed = 0; seed < 1_000; seed++) runs.push(await bench.start(w, seed))
    await bench.until(
      () => bench!.count("select count(*) from runs where status = 'succeeded'") === 1_000,
      120_000,
    )
    for (const run of runs)
      expect((await bench.get(run)).output).toEqual(['alpha again', 'beta again', 'gamma again'])
  }, 60_000)

  it.each([10, 10_000])(
    'B060 S11 an item that fails twice and then succeeds is in the result once, in its place (retries after %d ms)',
    async (base) => {
      const w = workflow('w', (ctx) =>
        ctx.map('items', [1, 2, 3, 4, 5], (each, item) =>
          each.step(
            's',
            ({ tryNumber }) => {
              if (item === 3 && tryNumber < 3) throw new Error(`try ${tryNumber}`)
              return `${item} at try ${tryNumber}`
            },
            { retry: { base, maxAttempts: 5 } },
          ),
        ),
      )
      t = await testEngine({ workflows: [w] })
      const run = await t.start(w, null)
      expect(await t.result(run)).toEqual([
        '1 at try 1',
        '2 at try 1',
        '3 at try 3',
        '4 at try 1',
        '5 at try 1',
      ])
      expect((await t.journal(run)).map(({ key }) => key).sort()).toEqual([
        'items:0/s',
        'items:1/s',
        'items:2/s',
        'items:3/s',
        'items:4/s',
      ])
      expect(t.begun(run, 'items:2/s')).toBe(3)
      expect(t.begun(run, 'items:1/s')).toBe(1)
    },
  )

  it('B060 the first error of a map ends it, and mapSettled tries every item', async () => {
    const begun: number[] = []
    const items = [1, 2, 3, 4, 5, 6]
    const body = (item: number): number => {
      begun.push(item)
      if (item === 2) throw new Error('two')
      return item
    }
    const once = { retry: { maxAttempts: 1 } }
    const map = workflow('map', (ctx) =>
      ctx.map('m', items, (each, item) => each.step('s', () => body(item), once), {
        concurrency: 1,
      }),
    )
    const all = workflow('all', async (ctx) =>
      (
        await ctx.mapSettled('m', items, (each, item) => each.step('s', () => body(item), once), {
          concurrency: 1,
        })
      ).map(({ ok }) => ok),
    )
    t = await testEngine({ workflows: [map, all] })
    const run = await t.start(map, null)
    expect((await t.until(run, 'failed')).error).toMatchObject({ message: 'two' })
    expect(begun).toEqual([1, 2])
    expect(await t.result(await t.start(all, null))).toEqual([true, false, true, true, true, true])
  })

  it.each([
    ['a', 'a'],
    ['', 'b'],
    ['a\u0000b', 'b'],
    ['\ud800', 'b'],
  ])('B058 items named %j and %j are refused at once, by name', async (...keys) => {
    const w = workflow('w', (ctx) =>
      ctx.map('m', keys, (each, item) => each.step('s', () => item), { key: (item) => item }),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect((await t.until(run, 'failed')).error?.code).toMatch(/^(duplicate_name|invalid_request)$/)
    expect(await t.journal(run)).toEqual([])
  })
})
