import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

describe('codecs', () => {
  it('RUN-31 rich keeps Date, Map, Set and BigInt through steps, children, signals and replay', async () => {
    const seen: unknown[] = []
    const child = workflow(
      { name: 'child', codec: 'rich' },
      (_ctx, input: { at: Date }) => new Map([['at', input.at]]),
    )
    const parent = workflow({ name: 'parent', codec: 'rich' }, async (ctx) => {
      const value = await ctx.step('make', () => ({ at: new Date(5), ids: new Set([1n, 2n]) }))
      await ctx.sleep('nap', '1d')
      const map = await ctx.run(child, { at: value.at })
      seen.push(value)
      return { same: map.get('at')?.getTime() === value.at.getTime(), n: [...value.ids][1] }
    })
    t = await testEngine({ workflows: [parent, child] })
    const run = await t.start(parent, null)
    await t.result(run)
    expect(seen).toEqual([{ at: new Date(5), ids: new Set([1n, 2n]) }])
    const { output } = await t.get(run)
    expect(JSON.stringify(output)).toContain('$rich')
  })

  it('RUN-31 plain JSON refuses what it cannot carry, with its path', async () => {
    const w = workflow('w', (ctx) =>
      ctx.step('make', () => ({ list: [1, { big: 2n }] }) as unknown),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await expect(t.result(run)).rejects.toThrow(/\$\.list\[1\]\.big is a BigInt/)
    expect((await t.get(run)).error).toMatchObject({ code: 'not_serializable' })
    expect(t.begun(run, 'make')).toBe(1)
  })
})
