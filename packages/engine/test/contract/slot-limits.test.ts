import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Definition, LimitDeclaration } from '../../src/model/definition.ts'
import type { StartCommand } from '../../src/model/start.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import { explain } from '../../src/queries/explain.ts'
import { slots as slotsView } from '../../src/queries/operations.ts'
import { admit } from '../../src/transitions/admit.ts'
import { setLimit } from '../../src/transitions/set-limit.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

let t: TestStore
let a: Session
afterEach(() => t.close())

const open = async (settings = {}): Promise<void> => {
  t = await openStore({ settings })
  a = await t.session({ embedded: true, definitions: [definition('w'), definition('c')] })
}
const limited = (name: string, limits: LimitDeclaration[], more: Partial<Definition> = {}) =>
  t.session({ embedded: true, definitions: [definition(name, { limits, ...more })] })
const lines = (): Promise<void> => t.settle('apply-orders', 'admit-waiting')
const start = (workflow: string, input: unknown, command: Partial<StartCommand> = {}) =>
  t.start(workflow, { input: JSON.stringify(input), ...command })
const status = (...ids: string[]): string[] =>
  ids.map((id) => {
    const row = t.run(id)
    return row['wait_on'] === null ? String(row['status']) : `${row['status']}:${row['wait_on']}`
  })
const claim = async (s: Session, id: string): Promise<ClaimedRun> => {
  await t.pass('poll-lanes')
  const all = await s.claim(20)
  for (const each of all)
    if (each.run !== id) await s.end(each, { kind: 'hand_back', reason: 'shutdown' })
  const found = all.find((each) => each.run === id)
  if (!found) throw new Error(`${id} was not claimed: it is ${status(id).join()}`)
  return found
}
const operator = (key: string, value: number | null, weight: number | null = null) =>
  t.engine.act((tx) => setLimit(tx, { key, value, mode: 'while_held', weight, by: 'op' }))

