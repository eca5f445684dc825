import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Preparation } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { Fault, FatalError } from '../../src/kernel/errors.ts'
import type { AttemptWrite } from '../../src/model/work.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import { scratchInMemory } from '../support/scratch.ts'
import type { TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

type Options = Parameters<typeof workflow>[0] & object
/** A workflow whose preparation and whose only step wait for gates. */
const prepared = (options: Partial<Extract<Options, { name: string }>> = {}) => {
  const making = gate<unknown>()
  const body = gate()
  const seen = {
    prepares: [] as Preparation[],
    signals: [] as AbortSignal[],
    began: [] as unknown[],
  }
  const w = workflow(
    {
      name: 'w',
      prepare: (_input: unknown, preparation) => {
        seen.prepares.push(preparation)
        seen.signals.push(preparation.signal)
        return making.opened
      },
      ...options,
    },
    async (ctx) => {
      seen.began.push(ctx.prepared())
      await ctx.step('a', ({ signal }) => {
        seen.signals.push(signal)
        return body.opened
      })
      return 'done'
    },
  )
  return { making, body, seen, w }
}

const begun = async (
  made: ReturnType<typeof prepared>,
  options: Partial<Parameters<typeof executorOn>[1]> = {},
) => {
  const scratch = scratchInMemory()
  const x = executorOn(t, { workflows: [made.w], slots: { default: 1 }, scratch, ...options })
  await x.executor.start()
  const id = await t.start('w')
  await advance(t, 10)
  const job = () => only([...x.executor.status().jobs])
  const slots = () => only([...x.executor.status().slots])
  const stop = async (): Promise<void> => {
    void x.executor.stop()
    await advance(t, 60_000)
  }
  return { x, id, job, slots, scratch, stop }
}
const kinds = (run: string) =>
  t.sql(`select kind from events where run = '${run}' order by rev, seq`).map(({ kind }) => kind)
const attempts = () => t.sql('select attempt, "end", reason, first_reason from attempts')

describe('EX-05 the preparation of a run that goes on', () => {
  /** A run that has a step in its journal and whose second attempt is being prepared. */
  const resumed = async () => {
    const makings = [gate<unknown>(), gate<unknown>()]
    const aborts: AbortSignal[] = []
    const w = workflow(
      {
        name: 'w',
        prepare: (_input: unknown, { signal }) => {
          aborts.push(signal)
          return makings[aborts.length - 1]?.opened
        },
      },
      async (ctx) => {
        const first = await ctx.step('a', () => 1)
        await ctx.sleep('for a while', '1s')
        return first
      },
    )
    const x = executorOn(t, { workflows: [w], scratch: scratchInMemory() })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    makings[0]?.open('first')
    await advance(t, 1_000)
    expect(t.run(id)).toMatchObject({ status: 'waiting', entries: 1 })
    await t.pass('wake-due')
    await advance(t, 10)
    expect(aborts).toHaveLength(2)
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
    return { x, id, making: makings[1], aborts }
  }

  it('EX-05 RUN-26 may take as long as it has: nobody departs from a journal before the function has begun', async () => {
    const { x, id, making } = await resumed()
    await advance(t, 30_000)
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
    making?.open('second')
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', output: '1', attempt: 2 })
    void x.executor.stop()
    await advance(t, 60_000)
  })

  it('EX-06 is awaited when the run is paused: it is handed back once that has settled', async () => {
    const { x, id, making, aborts } = await resumed()
    await t.engine.pause(id, 'ana', null)
    await advance(t, 11_000)
    expect(t.run(id)).toMatchObject({ status: 'running', attempt: 2 })
    making?.open('second')
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'paused', attempt: 2 })
    expect(aborts).toHaveLength(2)
    void x.executor.stop()
    await advance(t, 60_000)
  })
})

