import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeDriver } from '../../src/executor/driving/run-driver.ts'
import { makeTurns } from '../../src/executor/driving/turns.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { Defect, Fault, LeaseholdError } from '../../src/kernel/errors.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import type { Log } from '../../src/kernel/log.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import { makeJob } from '../../src/model/job.ts'
import type { AttemptWrite, WriteAnswer } from '../../src/model/work.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import { settled } from '../support/ports.ts'
import type { TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const quick = workflow('w', (_ctx, input: unknown) => input)
/** A workflow whose step `a` waits for a gate, and whose step `b` follows. */
const slow = () => {
  const a = gate()
  const began: string[] = []
  const signals: AbortSignal[] = []
  const w = workflow('w', async (ctx) => {
    await ctx.step('a', ({ signal }) => {
      began.push('a')
      signals.push(signal)
      return a.opened
    })
    await ctx.step('b', () => void began.push('b'))
    return 'done'
  })
  return { a, began, signals, w }
}
const sessionRow = () => only(t.sql('select * from sessions order by id desc limit 1'))

describe('EX-01 life', () => {
  it('EX-01 idle, running, draining, stopped; a second stop returns the first one’s promise', async () => {
    const { a, w } = slow()
    const { executor } = executorOn(t, { workflows: [w] })
    expect(executor.state).toBe('idle')
    const starting = executor.start()
    expect(executor.state).toBe('starting')
    await starting
    expect(executor.state).toBe('running')
    await t.start('w')
    await advance(t, 0)
    const stopping = executor.stop()
    expect(executor.state).toBe('draining')
    expect(executor.stop()).toBe(stopping)
    a.open()
    await advance(t, 0)
    await stopping
    expect(executor.state).toBe('stopped')
    expect(executor.stop()).toBe(stopping)
  })

  it('EX-01 start after stop is refused, and so is a second start', async () => {
    const { executor } = executorOn(t, { workflows: [quick] })
    await executor.start()
    await expect(executor.start()).rejects.toThrow(/running/)
    const stopping = executor.stop()
    await advance(t, 0)
    await stopping
    await expect(executor.start()).rejects.toThrow(/stopped/)
    const idle = executorOn(t, { workflows: [quick] }).executor
    await idle.stop()
    expect(idle.state).toBe('stopped')
    await expect(idle.start()).rejects.toThrow(/stopped/)
  })

  it('EX-01 a failed start returns to idle with nothing left open, and may be tried again', async () => {
    const x = executorOn(t, { workflows: [quick] })
    x.cut.register = 'before'
    await expect(x.executor.start()).rejects.toThrow(/did not arrive/)
    expect(x.executor.state).toBe('idle')
    expect(t.clock.next()).toBeNull()
    await advance(t, 60_000)
    expect(x.calls.map(({ call }) => call)).toEqual(['register'])
    x.cut.register = undefined
    await x.executor.start()
    expect(x.executor.state).toBe('running')
    void x.executor.stop()
    await advance(t, 0)
  })
})

describe('EX-02 slots by class', () => {
  it('EX-02 a class has its own limit: heavy work never keeps light work out', async () => {
    const hold = gate()
    const heavy = workflow({ name: 'heavy', slotClass: 'write' }, (ctx) =>
      ctx.step('a', () => hold.opened),
    )
    const { executor } = executorOn(t, {
      workflows: [heavy, quick],
      slots: { default: 3, write: 1 },
    })
    await executor.start()
    const ids = [await t.start('heavy'), await t.start('heavy')]
    await advance(t, 0)
    const light = await t.start('w')
    await advance(t, 0)
    expect(t.run(light)['status']).toBe('succeeded')
    expect(ids.map((id) => String(t.run(id)['status'])).sort()).toEqual(['queued', 'running'])
    expect(executor.status().slots).toEqual([
      expect.objectContaining({ class: 'default', limit: 3, used: 0 }),
      expect.objectContaining({ class: 'write', limit: 1, used: 1 }),
    ])
    hold.open()
    await advance(t, 0)
    await t.pass('poll-lanes')
    await advance(t, 0)
    expect(ids.map((id) => t.run(id)['status'])).toEqual(['succeeded', 'succeeded'])
    void executor.stop()
    await advance(t, 0)
  })

  it('EX-02 limits change while running: lowering stops nothing, raising is taken up at once', async () => {
    const { a, w } = slow()
    const { executor } = executorOn(t, { workflows: [w], slots: { default: 2 } })
    await executor.start()
    for (let i = 0; i < 4; i++) await t.start('w')
    await advance(t, 0)
    expect(executor.status().jobs).toHaveLength(2)
    executor.setSlots('default', 1)
    await advance(t, 0)
    expect(executor.status().jobs).toHaveLength(2)
    expect(only([...executor.status().slots])).toMatchObject({ limit: 1, used: 2 })
    executor.setSlots('default', 4)
    await t.pass('poll-lanes')
    await advance(t, 0)
    expect(executor.status().jobs).toHaveLength(4)
    a.open()
    await advance(t, 0)
    expect(t.sql(`select count(*) as n from runs where status = 'succeeded'`)).toEqual([{ n: 4 }])
    void executor.stop()
    await advance(t, 0)
  })
})

describe('EX-03 admission', () => {
  it('EX-03 never has more than fits, and gives what was reserved back in the turn that hears of the answer', async () => {
    const { a, w } = slow()
    const x = executorOn(t, { workflows: [w], slots: { default: 2 } })
    await x.executor.start()
    for (let i = 0; i < 5; i++) await t.start('w')
    await advance(t, 0)
    expect(x.executor.status().jobs).toHaveLength(2)
    expect(only([...x.executor.status().slots])).toMatchObject({ used: 2, reserved: 0 })
    for (const { call, sent } of x.calls)
      if (call === 'claim') expect((sent as { most: number }).most).toBeLessThanOrEqual(2)
    a.open()
    await advance(t, 0)
    void x.executor.stop()
    await advance(t, 0)
  })

  it('EX-03 of two processes that admit at once neither gets what the other has', async () => {
    const { a, w, began } = slow()
    const xs = [1, 2, 3].map((seed) =>
      executorOn(t, { workflows: [w], slots: { default: 4 }, seed }),
    )
    await Promise.all(xs.map(({ executor }) => executor.start()))
    for (let i = 0; i < 10; i++) await t.start('w')
    await advance(t, 0)
    const runs = xs.flatMap(({ executor }) => executor.status().jobs.map(({ run }) => run))
    expect(runs).toHaveLength(10)
    expect(new Set(runs).size).toBe(10)
    expect(began).toHaveLength(10)
    a.open()
    await advance(t, 0)
    for (const { executor } of xs) void executor.stop()
    await advance(t, 0)
  })

  it('EX-03 a claim whose answer is lost is asked again under its number: nothing is stranded or run twice', async () => {
    const { a, w, began } = slow()
    const x = executorOn(t, { workflows: [w], slots: { default: 2 } })
    await t.session({ definitions: [w.definition] })
    const id = await t.start('w')
    x.cut.claim = 'after'
    await x.executor.start()
    await advance(t, 0)
    expect(t.run(id)['status']).toBe('running')
    expect(began).toEqual([])
    x.cut.claim = undefined
    await advance(t, 1_000)
    expect(began).toEqual(['a'])
    const numbers = x.calls
      .filter(({ call }) => call === 'claim')
      .map(({ sent }) => (sent as { claim: number }).claim)
    expect(numbers.slice(0, 2)).toEqual([1, 1])
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
    a.open()
    await advance(t, 0)
    expect(t.run(id)['status']).toBe('succeeded')
    void x.executor.stop()
    await advance(t, 0)
  })
})

describe('EX-09 first reasons', () => {
  it('EX-09 the first wins, is shown until it is saved, and the body’s own error never replaces it', async () => {
    const settle: ReturnType<typeof gate<void>>[] = []
    const w = workflow({ name: 'w', totalLimit: 5_000 }, (ctx) =>
      ctx.step('a', () => {
        const one = gate<void>()
        settle.push(one)
        return one.opened
      }),
    )
    const x = executorOn(t, { workflows: [w], drainMs: 100 })
    const { executor } = x
    await executor.start()
    const id = await t.start('w')
    await advance(t, 100)
    x.cut.write = 'before'
    await advance(t, 5_000)
    expect(only([...executor.status().jobs])).toMatchObject({
      run: id,
      firstReason: 'time_limit',
      saved: false,
      phase: 'settling',
      bodies: 1,
    })
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 0)
    expect(only([...executor.status().jobs])['firstReason']).toBe('time_limit')
    // saved as soon as the store can be reached, while the body is still at work
    x.cut.write = undefined
    await advance(t, 2_500)
    expect(only([...executor.status().jobs])).toMatchObject({ saved: true, bodies: 1 })
    expect(t.sql(`select data from events where kind = 'attempt.stopping'`)).toEqual([
      { data: JSON.stringify({ attempt: 1, firstReason: 'time_limit' }) },
    ])
    settle[0]?.fail(new Error('my own'))
    await advance(t, 0)
    expect(only(t.sql('select first_reason from attempts'))['first_reason']).toBe('time_limit')
    expect(t.run(id)).toMatchObject({ status: 'canceled', error: null })
    const late = await t.start('w')
    await advance(t, 5_000)
    settle[1]?.fail(new Error('my own'))
    await advance(t, 0)
    expect(t.run(late)).toMatchObject({ status: 'failed', reason: 'time_limit' })
    expect(t.run(late)['error']).not.toContain('my own')
    void executor.stop()
    await advance(t, 0)
  })
})