describe('SLOT-01 limits', () => {
  beforeEach(() => open())

  it('SLOT-01 an owner has ten by default; more wait in line and follow as slots are freed', async () => {
    const ids = await Promise.all(
      Array.from({ length: 12 }, () => start('w', null, { owner: 'ana' })),
    )
    const other = await start('w', null, { owner: 'bob' })
    const none = await start('w', null)
    expect(ids.map((id) => status(id)[0]).filter((each) => each === 'queued')).toHaveLength(10)
    expect(status(other, none)).toEqual(['queued', 'queued'])
    const waiting = ids.filter((id) => status(id)[0] === 'waiting:slot')
    const held = ids.find((id) => status(id)[0] === 'queued') ?? ''
    await t.engine.cancel({ run: held, by: 'x', reason: null })
    await lines()
    expect(waiting.map((id) => status(id)[0]).sort()).toEqual(['queued', 'waiting:slot'])
  })

  it('SLOT-01 a key is computed from the input, each value with a line of its own', async () => {
    await limited('l', [{ key: 'customer:{customer.id}', value: 1 }])
    const [one, two, other] = [
      await start('l', { customer: { id: 7 } }),
      await start('l', { customer: { id: 7 } }),
      await start('l', { customer: { id: '8' } }),
    ]
    expect(status(one, two, other)).toEqual(['queued', 'waiting:slot', 'queued'])
    expect(await t.startAnswer('l', { input: '{"customer":{}}' })).toMatchObject({
      ok: false,
      code: 'invalid_input',
    })
  })

  it('SLOT-01 a run takes as many units as its input says', async () => {
    await limited('l', [{ key: 'gpu', value: 5, units: 'gpus' }])
    const three = await start('l', { gpus: 3 })
    const two = await start('l', { gpus: 2 })
    const one = await start('l', { gpus: 1 })
    expect(status(three, two, one)).toEqual(['queued', 'queued', 'waiting:slot'])
    for (const gpus of [0, 1.5, -1, 'x', null])
      expect(await t.startAnswer('l', { input: JSON.stringify({ gpus }) })).toMatchObject({
        code: 'invalid_input',
      })
  })

  it('SLOT-01 units are of the limit that declares them: each of two by its own, and one of the owner’s', async () => {
    await limited('l', [
      { key: 'gpu', value: 5, units: 'gpus' },
      { key: 'seat', value: 2 },
    ])
    const heavy = await start('l', { gpus: 4 }, { owner: 'ana' })
    expect(t.run(heavy)).toMatchObject({ status: 'queued', units_a: 4, units_b: 1 })
    const light = await start('l', { gpus: 1 }, { owner: 'ana' })
    const third = await start('l', { gpus: 1 }, { owner: 'ana' })
    expect(status(light, third)).toEqual(['queued', 'waiting:slot'])
    const { slots } = await t.engine.read(slotsView)
    expect(slots.map(({ key, used, waiters }) => [key, used, waiters])).toEqual([
      ['gpu', 5, 1],
      ['owner:ana', 2, 1],
      ['seat', 2, 1],
    ])
    expect(
      (await t.engine.read((tx) => explain(tx, third, t.engine.settings)))?.sentence,
    ).toContain('the limit gpu is full (5 of 5 held)')
    await t.engine.cancel({ run: heavy, by: 'ana', reason: null })
    await lines()
    expect(status(third)).toEqual(['queued'])
  })

  it('SLOT-01 a run that continues itself with more units lines up for them', async () => {
    const s = await limited('l', [{ key: 'gpu', value: 3, units: 'gpus' }])
    await start('l', { gpus: 1 })
    const grows = await start('l', { gpus: 2 })
    const claimed = (await s.claim(10)).find(({ run }) => run === grows)
    await s.end(claimed as never, { kind: 'continue', input: '{"gpus":3}', runId: 'run_zz2' })
    expect(status('run_zz2')).toEqual(['waiting:slot'])
  })

  it('SLOT-01 one that asks for more than there ever is is refused, and keeps nobody waiting', async () => {
    await limited('l', [{ key: 'gpu', value: 2, units: 'gpus' }])
    expect(await t.startAnswer('l', { input: '{"gpus":3}' })).toMatchObject({
      ok: false,
      code: 'invalid_input',
    })
    expect(status(await start('l', { gpus: 2 }))).toEqual(['queued'])
  })

  it('SLOT-01 an operator’s value beats the code’s, and null gives the code’s back', async () => {
    await limited('l', [{ key: 'k', value: 1 }])
    const ids = [await start('l', 0), await start('l', 0), await start('l', 0)]
    await operator('k', 2)
    await lines()
    expect(status(...ids)).toEqual(['queued', 'queued', 'waiting:slot'])
    await limited('l', [{ key: 'k', value: 1 }])
    await operator('k', null)
    await lines()
    expect(status(...ids)).toEqual(['queued', 'queued', 'waiting:slot'])
    await operator('k', 9)
    await lines()
    expect(status(...ids)).toEqual(['queued', 'queued', 'queued'])
  })

  it('SLOT-01 the policy reject answers 429 with the holders, from outside only', async () => {
    const l = await limited('l', [{ key: 'k', value: 1, policy: 'reject' }])
    const id = await start('l', 0)
    await claim(l, id)
    const since = t.clock.time.now()
    t.later(5)
    expect(await t.startAnswer('l')).toMatchObject({
      ok: false,
      code: 'limit_full',
      detail: { limit: 'k', value: 1, holders: [{ run: id, since, status: 'running' }] },
    })
    const parent = await start('w', null)
    const run = await claim(a, parent)
    await a.write(run, {
      waits: [
        {
          key: 'kid',
          kind: 'child',
          child: { id: 'run_kid', workflow: 'l', input: '0', awaited: true, onParentEnd: 'cancel' },
        },
      ],
    })
    expect(status('run_kid')).toEqual(['waiting:slot'])
  })

  it('SLOT-01 one key that stands in two declarations counts once', async () => {
    const l = await limited('l', [
      { key: 'k:{a}', value: 2 },
      { key: 'k:{b}', value: 2 },
    ])
    const ids = []
    for (let i = 0; i < 3; i++) ids.push(await start('l', { a: 1, b: 1 }))
    expect(status(...ids)).toEqual(['queued', 'queued', 'waiting:slot'])
    expect(l.id).not.toBe('')
  })

  it('SLOT-01 SLOT-03 a key that two workflows declare with two modes is exceeded by neither', async () => {
    const whole = await limited('whole', [{ key: 'k', value: 1, mode: 'whole_run' }])
    await limited('held', [{ key: 'k', value: 1, mode: 'while_held' }])
    const mode = () => only(t.sql(`select mode from limits where key = 'k'`))['mode']
    const held = () =>
      only(
        t.sql(
          `select count(*) as n from runs where limit_a = 'k' and status in ('queued', 'running')`,
        ),
      )['n']
    const sleeper = await start('whole', 0)
    await whole.write(await claim(whole, sleeper), {
      waits: [{ key: 'nap', kind: 'time', dueInMs: 1_000 }],
      end: { kind: 'suspend', keys: ['nap'] },
    })
    // a run of the other kind waits for one that keeps its slot while it sleeps
    const other = await start('held', 0)
    await lines()
    expect([mode(), ...status(sleeper, other)]).toEqual([
      'whole_run',
      'waiting:time',
      'waiting:slot',
    ])
    t.later(1_000)
    await t.pass('wake-due')
    await lines()
    expect([held(), ...status(sleeper, other)]).toEqual([1, 'queued', 'waiting:slot'])
    await whole.complete(await claim(whole, sleeper))
    await lines()
    expect(status(other)).toEqual(['queued'])
    // and once none of that kind is under it, it is what the next says
    await start('held', 0)
    expect(mode()).toBe('while_held')
    await start('whole', 0)
    await lines()
    expect([mode(), held()]).toEqual(['whole_run', 1])
    // also where both come at once
    await t.engine.startMany(
      ['whole', 'held'].map((workflow, i) => ({
        command: { id: `run_b${i}`, workflow, input: '0' },
      })),
    )
    expect(mode()).toBe('whole_run')
  })

  it('SLOT-03 a child, and one of a handler, meet limits that no start from outside has made yet', async () => {
    await limited('l', [{ key: 'fresh', value: 1 }])
    const run = await claim(a, await start('w', null))
    await a.write(run, {
      waits: ['x', 'y', 'z'].map((key) => ({
        key,
        kind: 'child' as const,
        child: {
          id: `run_${key}`,
          workflow: 'l',
          input: '0',
          awaited: true,
          onParentEnd: 'cancel' as const,
        },
      })),
    })
    await lines()
    expect(status('run_x', 'run_y', 'run_z').sort()).toEqual([
      'queued',
      'waiting:slot',
      'waiting:slot',
    ])
  })

  it('SLOT-01 the global limit holds over all owners', async () => {
    await operator('global', 2)
    t.sql(`update limits set mode = 'whole_run' where key = 'global' returning key`)
    await t.engine.reload()
    const ids = [await start('w', 0), await start('c', 0, { owner: 'x' }), await start('w', 0)]
    expect(status(...ids)).toEqual(['queued', 'queued', 'waiting:slot'])
  })
})

