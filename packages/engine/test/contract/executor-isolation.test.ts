import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Isolation } from '../../src/executor/authoring/isolation.ts'
import type { AnyWorkflow } from '../../src/executor/authoring/context.ts'
import type { Executor } from '../../src/executor/executor.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import { podsOn } from '../support/pods.ts'
import { scratchInMemory } from '../support/scratch.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

/** One step that ends when the test says so, whatever its signal says. */
const held = (isolation: Isolation, options: object = {}) => {
  const body = gate<string>()
  const w = workflow({ name: 'w', isolation, ...options }, (ctx) =>
    ctx.step('a', () => body.opened),
  )
  return { body, w }
}

const used = (x: ReturnType<typeof executorOn>): number =>
  x.executor.status().slots.reduce((sum, slot) => sum + slot.used, 0)
const ends = (run: string) =>
  t.sql(`select "end", note, first_reason from attempts where run = '${run}' order by attempt`)

/** An executor that has begun, and what drives the attempts of the workflow: itself, or the latest pod. */
const begun = async (
  isolation: Isolation,
  w: AnyWorkflow,
): Promise<{
  x: ReturnType<typeof executorOn>
  driver: () => Executor
  /** Tells what drives them to stop. */
  stop: () => Promise<void>
}> => {
  const { pods, launcher } = podsOn(t, [w])
  pods.begins = true
  const x = executorOn(t, { workflows: [w], ...(isolation === 'job' ? { launcher } : {}) })
  await x.executor.start()
  return {
    x,
    driver: () => pods.all.at(-1)?.executor ?? x.executor,
    stop: () => pods.all.at(-1)?.tell() ?? x.executor.stop(),
  }
}
/** Longer than it takes until a pod is seen to be gone. */
const SEEN_MS = 5_000

const isolations = ['inline', 'process', 'job'] as const
describe.each(isolations)('EX-24 whatever the isolation: %s', (isolation) => {
  it(`EX-24 a function goes through steps, waits and its result (${isolation})`, async () => {
    const w = workflow({ name: 'w', isolation }, async (ctx, input: number) => {
      const one = await ctx.step('a', () => input + 1)
      await ctx.sleep('pause', '1m')
      const { by } = await ctx.signal<{ by: string }>('go')
      return { one, by, at: await ctx.step('b', (step) => step.tryNumber) }
    })
    const { x } = await begun(isolation, w)
    const id = await t.start('w', { input: '4' })
    await advance(t, SEEN_MS)
    expect(t.run(id)['status']).toBe('waiting')
    expect(used(x)).toBe(0)
    await t.engine.signal({
      id: 'sig_1',
      run: id,
      name: 'go',
      payload: '{"by":"ana"}',
      by: 'ana',
    })
    await advance(t, 70_000)
    expect(t.run(id)['status']).toBe('succeeded')
    expect(JSON.parse(String(t.run(id)['output']))).toEqual({ one: 5, by: 'ana', at: 1 })
    expect(used(x)).toBe(0)
  })

  it(`EX-09 EX-10 the first reason wins, and the slot is held until the body has settled (${isolation})`, async () => {
    const { body, w } = held(isolation, { attemptLimit: '1m' })
    const { x, driver } = await begun(isolation, w)
    const id = await t.start('w')
    await advance(t, 10)
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 100)
    expect(driver().status().jobs).toMatchObject([{ firstReason: 'canceled', saved: true }])
    expect(used(x)).toBe(1)
    body.open('late')
    await advance(t, SEEN_MS)
    expect(t.run(id)['status']).toBe('canceled')
    expect(used(x)).toBe(0)
  })

  it(`EX-17 a drain lets the step end and hands the run back (${isolation})`, async () => {
    const { body, w } = held(isolation)
    const { x, stop } = await begun(isolation, w)
    const id = await t.start('w')
    await advance(t, 10)
    const stopped = stop()
    await advance(t, 1_000)
    body.open('done')
    await advance(t, 1_000)
    await stopped
    await advance(t, SEEN_MS)
    expect(used(x)).toBe(0)
    expect(ends(id).map((each) => each['end'])).toEqual(['completed'])
    expect(t.run(id)['status']).toBe('succeeded')
  })

  it(`EX-18 past the drain limit what still runs is handed back, and its late end is nobody's (${isolation})`, async () => {
    const { body, w } = held(isolation)
    const { stop } = await begun(isolation, w)
    const id = await t.start('w')
    await advance(t, 10)
    const stopped = stop()
    await advance(t, 24_000)
    expect(ends(id)).toEqual([])
    await advance(t, 6_000)
    await stopped
    expect(ends(id)[0]).toMatchObject({ end: 'handed_back' })
    body.open('late')
    await advance(t, 10)
    expect(ends(id)[0]).toMatchObject({ end: 'handed_back' })
  })

  it(`EX-05 a limit of time ends the attempt as a failure (${isolation})`, async () => {
    const w = workflow({ name: 'w', isolation, attemptLimit: '10s' }, (ctx) =>
      ctx.step(
        'a',
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(new Error('aborted'))),
          ),
      ),
    )
    const { x } = await begun(isolation, w)
    const id = await t.start('w')
    await advance(t, 11_000 + SEEN_MS)
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'attempt_deadline' })
    expect(used(x)).toBe(0)
  })
})