describe('EX-10 a slot is never freed on the wish to stop', () => {
  it('EX-10 a body that ignores its cancel keeps its slot until it has settled', async () => {
    const { a, w, signals } = slow()
    const { executor } = executorOn(t, { workflows: [w], slots: { default: 1 } })
    await executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    const next = await t.start('w')
    await advance(t, 31_000)
    await t.pass('enforce-limits')
    expect(signals[0]?.aborted).toBe(true)
    expect(t.run(id)['status']).toBe('canceled')
    expect(only([...executor.status().slots])['used']).toBe(1)
    expect(t.run(next)['status']).toBe('queued')
    a.open()
    await advance(t, 0)
    await t.pass('poll-lanes')
    await advance(t, 0)
    expect(t.run(next)['status']).toBe('succeeded')
    void executor.stop()
    await advance(t, 0)
  })

  it('EX-28 an old attempt that settles after the run was driven anew changes nothing', async () => {
    const bodies: ReturnType<typeof gate<string>>[] = []
    const w = workflow('w', (ctx) =>
      ctx.step('a', () => {
        const one = gate<string>()
        bodies.push(one)
        return one.opened
      }),
    )
    const first = executorOn(t, { workflows: [w], seed: 1 })
    await first.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    const second = executorOn(t, { workflows: [w], seed: 2 })
    await second.executor.start()
    await t.engine.takeFrom(id, 'op', 'stuck')
    await advance(t, 1_000)
    await t.pass('wake-due', 'poll-lanes')
    await advance(t, 0)
    expect(bodies).toHaveLength(2)
    const { attempt } = t.run(id)
    expect(t.run(id)['status']).toBe('running')
    bodies[0]?.open('old')
    await advance(t, 0)
    expect(t.run(id)).toMatchObject({ attempt, status: 'running', entries: 0 })
    bodies[1]?.open('new')
    await advance(t, 0)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '"new"' })
    expect(first.executor.status().jobs).toEqual([])
    void first.executor.stop()
    void second.executor.stop()
    await advance(t, 0)
  })
})

