import { afterEach, describe, expect, it } from 'vitest'
import type {
  ApprovalOptions,
  ChildOptions,
  Context,
  WorkflowOptions,
} from '../../src/executor/authoring/context.ts'
import type { Bodies } from '../../src/executor/authoring/scope.ts'
import { task, workflow } from '../../src/executor/authoring/workflow.ts'
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

  it('DX-03 DX-04 a workflow that the test engine was not given is named, with what to do, as a child and at an end', async () => {
    const nobody = workflow('nobody', () => 1)
    const parent = workflow('parent', (ctx) => ctx.run(nobody, null))
    t = await testEngine({ workflows: [parent] })
    await expect(t.result(await t.start(parent, null))).rejects.toThrow(
      /workflow named nobody.*name it among the `workflows` of the test engine/,
    )
    const ends = workflow({ name: 'ends', onEnd: 'nobody' }, () => 1)
    await expect(testEngine({ workflows: [ends] })).rejects.toThrow(
      /^nobody, which runs at the end of ends, is not there; name it among the `workflows`/,
    )
  })

  // what a program without types can hand over
  const untyped = <T>(value: unknown): T => value as T
  const child = workflow('child', () => Promise.resolve(1))
  const append =
    (stream: unknown) =>
    (ctx: Context): Promise<unknown> =>
      ctx.step('s', ({ append: add }) => add(untyped(stream), 1), { retry: { maxAttempts: 1 } })
  const approval =
    (options: object) =>
    (ctx: Context): Promise<unknown> =>
      ctx.approval('a', untyped<ApprovalOptions>(options))
  const run =
    (options: object) =>
    (ctx: Context): Promise<unknown> =>
      ctx.run(child, undefined, untyped<ChildOptions>(options))

  it.each([
    ['a prompt that is missing', approval({}), /the prompt of the approval a is missing/],
    ['a prompt that is no text', approval({ prompt: {} }), /the prompt of the approval a is {}/],
    [
      'deciders that are no list',
      approval({ prompt: 'p', deciders: 'ana' }),
      /the deciders of the approval a are "ana"; expected a list/,
    ],
    [
      'a decider that nobody can be',
      approval({ prompt: 'p', deciders: [''] }),
      /a decider of the approval a is ""/,
    ],
    ['labels that are no list', run({ labels: 'eu' }), /labels are "eu"; expected a list/],
    ['a key that cannot be shown', run({ key: 1n }), /key is bigint; expected 1 to 200/],
    ['an end of the parent of its own', run({ onParentEnd: 'forget' }), /onParentEnd/],
    [
      'a step without a body',
      (ctx: Context) => ctx.step('s', untyped(undefined)),
      /the body of the step "s" is missing; expected a function/,
    ],
    [
      'a step that is nothing',
      (ctx: Context) => ctx.step(untyped<string>(null), () => 1),
      /ctx.step was given null/,
    ],
    [
      'options of a step that are none',
      (ctx: Context) => ctx.step('s', () => 1, untyped('twice')),
      /the options of the step "s" are "twice"/,
    ],
    [
      'a time that is none',
      (ctx: Context) => ctx.sleepUntil('s', untyped<Date>('tomorrow')),
      /sleepUntil "s" has "tomorrow"; expected a date/,
    ],
    [
      'items that are no list',
      (ctx: Context) => ctx.map('m', untyped<number[]>({ a: 1 }), (c) => c.step('s', () => 1)),
      /the items of the map "m" are {"a":1}; expected a list/,
    ],
    [
      'a map without a body',
      (ctx: Context) => ctx.map('m', [1], untyped(undefined)),
      /the body of the map "m" is missing/,
    ],
    [
      'a scope without a body',
      (ctx: Context) => ctx.scope('o', untyped(1)),
      /the body of the scope "o" is 1/,
    ],
    [
      'branches that are promises',
      (ctx: Context) => ctx.all('both', untyped<Bodies>({ a: Promise.resolve(1) })),
      /the branch a of "both" is {}; expected a function/,
    ],
    [
      'branches that are a list',
      (ctx: Context) => ctx.race('first', untyped<Bodies>([])),
      /the branches of "first" are \[\]; expected an object/,
    ],
    [
      'an option of a step that there is not',
      (ctx: Context) => ctx.step('s', () => 1, untyped({ retires: 3 })),
      /the step "s" has no option "retires"; it has retry, timeout/,
    ],
    [
      'a step whose options are a number',
      (ctx: Context) => ctx.step('s', () => 1, untyped(3)),
      /the options of the step "s" are 3; expected an object with retry/,
    ],
    [
      'an option of a task where it is called',
      (ctx: Context) =>
        ctx.step(
          task('t', () => 1),
          undefined,
          untyped<{ as?: string }>({ retry: {} }),
        ),
      /the step "t" has no option "retry"; it has as/,
    ],
    [
      'a retry that counts otherwise',
      (ctx: Context) => ctx.step('s', () => 1, { retry: untyped({ attempts: 3 }) }),
      /retry has no option "attempts"; it has maxAttempts/,
    ],
    [
      'an option of a signal that there is not',
      (ctx: Context) => ctx.signal('s', untyped({ timeOut: '1s' })),
      /the signal "s" has no option "timeOut"/,
    ],
    [
      'an option of an approval that there is not',
      approval({ prompt: 'p', decider: ['ana'] }),
      /the approval "a" has no option "decider"; it has prompt, data, deciders/,
    ],
    [
      'an option of a child that there is not',
      run({ prio: 1 }),
      /the child child has no option "prio"/,
    ],
    [
      'an option of a map that there is not',
      (ctx: Context) => ctx.map('m', [1], () => Promise.resolve(1), untyped({ parallel: 2 })),
      /the map "m" has no option "parallel"; it has key, concurrency/,
    ],
    [
      'a child that is only named',
      (ctx: Context) => ctx.run(untyped<typeof child>('child'), undefined),
      /ctx.run was given "child"; expected what `workflow/,
    ],
    [
      'a child that was not imported',
      (ctx: Context) => ctx.spawn(untyped<typeof child>(undefined), undefined),
      /ctx.spawn was given missing; expected what `workflow/,
    ],
    [
      'a signal that could not be sent',
      (ctx: Context) => ctx.signal('..'),
      /the name of a signal is "..".*and not '.' or '..'/,
    ],
    ['a stream without a name', append(undefined), /the name of the stream is missing/],
    ['a stream with a name that is lost on the way', append('a\u0000'), /the name of the stream/],
  ])(
    'RAIL-09 %s ends the run by name, and no other that is written with it',
    async (_what, body, says) => {
      const bad = workflow('bad', body)
      const good = workflow('good', (ctx) => ctx.step('s', () => 'kept'))
      t = await testEngine({ workflows: [bad, good, child] })
      const beside = await t.start(good, null)
      const made = await t.start(bad, null)
      await expect(t.result(made)).rejects.toThrow(says)
      expect(await t.result(beside)).toBe('kept')
    },
  )

  it('RUN-28 a race without branches is refused, since nothing could ever end it', async () => {
    const race = workflow('race', (ctx) => ctx.race('first', {}))
    const any = workflow('any', (ctx) => ctx.any('first', {}))
    t = await testEngine({ workflows: [race, any] })
    for (const each of [race, any])
      await expect(t.result(await t.start(each, null))).rejects.toThrow(/first has no branches/)
  })

  it.each([Number.NaN, 0, -1, 'many'])(
    'RUN-24 a map whose concurrency is %s is refused, rather than done with none of its items',
    async (concurrency) => {
      const w = workflow('w', (ctx) =>
        ctx.map('m', [1, 2], (c, item) => c.step('s', () => item), {
          concurrency: untyped<number>(concurrency),
        }),
      )
      t = await testEngine({ workflows: [w] })
      await expect(t.result(await t.start(w, null))).rejects.toThrow(/the concurrency of the map m/)
    },
  )

  it('RUN-24 a name that does not fit with the scopes around it is refused before its body begins', async () => {
    const within = (ctx: Context, depth: number): Promise<unknown> =>
      depth === 0
        ? ctx.step('leaf', () => 1)
        : ctx.scope('s'.repeat(199), (inner) => within(inner, depth - 1))
    const w = workflow('w', (ctx) => within(ctx, 12))
    t = await testEngine({ workflows: [w] })
    await expect(t.result(await t.start(w, null))).rejects.toThrow(/the limit is 1999/)
  })

  it.each([
    ['a number', () => 42, '42'],
    ['a symbol', () => Symbol('odd'), 'Symbol(odd)'],
    ['an object', () => ({ at: 'fault' }), '[object Object]'],
    [
      'what cannot be read',
      () => ({
        toString() {
          throw new Error('inner')
        },
      }),
      'something that cannot be shown',
    ],
  ])('SLOT-06 an error whose message is %s ends its run with it', async (_what, make, says) => {
    const w = workflow('w', () => {
      throw Object.assign(new Error('first'), { message: make(), code: 'E_ODD' })
    })
    t = await testEngine({ workflows: [w] })
    const view = await t.until(await t.start(w, null), 'failed')
    expect(view.error).toMatchObject({ message: says, code: 'E_ODD' })
    expect(view.note).toBe(says)
  })

  it('SLOT-06 facts that cannot be read fail no run that logs them', async () => {
    const w = workflow('w', (ctx) => {
      ctx.log('here', {
        get fact(): never {
          throw new Error('inner')
        },
      })
      return Promise.resolve('gone on')
    })
    t = await testEngine({ workflows: [w] })
    expect(await t.result(await t.start(w, null))).toBe('gone on')
  })
})

