import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import { scratchInMemory } from '../support/scratch.ts'
import type { TestStore } from '../support/store.ts'
import { only, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

/** A workflow that takes a thing for each attempt; whether it can be given back is for the test to say. */
const taking = () => {
  const things = { held: new Set<string>(), released: [] as unknown[], jammed: false }
  const body = gate()
  const w = workflow(
    {
      name: 'w',
      prepare: (_input: unknown, { run, attempt }) => {
        const thing = `${run}.${attempt}`
        things.held.add(thing)
        return { thing }
      },
      release: (prepared) => {
        things.released.push(prepared)
        if (things.jammed) throw new Error('the thing is jammed')
        things.held.delete((prepared as { thing: string }).thing)
      },
    },
    (ctx) => ctx.step('a', () => body.opened),
  )
  return { things, body, w }
}

const stop = async (x: ReturnType<typeof executorOn>): Promise<void> => {
  void x.executor.stop()
  await advance(t, 60_000)
}

describe('EX-15 what is taken is released, or nothing new is taken', () => {
  it('EX-15 it is released when the work has settled, not when its end is asked for, whatever the end', async () => {
    const { things, body, w } = taking()
    const scratch = scratchInMemory()
    const x = executorOn(t, { workflows: [w], scratch })
    await x.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    expect([...scratch.notes.values()]).toMatchObject([
      {
        label: { run: id },
        note: { workflow: 'w', prepared: JSON.stringify({ thing: `${id}.1` }) },
      },
    ])
    await t.engine.cancel({ run: id, by: 'ana', reason: null })
    await advance(t, 10)
    expect(things.held.size).toBe(1)
    body.open()
    await advance(t, 10)
    expect(t.run(id)['status']).toBe('canceled')
    expect(things.held.size).toBe(0)
    expect(scratch.notes.size).toBe(0)
    expect(x.executor.status()).toMatchObject({ jobs: [], markers: [], unreleased: [] })
    await stop(x)
  })

  it('EX-15 where it cannot be, the executor takes nothing new in any class, and says so, until an operator clears it', async () => {
    const { things, body, w } = taking()
    const light = workflow({ name: 'light', slotClass: 'light' }, () => 'done')
    const x = executorOn(t, { workflows: [w, light], slots: { default: 5, light: 5 } })
    await x.executor.start()
    const id = await t.start('w')
    things.jammed = true
    body.open()
    await advance(t, 10)
    expect(t.run(id)['status']).toBe('succeeded')
    const note = 'what w had prepared cannot be released: the thing is jammed'
    expect(x.executor.status().unreleased).toMatchObject([{ kind: 'unreleased', run: id, note }])
    // the facts are stored at once, where operators look
    await advance(t, 10)
    const shown = JSON.parse(String(only(t.sql('select status from sessions'))['status'])) as object
    expect(shown).toMatchObject({ unreleased: [{ run: id, note }] })
    // a claim that was under way brings nothing that would be kept
    const other = await t.start('light')
    await advance(t, 30_000)
    await t.pass('poll-lanes')
    await advance(t, 10)
    expect(t.run(other)['status']).toBe('queued')
    expect(x.executor.clear(id)).toBe(1)
    expect(x.executor.clear(id)).toBe(0)
    await t.pass('poll-lanes')
    await advance(t, 30_000)
    expect(t.run(other)['status']).toBe('succeeded')
    expect(x.executor.status()).toMatchObject({ unreleased: [], slots: [{ used: 0 }, { used: 0 }] })
    await stop(x)
  })

  it('EX-15 a release that hangs is told of after its limit, and holds its slot from the first turn on', async () => {
    const w = workflow(
      { name: 'w', prepare: () => 1, release: () => new Promise<void>(() => undefined) },
      () => 'done',
    )
    const x = executorOn(t, { workflows: [w], slots: { default: 1 } })
    await x.executor.start()
    await t.start('w')
    await advance(t, 10)
    expect(only([...x.executor.status().slots])).toMatchObject({ used: 1 })
    await advance(t, 30_000)
    expect(x.executor.status().unreleased).toMatchObject([
      { note: 'what w had prepared cannot be released: it had not ended after 30 s' },
    ])
    await stop(x)
  })

  it('EX-15 a later start releases what a killed process held, before it claims anything', async () => {
    const { things, w } = taking()
    const scratch = scratchInMemory()
    const killed = executorOn(t, { workflows: [w], scratch })
    await killed.executor.start()
    const id = await t.start('w')
    await advance(t, 10)
    killed.cut = { claim: 'never', write: 'never', renew: 'never', close: 'never' }
    // given another on this host, which finds what the first had noted
    const x = executorOn(t, { workflows: [w], scratch, seed: 8 })
    await x.executor.start()
    await advance(t, 10)
    expect(things.released).toEqual([{ thing: `${id}.1` }])
    expect(scratch.notes.size).toBe(0)
    expect(x.executor.status()).toMatchObject({ unreleased: [] })
    await stop(x)
    await stop(killed)
  })

  it('EX-15 a later start that cannot release it takes nothing either', async () => {
    const { things, w } = taking()
    const light = workflow('light', () => 'done')
    const scratch = scratchInMemory()
    things.jammed = true
    const label = { session: 'ses_gone', run: 'run_gone', attempt: 3 }
    await scratch.note(label, { workflow: 'w', version: '1', prepared: '{"thing":"x"}' })
    const x = executorOn(t, { workflows: [w, light], scratch })
    await x.executor.start()
    const id = await t.start('light')
    await advance(t, 30_000)
    expect(x.executor.status().unreleased).toMatchObject([{ run: 'run_gone', attempt: 3 }])
    expect(t.run(id)['status']).toBe('queued')
    expect(scratch.notes.size).toBe(1)
    expect(x.executor.clear('run_gone')).toBe(1)
    // what somebody has seen to is asked of no later start
    expect(scratch.notes.size).toBe(0)
    await t.pass('poll-lanes')
    await advance(t, 30_000)
    expect(t.run(id)['status']).toBe('succeeded')
    await stop(x)
  })
})