describe('EX-11 shutdown', () => {
  it('EX-11 what is shut down first is handed back and queued again', async () => {
    const { w } = slow()
    const { executor } = executorOn(t, { workflows: [w], drainMs: 100, abortGraceMs: 100 })
    await executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    const stopping = executor.stop()
    await advance(t, 300)
    await stopping
    expect(t.run(id)).toMatchObject({ status: 'queued', hand_backs: 0, losses: 0 })
  })
})

describe('EX-13 a clean result', () => {
  it('EX-13 is validated against the workflow’s output schema, and so are steps’ results', async () => {
    const even = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) =>
          typeof value === 'number' && value % 2 === 0
            ? { value }
            : { issues: [{ message: 'not even', path: ['n'] }] },
      },
    }
    const w = workflow({ name: 'w', output: even }, (_ctx, input: number) => input)
    const s = workflow('s', (ctx, input: number) => ctx.step('a', () => input, { output: even }))
    const { executor } = executorOn(t, { workflows: [w, s] })
    await executor.start()
    const ids = [
      await t.start('w', { input: '2' }),
      await t.start('w', { input: '3' }),
      await t.start('s', { input: '3' }),
    ]
    await advance(t, 0)
    expect(ids.map((id) => t.run(id)['status'])).toEqual(['succeeded', 'failed', 'failed'])
    expect(JSON.parse(String(t.run(ids[1] ?? '')['error']))).toMatchObject({
      code: 'invalid_output',
      message: expect.stringContaining('$.n: not even') as string,
    })
    expect(t.run(ids[1] ?? '')['output']).toBeNull()
    void executor.stop()
    await advance(t, 0)
  })

  it('RUN-23 an input that its schema refuses ends the run invalid_input at the first claim', async () => {
    const text = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) =>
          typeof value === 'string' ? { value } : { issues: [{ message: 'no text' }] },
      },
    }
    const w = workflow(
      { name: 'w', input: text, retry: { maxAttempts: 5 } },
      (_ctx, input) => input,
    )
    const { executor } = executorOn(t, { workflows: [w] })
    await executor.start()
    const id = await t.start('w', { input: '7' })
    await advance(t, 0)
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'invalid_input', attempt: 1 })
    void executor.stop()
    await advance(t, 0)
  })
})