describe('SLOT-02 who holds while it waits', () => {
  beforeEach(() => open({ ownerLimit: 1 }))

  it('SLOT-02 a key’s slot is free while its run sleeps; the run lines up again before new ones', async () => {
    const l = await limited('l', [{ key: 'k', value: 1 }])
    const first = await start('l', 0)
    const second = await start('l', 0)
    const third = await start('l', 0)
    const run = await claim(l, first)
    await l.write(run, {
      waits: [{ key: 'nap', kind: 'time', dueInMs: 1_000 }],
      end: { kind: 'suspend', keys: ['nap'] },
    })
    await lines()
    expect(status(first, second, third)).toEqual(['waiting:time', 'queued', 'waiting:slot'])
    t.later(1_000)
    await t.pass('wake-due')
    await lines()
    expect(status(first, second, third)).toEqual(['waiting:slot', 'queued', 'waiting:slot'])
    await l.complete(await claim(l, second))
    await lines()
    expect(status(first, third)).toEqual(['queued', 'waiting:slot'])
  })

  it('SLOT-02 an owner’s slot is kept while its run sleeps, and free as soon as it is canceled', async () => {
    const first = await start('w', 0, { owner: 'ana' })
    const second = await start('w', 0, { owner: 'ana' })
    const run = await claim(a, first)
    await a.write(run, {
      waits: [{ key: 'nap', kind: 'time', dueInMs: 1_000 }],
      end: { kind: 'suspend', keys: ['nap'] },
    })
    await lines()
    expect(status(first, second)).toEqual(['waiting:time', 'waiting:slot'])
    t.later(1_000)
    await t.pass('wake-due')
    await claim(a, first)
    await t.engine.cancel({ run: first, by: 'ana', reason: null })
    await lines()
    expect(status(first, second)).toEqual(['canceling', 'queued'])
  })

  it('SLOT-02 a canceling run keeps its key until its attempt has ended', async () => {
    const l = await limited('l', [{ key: 'k', value: 1 }])
    const first = await start('l', 0)
    const second = await start('l', 0)
    const run = await claim(l, first)
    await t.engine.cancel({ run: first, by: 'ana', reason: null })
    await lines()
    expect(status(first, second)).toEqual(['canceling', 'waiting:slot'])
    await l.end(run, { kind: 'hand_back', reason: 'canceled' })
    await lines()
    expect(status(second)).toEqual(['queued'])
  })

  it('SLOT-02 a paused run keeps its owner’s slot and frees its key, and lines up when resumed', async () => {
    const l = await limited('l', [{ key: 'k', value: 1 }])
    const first = await start('l', 0, { owner: 'ana' })
    const second = await start('l', 0, { owner: 'bob' })
    const third = await start('w', 0, { owner: 'ana' })
    await t.engine.pause(first, 'ana', null)
    await lines()
    expect(status(first, second, third)).toEqual(['paused', 'queued', 'waiting:slot'])
    await t.engine.resume(first, 'ana')
    await lines()
    expect(status(first, third)).toEqual(['waiting:slot', 'queued'])
    await l.complete(await claim(l, second))
    await a.complete(await claim(a, third))
    await lines()
    expect(status(first)).toEqual(['queued'])
  })

  it('SLOT-04 a parent that waits for its child never deadlocks the two at limit 1', async () => {
    const parent = await start('w', 0, { owner: 'ana' })
    const run = await claim(a, parent)
    const kid = { workflow: 'c', input: null, awaited: true, onParentEnd: 'cancel' as const }
    await a.write(run, {
      waits: [{ key: 'kid', kind: 'child', child: { id: 'run_kid', ...kid } }],
      end: { kind: 'suspend', keys: ['kid'] },
    })
    await lines()
    expect(status(parent, 'run_kid')).toEqual(['waiting:child', 'queued'])
    const child = await claim(a, 'run_kid')
    await a.write(child, {
      waits: [{ key: 'kid', kind: 'child', child: { id: 'run_kid2', ...kid } }],
      end: { kind: 'suspend', keys: ['kid'] },
    })
    await lines()
    await a.complete(await claim(a, 'run_kid2'))
    await lines()
    await a.complete(await claim(a, 'run_kid'))
    await lines()
    await a.complete(await claim(a, parent))
    expect(status(parent, 'run_kid', 'run_kid2')).toEqual(['succeeded', 'succeeded', 'succeeded'])
  })
})