describe('EX-24 a process of its own', () => {
  it('EX-24 one that does not heed its signal is told to end after a grace, then killed, and only then is the slot free', async () => {
    const { w } = held('process')
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    const [process] = x.processes.all
    if (process) process.heeds = false
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 4_900)
    expect(process?.signals).toEqual([])
    await advance(t, 200)
    expect(process?.signals).toEqual(['SIGTERM'])
    expect(used(x)).toBe(1)
    await advance(t, 5_000)
    expect(process?.signals).toEqual(['SIGTERM', 'SIGKILL'])
    expect(t.run(id)['status']).toBe('canceled')
    expect(used(x)).toBe(0)
  })

  it('EX-24 what its leader leaves behind in the group holds the slot until it is gone', async () => {
    const { body, w } = held('process')
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    const [process] = x.processes.all
    process?.members.add('grandchild')
    if (process) process.heeds = false
    body.open('done')
    await advance(t, 1_000)
    expect(t.run(id)['status']).toBe('succeeded')
    expect(used(x)).toBe(1)
    await advance(t, 5_000)
    expect(process?.signals).toContain('SIGKILL')
    expect(used(x)).toBe(0)
  })

  it('EX-24 RUN-12 one that dies without an end leaves a lost attempt with its exit as evidence, five times at most', async () => {
    const { w } = held('process', { retry: { maxAttempts: 9 } })
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    for (let i = 0; i < 5; i++) {
      await advance(t, 1_000)
      x.processes.all.at(-1)?.exit('its process was ended by SIGSEGV')
      await advance(t, 1_000)
    }
    const all = ends(id)
    expect(all.map((each) => each['end'])).toEqual(['lost', 'lost', 'lost', 'lost', 'lost'])
    expect(all[0]?.['note']).toBe('its process was ended by SIGSEGV')
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'attempts_exhausted' })
    expect(used(x)).toBe(0)
  })

  it('EX-18 past the drain limit its group is killed at once and its run handed back', async () => {
    const { w } = held('process')
    const x = executorOn(t, { workflows: [w], drainMs: 1_000 })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    const stopped = x.executor.stop()
    await advance(t, 1_500)
    await advance(t, 5_000)
    await stopped
    expect(x.processes.all[0]?.members.size).toBe(0)
    expect(t.run(id)['status']).toBe('queued')
    expect(ends(id)[0]).toMatchObject({ end: 'handed_back', first_reason: 'shutdown' })
  })

  it('EX-24 a lease that is lost kills it, and nothing it says is stored', async () => {
    const { w } = held('process')
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    await t.start('w')
    await advance(t, 10)
    const writes = x.count('write')
    x.cut.renew = 'before'
    await advance(t, 30_000)
    expect(x.processes.all[0]?.members.size).toBe(0)
    expect(x.count('write')).toBe(writes)
    expect(used(x)).toBe(0)
  })

  it('EX-26 one that answers no ping within the limit is killed, and its attempt is lost', async () => {
    const { w } = held('process')
    const x = executorOn(t, { workflows: [w], stallLimitMs: 8_000 })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 20_000)
    expect(x.processes.all[0]?.signals).toEqual([])
    const [process] = x.processes.all
    if (process) process.stalled = true
    await advance(t, 12_000)
    expect(process?.signals).toEqual(['SIGKILL'])
    expect(ends(id)[0]).toMatchObject({ end: 'lost' })
  })

  it('EX-26 a start kills what a dead session left, by number and start, and nobody who has the number by now', async () => {
    const scratch = scratchInMemory()
    const { w } = held('process')
    const x = executorOn(t, { workflows: [w], scratch })
    const label = { session: 'ses_gone', run: 'run_1', attempt: 1 }
    const left = x.processes.stray(7, 'then', label)
    const other = x.processes.stray(8, 'today', { ...label, run: 'run_2' })
    await scratch.noteProcess(label, { pid: 7, began: 'then' })
    await scratch.noteProcess({ ...label, run: 'run_2' }, { pid: 8, began: 'then' })
    await x.executor.start()
    await advance(t, 1_000)
    expect([left.members.size, left.signals]).toEqual([0, ['SIGKILL']])
    expect([other.members.size, other.signals]).toEqual([1, []])
    expect(scratch.processes.size).toBe(0)
  })

  it('EX-26 a process is noted on its host before it is given anything, and until nothing of it is alive', async () => {
    const scratch = scratchInMemory()
    const { body, w } = held('process')
    const x = executorOn(t, { workflows: [w], scratch })
    await x.executor.start()
    await t.start('w')
    await advance(t, 10)
    const [process] = x.processes.all
    expect([...scratch.processes.values()]).toMatchObject([{ leader: { pid: process?.pid } }])
    body.open('done')
    await advance(t, 1_000)
    expect(scratch.processes.size).toBe(0)
  })

  it('EX-24 an executor that can start no processes refuses a workflow that wants one', () => {
    const { w } = held({ kind: 'process', memoryMb: 64, env: ['KEY'] })
    expect(w.definition.isolation).toBe('process')
    expect(() => executorOn(t, { workflows: [w], processes: undefined } as never)).toThrow(
      /w is to run in a process of its own/,
    )
    expect(() => held({ kind: 'process', memoryMb: 1 })).toThrow(/at least 16/)
  })
})