describe('EX-05 preparation', () => {
  it('EX-05 comes before the function, is shown and recorded, and gives it what it made', async () => {
    const made = prepared()
    const { id, job, scratch, stop } = await begun(made)
    expect(job()).toMatchObject({ phase: 'preparing', bodies: 1 })
    expect(made.seen.began).toEqual([])
    expect(kinds(id)).toEqual(['attempt.preparing'])
    expect(made.seen.prepares[0]?.directory).toBe(only([...scratch.directories]))
    made.making.open({ head: 'abc' })
    await advance(t, 10)
    expect(job()).toMatchObject({ phase: 'running' })
    expect(made.seen.began).toEqual([{ head: 'abc' }])
    expect(kinds(id)).toEqual(['attempt.preparing', 'attempt.launched'])
    made.body.open()
    await advance(t, 10)
    expect(t.run(id)['status']).toBe('succeeded')
    await stop()
  })

  it('EX-05 a run without preparation is running by its claim, and records no phase', async () => {
    const w = workflow('w', (ctx) => ctx.step('a', () => 1))
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    expect(t.run(id)['status']).toBe('succeeded')
    expect(kinds(id)).toEqual([])
    void x.executor.stop()
    await advance(t, 0)
  })

  it('EX-05 its own limit ends the attempt "Timed out while preparing.", and nothing later replaces that', async () => {
    const made = prepared({ prepareLimit: 1_000, prepareRetry: { maxAttempts: 1 } })
    const { x, id, job, stop } = await begun(made)
    await advance(t, 1_000)
    expect(made.seen.signals[0]?.aborted).toBe(true)
    // unsettled: the slot stays held, and a cancel comes too late to be the reason
    expect(job()).toMatchObject({ phase: 'settling', firstReason: null, bodies: 1 })
    t.engine.hub.tell(x.executor.status().session ?? '', {
      run: id,
      attempt: 1,
      directive: 'cancel',
      note: 'too late',
    })
    await advance(t, 10)
    expect(job()).toMatchObject({ firstReason: null })
    made.making.fail(new Error('its own'))
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({
      status: 'failed',
      reason: 'prepare_timeout',
      note: 'Timed out while preparing.',
    })
    expect(made.seen.began).toEqual([])
    await stop()
  })

  it('EX-05 one that ignores its signal keeps its slot, while the run goes on after a grace', async () => {
    const made = prepared({ prepareLimit: 1_000 })
    const { x, id, slots, stop } = await begun(made)
    await advance(t, 1_000)
    expect(t.run(id)['status']).toBe('running')
    await advance(t, 10_000)
    expect(t.run(id)).toMatchObject({ status: 'waiting', reason: 'retry' })
    expect(slots()).toMatchObject({ used: 1 })
    await advance(t, 5_000)
    expect(made.seen.prepares).toHaveLength(1)
    made.making.open(null)
    await advance(t, 10)
    // the slot was free in that turn, and the run's next attempt has it
    expect(x.executor.status().jobs).toMatchObject([{ run: id, attempt: 2 }])
    expect(made.seen.prepares).toHaveLength(2)
    expect(made.seen.began).toHaveLength(1)
    made.body.open()
    await advance(t, 10)
    expect(t.run(id)['status']).toBe('succeeded')
    await stop()
  })

  it('EX-05 the deadline of the attempt before launch fails it "Timed out" without a first reason', async () => {
    const made = prepared({ attemptLimit: 2_000 })
    const { id, job, stop } = await begun(made)
    await advance(t, 2_000)
    expect(job()).toMatchObject({ firstReason: null, phase: 'settling' })
    made.making.open(null)
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({
      status: 'failed',
      reason: 'attempt_deadline',
      note: 'Timed out',
    })
    expect(attempts()).toMatchObject([{ first_reason: null, end: 'failed' }])
    expect(made.seen.began).toEqual([])
    await stop()
  })

  it('EX-05 a preparation that fails is tried twice by default, one that is final once', async () => {
    for (const [error, tries] of [
      [new Error('no disk'), 2],
      [new FatalError('never'), 1],
    ] as const) {
      let calls = 0
      const w = workflow(
        {
          name: `w${tries}`,
          prepare: () => {
            calls += 1
            throw error
          },
        },
        () => 'never',
      )
      const x = executorOn(t, { workflows: [w] })
      await x.executor.start()
      const id = await t.start(w.name)
      for (let i = 0; i < 5; i++) {
        await advance(t, 2_000)
        await t.pass('wake-due')
      }
      await advance(t, 100)
      expect(calls).toBe(tries)
      expect(t.run(id)).toMatchObject({
        status: 'failed',
        reason: 'prepare_failed',
        note: error.message,
      })
      void x.executor.stop()
      await advance(t, 0)
    }
  })
})