describe('SLOT-03 admission', () => {
  beforeEach(() => open())
  const held = (key: string): number =>
    Number(
      only(
        t.sql(
          `select coalesce(sum(units_a), 0) as n from runs where (limit_a = ? or limit_b = ?) and slot_state in (2, 3)`,
          key,
          key,
        ),
      )['n'],
    )

  it('SLOT-03 a start commits with its slot or in line, in its own transaction', async () => {
    await limited('l', [{ key: 'k', value: 2 }])
    const answers = await t.engine.startMany(
      Array.from({ length: 5 }, (_, i) => ({
        command: { id: `run_${i}`, workflow: 'l', input: '0' },
      })),
    )
    expect(answers.map((answer) => (answer.ok ? answer.status : answer.code))).toEqual([
      'queued',
      'queued',
      'waiting',
      'waiting',
      'waiting',
    ])
    expect(held('k')).toBe(2)
  })

  it('SLOT-03 with room but an earlier waiter, a start goes behind it', async () => {
    await limited('l', [{ key: 'k', value: 1 }])
    const first = await start('l', 0)
    const second = await start('l', 0)
    await t.engine.cancel({ run: first, by: 'x', reason: null })
    const third = await start('l', 0)
    expect(status(second, third)).toEqual(['waiting:slot', 'waiting:slot'])
    await lines()
    expect(status(second, third)).toEqual(['queued', 'waiting:slot'])
  })

  it('SLOT-03 no admission exceeds the limit in force, whatever is asked at once', async () => {
    await limited('l', [{ key: 'k', value: 3 }])
    await t.engine.startMany(
      Array.from({ length: 40 }, (_, i) => ({
        command: { id: `run_${i}`, workflow: 'l', input: '0' },
      })),
    )
    for (let round = 0; round < 13; round++) {
      const ended = t.sql(`select id from runs where status = 'queued' limit 2`)
      await Promise.all(
        ended.map((row) => t.engine.cancel({ run: String(row['id']), by: 'x', reason: null })),
      )
      await Promise.all(
        [1, 2, 3, 4].map(() => t.engine.act((tx) => admit(tx, new Map([['k', 9]])))),
      )
      expect(held('k')).toBeLessThanOrEqual(3)
    }
  })

  it('SLOT-03 lowering a limit ends nothing, and admits nothing until there is room', async () => {
    await limited('l', [{ key: 'k', value: 3 }])
    const ids = []
    for (let i = 0; i < 4; i++) ids.push(await start('l', 0))
    await operator('k', 1)
    await lines()
    expect(status(...ids)).toEqual(['queued', 'queued', 'queued', 'waiting:slot'])
    for (const id of ids.slice(0, 2)) {
      await t.engine.cancel({ run: id, by: 'x', reason: null })
      await lines()
      expect(status(ids[3] ?? '')).toEqual(['waiting:slot'])
    }
    await t.engine.cancel({ run: ids[2] ?? '', by: 'x', reason: null })
    await lines()
    expect(status(ids[3] ?? '')).toEqual(['queued'])
  })

  it('SLOT-03 admission passes over waiters that another of their keys blocks', async () => {
    await limited('l', [
      { key: 'a:{a}', value: 1 },
      { key: 'b:{b}', value: 1 },
    ])
    const one = await start('l', { a: 1, b: 1 })
    const blocked = await start('l', { a: 1, b: 2 })
    const behind = await start('l', { a: 3, b: 2 })
    await lines()
    // b:2 is free: the one that a:1 blocks does not keep it from the next
    expect(status(one, blocked, behind)).toEqual(['queued', 'waiting:slot', 'queued'])
  })

  it('SLOT-03 hundreds of blocked waiters do not hide one that fits', async () => {
    await limited('l', [
      { key: 'a:{a}', value: 1 },
      { key: 'all', value: 2 },
    ])
    await start('l', { a: 1 })
    await t.engine.startMany(
      Array.from({ length: 350 }, (_, i) => ({
        command: { id: `run_${i}`, workflow: 'l', input: '{"a":1}' },
      })),
    )
    const fits = await start('l', { a: 2 })
    await lines()
    expect(status(fits)).toEqual(['queued'])
  })

  it('SLOT-03 within a key a light run does not overtake a heavy one', async () => {
    await limited('l', [{ key: 'gpu', value: 4, units: 'gpus' }])
    const big = await start('l', { gpus: 4 })
    const heavy = await start('l', { gpus: 3 })
    const light = await start('l', { gpus: 1 })
    await operator('gpu', 6)
    await lines()
    expect(status(big, heavy, light)).toEqual(['queued', 'waiting:slot', 'waiting:slot'])
    await t.engine.cancel({ run: big, by: 'x', reason: null })
    await lines()
    expect(status(heavy, light)).toEqual(['queued', 'queued'])
  })

  it('SLOT-03 a limit of 0 admits nobody, and no look at it goes on for ever', async () => {
    await limited('l', [{ key: 'k', value: 1 }])
    await operator('k', 0)
    const ids = []
    for (let i = 0; i < 120; i++) ids.push(await start('l', 0))
    await lines()
    expect(new Set(status(...ids))).toEqual(new Set(['waiting:slot']))
    await operator('k', 120)
    await lines()
    expect(new Set(status(...ids))).toEqual(new Set(['queued']))
  })

  it('SLOT-03 a heavy run under a limit that was lowered keeps nobody else waiting', async () => {
    await limited('l', [{ key: 'gpu', value: 4, units: 'gpus' }])
    const first = await start('l', { gpus: 4 })
    const heavy = await start('l', { gpus: 4 })
    const light = await start('l', { gpus: 1 })
    await operator('gpu', 2)
    await t.engine.cancel({ run: first, by: 'x', reason: null })
    await lines()
    expect(status(heavy, light)).toEqual(['waiting:slot', 'queued'])
  })

  it('SLOT-03 a delayed start is not in line before its instant, and then it is', async () => {
    await limited('l', [{ key: 'k', value: 1 }])
    const late = await start('l', 0, { delayMs: 1_000 })
    const now = await start('l', 0)
    await lines()
    expect(status(late, now)).toEqual(['waiting:slot', 'queued'])
    t.later(1_000)
    await t.pass('wake-due')
    await lines()
    expect(t.run(late)).toMatchObject({ status: 'waiting', reason: 'limit' })
    await t.engine.cancel({ run: now, by: 'x', reason: null })
    await lines()
    expect(status(late)).toEqual(['queued'])
  })

  it('SLOT-03 runs without a limit touch no row of limits', async () => {
    await start('w', 0)
    expect(t.sql('select * from limits')).toEqual([])
  })
})

