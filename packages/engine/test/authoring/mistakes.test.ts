import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/workflow.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

describe('mistakes of authors', () => {
  it('DX-04 a step called inside the body of another is refused by name, at once', async () => {
    const w = workflow('w', (ctx) => ctx.step('outer', () => ctx.step('inner', () => 1)))
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await expect(t.result(run)).rejects.toThrow(/inside the body of the step "outer"/)
    expect((await t.get(run)).error).toMatchObject({ code: 'nested_step' })
    expect(t.begun(run, 'inner')).toBe(0)
    expect(t.begun(run, 'outer')).toBe(1)
  })
})