describe('EX-06 the launch check', () => {
  it('EX-06 EX-28 a context that changes before launch ends the run stale, and no body begins', async () => {
    let head = 'rev 1'
    const made = prepared({ context: () => head })
    const { id, stop } = await begun(made)
    head = 'rev 2'
    made.making.open(null)
    await advance(t, 10)
    expect(made.seen.began).toEqual([])
    expect(t.run(id)).toMatchObject({
      status: 'failed',
      reason: 'stale',
      note: 'the context was rev 1 when the attempt began and is rev 2 now',
    })
    expect(attempts()).toMatchObject([{ end: 'stale', first_reason: 'stale' }])
    await stop()
  })

  it('EX-12 a context that changes while the function runs: its result is not saved', async () => {
    let head = 'rev 1'
    const made = prepared({ context: () => head })
    const { id, stop } = await begun(made)
    made.making.open(null)
    await advance(t, 10)
    head = 'rev 2'
    made.body.open()
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'stale', output: null })
    await stop()
  })

  it('EX-12 RUN-13 a context that is read for long after the function has returned suspends nothing meanwhile', async () => {
    const reading = gate<string>()
    let asked = 0
    const w = workflow(
      { name: 'w', context: () => (++asked > 2 ? reading.opened : 'rev 1') },
      async (ctx) => {
        void ctx.sleep('for nobody', '1h')
        await ctx.step('a', () => 1)
      },
    )
    const { executor } = executorOn(t, { workflows: [w] })
    await executor.start()
    const id = await t.start('w')
    await advance(t, 5_000)
    expect(t.run(id)['status']).toBe('running')
    reading.open('rev 1')
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'failed' })
    expect(String(t.run(id)['error'])).toContain('unawaited_step')
    void executor.stop()
    await advance(t, 60_000)
  })

  it('EX-08 a context that cannot be read ends the attempt failed', async () => {
    const made = prepared({
      context: () => {
        throw new FatalError('no repository')
      },
    })
    const { id, x, stop } = await begun(made)
    expect(t.run(id)).toMatchObject({ status: 'failed', note: 'no repository' })
    expect(x.executor.status().jobs).toEqual([])
    await stop()
  })

  it('EX-06 a stop during preparation ends from its first reason, later stops change nothing', async () => {
    const made = prepared()
    const { x, id, job, stop } = await begun(made)
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 10)
    expect(job()).toMatchObject({ firstReason: 'canceled', saved: true, phase: 'settling' })
    expect(made.seen.signals[0]?.aborted).toBe(true)
    const stopping = x.executor.stop()
    await advance(t, 10)
    expect(job()).toMatchObject({ firstReason: 'canceled' })
    made.making.open(null)
    await advance(t, 10)
    await stopping
    expect(t.run(id)).toMatchObject({ status: 'canceled' })
    expect(made.seen.began).toEqual([])
    await stop()
  })

  it('EX-11 a shutdown during preparation hands the run back, and it is prepared anew elsewhere', async () => {
    const made = prepared()
    const { x, id } = await begun(made)
    const stopping = x.executor.stop()
    await advance(t, 10)
    expect(made.seen.signals[0]?.aborted).toBe(true)
    made.making.open(null)
    await advance(t, 10)
    await stopping
    expect(t.run(id)).toMatchObject({ status: 'queued' })
    expect(attempts()).toMatchObject([{ end: 'handed_back', reason: 'shutdown' }])
    expect(made.seen.began).toEqual([])
  })
})

describe('EX-07 starts that throw', () => {
  it('EX-07 a function that throws at once ends the attempt failed with that error', async () => {
    const w = workflow({ name: 'w', prepare: () => null }, () => {
      throw new Error('not today')
    })
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'failed', reason: 'error', note: 'not today' })
    void x.executor.stop()
    await advance(t, 0)
  })
})

/** Fails the writes that `which` picks with an error of the store that no repeat mends. */
const failing = (which: (write: AttemptWrite) => boolean) => {
  const { write } = t.opened.remote
  t.opened.remote.write = (session, each) =>
    which(each)
      ? Promise.reject(new Fault('store_read_only', 'the disk is full', { retryable: false }))
      : write(session, each)
  return () => void (t.opened.remote.write = write)
}