describe('EX-17 stopping', () => {
  it('EX-17 lets the current step finish, then hands its run back instead of starting the next step', async () => {
    const { a, began, w } = slow()
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    const stopping = x.executor.stop()
    await advance(t, 5_000)
    expect(x.executor.state).toBe('draining')
    a.open()
    await advance(t, 0)
    await stopping
    expect(began).toEqual(['a'])
    expect(t.run(id)).toMatchObject({ status: 'queued', entries: 1, hand_backs: 0 })
    expect(sessionRow()).toMatchObject({ state: 'ended' })
  })

  it('EX-17 refuses admission, and hands back every run that the poll in progress brings', async () => {
    const x = executorOn(t, { workflows: [quick] })
    await x.executor.start()
    await advance(t, 0)
    const stopping = x.executor.stop()
    const id = await t.start('w')
    await advance(t, 0)
    await stopping
    expect(t.run(id)).toMatchObject({ status: 'queued', session: null })
    const claims = x.count('claim')
    await advance(t, 60_000)
    expect(x.count('claim')).toBe(claims)
  })

  it('EX-17 L2 what a claim has brought whose answer was lost as the stop came goes on elsewhere at once, though a step still drains', async () => {
    const { a, w } = slow()
    const x = executorOn(t, { workflows: [w], slots: { default: 2 } })
    await x.executor.start()
    await advance(t, 10)
    // of the claims that are made from here on
    x.cut.claim = 'after'
    const one = await t.start('w')
    await advance(t, 10)
    expect(x.executor.status().jobs).toMatchObject([{ run: one }])
    const two = await t.start('w')
    await advance(t, 10)
    expect(t.run(two)).toMatchObject({ status: 'running', attempt: 1 })
    expect(x.executor.status().jobs).toHaveLength(1)
    x.cut.claim = undefined
    const stopped = x.executor.stop()
    await advance(t, 10)
    expect(t.run(two)).toMatchObject({ status: 'queued', session: null })
    expect(t.run(one)['status']).toBe('running')
    a.open()
    await advance(t, 10)
    await stopped
  })

  it('EX-17 a poll whose answer never comes holds up the stop by the drain limit at most', async () => {
    const x = executorOn(t, { workflows: [quick], drainMs: 25_000 })
    x.cut.claim = 'never'
    await x.executor.start()
    await advance(t, 0)
    let stopped = false
    void x.executor.stop().then(() => (stopped = true))
    await advance(t, 24_999)
    expect(stopped).toBe(false)
    await advance(t, 2)
    expect(stopped).toBe(true)
  })
})

describe('EX-18 past the drain limit', () => {
  it('EX-18 aborts what still runs, waits the grace, logs what was in flight, and closes the session, which hands back', async () => {
    const { w, signals } = slow()
    const x = executorOn(t, { workflows: [w], drainMs: 1_000, abortGraceMs: 500 })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    let stopped = false
    void x.executor.stop().then(() => (stopped = true))
    await advance(t, 999)
    expect(signals[0]?.aborted).toBe(false)
    await advance(t, 1)
    expect(signals[0]?.aborted).toBe(true)
    expect(t.run(id)['status']).toBe('running')
    await advance(t, 500)
    expect(stopped).toBe(true)
    expect(t.run(id)).toMatchObject({ status: 'queued', losses: 0, hand_backs: 0 })
    expect(x.logged.find(({ event }) => event === 'executor.drain_limit')?.facts).toMatchObject({
      held: [id],
    })
  })

  it('EX-18 a step that ends after the limit never goes on to another, and its late write is refused', async () => {
    const { a, began, w } = slow()
    const x = executorOn(t, { workflows: [w], drainMs: 100, abortGraceMs: 100 })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    const stopping = x.executor.stop()
    await advance(t, 300)
    await stopping
    const before = t.run(id)
    a.open()
    await advance(t, 10_000)
    expect(began).toEqual(['a'])
    expect(t.run(id)).toEqual(before)
  })

  it('EX-18 in a program that lives on, the others are handed back and the session is retired until the rest has settled', async () => {
    const bodies: ReturnType<typeof gate<void>>[] = []
    const w = workflow('w', (ctx) =>
      ctx.step('a', () => {
        const one = gate<void>()
        bodies.push(one)
        return one.opened
      }),
    )
    const x = executorOn(t, {
      workflows: [w, quick2],
      drainMs: 100,
      abortGraceMs: 100,
      embedded: true,
    })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    const stopping = x.executor.stop({ exiting: false })
    await advance(t, 300)
    await stopping
    expect(t.run(id)).toMatchObject({ status: 'running' })
    expect(sessionRow()).toMatchObject({
      state: 'retired',
      lease_until: expect.any(Number) as number,
    })
    bodies[0]?.open()
    await advance(t, 0)
    expect(sessionRow()).toMatchObject({ state: 'ended' })
    expect(t.run(id)['status']).toBe('queued')
  })
  const quick2 = workflow('q', () => 1)

  it('EX-18 an orchestrator that does not answer the close holds nothing up for long', async () => {
    const x = executorOn(t, { workflows: [quick] })
    await x.executor.start()
    await advance(t, 0)
    x.cut.close = 'never'
    let stopped = false
    void x.executor.stop().then(() => (stopped = true))
    await advance(t, 2_100)
    expect(stopped).toBe(true)
    expect(x.logged.some(({ event }) => event === 'session.not_closed')).toBe(true)
  })
})

