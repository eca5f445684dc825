import { afterEach, describe, expect, it } from 'vitest'
import { FatalError, RetryAfterError } from '../../src/kernel/errors.ts'
import type { Context } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

const cyclic = (): object => {
  const ring: Record<string, unknown> = { a: [] }
  ring['a'] = [ring]
  return ring
}
class Trap {
  get inner(): never {
    throw new Error('a getter')
  }
}
class BadJson {
  toJSON(): never {
    throw new Error('a toJSON')
  }
}
const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = [value]
  return value
}
const proxy = (): object =>
  new Proxy(
    {},
    {
      ownKeys() {
        throw new Error('a trap')
      },
      getPrototypeOf() {
        throw new Error('a trap')
      },
      get() {
        throw new Error('a trap')
      },
    },
  )

/** What JSON cannot carry, each with the path that the refusal names. */
const UNFIT: Record<string, [() => unknown, string]> = {
  'a BigInt': [() => ({ list: [1, 10n] }), '$.list[1]'],
  'a cycle': [cyclic, '$.a[0]'],
  'a function': [() => ({ f: () => 1 }), '$.f'],
  'a symbol': [() => ({ s: Symbol('x') }), '$.s'],
  NaN: [() => ({ n: Number.NaN }), '$.n'],
  Infinity: [() => [Number.POSITIVE_INFINITY], '$[0]'],
  'undefined in a list': [() => [undefined], '$[0]'],
  'a Map': [() => ({ m: new Map([[1, 2]]) }), '$.m'],
  'a Set': [() => new Set([1]), '$'],
  bytes: [() => ({ b: new Uint8Array(2) }), '$.b'],
  'a throwing getter': [
    () =>
      Object.defineProperty({}, 'g', {
        enumerable: true,
        get: () => {
          throw new Error('no')
        },
      }),
    '$.g',
  ],
  'a class': [() => ({ t: new Trap() }), '$.t'],
  'a throwing toJSON': [() => ({ j: new BadJson() }), '$.j'],
  'a Promise': [() => ({ p: Promise.resolve(1) }), '$.p'],
  depth: [() => nested(100_000), '$'],
}

/** Everywhere that a function hands a value to the engine. */
const DOORS: Record<string, (ctx: Context, make: () => unknown) => Promise<unknown>> = {
  'the result of a step': (ctx, make) => ctx.step('s', make),
  'the result of the run': async (_ctx, make) => ({ value: make() }).value,
  'the input of a child': (ctx, make) => ctx.run(plain, make()),
  'the input of a spawned child': (ctx, make) => ctx.spawn(plain, make()),
  'the input of the run that continues it': (ctx, make) => ctx.continueAs(make()),
  'the data of an approval': (ctx, make) => ctx.approval('a', { prompt: '?', data: make() }),
  'its state': async (ctx, make) => ctx.setState(make()),
  'an item of a stream': (ctx, make) => ctx.step('s', ({ append }) => append('out', make())),
}
const plain = workflow<unknown, string>('plain', () => 'fine')

