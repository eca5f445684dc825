import { afterEach, describe, expect, it } from 'vitest'
import type { Context } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { at, limitKey } from '../../src/model/definition.ts'
import type { TestEngine } from '../../src/testing/engine.ts'
import { testEngine } from '../../src/testing/engine.ts'

let t: TestEngine
afterEach(() => t.close())

const values: Record<string, () => unknown> = {
  'a Date': () => ({ d: new Date(0) }),
  'an undefined field': () => ({ u: undefined, v: 1 }),
  nothing: () => undefined,
  null: () => null,
  'minus zero': () => ({ z: -0 }),
  'a sparse thing with toJSON': () => ({ toJSON: () => ({ made: [1, null] }) }),
  'a Buffer': () => Buffer.from('abc'),
  'keys in an odd order': () => ({ b: 1, a: 2, 10: 3, 2: 4 }),
  'a prototype as data': () =>
    JSON.parse('{"__proto__": {"x": 1}, "constructor": {"prototype": {"x": 1}}}') as unknown,
  'a class with fields': () => Object.assign(Object.create(null) as object, { x: 1 }),
}

describe('values on replay', () => {
  it.each(Object.keys(values))(
    'B115 S18 %s: what the function sees live is what it sees after a crash',
    async (what) => {
      const seen: unknown[] = []
      const w = workflow('w', async (ctx) => {
        const got = await ctx.step('s', values[what]!)
        seen.push(got)
        await ctx.sleep('nap', '1h')
        await ctx.step('crash', () => 1)
        return got
      })
      t = await testEngine({ workflows: [w] })
      t.crashAt('crash', 'before')
      const run = await t.start(w, null)
      const result = await t.result(run)
      expect(seen.length).toBeGreaterThanOrEqual(3)
      for (const each of [...seen, result]) {
        expect(JSON.stringify(each)).toBe(JSON.stringify(seen[0]))
        expect(each).toEqual(seen[0])
      }
      expect(t.begun(run, 's')).toBe(1)
    },
  )

  it.each([() => new Map(), () => new Uint8Array(1), () => Number.NaN, () => ({ m: new Map() })])(
    'B115 what could not be the same on replay is refused at the step (%s)',
    async (make) => {
      const w = workflow('w', (ctx) => ctx.step<unknown>('s', make))
      t = await testEngine({ workflows: [w] })
      const run = await t.start(w, null)
      expect((await t.until(run, 'failed')).error).toMatchObject({ code: 'not_serializable' })
    },
  )

  it('B115 an error of a step is the same live and on replay: name, message, code, fields, cause', async () => {
    const seen: unknown[] = []
    const w = workflow({ name: 'w', stepRetry: { maxAttempts: 1 } }, async (ctx) => {
      try {
        await ctx.step('s', () => {
          throw Object.assign(new TypeError('no', { cause: new RangeError('why') }), {
            code: 'E_NO',
            at: { line: 3 },
          })
        })
      } catch (error) {
        const { name, message, code, fields, cause } = error as Error & {
          code: string
          fields: unknown
        }
        seen.push({
          name,
          message,
          code,
          fields,
          cause: [(cause as Error).name, (cause as Error).message],
          is: error instanceof Error,
          of: error?.constructor.name,
        })
      }
      await ctx.sleep('nap', '1h')
      return 'over'
    })
    t = await testEngine({ workflows: [w] })
    expect(await t.result(await t.start(w, null))).toBe('over')
    expect(seen).toHaveLength(2)
    expect(seen[1]).toStrictEqual(seen[0])
    expect(seen[0]).toMatchObject({
      name: 'TypeError',
      message: 'no',
      code: 'E_NO',
      fields: { at: { line: 3 } },
      cause: ['RangeError', 'why'],
    })
  })

  it('B117 what is changed after it was given away changes nothing that is stored', async () => {
    const shared = { v: 1, list: [1] }
    const input = { v: 1 }
    const doors: Record<string, (ctx: Context) => Promise<unknown>> = {
      step: (ctx) => ctx.step('s', () => shared),
      child: (ctx) => ctx.run(echo, shared),
      approval: (ctx) => ctx.approval('a', { prompt: '?', data: shared }),
    }
    const echo = workflow('echo', (_ctx, given: typeof shared) => given)
    const w = workflow('w', async (ctx) => {
      const out: unknown[] = []
      for (const [name, door] of Object.entries(doors)) {
        shared.v = 1
        shared.list = [1]
        const asked = door(ctx)
        if (name !== 'step') shared.v = 2
        const got = await asked
        shared.v = 3
        shared.list.push(3)
        if (name === 'step') (got as typeof shared).v = 4
        out.push(got)
      }
      ctx.setState(shared)
      shared.v = 5
      return out
    })
    t = await testEngine({ workflows: [w, echo] })
    const run = await t.start(w, input)
    await t.until(run, 'waiting:approval')
    const [step] = await t.journal(run)
    expect(JSON.parse(step!.output!)).toEqual({ v: 1, list: [1] })
    await t.approve(run, 'a')
    expect(await t.result(run)).toMatchObject([
      { v: 4 },
      { v: 1, list: [1] },
      { decision: 'approved' },
    ])
    expect((await t.get(run)).state).toMatchObject({ v: 3 })
    // the step gave a copy away: changing it has changed neither the object nor what is stored
    expect(JSON.parse((await t.journal(run))[0]!.output!)).toEqual({ v: 1, list: [1] })
  })

  it('B117 two runs that are given one input do not share it', async () => {
    const w = workflow('w', (_ctx, given: { list: number[] }) => {
      given.list.push(given.list.length)
      return given
    })
    t = await testEngine({ workflows: [w] })
    const input = { list: [] as number[] }
    const [a, b] = [await t.start(w, input), await t.start(w, input)]
    expect([await t.result(a), await t.result(b)]).toEqual([{ list: [0] }, { list: [0] }])
    expect(input.list).toEqual([])
  })
})