describe('definitions that nobody could keep', () => {
  const untyped = <T>(value: unknown): T => value as T
  const limit = { key: 'k', value: 1 }

  it.each([
    [{ limits: 'x' }, 'limits are "x"; expected a list'],
    [{ limits: [5] }, 'limits[0] is 5; expected a limit'],
    [{ limits: [{}] }, 'limits[0].key is missing'],
    [{ limits: [{ ...limit, value: -1 }] }, 'limits[0].value is -1'],
    [{ limits: [{ ...limit, value: 1.5 }] }, 'limits[0].value is 1.5'],
    [{ limits: [limit, { ...limit, mode: 'foo' }] }, 'limits[1].mode is "foo"'],
    [{ limits: [{ ...limit, policy: 'foo' }] }, 'limits[0].policy is "foo"'],
    [{ limits: [{ ...limit, units: 0 }] }, 'limits[0].units is 0'],
    [{ limits: [{ ...limit, units: '' }] }, 'limits[0].units is ""'],
    [{ labels: 'x' }, 'labels are "x"; expected a list'],
    [{ labels: [5] }, 'labels[0] is 5'],
    [{ onEnd: 5 }, 'onEnd is 5'],
    [{ onEnd: {} }, 'onEnd is missing'],
    [{ slotClass: '' }, 'slotClass is ""'],
    [{ retry: 5 }, 'retry is 5; expected a policy'],
    [{ stepRetry: [] }, 'stepRetry is []; expected a policy'],
    [{ vresion: '2' }, 'the workflow a has no option "vresion"; it has name, version'],
    [{ retry: { tries: 2 } }, 'retry has no option "tries"; it has maxAttempts'],
    [{ limits: [{ ...limit, max: 1 }] }, 'limits[0] has no option "max"; it has key, value'],
    [{ isolation: { kind: 'process', memory: 64 } }, 'isolation of a has no option "memory"'],
    [
      { isolation: { kind: 'process', sandbox: { net: true } } },
      'the sandbox of a has no option "net"; it has network, writable',
    ],
    [{ prepare: 5 }, 'prepare of a is 5; expected a function'],
  ])(
    'DX-04 SLOT-01 a definition is refused where it is written, with what is wrong: %j',
    (more, says) => {
      const make = () =>
        workflow(untyped<WorkflowOptions<unknown, unknown>>({ name: 'a', ...more }), () => 1)
      expect(make).toThrow(says)
      expect(make).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    },
  )

  it.each([
    [() => workflow('a', untyped<() => 1>(undefined)), 'the function of the workflow a is missing'],
    [() => workflow(untyped<string>(null), () => 1), 'workflow name is null'],
    [() => task('t', untyped<() => 1>(5)), 'the body of the task t is 5'],
    [() => task(untyped<string>(undefined), () => 1), 'task name is missing'],
  ])(
    'DX-04 a workflow or task without its function or name is refused where it is written: %#',
    (make, says) => {
      expect(make).toThrow(says)
    },
  )

  it('DX-04 what is given as null is left out', () => {
    const options = { name: 'a', onEnd: null, labels: null, retry: null }
    expect(
      workflow(untyped<WorkflowOptions<unknown, unknown>>(options), () => 1).definition,
    ).toMatchObject({ onEnd: null, labels: [], retry: null })
  })

  it('SLOT-01 RAIL-10 an executor in the process of the engine is not registered with one either', async () => {
    const made = workflow('a', () => 1)
    const bad = { ...made, definition: { ...made.definition, limits: [{ ...limit, value: -1 }] } }
    await expect(testEngine({ workflows: [bad] })).rejects.toThrow(
      'a version 1: limits[0].value is -1; expected a whole number of 0 to 2147483647',
    )
  })
})