describe('SLOT-04 the write that ends a run frees its slots', () => {
  beforeEach(() => open())
  const ends: [string, (l: Session, id: string) => Promise<unknown>][] = [
    ['its executor', async (l, id) => l.complete(await claim(l, id))],
    [
      'a failure',
      async (l, id) =>
        l.end(await claim(l, id), { kind: 'fail', reason: 'error', note: 'x', error: '{}' }),
    ],
    ['a cancel', (_l, id) => t.engine.cancel({ run: id, by: 'x', reason: null })],
    [
      'a limit of time',
      async (_l, id) => {
        t.sql('update runs set deadline = 1 where id = ? returning id', id)
        await t.pass('enforce-limits')
      },
    ],
    [
      'five losses',
      async (l, id) => {
        t.sql('update runs set losses = 4 where id = ? returning id', id)
        await claim(l, id)
        await t.kill(l)
      },
    ],
    [
      'an operator that takes it and cancels it',
      async (l, id) => {
        await claim(l, id)
        await t.engine.takeFrom(id, 'op', 'x')
        await t.engine.cancel({ run: id, by: 'op', reason: null })
      },
    ],
  ]
  for (const [name, end] of ends)
    it(`SLOT-04 ended by ${name}, the next waiter starts without any further event`, async () => {
      const l = await limited('l', [{ key: 'k', value: 1 }])
      const first = await start('l', 0)
      const second = await start('l', 0)
      await end(l, first)
      await t.pass('admit-waiting')
      expect(status(second)).toEqual(['queued'])
    })

  it('SLOT-03 SLOT-04 an end tells how much it frees, and as many of the line as that are admitted, no more of it read', async () => {
    const l = await limited('l', [{ key: 'k', value: 3, units: 'heavy' }])
    const heavy = await start('l', { heavy: 3 })
    const light = await Promise.all([1, 2, 3, 4, 5].map(() => start('l', { heavy: 1 })))
    const told = new Map<string, number>()
    t.engine.onWanted((what, freed) => {
      if (what === 'admit') for (const [key, units] of freed) told.set(key, units)
    })
    await l.complete(await claim(l, heavy))
    expect([...told]).toEqual([['k', 3]])
    const one = await t.engine.act((tx) => admit(tx, new Map([['k', 1]])))
    expect(one).toMatchObject({ count: 1, full: [], stuck: false, more: false })
    const rest = await t.engine.act((tx) => admit(tx, told))
    expect(rest).toMatchObject({ count: 2, full: ['k'], more: false })
    expect(light.map((id) => status(id)[0]).sort()).toEqual([
      'queued',
      'queued',
      'queued',
      'waiting:slot',
      'waiting:slot',
    ])
  })

  it('SLOT-03 who can never be admitted at the head of a line keeps nobody behind it waiting', async () => {
    await limited('l', [
      { key: 'k', value: 2 },
      { key: 'b', value: 5, units: 'b' },
    ])
    const first = await start('l', { b: 1 })
    const second = await start('l', { b: 1 })
    const never = await start('l', { b: 4 })
    const behind = await start('l', { b: 1 })
    await operator('b', 3)
    await t.engine.cancel({ run: first, by: 'x', reason: null })
    await t.engine.cancel({ run: second, by: 'x', reason: null })
    expect(await t.engine.act((tx) => admit(tx, new Map([['k', 1]])))).toMatchObject({
      count: 0,
      stuck: true,
    })
    await lines()
    expect(status(never, behind)).toEqual(['waiting:slot', 'queued'])
  })

  it('SLOT-04 a holder declared dead twice frees once', async () => {
    const l = await limited('l', [{ key: 'k', value: 1 }])
    const ids = [await start('l', 0), await start('l', 0), await start('l', 0)]
    await claim(l, ids[0] ?? '')
    t.sql('update runs set losses = 4 where id = ? returning id', ids[0] ?? '')
    await t.kill(l)
    await t.kill(l)
    await lines()
    expect(status(...ids)).toEqual(['failed', 'queued', 'waiting:slot'])
  })

  it('SLOT-04 a waiter that nobody was told of is found by the next look at all keys', async () => {
    await limited('l', [{ key: 'k', value: 1 }])
    const first = await start('l', 0)
    const second = await start('l', 0)
    await lines()
    t.sql(`update runs set status = 'failed', ended_at = 1 where id = ? returning id`, first)
    await t.pass('admit-waiting')
    expect(status(second)).toEqual(['waiting:slot'])
    t.later(1_000)
    await t.pass('admit-waiting')
    expect(status(second)).toEqual(['queued'])
  })
})

