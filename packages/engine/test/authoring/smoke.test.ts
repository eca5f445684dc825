import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

describe('the test engine', () => {
  it('DX-03 moves a sleep of 30 days in no time', async () => {
    const nap = workflow('nap', async (ctx, input: { n: number }) => {
      const a = await ctx.step('a', () => input.n + 1)
      await ctx.sleep('month', '30d')
      return ctx.step('b', () => a * 2)
    })
    t = await testEngine({ workflows: [nap] })
    const before = t.clock.time.now()
    const run = await t.start(nap, { n: 1 })
    expect(await t.result(run)).toBe(4)
    expect(t.clock.time.now() - before).toBeGreaterThanOrEqual(30 * 86_400_000)
    expect((await t.journal(run)).map((entry) => entry.key)).toEqual(['a', 'month', 'b'])
    expect(await t.attempts(run)).toMatchObject([
      { attempt: 1, end: 'suspended' },
      { attempt: 2, end: 'completed' },
    ])
  })

  it('DX-03 crashes before and after a step, and the run goes on elsewhere', async () => {
    const w = workflow('w', async (ctx) => {
      const a = await ctx.step('a', () => 1)
      const b = await ctx.step('b', () => 2)
      return a + b
    })
    t = await testEngine({ workflows: [w] })
    t.crashAt('a', 'before')
    t.crashAt('b', 'after')
    const run = await t.start(w, null)
    expect(await t.result(run)).toBe(3)
    expect(t.begun(run, 'a')).toBe(2)
    expect(t.begun(run, 'b')).toBe(2)
    expect((await t.attempts(run)).map(({ end }) => end)).toEqual(['lost', 'lost', 'completed'])
  })

  it('DX-03 mocks a step, and says what a run waits for that time cannot bring', async () => {
    const w = workflow('w', async (ctx) => {
      const x = await ctx.step('x', () => 'real')
      const answer = await ctx.signal<string>('answer', { timeout: '1h' })
      const decision = await ctx.approval('ship', { prompt: 'ship?' })
      return { x, answer, decision: decision.decision }
    })
    t = await testEngine({ workflows: [w] })
    t.mock(w, 'x', () => 'mocked')
    const run = await t.start(w, null)
    await t.until(run, 'waiting:signal')
    await t.advance('30m')
    await t.signal(run, 'answer', 'yes')
    await t.until(run, 'waiting:approval')
    await t.approve(run, 'ship', { by: 'ana' })
    expect(await t.result(run)).toEqual({
      x: 'mocked',
      answer: { ok: true, value: 'yes' },
      decision: 'approved',
    })
    const other = workflow('other', async (ctx) => ctx.signal('never'))
    expect(other.name).toBe('other')
  })
})
