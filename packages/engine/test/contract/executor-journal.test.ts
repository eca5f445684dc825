import { afterEach, describe, expect, it } from 'vitest'
import type { Context } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { FatalError } from '../../src/kernel/errors.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

/** Runs a function to its end and gives its output. */
const output = async (
  handler: (ctx: Context, input: never) => unknown,
  input: unknown = null,
  options: Partial<Parameters<typeof testEngine>[0]> = {},
): Promise<{ run: string; out: unknown }> => {
  const w = workflow('w', handler as (ctx: Context) => unknown)
  t = await testEngine({ workflows: [w], ...options })
  const run = await t.start(w, input)
  return { run, out: await t.result(run) }
}
const keys = async (run: string): Promise<string[]> => (await t.journal(run)).map(({ key }) => key)

describe('RUN-24 names', () => {
  it('RUN-24 a name used twice in one scope is refused at once, and the error shows how to name it', async () => {
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', () => 1)
      return ctx.step('a', () => 2)
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await expect(t.result(run)).rejects.toThrow(/"a-2"/)
    expect(await t.get(run)).toMatchObject({ status: 'failed', error: { code: 'duplicate_name' } })
    expect(t.begun(run, 'a')).toBe(1)
  })

  it('RUN-24 is the name within its scope: iterations by item key, and named scopes', async () => {
    const { run, out } = await output(async (ctx) => {
      const items = await ctx.map(
        'each',
        ['x', 'y'],
        (each, item) => each.step('a', () => item.toUpperCase()),
        { key: (item) => item },
      )
      const one = await ctx.scope('one', (inner) => inner.step('a', () => 1))
      const a = await ctx.step('a', () => 0)
      return [...items, one, a]
    })
    expect(out).toEqual(['X', 'Y', 1, 0])
    expect((await keys(run)).sort()).toEqual(['a', 'each:x/a', 'each:y/a', 'one/a'])
  })

  it('RUN-24 never depends on call order or timing: items come back by their key in another order', async () => {
    let order = ['x', 'y', 'z']
    const w = workflow('w', (ctx) =>
      ctx.map(
        'each',
        order,
        async (each, item) => {
          const got = await each.step('a', () => `${item}!`)
          await each.step('b', () => 1)
          return got
        },
        { key: (item) => item },
      ),
    )
    t = await testEngine({ workflows: [w] })
    t.crashAt('each:y/b', 'before')
    order = ['z', 'y', 'x']
    const run = await t.start(w, null)
    expect(await t.result(run)).toEqual(['z!', 'y!', 'x!'])
    expect(['x', 'y', 'z'].map((item) => t.begun(run, `each:${item}/a`))).toEqual([1, 1, 1])
  })

  it('S11 paths of scopes do not run into one another, whatever is in the names', async () => {
    const names = ['a/b', 'a', 'a%2Fb', 'a:b', '__proto__', 'constructor', '%', 'ä']
    const { out } = await output(async (ctx) => {
      const got: unknown[] = []
      for (const name of names)
        got.push(await ctx.scope(name, (inner) => inner.step('b', () => name)))
      got.push(
        await ctx.scope('a b', (inner) => inner.scope('b', (deep) => deep.step('b', () => 1))),
      )
      return got
    })
    expect(out).toEqual([...names, 1])
  })

  it('RUN-24 two items of one key are refused by name', async () => {
    const w = workflow('w', (ctx) =>
      ctx.map('each', [1, 2], (each) => each.step('a', () => 1), { key: () => 'same' }),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await expect(t.result(run)).rejects.toThrow(/same/)
    expect(await keys(run)).toEqual([])
  })
})

describe('RUN-25 durable before what follows', () => {
  it('RUN-25 the function receives decode(encode(value)), the first time too', async () => {
    const { out } = await output(async (ctx) => {
      const value = await ctx.step('a', () => ({ at: new Date(0), gone: undefined, list: [1] }))
      return { type: typeof value.at, gone: 'gone' in value, value }
    })
    expect(out).toEqual({
      type: 'string',
      gone: false,
      value: { at: '1970-01-01T00:00:00.000Z', list: [1] },
    })
  })

  it('RUN-25 no body starts while an earlier outcome is not durable', async () => {
    const seen: number[] = []
    const { run } = await output(async (ctx) => {
      for (const name of ['a', 'b', 'c'])
        await ctx.step(name, async () => {
          seen.push((await t.journal(ctx.info.run)).length)
        })
    })
    expect(seen).toEqual([0, 1, 2])
    expect(await keys(run)).toEqual(['a', 'b', 'c'])
  })

  it('RUN-25 a one-step run costs one commit: step and completion are stored together', async () => {
    const w = workflow('w', (ctx) => ctx.step('a', () => 1))
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect(await t.result(run)).toBe(1)
    const [entry] = await t.journal(run)
    const db = (
      t.engine.store as unknown as { db: { prepare(text: string): { get(id: string): unknown } } }
    ).db
    expect(entry?.key).toBe('a')
    expect(
      db
        .prepare(
          'select r.rev as run, s.rev as step, a.rev as attempt from runs r join steps s on s.run = r.id join attempts a on a.run = r.id where r.id = ?',
        )
        .get(run),
    ).toEqual({ run: 3, step: 3, attempt: 3 })
  })

  it('S18 recorded outputs under crashes equal those without one', async () => {
    const body = async (ctx: Context): Promise<unknown> => {
      const a = await ctx.step('a', () => 1)
      const both = await ctx.all('both', {
        x: (inner) => inner.step('x', () => a + 1),
        y: async (inner) => {
          await inner.sleep('nap', '1h')
          return inner.step('y', () => a + 2)
        },
      })
      const random = [ctx.random(), ctx.uuid()]
      const c = await ctx.step('c', () => both.x + both.y)
      return { a, both, c, random, more: ctx.random() }
    }
    const plain = await output(body)
    await t.close()
    for (const step of ['a', 'both:x/x', 'both:y/y', 'c'])
      for (const when of ['before', 'after'] as const) {
        const w = workflow('w', body)
        t = await testEngine({ workflows: [w] })
        t.crashAt(step, when)
        const run = await t.start(w, null)
        expect(await t.result(run)).toEqual(plain.out)
        expect((await t.attempts(run)).some(({ end }) => end === 'lost')).toBe(true)
        await t.close()
      }
    t = await testEngine({ workflows: [] })
  })
})

describe('RUN-26 replay', () => {
  it('RUN-26 gives entries in their order, one at a time, each after the function has come to rest', async () => {
    const seen: string[] = []
    const w = workflow('w', async (ctx) => {
      await ctx.all('all', {
        slow: async (inner) => {
          await inner.sleep('nap', '1h')
          seen.push('slow')
        },
        quick: async (inner) => {
          await inner.step('a', () => 1)
          seen.push('quick a')
          await Promise.resolve()
          seen.push('quick rest')
          await inner.step('b', () => 1)
          seen.push('quick b')
        },
      })
      seen.push('end')
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.result(run)
    const again = seen.slice(seen.indexOf('quick a', 1))
    expect(again).toEqual(['quick a', 'quick rest', 'quick b', 'slow', 'end'])
    expect((await t.journal(run)).map(({ n, key }) => [n, key])).toEqual([
      [1, 'all:quick/a'],
      [2, 'all:quick/b'],
      [3, 'all:slow/nap'],
    ])
  })

  const changed: [string, (ctx: Context) => Promise<unknown>, RegExp][] = [
    ['asks for another name', (ctx) => ctx.step('other', () => 1), /a \(step\).*asks for other/],
    ['asks for it as another kind', (ctx) => ctx.sleep('a', '1s'), /as step.*as time/],
    ['asks for nothing', () => new Promise(() => undefined), /asks for nothing/],
    ['returns early', () => Promise.resolve(1), /returned while the journal has a/],
  ]
  for (const [name, changedBody, message] of changed)
    it(`RUN-26 a function that ${name} is parked with both sides shown, and nothing of it runs`, async () => {
      let body = async (ctx: Context): Promise<unknown> => {
        await ctx.step('a', () => 1)
        await ctx.sleep('nap', '1h')
        return 1
      }
      const w = workflow('w', (ctx) => body(ctx))
      t = await testEngine({ workflows: [w] })
      const run = await t.start(w, null)
      await t.until(run, 'waiting:time')
      body = changedBody
      const view = await t.until(run, 'paused')
      expect(view).toMatchObject({ reason: 'nondeterminism' })
      expect(view.note).toMatch(message)
      expect(t.begun(run, 'other')).toBe(0)
      expect(await keys(run)).toEqual(['a'])
    })

  it('RUN-26 a parked run goes on when its code is mended and it is resumed', async () => {
    let body = async (ctx: Context): Promise<unknown> => {
      await ctx.step('a', () => 1)
      await ctx.sleep('nap', '1h')
      return 'good'
    }
    const good = body
    const w = workflow('w', (ctx) => body(ctx))
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    body = (ctx) => ctx.step('b', () => 2)
    await t.until(run, 'paused')
    body = good
    await t.resume(run)
    expect(await t.result(run)).toBe('good')
    expect(t.begun(run, 'a')).toBe(1)
  })

  it('RUN-26 now, random and uuid are the same on replay; now starts at created_at and never falls', async () => {
    const seen: unknown[][] = []
    const w = workflow('w', async (ctx) => {
      const took: unknown[] = [ctx.now(), ctx.random(), ctx.uuid()]
      await ctx.step('a', () => 1)
      took.push(ctx.now(), ctx.random())
      await ctx.sleep('nap', '1h')
      took.push(ctx.now(), ctx.random())
      seen.push(took)
      await ctx.sleep('nap 2', '1h')
      return took
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    const created = t.clock.time.now()
    await t.result(run)
    expect(seen).toHaveLength(2)
    expect(seen[1]).toEqual(seen[0])
    const [first, , , second, , third] = seen[0] as number[]
    expect(first).toBe(created)
    expect(second).toBeGreaterThanOrEqual(created)
    expect(third).toBeGreaterThanOrEqual(created + 3_600_000)
  })

  it('RUN-26 chance is seeded by run and scope', async () => {
    const { out } = await output(async (ctx) => [
      ctx.random(),
      await ctx.scope('s', (inner) => Promise.resolve(inner.random())),
    ])
    const [root, scoped] = out as number[]
    expect(root).not.toBe(scoped)
    const other = await t.start('w', null)
    expect(await t.result(other)).not.toEqual(out)
  })
})

describe('RUN-20 RUN-26 a run that is started again from a step', () => {
  it('RUN-20 RUN-26 has drawn what the entries that it begins with were made by, and begins at their instant', async () => {
    const seen: unknown[][] = []
    const w = workflow('w', async (ctx) => {
      const took: unknown[] = [ctx.now(), ctx.random(), ctx.uuid()]
      await ctx.step('a', () => took[2])
      took.push(ctx.now(), ctx.uuid())
      await ctx.step('b', () => 1)
      took.push(ctx.uuid())
      seen.push(took)
      return took
    })
    t = await testEngine({ workflows: [w] })
    const first = await t.start(w, null)
    await t.result(first)
    await t.advance('1h')
    const second = await t.retry(first, 'b')
    expect(await t.result(second)).toEqual(seen[0])
    // and one that is started again from that
    await t.advance('1h')
    expect(await t.result(await t.retry(second, 'b'))).toEqual(seen[0])
    // from its beginning it is another
    const anew = (await t.result(await t.retry(second))) as unknown[]
    expect(anew[0]).toBe(t.clock.time.now())
    expect(anew[2]).not.toBe(seen[0]?.[2])
  })
})

describe('RUN-27 retries', () => {
  it('RUN-27 a body receives its signal, try, a stable idempotency key and the fence', async () => {
    const seen: { tryNumber: number; key: string; fence: object; aborted: boolean }[] = []
    const { run } = await output((ctx) =>
      ctx.step(
        'a',
        (step) => {
          seen.push({
            tryNumber: step.tryNumber,
            key: step.idempotencyKey,
            fence: step.fence,
            aborted: step.signal.aborted,
          })
          if (seen.length < 3) throw new Error('again')
        },
        { retry: { base: 3_000 } },
      ),
    )
    expect(seen.map(({ tryNumber }) => tryNumber)).toEqual([1, 2, 3])
    expect(new Set(seen.map(({ key }) => key))).toEqual(new Set([`${run}:a`]))
    expect(seen.map(({ fence }) => fence)).toEqual(
      [1, 2, 3].map((attempt) => ({ generation: 1, attempt })),
    )
    expect(seen.every(({ aborted }) => !aborted)).toBe(true)
  })

  it('RUN-27 a retry due in over 2 s suspends the run; a shorter one waits in place', async () => {
    const flaky = (base: number) => (ctx: Context) =>
      ctx.step(
        'a',
        ({ tryNumber }) => {
          if (tryNumber === 1) throw new Error('again')
        },
        { retry: { base } },
      )
    const { run } = await output(flaky(1_500))
    expect((await t.attempts(run)).map(({ end }) => end)).toEqual(['completed'])
    await t.close()
    const far = await output(flaky(10_000))
    expect((await t.attempts(far.run)).map(({ end }) => end)).toEqual(['suspended', 'completed'])
  })

  it('RUN-27 three tries by default, then the error is the step’s outcome, and the function may catch it', async () => {
    const { run, out } = await output(async (ctx) => {
      try {
        await ctx.step('a', () => {
          throw Object.assign(new RangeError('boom', { cause: new Error('deep') }), { status: 503 })
        })
        return null
      } catch (error) {
        const { name, message, cause, fields } = error as Error & { fields: unknown }
        return { name, message, cause: (cause as Error).message, fields }
      }
    })
    expect(t.begun(run, 'a')).toBe(3)
    expect(out).toEqual({
      name: 'RangeError',
      message: 'boom',
      cause: 'deep',
      fields: { status: 503 },
    })
  })

  it('RUN-27 a FatalError, and one that retryIf declines, are not tried again', async () => {
    const { run } = await output(async (ctx) => {
      await ctx
        .step('fatal', () => {
          throw new FatalError('no')
        })
        .catch(() => undefined)
      await ctx
        .step('picky', () => Promise.reject(new Error('404')), {
          retryIf: (error) => (error as Error).message !== '404',
        })
        .catch(() => undefined)
    })
    expect([t.begun(run, 'fatal'), t.begun(run, 'picky')]).toEqual([1, 1])
  })

  it('RUN-27 a try that a lost attempt cut short is not counted', async () => {
    const tries: number[] = []
    const w = workflow('w', (ctx) =>
      ctx.step('a', ({ tryNumber }) => {
        tries.push(tryNumber)
        return 1
      }),
    )
    t = await testEngine({ workflows: [w] })
    t.crashAt('a', 'after', 2)
    const run = await t.start(w, null)
    expect(await t.result(run)).toBe(1)
    expect(tries).toEqual([1, 1, 1])
  })

  it('RUN-27 tries are counted on over attempts', async () => {
    const { run } = await output((ctx) =>
      ctx
        .step('a', () => Promise.reject(new Error('no')), {
          retry: { maxAttempts: 4, base: 10_000 },
        })
        .catch(() => 'gave up'),
    )
    expect(t.begun(run, 'a')).toBe(4)
    expect(await t.attempts(run)).toHaveLength(4)
  })

  it('RUN-27 a limit of one try aborts it and counts it', async () => {
    const { run, out } = await output((ctx) =>
      ctx
        .step(
          'a',
          ({ signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('stopped')))
            }),
          { timeout: 5_000, retry: { maxAttempts: 2, base: 100 } },
        )
        .catch((error: unknown) => (error as { code: string }).code),
    )
    expect(out).toBe('step_timeout')
    expect(t.begun(run, 'a')).toBe(2)
  })

  it('RUN-27 a failed attempt fails the run unless the workflow’s own retry has tries left', async () => {
    let calls = 0
    const w = workflow({ name: 'w', retry: { maxAttempts: 3, base: 1_000 } }, async (ctx) => {
      await ctx.step('once', () => 1)
      calls += 1
      if (calls < 3) throw new Error(`no ${calls}`)
      return 'third'
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    expect(await t.result(run)).toBe('third')
    expect(t.begun(run, 'once')).toBe(1)
    expect((await t.attempts(run)).map(({ end }) => end)).toEqual(['failed', 'failed', 'completed'])
  })

  it('RUN-31 an error keeps name, message, stack, cause and its author’s own fields', async () => {
    const w = workflow('w', () => {
      throw Object.assign(new TypeError('bad'), { code: 'E_BAD', status: 7, fn: () => 1 })
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'failed')
    expect((await t.get(run)).error).toMatchObject({
      name: 'TypeError',
      message: 'bad',
      code: 'E_BAD',
      fields: { status: 7, fn: '(not JSON)' },
      stack: expect.stringContaining('TypeError: bad') as string,
    })
  })
})

describe('RUN-17 how a stop and an outcome meet in the executor', () => {
  it('RUN-17 a function that throws because it was told to stop is handed back, not failed', async () => {
    let first = true
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', () => 1)
      if (!first) return 'good'
      first = false
      await new Promise((_resolve, reject) => {
        ctx.abort.addEventListener('abort', () => reject(new Error('aborted')))
      })
      return 'never'
    })
    t = await testEngine({ workflows: [w], executors: 2, executor: { drainMs: 1_000 } })
    const run = await t.start(w, null)
    await t.settle()
    const holder = t.executors.find((each) => each.status().jobs.length > 0)
    const stopping = holder?.stop()
    expect(await t.result(run)).toBe('good')
    await stopping
    expect((await t.attempts(run)).map(({ end }) => end)).toEqual(['handed_back', 'completed'])
  })

  it('RUN-17 a limit beats a clean result that comes after it', async () => {
    const w = workflow({ name: 'w', totalLimit: 5_000 }, async (ctx) => {
      await new Promise((resolve) => ctx.abort.addEventListener('abort', resolve))
      return 'too late'
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'failed')
    expect(await t.get(run)).toMatchObject({ reason: 'time_limit', output: undefined })
  })

  it('RUN-14 a cancel reaches a body through its signal', async () => {
    let why: unknown = null
    const w = workflow('w', (ctx) =>
      ctx.step(
        'a',
        ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              why = signal.reason
              reject(new Error('stopped'))
            })
          }),
      ),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.settle()
    await t.cancel(run, 'enough')
    expect(await t.get(run)).toMatchObject({ status: 'canceled', error: null })
    expect((why as Error).message).toContain('enough')
  })

  it('RUN-16 a pause takes effect at the next end of a step, and the run goes on where it was', async () => {
    let release: () => void = () => undefined
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', () => new Promise<void>((resolve) => (release = resolve)))
      await ctx.step('b', () => 2)
      return 'done'
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.settle()
    await t.pause(run)
    expect((await t.get(run)).status).toBe('running')
    release()
    await t.until(run, 'paused')
    expect([t.begun(run, 'a'), t.begun(run, 'b')]).toEqual([1, 0])
    await t.resume(run)
    expect(await t.result(run)).toBe('done')
    expect(t.begun(run, 'a')).toBe(1)
  })
})

describe('RUN-28 waits of a function', () => {
  it('RUN-28 a wait that is satisfied while other branches work resolves in the same attempt', async () => {
    let release: () => void = () => undefined
    const w = workflow('w', (ctx) =>
      ctx.all('both', {
        work: (inner) => inner.step('a', () => new Promise<void>((resolve) => (release = resolve))),
        word: (inner) => inner.signal<string>('word'),
      }),
    )
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.settle()
    await t.signal(run, 'word', 'hello')
    release()
    expect(await t.result(run)).toEqual({ word: 'hello' })
    expect(await t.attempts(run)).toHaveLength(1)
  })

  it('RUN-28 race gives the first to end, any the first to succeed, and the losers are closed', async () => {
    const { out } = await output(async (ctx) => {
      const race = await ctx.race('race', {
        slow: (inner) => inner.sleep('nap', '1h'),
        quick: (inner) => inner.sleep('nap', '1m'),
      })
      const any = await ctx.any('any', {
        bad: (inner) => inner.step('a', () => Promise.reject(new FatalError('no'))),
        good: (inner) => inner.step('a', () => 'yes'),
      })
      return [race.winner, any]
    })
    expect(out).toEqual(['quick', { winner: 'good', value: 'yes' }])
    expect(t.clock.time.now() - 1_767_225_600_000).toBeLessThan(3_600_000)
  })

  it('RUN-30 a null payload is a value, and a time-out says so', async () => {
    const w = workflow('w', async (ctx) => [
      await ctx.signal('a', { timeout: '1h' }),
      await ctx.signal('b', { timeout: '1h' }),
    ])
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:signal')
    await t.signal(run, 'a', null)
    expect(await t.result(run)).toEqual([
      { ok: true, value: null },
      { ok: false, timedOut: true },
    ])
  })

  it('RUN-29 delays that nobody can wait for are refused by name; long ones are kept', async () => {
    const bad = (ms: unknown) => (ctx: Context) =>
      ctx.sleep('nap', ms as number).catch((error: unknown) => (error as { code: string }).code)
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      expect((await output(bad(ms))).out).toBe('invalid_duration')
      await t.close()
    }
    const before = 1_767_225_600_000
    await output((ctx) => ctx.sleep('nap', 2 ** 31 + 5))
    expect(t.clock.time.now() - before).toBeGreaterThanOrEqual(2 ** 31 + 5)
  })
})

describe('RUN-31 values of a function', () => {
  const bad: [string, unknown, string][] = [
    ['a BigInt', { a: [1n] }, '$.a[0]'],
    ['undefined in a list', [undefined], '$[0]'],
    ['a Map', { m: new Map() }, '$.m'],
    ['NaN', Number.NaN, '$'],
  ]
  for (const [name, value, path] of bad)
    it(`RUN-31 ${name} is refused with its path, and not tried again`, async () => {
      const { run, out } = await output(async (ctx) => {
        try {
          return await ctx.step('a', () => value)
        } catch (error) {
          return { code: (error as { code: string }).code, message: (error as Error).message }
        }
      })
      expect(out).toMatchObject({ code: 'not_serializable' })
      expect((out as { message: string }).message).toContain(`${path} is`)
      expect(t.begun(run, 'a')).toBe(1)
    })

  it('RUN-31 a result over the limit is refused with its size', async () => {
    const { out } = await output((ctx) =>
      ctx
        .step('a', () => 'x'.repeat(1024 ** 2))
        .catch((error: unknown) => (error as { code: string }).code),
    )
    expect(out).toBe('payload_too_large')
  })

  it('RUN-31 hostile texts come back live and on replay', async () => {
    const text = '\u0000 \ud800 __proto__ \u2028 😀'
    const { out } = await output(
      async (ctx, input: { text: string }) => {
        const a = await ctx.step('a', () => input.text)
        await ctx.sleep('nap', '1h')
        return a === input.text && a === text
      },
      { text },
    )
    expect(out).toBe(true)
  })
})

describe('RUN-32 patched', () => {
  it('RUN-32 is true for runs that reach it first with the changed code, false for those that passed it', async () => {
    let patched = false
    const w = workflow('w', async (ctx) => {
      await ctx.step('a', () => 1)
      const way = patched && ctx.patched('new way') ? 'new' : 'old'
      await ctx.sleep('nap', '1h')
      return [way, patched && ctx.patched('later') ? 'new' : 'old']
    })
    t = await testEngine({ workflows: [w] })
    const old = await t.start(w, null)
    await t.until(old, 'waiting:time')
    patched = true
    const young = await t.start(w, null)
    expect(await t.result(old)).toEqual(['old', 'new'])
    expect(await t.result(young)).toEqual(['new', 'new'])
  })
})

describe('RUN-33 RUN-34 ends and series of a function', () => {
  it('RUN-33 the handler of a canceled run gets what is known of it', async () => {
    const undo = workflow('undo', (ctx, input: { run: string; outcome: string }) =>
      ctx.step('undo', () => `${input.outcome} ${input.run}`),
    )
    const w = workflow({ name: 'w', onEnd: 'undo' }, (ctx) => ctx.sleep('nap', '1h'))
    t = await testEngine({ workflows: [w, undo] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    await t.cancel(run)
    expect(await t.result(`${run}_end`)).toBe(`canceled ${run}`)
  })

  it('RUN-34 continueAs goes on for as long as it likes, each run with an empty journal', async () => {
    const w = workflow('w', async (ctx, input: number): Promise<unknown> => {
      await ctx.step('a', () => input)
      ctx.setState({ at: input })
      if (input < 5) return ctx.continueAs(input + 1)
      return ctx.step('last', () => `after ${input}`)
    })
    const parent = workflow('p', (ctx) => ctx.run(w, 1))
    t = await testEngine({ workflows: [w, parent] })
    const run = await t.start(parent, null)
    expect(await t.result(run)).toBe('after 5')
  })

  it('RUN-34 state is readable at once', async () => {
    const w = workflow('w', async (ctx) => {
      ctx.setState({ page: 1 })
      await ctx.sleep('nap', '1h')
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, null)
    await t.until(run, 'waiting:time')
    expect((await t.get(run)).state).toEqual({ page: 1 })
  })
})
