import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { FatalError, RetryAfterError } from '../../src/kernel/errors.ts'
import type { StepArgument } from '../../src/executor/authoring/context.ts'
import { task, workflow } from '../../src/executor/authoring/workflow.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

describe('steps, from the author’s seat', () => {
  it('RUN-27 a body gets its try, a key that is the same for each, a fence that rises with the attempt', async () => {
    const seen: Pick<StepArgument, 'tryNumber' | 'idempotencyKey' | 'fence'>[] = []
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        ({ tryNumber, idempotencyKey, fence }) => {
          seen.push({ tryNumber, idempotencyKey, fence })
          if (tryNumber < 4) throw new Error(`try ${tryNumber}`)
          return 'done'
        },
        { retry: { maxAttempts: 4, base: '1s', factor: 10 } },
      ),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    const before = t.clock.time.now()
    expect(await t.result(run)).toBe('done')
    expect(seen.map(({ tryNumber }) => tryNumber)).toEqual([1, 2, 3, 4])
    expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set([`${run}:s`]))
    const attempts = seen.map(({ fence }) => fence.attempt)
    expect(attempts[1]).toBe(1) // a short delay waits in place
    expect(attempts[3]).toBeGreaterThan(attempts[1]!) // a long one lets the executor go
    // 1 s, 10 s and 100 s, each less up to a half
    expect(t.clock.time.now() - before).toBeGreaterThanOrEqual(55_500)
    expect(t.clock.time.now() - before).toBeLessThanOrEqual(111_100)
  })

  it('RUN-27 tries are counted over crashes and waits, and one that a crash cut short is not charged', async () => {
    let bodies = 0
    const w = workflow({ name: 'w', stepRetry: { maxAttempts: 2, base: '10s' } }, (ctx) =>
      ctx.step('s', ({ tryNumber }) => {
        bodies += 1
        throw new Error(`try ${tryNumber}`)
      }),
    )
    t = await testEngine({ workflows: [w] })
    t.crashAt('s', 'before', 2)
    const view = await t.until(await t.start(w, null), 'failed')
    expect(view.error).toMatchObject({ message: 'try 2' })
    expect(bodies).toBe(2)
  })

  it.each([
    ['a FatalError', () => new FatalError('no'), {}, 1],
    ['retryIf that says no', () => new Error('no'), { retryIf: () => false }, 1],
    ['retryIf that says yes', () => new Error('no'), { retryIf: () => true }, 3],
    ['the default', () => new Error('no'), {}, 3],
  ])('RUN-27 after %s a step is tried as often as it says', async (_what, make, options, tries) => {
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        () => {
          throw make()
        },
        options,
      ),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'failed')
    expect(t.begun(run, 's')).toBe(tries)
  })

  it('RUN-27 a RetryAfterError is not tried before its time', async () => {
    const at: number[] = []
    const w = workflow('w', (ctx) =>
      ctx.step('s', ({ tryNumber }) => {
        at.push(t.clock.time.now())
        if (tryNumber === 1) throw new RetryAfterError('busy', 3_600_000)
      }),
    )
    t = await testEngine({ workflows: [w] })
    await t.result(await t.start(w, null))
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(3_600_000)
  })

  it('RUN-27 a failed attempt fails the run unless the workflow’s own retry has tries left; a final error of a step is final there too', async () => {
    let attempts = 0
    const flaky = workflow(
      { name: 'flaky', retry: { maxAttempts: 3, base: '1m' }, stepRetry: { maxAttempts: 1 } },
      async (ctx) => {
        const kept = await ctx.step('kept', () => 'kept')
        attempts += 1
        if (attempts < 3) throw new Error(`attempt ${attempts}`)
        return kept
      },
    )
    const final = workflow({ name: 'final', retry: { maxAttempts: 3, base: '1m' } }, (ctx) =>
      ctx.step('s', () => {
        throw new FatalError('never')
      }),
    )
    t = await testEngine({ workflows: [flaky, final] })
    const run = await t.start(flaky, null)
    expect(await t.result(run)).toBe('kept')
    expect(attempts).toBe(3)
    expect(t.begun(run, 'kept')).toBe(1)
    const never = await t.start(final, null)
    await t.until(never, 'failed')
    expect(t.begun(never, 's')).toBe(1)
    expect(await t.attempts(never)).toHaveLength(1)
  })

  it('RUN-27 a step past its limit is aborted, tried again, and fails by name in the end', async () => {
    const w = workflow('w', (ctx) =>
      ctx.step(
        's',
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          ),
        { timeout: '5s', retry: { maxAttempts: 2, base: 10 } },
      ),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect((await t.until(run, 'failed')).error).toMatchObject({
      code: 'step_timeout',
      message: expect.stringContaining('its limit of 5 s'),
    })
    expect(t.begun(run, 's')).toBe(2)
  })

  it('DX-01 a task is a step with its policies, and goes by another name where it is used twice', async () => {
    const double = task(
      { name: 'double', output: z.number(), retry: { maxAttempts: 1 } },
      (n: number) => n * 2,
    )
    const w = workflow(
      'w',
      async (ctx) => (await ctx.step(double, 1)) + (await ctx.step(double, 2, { as: 'again' })),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect(await t.result(run)).toBe(6)
    expect((await t.journal(run)).map(({ key }) => key)).toEqual(['double', 'again'])
  })

  it('DX-01 schemas check input, step, result, signal and child at their doors, each with the path', async () => {
    const child = workflow(
      { name: 'child', input: z.object({ n: z.number() }) },
      (_ctx, { n }) => n,
    )
    const w = workflow(
      { name: 'w', input: z.object({ door: z.string() }), output: z.object({ ok: z.boolean() }) },
      async (ctx, { door }) => {
        if (door === 'step')
          await ctx.step('s', () => ({ n: 'x' }), { output: z.object({ n: z.number() }) as never })
        if (door === 'signal') await ctx.signal('in', { schema: z.object({ n: z.number() }) })
        if (door === 'child') await ctx.run(child, { n: 'x' } as never)
        return { ok: door === 'none' ? true : ('x' as never) }
      },
    )
    t = await testEngine({ workflows: [w, child] })
    expect(await t.result(await t.start(w, { door: 'none' }))).toEqual({ ok: true })
    for (const [door, code, path] of [
      ['step', 'invalid_output', '$.n'],
      ['child', 'invalid_input', '$.n'],
      ['result', 'invalid_output', '$.ok'],
    ] as const) {
      const view = await t.until(await t.start(w, { door }), 'failed')
      expect(view.error, door).toMatchObject({ code, message: expect.stringContaining(path) })
    }
    const run = await t.start(w, { door: 'signal' })
    await t.until(run, 'waiting:signal')
    await t.signal(run, 'in', { n: 'x' })
    expect((await t.until(run, 'failed')).error).toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('$.n'),
    })
    // @ts-expect-error a wrong input does not compile
    const wrong = await t.start(w, { dor: 'none' }).then(
      (id) => t.until(id, 'failed'),
      (error: { code: string }) => ({ error }),
    )
    expect(wrong.error).toMatchObject({ code: 'invalid_input' })
  })

  it('DX-06 progress and state are readable while the run goes on, and are not written again on replay', async () => {
    const w = workflow('w', async (ctx) => {
      ctx.setState({ phase: 'copying' })
      ctx.progress(3, 10, 'copying')
      await ctx.step('s', ({ progress }) => progress(7, 10, 'still copying'))
      await ctx.signal('go')
      ctx.setState({ phase: 'over' })
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:signal')
    expect((await t.get(run)).state).toEqual({ phase: 'copying' })
    const progress = await t.engine.read(function* () {
      const [rows] = (yield {
        statements: [
          { sql: { name: 'test.progress', text: 'select progress from runs' }, params: [] },
        ],
        last: false,
      }) as unknown as [{ progress: string }[]]
      return JSON.parse(rows[0]!.progress) as unknown
    })
    expect(progress).toEqual({ done: 7, total: 10, note: 'still copying' })
    await t.signal(run, 'go')
    await t.result(run)
    expect((await t.get(run)).state).toEqual({ phase: 'over' })
  })

  it('DX-04 two workflows of one name and version are refused at once, by name', async () => {
    t = await testEngine({ workflows: [] })
    const twice = [workflow('same', () => 1), workflow('same', () => 2)]
    await expect(testEngine({ workflows: twice })).rejects.toMatchObject({
      code: 'duplicate_workflow',
      message: expect.stringContaining('same'),
    })
  })

  it('DX-04 a step that is not awaited fails its run by name; one that is begun after the end is refused', async () => {
    let late: unknown = null
    const floating = workflow('floating', async (ctx) => {
      void ctx.step('forgotten', () => 1)
      return 'early'
    })
    const after = workflow('after', (ctx) => {
      leaked = () => ctx.step('late', () => 1)
      return 'over'
    })
    let leaked: () => Promise<unknown> = () => Promise.resolve()
    t = await testEngine({ workflows: [floating, after] })
    const view = await t.until(await t.start(floating, null), 'failed')
    expect(view.error).toMatchObject({
      code: 'unawaited_step',
      message: expect.stringMatching(/forgotten.*await/),
    })
    const run = await t.start(after, null)
    expect(await t.result(run)).toBe('over')
    await leaked().catch((error: unknown) => {
      late = error
    })
    expect(late).toMatchObject({ code: 'late_call' })
    expect(await t.journal(run)).toEqual([])
  })
})