describe('EX-19 handing back', () => {
  /** An executor whose body stays, and whose run comes back to it: it hands it back, and that call fails. */
  const failing = async (error?: () => Error) => {
    const hold = gate()
    const w = workflow('w', (ctx) => ctx.step('a', () => hold.opened))
    const x = executorOn(t, { workflows: [w], ...(error ? { error } : {}) })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 0)
    x.cut.write = 'before'
    // its next claim is under way and does not know yet that the body will stay
    await t.engine.takeFrom(id, 'op', 'x')
    await advance(t, 0)
    return { x, id, hold }
  }
  const sentBack = (x: { calls: readonly { call: string; sent: unknown }[] }) =>
    x.calls.filter(
      ({ call, sent }) =>
        call === 'write' && (sent as { end?: { kind: string } }).end?.kind === 'hand_back',
    )

  it('EX-19 never throws, asks once, and what failed is listed in the next renewal', async () => {
    const { x, id, hold } = await failing()
    await advance(t, 5_000)
    expect(sentBack(x)).toHaveLength(1)
    expect(x.logged.filter(({ event }) => event === 'hand_back.failed')).toMatchObject([
      { level: 'warn' },
    ])
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
    await advance(t, 6_000)
    const listed = x.calls
      .filter(({ call }) => call === 'renew')
      .flatMap(({ sent }) => (sent as { letGo: object[] }).letGo)
    expect(listed).toEqual([{ run: id, attempt: 2, reason: 'unsettled_here' }])
    expect(t.run(id)).toMatchObject({ attempt: 2, session: null, losses: 0 })
    x.cut.write = undefined
    hold.open()
    await advance(t, 1_000)
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('EX-19 an orchestrator that does not know the call is warned of once a process', async () => {
    const { x, id, hold } = await failing(
      () => new Fault('peer_unreachable', '404', { detail: { unknownCall: true } }),
    )
    expect(x.logged.filter(({ event }) => event === 'hand_back.unknown')).toMatchObject([
      { level: 'warn', facts: { run: id } },
    ])
    x.cut.write = undefined
    hold.open()
    await advance(t, 12_000)
    void x.executor.stop()
    await advance(t, 30_000)
  })
})

describe('EX-21 chains', () => {
  it('EX-21 at the depth of a chain a run gives way to one that waits, and goes to the end of its priority', async () => {
    const order: string[] = []
    const w = workflow('w', async (ctx, input: string) => {
      for (const name of ['a', 'b', 'c', 'd'])
        await ctx.step(name, () => void order.push(`${input}${name}`))
    })
    const { executor } = executorOn(t, { workflows: [w], slots: { default: 1 }, maxChainDepth: 2 })
    await t.session({ definitions: [w.definition] })
    const first = await t.start('w', { input: '"1"' })
    const second = await t.start('w', { input: '"2"' })
    await executor.start()
    for (let i = 0; i < 6; i++) {
      await advance(t, 100)
      await t.pass('poll-lanes')
    }
    expect(order).toEqual(['1a', '1b', '2a', '2b', '1c', '1d', '2c', '2d'])
    for (const id of [first, second])
      expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 2, hand_backs: 0 })
    void executor.stop()
    await advance(t, 0)
  })

  it('EX-21 with room for others one claim drives all its steps', async () => {
    const w = workflow('w', async (ctx) => {
      for (let i = 0; i < 10; i++) await ctx.step(`s${i}`, () => i)
    })
    const { executor, calls } = executorOn(t, {
      workflows: [w],
      slots: { default: 3 },
      maxChainDepth: 1,
    })
    await executor.start()
    const id = await t.start('w')
    await advance(t, 100)
    await advance(t, 100)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 1, entries: 10 })
    // what the claim under way has reserved is room as well: nobody is asked whether others wait
    const ends = calls.flatMap(({ call, sent }) =>
      call === 'write' ? ((sent as AttemptWrite).end?.kind ?? []) : [],
    )
    expect(ends).toEqual(['complete'])
    void executor.stop()
    await advance(t, 0)
  })
})

