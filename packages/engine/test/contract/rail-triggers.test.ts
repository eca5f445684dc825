// Deliveries at the store: claimed once, with what they come to, whatever crashes between.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { refuse } from '../../src/kernel/outcome.ts'
import type { Action } from '../../src/model/trigger.ts'
import { triggerDetail, triggers } from '../../src/queries/triggers.ts'
import { removeTrigger, setTrigger } from '../../src/transitions/set-trigger.ts'
import { takeArrival } from '../../src/transitions/take-arrival.ts'
import { broken, Crash, cutter, dump } from '../support/crash.ts'
import type { Row, Session, TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

const DAY = 86_400_000

let t: TestStore
let session: Session
beforeEach(async () => {
  t = await openStore()
  session = await t.session({
    definitions: [
      definition('w'),
      definition('one', { limits: [{ key: 'only', value: 1, policy: 'reject' }] }),
    ],
  })
})
afterEach(() => t.close())

const action = (more: Partial<Action> = {}): Action => ({
  workflow: 'w',
  key: null,
  owner: '',
  start: { input: { n: 1 }, queue: null, labels: [], priority: 0 },
  signal: null,
  ...more,
})
const signal = { name: 'pushed', payload: { n: 2 } }
let minted = 0
const take = async (delivery: string, what: Parameters<typeof takeArrival>[2] = action()) => {
  const arrival = { hook: 'h', delivery, event: 'push', run: `run_${++minted}` }
  return (await t.engine.act((tx, context) => takeArrival(tx, arrival, what, context))).answer
}
const runs = (): Row[] => t.sql('select id, status, owner, key, input from runs order by id')
const arrivals = (): Row[] =>
  t.sql('select delivery, outcome, run, note, times from arrivals order by delivery')

describe('a delivery', () => {
  test('RAIL-15 is claimed with its run; the same again answers that run, and starts nothing', async () => {
    const first = await take('d1')
    expect(first).toMatchObject({ ok: true, outcome: 'started', repeated: false })
    t.later(2 * DAY)
    const again = await take('d1', action({ workflow: 'nobody any more' }))
    expect(again).toEqual({ ...first, repeated: true })
    expect(only(runs())).toMatchObject({ status: 'queued', input: '{"n":1}' })
    expect(only(arrivals())).toMatchObject({
      outcome: 'started',
      run: only(runs())['id'],
      times: 2,
    })
    expect(await session.claim()).toHaveLength(1)
  })

  test('RAIL-15 B078 of twenty that bring the same at once one starts its run, and all are told of it', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => take('d1')))
    expect(answers.every((answer) => answer.ok)).toBe(true)
    const { id } = only(runs())
    expect(new Set(answers.map((answer) => answer.ok && answer.run))).toEqual(new Set([id]))
    expect(answers.filter((answer) => answer.ok && !answer.repeated)).toHaveLength(1)
    expect(only(arrivals())['times']).toBe(20)
  })

  test('RAIL-15 B079 deliveries that come together are taken each for itself: one that is refused keeps no other', async () => {
    const answers = await Promise.all([
      take('d1'),
      take('d2', action({ workflow: 'nobody' })),
      take('d3', refuse('invalid_input', 'the delivery has nothing at "/x"')),
      take('d4'),
    ])
    expect(answers.map((answer) => (answer.ok ? answer.outcome : answer.code))).toEqual([
      'started',
      'unknown_workflow',
      'invalid_input',
      'started',
    ])
    expect(runs()).toHaveLength(2)
  })

  test('RAIL-15 what was refused is kept with its reason, and taken when it comes again and can be', async () => {
    await t.start('one', { id: 'run_0', input: 'null' })
    expect(await take('d1', action({ workflow: 'one' }))).toMatchObject({ code: 'limit_full' })
    expect(only(arrivals())).toMatchObject({
      outcome: 'refused',
      run: null,
      note: expect.stringContaining('the limit only is full') as string,
    })
    await t.engine.cancel({ run: 'run_0', by: 'ann', reason: null })
    expect(await take('d1', action({ workflow: 'one' }))).toMatchObject({
      outcome: 'started',
      repeated: false,
    })
    expect(only(arrivals())).toMatchObject({ outcome: 'started', note: null, times: 2 })
  })

  test('RAIL-15 whose key has a run already joins it, with the same input or another', async () => {
    const [first] = [await take('d1', action({ key: 'pr-1', owner: 'ann' }))]
    const same = await take('d2', action({ key: 'pr-1', owner: 'ann' }))
    const start = { input: { n: 2 }, queue: null, labels: [], priority: 0 }
    const other = await take('d3', action({ key: 'pr-1', owner: 'ann', start }))
    const run = first?.ok === true ? first.run : null
    expect(same).toMatchObject({ outcome: 'known', run })
    expect(other).toMatchObject({ outcome: 'known', run })
    expect(only(runs())).toMatchObject({ id: run, owner: 'ann', key: 'pr-1' })
  })

  test('RAIL-15 is known for three days, and forgotten after', async () => {
    await take('d1')
    t.later(2 * DAY)
    await take('d2')
    t.later(DAY + 1)
    await t.settle('prune-arrivals')
    expect(arrivals().map((row) => row['delivery'])).toEqual(['d2'])
    const sweep = only(t.sql(`select acted from sweeps where name = 'prune-arrivals'`))
    expect(sweep).toEqual({ acted: 0 })
    expect(await take('d1')).toMatchObject({ outcome: 'started', repeated: false })
  })
})