describe('EX-24 a sandbox', () => {
  const strict = workflow(
    { name: 'strict', isolation: { kind: 'process', sandbox: true } },
    () => 1,
  )

  it('EX-24 is part of what a process is started with, as its author has it', async () => {
    const loose = workflow(
      {
        name: 'loose',
        isolation: { kind: 'process', sandbox: { network: true, writable: ['/var/spool'] } },
      },
      () => 2,
    )
    const bare = workflow({ name: 'bare', isolation: { kind: 'process', sandbox: false } }, () => 3)
    const x = executorOn(t, { workflows: [strict, loose, bare] })
    await x.executor.start()
    for (const name of ['strict', 'loose', 'bare']) await t.start(name)
    await advance(t, 1_000)
    expect(
      Object.fromEntries(x.processes.all.map(({ order }) => [order.workflow, order.sandbox])),
    ).toEqual({
      strict: { network: false, writable: [] },
      loose: { network: true, writable: ['/var/spool'] },
      bare: null,
    })
  })

  it.each([
    [() => Promise.resolve('bwrap ended with 1: no namespaces'), 'no namespaces'],
    [undefined, 'what starts its processes makes none'],
  ])(
    'EX-24 that cannot be made is refused before the executor registers, and runs nowhere without',
    async (whyNoSandbox, why) => {
      const earlier = executorOn(t, { workflows: [strict] })
      await earlier.executor.start()
      await earlier.executor.stop()
      const { spawn, isAlive, signal } = earlier.processes
      const x = executorOn(t, {
        workflows: [strict],
        processes: { spawn, isAlive, signal, ...(whyNoSandbox ? { whyNoSandbox } : {}) },
      })
      const id = await t.start('strict')
      await expect(x.executor.start()).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringMatching(
          new RegExp(`^strict is to run in a sandbox, and this host cannot make it: .*${why}`),
        ) as string,
      })
      await advance(t, 60_000)
      expect(x.executor.state).toBe('idle')
      expect(x.count('register')).toBe(0)
      expect(t.run(id)).toMatchObject({ status: 'queued', attempt: 0 })
    },
  )

  it('EX-24 an executor that is stopped while it is asked for stops', async () => {
    let answer: (why: string | null) => void = () => undefined
    const x = executorOn(t, { workflows: [strict] })
    x.processes.whyNoSandbox = () => new Promise((resolve) => (answer = resolve))
    const started = x.executor.start()
    const stopped = x.executor.stop()
    answer(null)
    await expect(started).rejects.toMatchObject({ code: 'draining' })
    await stopped
    expect(x.executor.state).toBe('stopped')
  })
})
