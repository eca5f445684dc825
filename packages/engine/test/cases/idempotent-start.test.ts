import { afterEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Bench } from '../support/cases.ts'
import { definitionOnly, openBench } from '../support/cases.ts'

let bench: Bench
afterEach(() => bench.close())

const w = definitionOnly('w')
const start = (more: object) =>
  bench.engine.start({
    command: { id: bench.ports.ids.next('run'), workflow: 'w', input: '{"a":1,"b":2}', ...more },
    actor: 'ana',
  })

describe('starting twice', () => {
  it.each([false, true])(
    'B147 S22 fifty starts with one key at once make one run, and all are told of it (in one batch: %s)',
    async (batch) => {
      bench = await openBench()
      await bench.hand([w], { embedded: true })
      const items = Array.from({ length: 50 }, (_, i) => ({
        key: 'k',
        ...(i % 2 === 0 ? {} : { input: '{"b":2, "a":1}' }),
      }))
      const answers = batch
        ? await bench.engine.startMany(
            items.map((each) => ({
              command: {
                id: bench.ports.ids.next('run'),
                workflow: 'w',
                input: '{"a":1,"b":2}',
                ...each,
              },
            })),
          )
        : await Promise.all(
            items.map((each, i) =>
              i % 10 === 0
                ? new Promise((resolve) => setImmediate(resolve)).then(() => start(each))
                : start(each),
            ),
          )
      const ids = new Set(answers.map((answer) => (answer.ok ? answer.id : answer.code)))
      expect(ids.size).toBe(1)
      expect([...ids][0]).toMatch(/^run_/)
      expect(answers.filter((answer) => answer.ok && answer.started)).toHaveLength(1)
      expect(bench.count('select count(*) from runs')).toBe(1)
    },
  )

  it('B147 S22 the same key of another owner or workflow is another run', async () => {
    const v = definitionOnly('v')
    bench = await openBench()
    await bench.hand([w, v], { embedded: true })
    const answers = await Promise.all([
      start({ key: 'k' }),
      start({ key: 'k', owner: 'ana' }),
      start({ key: 'k', owner: 'eve' }),
      start({ key: 'k', workflow: 'v' }),
    ])
    expect(new Set(answers.map((answer) => answer.ok && answer.id)).size).toBe(4)
  })

  it.each(['id', 'key', 'command'] as const)(
    'B148 eight starts with one %s, one of them with another input: never a fault, one run, the odd one told which',
    async (by) => {
      bench = await openBench()
      await bench.hand([w], { embedded: true })
      const same = { [by]: by === 'id' ? 'run_x' : 'x' }
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          start({ ...same, ...(i === 3 ? { input: '{"a":2}' } : {}) }),
        ),
      )
      const [first] = answers
      if (!first?.ok) throw new Error('the first was refused')
      for (const [i, answer] of answers.entries())
        expect(answer).toMatchObject(
          i === 3
            ? { ok: false, code: 'key_reused', detail: { run: first.id } }
            : { ok: true, id: first.id, started: i === 0 },
        )
      // sent again after its answer was lost
      expect(await start(same)).toMatchObject({ ok: true, id: first.id, started: false })
      expect(bench.count("select count(*) from events where kind = 'run.started'")).toBe(1)
      expect(bench.count('select count(*) from runs')).toBe(1)
    },
  )

  it('B148 a key stays that of its run when the run has ended', async () => {
    const quick = workflow('quick', () => 'done')
    bench = await openBench()
    await bench.process([quick], { embedded: true })
    const first = await bench.start(quick, null, { key: 'k' })
    await bench.until(async () => (await bench.get(first)).status === 'succeeded', 5_000)
    expect(await bench.start(quick, null, { key: 'k' })).toBe(first)
    await expect(bench.start(quick, 1, { key: 'k' })).rejects.toThrow(/key_reused/)
  })

  it('B149 two that start and await one id get the result of one execution', async () => {
    let bodies = 0
    const quick = workflow('quick', (ctx) =>
      ctx.step('s', () => {
        bodies += 1
        return `body ${bodies}`
      }),
    )
    bench = await openBench()
    await bench.process([quick], { embedded: true })
    await bench.process([quick], { embedded: true })
    const both = async (): Promise<unknown> => {
      const run = await bench.start(quick, null, { id: 'run_x' })
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 5_000)
      return (await bench.get(run)).output
    }
    expect(await Promise.all([both(), both()])).toEqual(['body 1', 'body 1'])
    expect(bodies).toBe(1)
    expect(bench.count('select count(*) from attempts')).toBe(1)
  })

  it.each(['insert on runs', 'insert on events', 'insert on lanes'])(
    'B072 S6 a start that breaks at its %s is not there at all, and is there once when it is sent again',
    async (statement) => {
      bench = await openBench({ manual: true })
      const hand = await bench.hand([w], { embedded: true })
      const before = bench.dump()
      const mend = bench.fail(statement)
      const command = { id: 'run_x', key: 'k', queue: 'elsewhere' }
      await expect(start(command)).rejects.toThrow()
      expect(bench.dump()).toBe(before)
      mend()
      expect(await start(command)).toMatchObject({ ok: true, started: true })
      expect(await hand.claim()).toEqual([])
      expect(bench.count("select count(*) from runs where status = 'queued'")).toBe(1)
    },
  )

  it('B072 RUN-19 one bad start in a batch does not take the others with it', async () => {
    bench = await openBench()
    await bench.hand([w], { embedded: true })
    const mend = bench.fail('insert on runs', "new.id = 'run_bad'")
    const answers = await Promise.allSettled([
      start({ id: 'run_a' }),
      start({ id: 'run_bad' }),
      start({ id: 'run_b' }),
    ])
    mend()
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(bench.db.prepare('select id from runs order by id').pluck().all()).toEqual([
      'run_a',
      'run_b',
    ])
  })

  it('B072 RUN-19 the row is the dispatch: with every hint of the start lost it is claimed within a second', async () => {
    const quick = workflow('quick', () => 'done')
    bench = await openBench()
    await bench.process([quick], { embedded: true, claimWaitMs: 20_000 })
    await bench.advance(3_000)
    const { hub, lanes } = bench.engine
    const { lane } = hub
    const { wake } = lanes
    hub.lane = () => false
    lanes.wake = () => undefined
    const run = await bench.start(quick)
    hub.lane = lane
    lanes.wake = wake
    expect((await bench.get(run)).status).toBe('queued')
    expect(
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 5_000),
    ).toBeLessThanOrEqual(1_000)
  })

  it.each(['insert on steps', 'update on runs', 'insert on attempts'])(
    'B075 a step’s result and the run’s next state are stored together or not at all (%s breaks)',
    async (statement) => {
      let bodies = 0
      const steps = workflow('steps', async (ctx) => {
        const a = await ctx.step('a', () => ++bodies)
        await ctx.sleep('nap', '1m')
        return a
      })
      bench = await openBench()
      await bench.process([steps], { embedded: true })
      const run = await bench.start(steps)
      const mend = bench.fail(
        statement,
        statement === 'update on runs' ? "old.status = 'running'" : '1',
      )
      await bench.advance(3_000)
      expect(bench.count('select count(*) from steps')).toBe(
        bench.count('select entries from runs'),
      )
      if (statement !== 'insert on attempts')
        expect(bench.count('select entries from runs')).toBe(0)
      expect(await bench.get(run)).toMatchObject({ status: 'running', attempt: 1 })
      mend()
      await bench.until(async () => (await bench.get(run)).status === 'succeeded', 120_000)
      // the body was not begun again for it: the write was repeated
      expect(bodies).toBe(1)
      expect((await bench.journal(run)).map(({ key }) => key)).toEqual(['a', 'nap'])
    },
  )
})