describe('values that JSON cannot carry', () => {
  describe.each(Object.keys(DOORS))('%s', (door) => {
    it.each(Object.keys(UNFIT))(
      'B111 B114 RUN-31 %s: that run fails by name, and no other run notices',
      async (what) => {
        const [make, path] = UNFIT[what]!
        const poison = workflow('poison', (ctx) => DOORS[door]!(ctx, make))
        t = await testEngine({ workflows: [poison, plain] })
        const bad = await t.start(poison, null)
        const good = await t.start(plain, null)
        expect(await t.result(good)).toBe('fine')
        const view = await t.until(bad, 'failed')
        expect(view.error).toMatchObject({ code: 'not_serializable' })
        expect(view.error!.message).toContain(path)
        // the executor is alive, in the same session, with its slot free again
        expect(t.executors[0]!.status()).toMatchObject({ state: 'running', jobs: [] })
        expect(await t.attempts(bad)).toMatchObject([{ attempt: 1, end: 'failed' }])
        expect(await t.result(await t.start(plain, null))).toBe('fine')
      },
    )
  })

  it('B111 the function can catch the refusal of a step and go on', async () => {
    const w = workflow('w', async (ctx) => {
      const code = await ctx.step('bad', () => 1n).catch((error: { code?: string }) => error.code)
      return [code, await ctx.step('good', () => 1)]
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect(await t.result(run)).toEqual(['not_serializable', 1])
    expect(t.begun(run, 'bad')).toBe(1)
  })

  it.each([
    'nothing',
    'null',
    'a string',
    'a number',
    'a symbol',
    'a proxy',
    'a function',
    'a frozen object',
    'a cyclic error',
    'an error of traps',
    'an error with a huge field',
    'a deep chain of causes',
  ])('B111 a step that throws %s fails by name, and no other run notices', async (what) => {
    const thrown: Record<string, () => unknown> = {
      nothing: () => undefined,
      null: () => null,
      'a string': () => 'no',
      'a number': () => 7,
      'a symbol': () => Symbol('no'),
      'a proxy': proxy,
      'a function': () => () => 1,
      'a frozen object': () => Object.freeze(Object.create(null) as object),
      'a cyclic error': () => Object.assign(new Error('no'), { self: cyclic() }),
      'an error of traps': () =>
        Object.defineProperties(new Error('no'), {
          name: {
            get: () => {
              throw new Error('name')
            },
          },
          message: {
            get: () => {
              throw new Error('message')
            },
          },
          stack: {
            get: () => {
              throw new Error('stack')
            },
          },
          cause: {
            get: () => {
              throw new Error('cause')
            },
          },
        }),
      'an error with a huge field': () =>
        Object.assign(new Error('no'), {
          body: 'x'.repeat(5_000_000),
          more: Array.from({ length: 100_000 }, (_, i) => i),
        }),
      'a deep chain of causes': () => {
        let error = new Error('root')
        for (let i = 0; i < 10_000; i++) error = new Error(`level ${i}`, { cause: error })
        return error
      },
    }
    const poison = workflow({ name: 'poison', stepRetry: { maxAttempts: 2, base: 1 } }, (ctx) =>
      ctx.step('s', () => {
        throw thrown[what]!()
      }),
    )
    const direct = workflow('direct', () => {
      throw thrown[what]!()
    })
    t = await testEngine({ workflows: [poison, direct, plain] })
    for (const each of [poison, direct]) {
      const bad = await t.start(each, null)
      expect(await t.result(await t.start(plain, null))).toBe('fine')
      const view = await t.until(bad, 'failed')
      expect(view.error).toMatchObject({ name: expect.any(String), message: expect.any(String) })
      expect(JSON.stringify(view.error).length).toBeLessThan(1_000_000)
      expect(await t.attempts(bad)).toMatchObject([{ attempt: 1, end: 'failed' }])
    }
    expect(t.executors[0]!.status()).toMatchObject({ state: 'running', jobs: [] })
  })

  it.each([
    'retryIf that throws',
    'a delay that is no time',
    'a backoff that is no time',
    'a limit that is no time',
    'tries that are no number',
  ])('B111 RUN-29 a step with a %s fails by name, and no other run notices', async (what) => {
    const boom = (): never => {
      throw new Error('boom')
    }
    const bodies: Record<string, (ctx: Context) => Promise<unknown>> = {
      'retryIf that throws': (ctx) =>
        ctx.step('s', boom, {
          retryIf: (error) => (error as { response: { status: number } }).response.status === 429,
        }),
      'a delay that is no time': (ctx) =>
        ctx.step('s', () => {
          throw new RetryAfterError('later', Number.NaN)
        }),
      'a backoff that is no time': (ctx) => ctx.step('s', boom, { retry: { base: 'soon' } }),
      'a limit that is no time': (ctx) => ctx.step('s', boom, { timeout: Number.NaN }),
      'tries that are no number': (ctx) =>
        ctx.step('s', boom, { retry: { maxAttempts: Number.NaN } }),
    }
    const poison = workflow('poison', (ctx) => bodies[what]!(ctx))
    t = await testEngine({ workflows: [poison, plain] })
    const bad = await t.start(poison, null)
    expect(await t.result(await t.start(plain, null))).toBe('fine')
    const view = await t.until(bad, 'failed')
    expect(view.error!.message).not.toBe('')
    if (what !== 'retryIf that throws') expect(view.error!.code).toMatch(/^invalid_/)
    expect(t.executors[0]!.status()).toMatchObject({ state: 'running', jobs: [] })
    expect(await t.attempts(bad)).toMatchObject([{ attempt: 1, end: 'failed' }])
  })

  it.each([
    { base: 'soon' },
    { max: Number.NaN },
    { factor: Number.NaN },
    { maxAttempts: 0 },
    { maxAttempts: Number.NaN },
  ] as const)(
    'B111 a workflow with the retry policy %j is refused where it is defined',
    (retry) => {
      t = { close: () => Promise.resolve() } as TestEngine
      for (const policy of [{ retry }, { stepRetry: retry }])
        expect(() => workflow({ name: 'w', ...policy }, () => 1)).toThrowError(
          expect.objectContaining({ code: 'invalid_config' }),
        )
    },
  )

  it('B111 a step that fails before it is awaited takes nobody down', async () => {
    const w = workflow({ name: 'w', stepRetry: { maxAttempts: 1 } }, async (ctx) => {
      const early = ctx.step('early', () => {
        throw new FatalError('no')
      })
      const alsoEarly = ctx.scope('in', (inner) => inner.run(failing, null))
      await ctx.sleep('nap', '1h')
      const results = await Promise.allSettled([early, alsoEarly])
      return results.map(({ status }) => status)
    })
    const failing = workflow('failing', () => {
      throw new Error('no')
    })
    t = await testEngine({ workflows: [w, failing] })
    expect(await t.result(await t.start(w, null))).toEqual(['rejected', 'rejected'])
  })
})

describe('values that are too large', () => {
  const LIMIT = 1024 ** 2
  /** A value whose JSON has exactly so many bytes. */
  const sized = (bytes: number): string => 'x'.repeat(bytes - 2)

  it.each([
    [0.9, true],
    [1, true],
    [1 + 1 / LIMIT, false],
    [1.1, false],
  ])('B112 a result of %d of the limit is %s', async (share, fits) => {
    const w = workflow('w', (ctx) => ctx.step('s', () => sized(Math.round(share * LIMIT))))
    t = await testEngine({ workflows: [w], settings: { journalMaxBytes: 10 * LIMIT } })
    const run = await t.start(w, null)
    const view = await t.until(run, fits ? 'succeeded' : 'failed')
    if (fits) expect(Buffer.byteLength(JSON.stringify(view.output))).toBe(Math.round(share * LIMIT))
    else expect(view.error).toMatchObject({ code: 'payload_too_large' })
    // it is not tried again, and nothing is held
    expect(t.begun(run, 's')).toBe(1)
    expect(t.executors[0]!.status().jobs).toEqual([])
  })

  it.each(Object.keys(DOORS))(
    'B112 %s: 200 MB fail by name, without a copy being made',
    async (door) => {
      const huge = 'x'.repeat(200 * 1024 ** 2)
      const wide = Array.from({ length: 200 }, () => huge)
      for (const value of [huge, wide, { deep: [{ huge }] }]) {
        const w = workflow('w', (ctx) => DOORS[door]!(ctx, () => value))
        t = await testEngine({ workflows: [w, plain] })
        const before = process.memoryUsage().rss
        const run = await t.start(w, null)
        const view = await t.until(run, 'failed')
        expect(view.error).toMatchObject({ code: 'payload_too_large' })
        expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 ** 2)
        expect(await t.result(await t.start(plain, null))).toBe('fine')
        if (value !== huge) await t.close()
      }
    },
    30_000,
  )

  it('B113 one large result leaves the others whole, and is whole itself', async () => {
    const w = workflow('w', async (ctx) => {
      const sizes = [1, 2, LIMIT - 100, 3, 4]
      const out: string[] = []
      for (const [i, size] of sizes.entries())
        out.push(await ctx.step(`s${i}`, () => String(i).repeat(size)))
      await ctx.sleep('nap', '1d')
      return ctx.step('read', () => out.map((each) => [each.length, new Set(each).size, each[0]]))
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    await t.crash()
    expect(await t.result(run)).toEqual([
      [1, 1, '0'],
      [2, 1, '1'],
      [LIMIT - 100, 1, '2'],
      [3, 1, '3'],
      [4, 1, '4'],
    ])
    expect((await t.journal(run)).map(({ output }) => output?.length)).toEqual([
      3,
      4,
      LIMIT - 98,
      5,
      6,
      undefined,
      expect.any(Number),
    ])
  })

  it('B114 a wide result fails by name and does not hold the process up', async () => {
    const wide = Object.fromEntries(Array.from({ length: 1_000_000 }, (_, i) => [`k${i}`, i]))
    const list = Array.from({ length: 1_000_000 }, (_, i) => i)
    const w = workflow('w', async (ctx) => {
      const codes = []
      for (const [name, value] of Object.entries({ wide, list }))
        codes.push(
          await ctx.step(name, () => value).catch((error: { code?: string }) => error.code),
        )
      return codes
    })
    t = await testEngine({ workflows: [w] })
    expect(await t.result(await t.start(w, null))).toEqual([
      'payload_too_large',
      'payload_too_large',
    ])
  })

  it.each(['input', 'signal', 'decision'])(
    'B114 a deep JSON text from outside, as %s, is refused at the door',
    async (door) => {
      const text = `${'['.repeat(100_000)}1${']'.repeat(100_000)}`
      const w = workflow('w', async (ctx) => [
        await ctx.signal('in'),
        await ctx.approval('ok', { prompt: '?' }),
      ])
      t = await testEngine({ workflows: [w] })
      const run = await t.start(w, null)
      await t.settle()
      if (door === 'input') {
        const answer = await t.engine.start({
          command: { id: 'run_deep', workflow: 'w', input: text },
        })
        expect(answer).toMatchObject({ ok: false, code: 'invalid_request' })
        expect(
          await t.engine.start({ command: { id: 'run_torn', workflow: 'w', input: '{' } }),
        ).toMatchObject({ ok: false, code: 'invalid_request' })
        return
      }
      const send = (payload: string) =>
        door === 'signal'
          ? t.engine.signal({ run, id: 'one', name: 'in', payload, by: null })
          : t.engine.decide({
              approval: `${run}:ok`,
              decision: 'approved',
              by: 'ana',
              reason: null,
              payload,
            })
      if (door === 'decision') {
        await t.signal(run, 'in', 1)
        await t.until(run, 'waiting:approval')
      }
      const before = await t.get(run)
      expect(await send(text)).toMatchObject({ ok: false, code: 'invalid_request' })
      expect(await send('{')).toMatchObject({ ok: false, code: 'invalid_request' })
      await t.settle()
      expect(await t.get(run)).toEqual(before)
      // brackets inside a string are no depth
      expect(await send(JSON.stringify('['.repeat(100_000)))).toMatchObject({ ok: true })
      await t.settle()
      expect((await t.get(run)).status).toBe(door === 'signal' ? 'waiting' : 'succeeded')
    },
  )
})