describe('EX-08 EX-14 what cannot be saved', () => {
  it('EX-08 a launch that cannot be stored cancels the work, awaits it, and keeps its slot under a marker', async () => {
    const made = prepared()
    const { x, id, slots, stop } = await begun(made)
    const mend = failing(({ phase }) => phase === 'launched')
    made.making.open(null)
    await advance(t, 10)
    // the function was called, and no body of it begins before its launch is stored
    expect(made.seen.began).toHaveLength(1)
    expect(made.seen.signals).toHaveLength(1)
    expect(slots()).toMatchObject({ used: 1 })
    mend()
    expect(x.executor.status()).toMatchObject({
      jobs: [],
      markers: [{ kind: 'start_not_saved', run: id }],
      slots: [{ used: 1 }],
    })
    expect(t.run(id)).toMatchObject({ status: 'queued' })
    expect(attempts()).toMatchObject([
      { end: 'handed_back', reason: 'start_not_saved', first_reason: 'capture_failure' },
    ])
    await stop()
  })

  it('EX-08 a launch of a run that the store is canceling is not recorded, and its work is canceled', async () => {
    const made = prepared()
    const { x, id, stop } = await begun(made)
    // the cancel is in the store, and nobody has told of it
    t.sql(
      `update runs set status = 'canceling', cancel_requested_at = 1 where id = '${id}' returning id`,
    )
    made.making.open(null)
    await advance(t, 10)
    made.body.open()
    await advance(t, 10)
    expect(kinds(id)).not.toContain('attempt.launched')
    expect(t.run(id)).toMatchObject({ status: 'canceled' })
    expect(x.executor.status().jobs).toEqual([])
    await stop()
  })

  it('EX-14 a result that cannot be saved keeps its slot by a marker that was there before the job went, and not the run', async () => {
    const made = prepared()
    const { x, id, slots, scratch, stop } = await begun(made)
    const mend = failing(({ end }) => end?.kind === 'complete')
    made.making.open(null)
    await advance(t, 10)
    const used: number[] = []
    made.body.open()
    for (let i = 0; i < 20; i++) {
      used.push(Number(slots().used))
      await advance(t, 0)
    }
    mend()
    expect(new Set(used)).toEqual(new Set([1]))
    expect(x.executor.status()).toMatchObject({
      jobs: [],
      markers: [{ kind: 'result_not_saved', run: id, note: 'the disk is full' }],
    })
    // its files stay for recovery, the run goes on elsewhere, and a claim here does not get it again
    expect([...scratch.directories]).toHaveLength(1)
    expect(t.run(id)).toMatchObject({ status: 'queued' })
    x.executor.setSlots('default', 3)
    await advance(t, 30_000)
    expect(t.run(id)).toMatchObject({ status: 'queued', attempt: 1 })
    const other = executorOn(t, { workflows: [made.w], seed: 8, scratch })
    await other.executor.start()
    await advance(t, 100)
    expect(t.run(id)).toMatchObject({ status: 'succeeded', attempt: 2 })
    void other.executor.stop()
    await stop()
  })

  it('EX-14 a result whose answer does not come is sent again while the lease lasts, and leaves no marker', async () => {
    const made = prepared()
    const { x, id, stop } = await begun(made)
    made.making.open(null)
    await advance(t, 10)
    x.cut.write = 'after'
    made.body.open()
    await advance(t, 3_000)
    expect(x.executor.status().jobs).toHaveLength(1)
    x.cut.write = undefined
    await advance(t, 3_000)
    expect(x.executor.status()).toMatchObject({ jobs: [], markers: [] })
    expect(t.run(id)).toMatchObject({ status: 'succeeded' })
    await stop()
  })
})

describe('EX-16 files of preparation', () => {
  it('EX-16 are removed when the work has settled and its end is stored, not before', async () => {
    const made = prepared()
    const { x, scratch, stop } = await begun(made)
    made.making.open(null)
    await advance(t, 10)
    expect([...scratch.directories]).toHaveLength(1)
    x.cut.write = 'before'
    made.body.open()
    await advance(t, 500)
    expect([...scratch.directories]).toHaveLength(1)
    x.cut.write = undefined
    await advance(t, 3_000)
    expect([...scratch.directories]).toEqual([])
    expect(x.executor.status()).toMatchObject({ jobs: [], markers: [] })
    await stop()
  })

  it('EX-16 that cannot be removed keep the slot under a marker that names them', async () => {
    const made = prepared()
    const { x, id, scratch, slots, stop } = await begun(made)
    scratch.failing = new Error('device or resource busy')
    made.making.open(null)
    made.body.open()
    await advance(t, 10)
    expect(t.run(id)).toMatchObject({ status: 'succeeded' })
    expect(x.executor.status().markers).toMatchObject([
      {
        kind: 'preparation_not_removed',
        run: id,
        note: `${only([...scratch.directories])} cannot be removed: device or resource busy`,
      },
    ])
    expect(slots()).toMatchObject({ used: 1 })
    await stop()
  })

  it('EX-16 a removal that hangs is given up after its limit, and the slot is held from the first turn on', async () => {
    const made = prepared()
    const { x, scratch, slots, stop } = await begun(made)
    scratch.failing = new Promise(() => undefined)
    made.making.open(null)
    made.body.open()
    await advance(t, 10)
    expect(slots()).toMatchObject({ used: 1 })
    await advance(t, 30_000)
    expect(x.executor.status()).toMatchObject({
      jobs: [],
      markers: [{ kind: 'preparation_not_removed' }],
      slots: [{ used: 1 }],
    })
    await stop()
  })

  it('EX-28 saving the result and removing the files both failing: the result is what the marker names', async () => {
    const made = prepared()
    const { x, scratch, stop } = await begun(made)
    scratch.failing = new Error('busy')
    const mend = failing(({ end }) => end?.kind === 'complete')
    made.making.open(null)
    made.body.open()
    await advance(t, 10)
    mend()
    expect(x.executor.status().markers).toMatchObject([{ kind: 'result_not_saved' }])
    expect([...scratch.directories]).toHaveLength(1)
    await stop()
  })
})