describe('EX-21 evidence that another waits', () => {
  /** A run of four steps at a depth of two, in the only slot; `between` happens while its first step runs. */
  const driven = async (between: (driven: string) => Promise<void>) => {
    const first = gate()
    const began: string[] = []
    const w = workflow('w', async (ctx, input: string) => {
      await ctx.step('a', () => (input === '1' ? first.opened : undefined))
      for (const name of ['b', 'c', 'd'])
        await ctx.step(name, () => void began.push(`${input}${name}`))
    })
    const light = workflow({ name: 'light', slotClass: 'light' }, () => undefined)
    const x = executorOn(t, {
      workflows: [w, light],
      slots: { default: 1, light: 0 },
      maxChainDepth: 2,
    })
    await x.executor.start()
    const id = await t.start('w', { input: '"1"' })
    await advance(t, 0)
    await between(id)
    first.open()
    for (let i = 0; i < 4; i++) await advance(t, 100)
    void x.executor.stop()
    await advance(t, 0)
    return { run: t.run(id), began }
  }

  it('EX-21 one that came after the claim counts: it is asked for when the depth is reached', async () => {
    const { run, began } = await driven(async () => {
      await t.start('w', { input: '"2"' })
    })
    expect(run).toMatchObject({ status: 'succeeded', attempt: 2 })
    expect(began.slice(0, 2)).toEqual(['1b', '2b'])
  })

  it('EX-21 one that has gone meanwhile and one of another class do not', async () => {
    const { run } = await driven(async () => {
      const gone = await t.start('w', { input: '"2"' })
      await t.engine.cancel({ run: gone, by: 'ana', reason: null })
      await t.start('light')
    })
    expect(run).toMatchObject({ status: 'succeeded', attempt: 1, entries: 4 })
  })
})

describe('EX-20 the supervisor’s limit', () => {
  const made = (drainMs: number, abortGraceMs: number, killLimitMs?: number) =>
    executorOn(t, {
      workflows: [quick],
      drainMs,
      abortGraceMs,
      ...(killLimitMs === undefined ? {} : { killLimitMs }),
    })

  it('EX-20 drain limit and abort grace together must be below the supervisor’s kill limit, where that is known', () => {
    expect(() => made(25_000, 2_000, 30_000)).not.toThrow()
    expect(() => made(25_000, 2_000)).not.toThrow()
    expect(() => made(25_000, 5_000, 30_000)).toThrow(
      expect.objectContaining({
        code: 'invalid_config',
        message: expect.stringMatching(/25 s.*5 s.*killed after 30 s/) as string,
      }) as Error,
    )
    // by the defaults too
    expect(() => executorOn(t, { workflows: [quick], killLimitMs: 20_000 })).toThrow('27 s')
  })
})