describe('SLOT-05 terminal writes by the store', () => {
  beforeEach(() => open())

  it('SLOT-05 accept any active status but canceling, which wins', async () => {
    const run = await claim(a, await start('w', 0))
    await t.engine.cancel({ run: run.run, by: 'ana', reason: null })
    t.sql('update runs set deadline = 1 where id = ? returning id', run.run)
    await t.pass('enforce-limits')
    expect(t.run(run.run)).toMatchObject({ status: 'canceled', reason: 'canceled' })
  })

  it('SLOT-05 one by an attempt needs that attempt to hold the run, whatever wait is recorded beside it', async () => {
    const run = await claim(a, await start('w', 0))
    await a.write(run, { waits: [{ key: 'x', kind: 'signal', name: 'x' }] })
    expect(await a.complete(run, 1)).toMatchObject({ ok: true, ended: 'succeeded' })
  })
})

describe('SLOT-07 order', () => {
  beforeEach(() => open({ ownerLimit: 1_000 }))
  const order = async (most: number): Promise<string[]> => {
    const out: string[] = []
    for (let i = 0; i < most; i++) {
      await t.pass('poll-lanes')
      const run = only(await a.claim(1))
      out.push(run.run)
      await a.complete(run)
    }
    return out
  }

  it('SLOT-07 higher priority first, first come first served within one', async () => {
    const low = await start('w', 0, { priority: -5 })
    const one = await start('w', 0)
    const two = await start('w', 0)
    const high = await start('w', 0, { priority: 5 })
    expect(await order(4)).toEqual([high, one, two, low])
  })

  it('SLOT-07 fair between owners: one with a long queue does not keep others waiting', async () => {
    const ana: string[] = []
    for (let i = 0; i < 50; i++) ana.push(await start('w', 0, { owner: 'ana' }))
    const bob: string[] = []
    for (let i = 0; i < 5; i++) bob.push(await start('w', 0, { owner: 'bob' }))
    const first = await order(12)
    expect(first.filter((id) => bob.includes(id)).length).toBeGreaterThanOrEqual(4)
    expect(first.filter((id) => ana.includes(id)).length).toBeGreaterThanOrEqual(5)
  })

  it('SLOT-07 B127 L4 measured: of twenty owners, one of which floods, each is served alike, and who comes new waits for two rounds at most', async () => {
    const owners = Array.from({ length: 20 }, (_, i) => `o${i}`)
    const of = new Map<string, string>()
    const add = async (owner: string, count: number): Promise<void> => {
      const answers = await Promise.all(
        Array.from({ length: count }, () => start('w', 0, { owner })),
      )
      for (const id of answers) of.set(id, owner)
    }
    await add('o0', 900)
    for (const owner of owners.slice(1)) await add(owner, 30)
    const served = new Map(owners.map((owner) => [owner, 0]))
    const serve = async (runs: number): Promise<string[]> => {
      const ids = await order(runs)
      return ids.map((id) => of.get(id) ?? '')
    }
    for (const owner of await serve(400)) served.set(owner, (served.get(owner) ?? 0) + 1)
    const counts = [...served.values()]
    const sum = counts.reduce((all, each) => all + each, 0)
    const squares = counts.reduce((all, each) => all + each * each, 0)
    const jain = sum ** 2 / (counts.length * squares)
    expect(jain).toBeGreaterThanOrEqual(0.99)
    await add('new', 1)
    expect((await serve(41)).includes('new')).toBe(true)
  })

  it('SLOT-07 an owner is served by its weight', async () => {
    t.sql(
      `insert into limits (key, mode, weight, updated_at) values ('owner:big', 'whole_run', 3, 0) returning key`,
    )
    const big: string[] = []
    for (let i = 0; i < 40; i++) {
      big.push(await start('w', 0, { owner: 'big' }))
      await start('w', 0, { owner: 'small' })
    }
    const first = await order(20)
    const share = first.filter((id) => big.includes(id)).length
    expect(share).toBeGreaterThanOrEqual(14)
    expect(share).toBeLessThanOrEqual(16)
  })

  it('SLOT-07 an owner that used much before owes nothing once it has nothing in line', async () => {
    for (let i = 0; i < 100; i++) await start('w', 0, { owner: 'ana' })
    await order(100)
    for (let i = 0; i < 10; i++) await start('w', 0, { owner: 'bob' })
    const late = await start('w', 0, { owner: 'ana' })
    expect((await order(4)).includes(late)).toBe(true)
  })

  it('SLOT-07 nothing starves: a low priority comes up under a steady stream of high ones', async () => {
    const low = await start('w', 0)
    for (let i = 0; i < 3; i++) await start('w', 0, { priority: 2 })
    let served = 0
    for (let i = 0; i < 200; i++) {
      const [run] = await order(1)
      if (run === low) break
      served += 1
      await start('w', 0, { priority: 2 })
    }
    expect(served).toBeLessThan(200)
  })

  it('SLOT-07 nor where each high one comes when the last has just been taken', async () => {
    const low = await start('w', 0)
    let served = 0
    for (let i = 0; i < 200; i++) {
      await start('w', 0, { priority: 2 })
      const [run] = await order(1)
      if (run === low) break
      served += 1
    }
    expect(served).toBeLessThan(200)
  })

  it('SLOT-07 resumed before new, and first come first served within a key', async () => {
    const l = await limited('l', [{ key: 'k', value: 1 }])
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push(await start('l', 0))
    const served: string[] = []
    for (let i = 0; i < 5; i++) {
      await lines()
      await t.pass('poll-lanes')
      const run = only(await l.claim(1))
      served.push(run.run)
      await l.complete(run)
    }
    expect(served).toEqual(ids)
  })
})