describe('prototypes', () => {
  const clean = Object.getOwnPropertyNames(Object.prototype).sort()
  afterEach(() => {
    const now = Object.getOwnPropertyNames(Object.prototype).sort()
    if (now.join() !== clean.join() || 'polluted' in [])
      throw new Error(`Object.prototype has been changed: ${now.join()}`)
  })

  it.each([
    '__proto__.polluted',
    'constructor.constructor',
    'constructor.name',
    'prototype',
    'a.__proto__',
    'toString',
    'a.constructor.prototype',
    'list.length',
    'hasOwnProperty.name',
  ])('B118 a path %s of a limit leads to data alone, never to behaviour', async (where) => {
    t = await testEngine({ workflows: [] })
    const input = { a: {}, list: [1] }
    expect(at(input, where)).toBe(where === 'list.length' ? 1 : undefined)
    if (where !== 'list.length') expect(limitKey(`k:{${where}}`, input)).toBeUndefined()
    // as data it is found like anything else
    const keys = where.split('.')
    const data = JSON.parse(
      keys.reduceRight((inner, key) => `{${JSON.stringify(key)}:${inner}}`, '"mine"'),
    ) as unknown
    expect(limitKey(`k:{${where}}`, data)).toBe('k:mine')
  })

  it('B118 a start whose limit cannot be read from its input is refused by name', async () => {
    const w = workflow({ name: 'w', limits: [{ key: 'k:{constructor.name}', value: 1 }] }, () => 1)
    t = await testEngine({ workflows: [w] })
    await expect(t.start(w, {})).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(t.start(w, JSON.parse('{"constructor":{"name":"x"}}'))).resolves.toMatch(/^run_/)
  })

  it('B118 payloads, errors, items and options named like prototypes stay what they are', async () => {
    const hostile = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as object
    const w = workflow({ name: 'w', stepRetry: { maxAttempts: 1 } }, async (ctx, input: object) => {
      const step = await ctx.step('__proto__', () => input)
      const mapped = await ctx.map(
        'constructor',
        ['__proto__', 'constructor', 'prototype'],
        (each, item) => each.step('toString', () => ({ [item]: input })),
        { key: (item) => item },
      )
      const branches = await ctx.all('all', {
        ['__proto__x']: async () => 1,
        constructor: async () => 2,
      })
      const error = await ctx
        .step('fails', () => {
          throw Object.assign(
            new Error('no'),
            JSON.parse('{"__proto__":{"polluted":1},"constructor":{"polluted":1}}') as object,
          )
        })
        .catch((thrown: { fields: object }) => Object.keys(thrown.fields))
      const signal = await ctx.signal('__proto__', { as: 'sig' })
      ctx.setState(input)
      return { step, mapped, branches, error, signal }
    })
    t = await testEngine({ workflows: [w] })
    const run = await t.start(w, hostile)
    await t.until(run, 'waiting:signal')
    await t.signal(run, '__proto__', hostile)
    const output = (await t.result(run)) as { step: object; signal: object; mapped: object[] }
    for (const each of [output.step, output.signal])
      expect(JSON.stringify(each)).toBe(JSON.stringify(hostile))
    expect(output.mapped).toHaveLength(3)
    expect(JSON.stringify((await t.get(run)).state)).toBe(JSON.stringify(hostile))
  })
})