describe('RAIL-11 a server that will not have an executor again', () => {
  const no = () =>
    new LeaseholdError(
      'incompatible_protocol',
      'the executor (build test) speaks protocol 1, this server 2; upgrade the executor',
    )
  const refusedLater = async (lost: 'claim' | 'renewal') => {
    const heard: Error[] = []
    const { a, signals, w } = slow()
    const x = executorOn(t, { workflows: [w], error: no, onStopped: (why) => heard.push(why) })
    await x.executor.start()
    await t.start('w')
    await advance(t, 0)
    x.cut.register = 'before'
    if (lost === 'renewal') x.cut.claim = 'never'
    t.sql(
      `update sessions set state = 'ended', ended_at = 1, end_reason = 'lease_lapsed', evidence = 'x' where ended_at is null returning id`,
    )
    await advance(t, 60_000)
    return { a, x, heard, signals }
  }

  it.each(['claim', 'renewal'] as const)(
    'RAIL-11 stops it in the open, with the sentence that says what to upgrade (heard of by a %s)',
    async (by) => {
      const { a, x, heard, signals } = await refusedLater(by)
      expect(x.executor.status()).toMatchObject({
        state: 'stopped',
        stoppedBecause: expect.stringContaining('upgrade the executor') as string,
      })
      expect(heard).toMatchObject([{ code: 'incompatible_protocol' }])
      expect(signals[0]?.aborted).toBe(true)
      expect(
        x.logged.filter(({ event }) => event === 'executor.refused').map(({ level }) => level),
      ).toEqual(['error'])
      expect(x.count('register')).toBe(2)
      const calls = x.calls.length
      a.open()
      await x.executor.stop()
      await advance(t, 60_000)
      expect(x.calls).toHaveLength(calls)
    },
  )

  it('RAIL-11 a refusal that passes, and a server that is away, are waited out', async () => {
    let tries = 0
    const x = executorOn(t, {
      workflows: [quick],
      error: () =>
        ++tries % 2 === 0
          ? new LeaseholdError('draining', 'try again')
          : new Fault('peer_unreachable', 'nobody there'),
    })
    await x.executor.start()
    x.cut.register = 'before'
    t.sql(
      `update sessions set state = 'ended', ended_at = 1, end_reason = 'lease_lapsed', evidence = 'x' where ended_at is null returning id`,
    )
    await advance(t, 40_000)
    expect(tries).toBeGreaterThan(3)
    expect(x.executor.status()).toMatchObject({ state: 'running', stoppedBecause: null })
    x.cut.register = undefined
    await advance(t, 5_000)
    const id = await t.start('w')
    await advance(t, 100)
    expect(t.run(id)['status']).toBe('succeeded')
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('RUN-06 an answer to a renewal that cannot be read is no answer, and takes nobody down', async () => {
    const { x, id } = await (async () => {
      const { w } = slow()
      const x = executorOn(t, { workflows: [w] })
      await x.executor.start()
      const id = await t.start('w')
      await advance(t, 0)
      return { x, id }
    })()
    const renew = t.opened.remote.renew
    t.opened.remote.renew = () => Promise.resolve({ ok: true } as never)
    await advance(t, 12_000)
    expect(x.logged.some(({ event }) => event === 'renewal.unreadable')).toBe(true)
    expect(x.executor.status()).toMatchObject({ lastRenewalAt: null, jobs: [{ run: id }] })
    t.opened.remote.renew = renew
    void x.executor.stop()
    await advance(t, 60_000)
  })
})

describe('SLOT-06 an error that escapes the driver', () => {
  const escaping = async (error: Error, answer: () => Promise<WriteAnswer>) => {
    const thrown: unknown[] = []
    const written: AttemptWrite[] = []
    const logged: { event: string; facts: unknown }[] = []
    const note = (event: string, facts: unknown) => void logged.push({ event, facts })
    const timers = {
      after: t.clock.timers().after,
      soon: (run: () => void) =>
        void setImmediate(() => {
          try {
            run()
          } catch (each) {
            thrown.push(each)
          }
        }),
    }
    const { time } = t.clock
    const random = seededRandom(1)
    const log = { debug: note, info: note, warn: note, error: note } as unknown as Log
    const driver = makeDriver({
      job: makeJob('run_1', 1, 'default', 0),
      claimed: {
        run: 'run_1',
        workflow: 'w',
        version: '1',
        owner: '',
        attempt: 1,
        leasedAt: 0,
        seed: 'run_1',
        firstAt: 0,
        deadline: null,
        attemptDeadline: null,
        failures: 0,
        input: null,
        entries: 0,
        journal: [],
        waits: [],
      },
      ports: { time, timers, random, ids: mintIds(time, random), log },
      turns: makeTurns(timers),
      write: (write) => {
        written.push(write)
        return answer()
      },
      page: () => Promise.resolve([]),
      storeOffset: 0,
      rivals: () => [],
      maxChainDepth: 50,
      retryInMs: () => undefined,
    })
    driver.start(() => {
      driver.ask({
        key: 'a',
        kind: 'step',
        state: 'asked',
        look: () => {
          throw error
        },
        receive: () => undefined,
      })
      return new Promise(() => undefined)
    })
    const left = await driver.left
    await settled(5)
    return { left, written, thrown, events: logged.map(({ event }) => event) }
  }
  const ok: WriteAnswer = {
    ok: true,
    rev: 2,
    directive: null,
    note: null,
    ended: 'failed',
    satisfied: [],
  }

  it('SLOT-06 ends the run failed with that error, and is then thrown on unchanged', async () => {
    const error = new Defect('ours')
    const { left, written, thrown } = await escaping(error, () => Promise.resolve(ok))
    expect(left).toEqual({ kind: 'ended', status: 'failed' })
    expect(written.map(({ end }) => end)).toMatchObject([{ kind: 'fail', note: 'ours' }])
    expect(thrown).toEqual([error])
    expect(thrown[0]).toBe(error)
  })

  it('SLOT-06 a failure of that last write is logged and never hides the first error', async () => {
    const error = new Defect('ours')
    const { left, thrown, events } = await escaping(error, () =>
      Promise.reject(new Error('the store is gone')),
    )
    expect(left).toEqual({ kind: 'dropped', reason: 'the store is gone' })
    expect(events).toEqual(['driver.escaped', 'driver.end_not_saved'])
    expect(thrown).toEqual([error])
  })

  it('SLOT-06 L10 what cannot be read of one run ends that run alone: the process goes on', async () => {
    const { left, thrown } = await escaping(new SyntaxError('no JSON'), () => Promise.resolve(ok))
    expect(left).toEqual({ kind: 'ended', status: 'failed' })
    expect(thrown).toEqual([])
  })
})

describe('EX-22 directives', () => {
  it('EX-22 an answer may say cancel or pause, and the run goes no further', async () => {
    const { a, began, w } = slow()
    const { executor } = executorOn(t, { workflows: [w] })
    await executor.start()
    const ids = [await t.start('w'), await t.start('w')]
    await advance(t, 0)
    await t.engine.pause(ids[0] ?? '', 'ana', null)
    await t.engine.cancel({ run: ids[1] ?? '', by: 'ana', reason: null })
    a.open()
    await advance(t, 0)
    expect(began).toEqual(['a', 'a'])
    expect(ids.map((id) => t.run(id)['status'])).toEqual(['paused', 'canceled'])
    void executor.stop()
    await advance(t, 0)
  })
})

describe('EX-22 EX-12 what does not fit', () => {
  it('EX-22 a directive that cannot be read hands this run back, and no other; none means go on', async () => {
    const { a, began, w } = slow()
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const ids = [await t.start('w'), await t.start('w')]
    await advance(t, 0)
    const { write } = t.opened.remote
    t.opened.remote.write = async (session, each) => {
      const answer = await write(session, each)
      return each.run === ids[0] && each.end === undefined && answer.ok
        ? { ...answer, directive: 'levitate' as never }
        : answer
    }
    // of two entries, so that a write without an end is made
    a.open()
    await advance(t, 500)
    t.opened.remote.write = write
    const ends = t.sql(`select run, reason from attempts where "end" = 'handed_back' order by run`)
    expect(ends).toEqual([{ run: ids[0], reason: 'directive_unreadable' }])
    expect(t.run(ids[1] ?? '')['status']).toBe('succeeded')
    expect(began.filter((each) => each === 'b').length).toBeGreaterThanOrEqual(1)
    expect(x.logged.some(({ event }) => event === 'directive.unreadable')).toBe(true)
    void x.executor.stop()
    await advance(t, 30_000)
  })

  it('EX-12 a result of an attempt that is no longer this job’s is neither validated nor saved', async () => {
    const hold = gate<string>()
    const validated: unknown[] = []
    const output = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          validated.push(value)
          return { value: value as string }
        },
      },
    }
    const w = workflow({ name: 'w', output }, async (ctx) => {
      const first = await ctx.step('a', () => 'a')
      return first + (await hold.opened)
    })
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 100)
    // the session is ended behind its back, and another drives the run
    x.cut.register = 'never'
    t.sql(
      `update sessions set state = 'ended', ended_at = 1, end_reason = 'lease_lapsed', evidence = 'x' where ended_at is null returning id`,
    )
    await t.pass('reap-sessions')
    await advance(t, 15_000)
    expect(x.executor.status().jobs).toEqual([])
    const other = await t.session({ definitions: [w.definition] })
    const run = only(await other.claim(1))
    const writes = x.count('write')
    hold.open('late')
    await advance(t, 2_000)
    expect(validated).toEqual([])
    expect(x.count('write')).toBe(writes)
    expect(t.run(id)).toMatchObject({ status: 'running', session: other.id, attempt: 2 })
    await other.complete(run, 'theirs')
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '"theirs"' })
    void x.executor.stop()
    await advance(t, 30_000)
  })
})

describe('EX-27 seeing it', () => {
  it('EX-27 status is a snapshot, shown with each renewal', async () => {
    const { a, w } = slow()
    const { executor } = executorOn(t, { workflows: [w], slots: { default: 2 } })
    expect(executor.status()).toMatchObject({ state: 'idle', session: null, jobs: [] })
    await executor.start()
    const id = await t.start('w')
    const since = t.clock.time.now()
    await advance(t, 10_000)
    const status = executor.status()
    expect(status).toMatchObject({
      state: 'running',
      session: sessionRow()['id'],
      slots: [{ class: 'default', limit: 2, used: 1 }],
      jobs: [
        {
          run: id,
          workflow: 'w',
          attempt: 1,
          phase: 'running',
          since,
          bodies: 1,
          firstReason: null,
          saved: false,
        },
      ],
      markers: [],
      unreleased: [],
      pollInProgress: true,
      lastRenewalAt: t.clock.time.now(),
      fenced: false,
    })
    expect(JSON.parse(String(sessionRow()['status']))).toMatchObject({ jobs: [{ run: id }] })
    a.open()
    await advance(t, 0)
    expect(status.jobs).toHaveLength(1)
    void executor.stop()
    await advance(t, 0)
  })
})