describe('SLOT-01 a repeat of a start', () => {
  it.each(['reject', 'queue'] as const)(
    'SLOT-01 RUN-18 takes no unit of the limit in its batch, nor does the second of two with one key (%s)',
    async (policy) => {
      await open()
      await limited('l', [{ key: 'k', value: 3, policy }])
      const one = await t.start('l', { key: 'one' })
      const answers = await t.engine.startMany(
        ['one', 'two', 'two', 'three', 'four'].map((key, i) => ({
          command: { id: `run_${i}`, workflow: 'l', input: 'null', key },
        })),
      )
      expect(answers).toMatchObject([
        { ok: true, id: one, started: false },
        { ok: true, id: 'run_1', started: true, status: 'queued' },
        { ok: true, id: 'run_1', started: false },
        { ok: true, id: 'run_3', started: true, status: 'queued' },
        policy === 'reject'
          ? { ok: false, code: 'limit_full', detail: { limit: 'k', value: 3 } }
          : { ok: true, id: 'run_4', started: true, status: 'waiting' },
      ])
    },
  )
})

it.each(['global', 'owner:bob'])(
  'SLOT-01 a limit whose key the input names comes to none of the engine’s own: %s is refused, and holds for nobody',
  async (tenant) => {
    await open()
    await limited('tenants', [{ key: '{tenant}', value: 1 }])
    await expect(start('tenants', { tenant })).rejects.toThrow(/invalid_input: .*engine's own/)
    expect(t.sql('select key from limits')).toEqual([])
    await start('tenants', { tenant: 'acme' })
    expect(t.sql('select key from limits')).toEqual([{ key: 'acme' }])
  },
)