describe('a signal', () => {
  test('RAIL-15 is sent to the run of the key, once for each delivery', async () => {
    await take('d1', action({ key: 'pr-1' }))
    const { id } = only(runs())
    const send = () => take('d2', action({ key: 'pr-1', start: null, signal }))
    expect(await send()).toEqual({
      ok: true,
      outcome: 'signaled',
      run: id,
      note: null,
      repeated: false,
    })
    expect(await send()).toMatchObject({ outcome: 'signaled', run: id, repeated: true })
    expect(t.sql('select run, name, payload, sent_by from signals')).toEqual([
      { run: id, name: 'pushed', payload: '{"n":2}', sent_by: 'trigger:h' },
    ])
  })

  test('RAIL-15 starts the run where none has the key, of however many that come at once', async () => {
    const both = action({ key: 'pr-1', signal })
    const answers = await Promise.all(['d1', 'd2', 'd3', 'd4'].map((each) => take(each, both)))
    const { id } = only(runs())
    expect(
      answers
        .map((answer) => answer.ok && answer.outcome)
        .toSorted((a, b) => String(a).localeCompare(String(b))),
    ).toEqual(['signaled', 'signaled', 'signaled', 'started'])
    expect(t.sql('select run from signals')).toEqual(Array.from({ length: 3 }, () => ({ run: id })))
  })

  test('RAIL-15 to nobody, or to a run that has ended, is ignored and says so', async () => {
    const send = action({ key: 'pr-1', start: null, signal })
    expect(await take('d1', send)).toMatchObject({ outcome: 'ignored', run: null })
    await take('d2', action({ key: 'pr-1' }))
    await t.engine.cancel({ run: String(only(runs())['id']), by: 'ann', reason: null })
    expect(await take('d3', send)).toMatchObject({
      outcome: 'ignored',
      note: expect.stringContaining('is canceled') as string,
    })
    expect(t.sql('select * from signals')).toEqual([])
  })
})

/** Without how often a delivery came, and the places in line that even a start of what is there may raise. */
const bare = (all: Record<string, Row[]>): unknown => ({
  ...all,
  arrivals: all['arrivals']?.map((row) => ({ ...row, times: 0 })),
  limits: all['limits']?.map((row) => ({ ...row, tag: 0 })),
})

describe('RAIL-01 a process that dies while it takes a delivery', () => {
  const cases: Record<string, (delivery: string) => Promise<unknown>> = {
    'starts a run': (delivery) => take(delivery),
    'starts a run under a key': (delivery) =>
      take(delivery, action({ key: delivery, owner: 'ann' })),
    'sends a signal': (delivery) => take(delivery, action({ key: 'there', start: null, signal })),
    'is refused': (delivery) => take(delivery, action({ workflow: 'nobody' })),
  }
  for (const [name, go] of Object.entries(cases)) {
    test(`RAIL-01 RAIL-15 that ${name} leaves nothing of it at any statement, and all of it after the commit`, async () => {
      await take('d0', action({ key: 'there' }))
      const cut = cutter(t.engine.store)
      let points = 0
      for (let n = 1; ; n++) {
        const untouched = dump(t)
        cut.at(n)
        const outcome = await go('d1').then(
          () => 'done',
          (error: unknown) => error,
        )
        cut.off()
        if (outcome === 'done') break
        if (!(outcome instanceof Crash)) throw outcome
        points += 1
        expect(dump(t)).toEqual(untouched)
      }
      expect(points).toBeGreaterThan(2)
      expect(await broken(t)).toEqual([])
      cut.afterCommit(1)
      await expect(go('d2')).rejects.toThrow(Crash)
      cut.off()
      const done = bare(dump(t))
      await go('d2')
      expect(bare(dump(t))).toEqual(done)
    })
  }
})

describe('a trigger', () => {
  const made = {
    name: 'h',
    kind: 'github' as const,
    spec: {
      secrets: ['s'],
      own: null,
      actorAt: null,
      tokenHeader: null,
      deliveryHeader: null,
      eventHeader: null,
      rules: [
        {
          events: null,
          where: {},
          workflow: 'w',
          key: null,
          owner: null,
          start: action().start,
          signal: null,
        },
      ],
    },
    by: 'ann',
  }

  test('RAIL-15 is set once and again, and what arrived stays known when it is taken away', async () => {
    const set = (by: string) =>
      t.engine.act((tx, context) => setTrigger(tx, { ...made, by }, context))
    await set('ann')
    await take('d1')
    await set('bob')
    const secrets = new Map([['s', 'x']])
    const detail = await t.engine.read((tx) => triggerDetail(tx, 'h', secrets))
    expect(detail).toMatchObject({
      trigger: { name: 'h', kind: 'github', updatedBy: 'bob', path: '/hooks/h' },
      deliveries: [{ delivery: 'd1', outcome: 'started' }],
    })
    const { answer } = await t.engine.act((tx) => removeTrigger(tx, 'h'))
    expect(answer).toEqual({ ok: true, name: 'h' })
    expect((await t.engine.read((tx) => triggers(tx, secrets))).triggers).toEqual([])
    expect(await take('d1')).toMatchObject({ repeated: true })
  })

  test('RAIL-15 whose row somebody has spoilt takes nothing and is shown', async () => {
    await t.engine.act((tx, context) => setTrigger(tx, made, context))
    t.sql(`update triggers set spec = 'nonsense' returning name`)
    const { triggers: found } = await t.engine.read((tx) => triggers(tx, new Map()))
    expect(only(found)).toMatchObject({ name: 'h', secrets: [], rules: [] })
  })
})
