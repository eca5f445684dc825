// Schedules at the store, on a clock that moves when told.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ScheduleSpec } from '../../src/store/tables/schedules.ts'
import { calendar } from '../../src/orchestrator/calendar.ts'
import { planTick, ticksOf } from '../../src/model/schedule.ts'
import { dueSchedules, scheduleDetail } from '../../src/queries/schedules.ts'
import { fireTick } from '../../src/transitions/fire-tick.ts'
import {
  changeSchedule,
  createSchedule,
  deleteSchedule,
  pauseSchedule,
  resumeSchedule,
  runNow,
} from '../../src/transitions/set-schedule.ts'
import { Crash, cutter, dump } from '../support/crash.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import { NOW } from '../support/run.ts'
import type { Row, Session, TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

const MINUTE = 60_000
const LOOP = 'fire-schedules'

let t: TestStore
let session: Session
let start: number
/** By how much the store’s wall clock is ahead. */
let off: number
beforeEach(async () => {
  off = 0
  const clock = virtualClock(NOW)
  const time = { now: () => clock.time.now() + off, mono: clock.time.mono }
  t = await openStore({ clock: { ...clock, time, pending: 0 } })
  session = await t.session({ definitions: [definition('w'), definition('v')] })
  // ten seconds before a full hour, which is a tick of all that is made here
  t.later(2 * 3_600_000 - 10_000 - (t.clock.time.now() % 3_600_000))
  start = t.clock.time.now()
})
afterEach(() => t.close())

const spec = (more: Partial<ScheduleSpec> = {}): ScheduleSpec => ({
  cron: '* * * * *',
  zone: 'UTC',
  workflow: 'w',
  version: null,
  input: '{"n":1}',
  owner: '',
  queue: null,
  labels: '[]',
  priority: 0,
  missed: 'one',
  overlap: 'allow',
  ...more,
})
const create = async (more: Partial<ScheduleSpec> = {}, name = 's') => {
  const made = { id: `sch_${name}`, name, spec: spec(more), paused: false, by: 'ann' }
  const { answer } = await t.engine.act((tx, context) =>
    createSchedule(tx, made, calendar, context),
  )
  return answer
}
const detail = async (name = 's') => {
  const found = await t.engine.read((tx) => scheduleDetail(tx, name, calendar))
  if (!found) throw new Error(`there is no schedule ${name}`)
  return found
}
/** What became of the ticks of a schedule, oldest first: minutes after the full hour, and the outcome. */
const ticks = async (name = 's'): Promise<string[]> =>
  (await detail(name)).ticks
    .toSorted((a, b) => a.tick - b.tick)
    .map(({ tick, outcome }) => `${Math.round((tick - start) / MINUTE)} ${outcome}`)
const runs = (): Row[] => t.sql('select id, status, input, owner from runs order by id')
const to = async (minutes: number): Promise<void> => {
  t.later(start + 10_000 + minutes * MINUTE - t.clock.time.now())
  await t.settle(LOOP)
}
/** The store’s wall clock is set to so many minutes after the hour; it may go back. */
const jump = (minutes: number): void => {
  off += start + 10_000 + minutes * MINUTE - t.engine.ports.time.now()
}

describe('ticks', () => {
  test('RAIL-16 a tick starts its run when it is due, once, under an id that follows from both', async () => {
    expect(await create({ owner: 'ann', priority: 3 })).toMatchObject({ ok: true })
    await t.settle(LOOP)
    expect(runs()).toEqual([])
    await to(0)
    await to(0)
    const run = only(runs())
    expect(run).toMatchObject({ status: 'queued', input: '{"n":1}', owner: 'ann' })
    const { schedule, next, ticks: seen } = await detail()
    expect(schedule).toMatchObject({ lastAt: start + 10_000, nextAt: start + 10_000 + MINUTE })
    expect(next).toEqual(
      Array.from({ length: 10 }, (_each, i) => start + 10_000 + (i + 1) * MINUTE),
    )
    expect(only(seen)).toMatchObject({ outcome: 'started', run: run['id'], status: 'queued' })
    await to(1)
    expect(await ticks()).toEqual(['0 started', '1 started'])
    expect(await session.claim()).toHaveLength(2)
  })

  test('RAIL-16 of all who saw a tick due one fires it', async () => {
    await create()
    t.later(10_000)
    const { due, now } = await t.engine.read((tx) => dueSchedules(tx, 10))
    const row = only(due)
    const plan = planTick(row.next_at ?? 0, 'one', now, MINUTE, ticksOf(calendar, row))
    const fired = await Promise.all(
      Array.from({ length: 5 }, () =>
        t.engine.act((tx, context) => fireTick(tx, row, plan, context)),
      ),
    )
    expect(fired.filter(({ moved }) => moved)).toHaveLength(1)
    // and a replica that has slept since then comes too late
    await to(3)
    const before = runs().length
    expect((await t.engine.act((tx, context) => fireTick(tx, row, plan, context))).moved).toBe(
      false,
    )
    expect(runs()).toHaveLength(before)
  })

  test('RAIL-16 a schedule that was changed or paused after the look does not fire as it was', async () => {
    await create()
    await create({}, 'paused')
    t.later(10_000)
    const { due, now } = await t.engine.read((tx) => dueSchedules(tx, 10))
    await t.engine.act((tx, context) =>
      changeSchedule(tx, 's', { workflow: 'v' }, 'bob', calendar, context),
    )
    await t.engine.act((tx) => pauseSchedule(tx, 'paused', 'bob', null))
    for (const row of due) {
      const plan = planTick(row.next_at ?? 0, 'one', now, MINUTE, ticksOf(calendar, row))
      await t.engine.act((tx, context) => fireTick(tx, row, plan, context))
    }
    expect(runs()).toEqual([])
    await t.settle(LOOP)
    expect(t.sql('select workflow from runs')).toEqual([{ workflow: 'v' }])
  })

  test('RAIL-16 a start that is refused is told at its tick and as a notice, and the next tick comes', async () => {
    await create({ workflow: 'w' })
    t.sql(`update schedules set version = '9' where name = 's' returning id`)
    await to(0)
    expect((await detail()).ticks).toMatchObject([
      { outcome: 'refused', run: null, note: expect.stringContaining('no version 9') as string },
    ])
    expect(t.sql('select kind from notices')).toEqual([{ kind: 'tick_refused' }])
    t.sql(`update schedules set version = null where name = 's' returning id`)
    await to(1)
    expect(await ticks()).toEqual(['0 refused', '1 started'])
  })

  test('RAIL-16 more schedules than a look takes at once all fire, also behind those that cannot', async () => {
    for (let i = 0; i < 250; i++) await create({}, `s${String(i).padStart(3, '0')}`)
    t.sql(`update schedules set zone = 'Mars/Olympus' where name < 's120' returning id`)
    t.later(10_000)
    await t.pass(LOOP)
    expect(runs()).toHaveLength(130)
  })

  test('RAIL-16 a schedule whose zone this machine does not know keeps no other from firing', async () => {
    await create({}, 'a')
    await create({}, 'b')
    t.sql(`update schedules set zone = 'Mars/Olympus' where name = 'a' returning id`)
    await to(0)
    expect(await ticks('b')).toEqual(['0 started'])
    expect(runs()).toHaveLength(1)
    // and is shown and paused all the same
    expect((await detail('a')).next).toEqual([])
    await t.engine.act((tx) => pauseSchedule(tx, 'a', 'bob', null))
    expect((await t.engine.act((tx) => resumeSchedule(tx, 'a', calendar))).answer).toMatchObject({
      code: 'invalid_request',
    })
  })
})

describe('missed ticks', () => {
  test.each([
    ['skip', ['0 missed', '4 started', '5 started']],
    ['one', ['0 missed', '3 started', '4 started', '5 started']],
    ['all', ['0 started', '1 started', '2 started', '3 started', '4 started', '5 started']],
  ] as const)('RAIL-16 B068 after a stall of five minutes, %s', async (missed, expected) => {
    await create({ missed })
    await to(5)
    expect(await ticks()).toEqual(expected)
    await to(6)
    expect(await ticks()).toEqual([...expected, '6 started'])
    expect(runs()).toHaveLength([...expected].filter((each) => each.endsWith('started')).length + 1)
  })

  test('RAIL-16 B068 a stall of 61 s loses no tick, and a single one that was missed fires by `one`', async () => {
    await create({ cron: '0 * * * *' })
    await to(61 / 60)
    expect(await ticks()).toEqual(['0 started'])
    await to(60 * 30 + 59)
    expect(await ticks()).toEqual(['0 started', '60 missed', '1800 started'])
    expect((await detail()).ticks.find(({ outcome }) => outcome === 'missed')?.note).toContain(
      'the last of them',
    )
  })

  test('RAIL-16 B071 a clock that was ahead for a while stops no schedule, and no tick fires twice', async () => {
    await create({ cron: '0 * * * *', missed: 'skip' }, 'skip')
    await create({ cron: '0 * * * *', missed: 'one' }, 'one')
    await to(0)
    jump(8 * 60 + 30)
    await t.settle(LOOP)
    const hour = (outcomes: string[]): string[] =>
      outcomes.map((each) => each.replace(/^\d+/, (minutes) => String(Number(minutes) / 60)))
    expect(hour(await ticks('skip'))).toEqual(['0 started', '1 missed'])
    expect(hour(await ticks('one'))).toEqual(['0 started', '1 missed', '8 started'])
    jump(30)
    await t.settle(LOOP)
    for (let i = 1; i <= 9; i++) {
      await to(i * 60)
      await t.settle(LOOP)
    }
    const all = Array.from({ length: 10 }, (_each, i) => `${i} started`)
    expect(hour(await ticks('skip'))).toEqual(all)
    expect(hour(await ticks('one'))).toEqual(all)
    expect(runs()).toHaveLength(20)
  })

  test('RAIL-16 B071 a tick of a time that another server took for now is found within a minute', async () => {
    await create({ cron: '0 * * * *' })
    await t.settle(LOOP)
    // given a server whose look is not this one’s, and which is gone
    t.sql('update schedules set next_at = next_at + 86400000 returning id')
    t.later(5_000)
    await t.pass(LOOP)
    t.later(MINUTE)
    await t.settle(LOOP)
    expect((await detail()).schedule.nextAt).toBe(start + 10_000 + 60 * MINUTE)
  })
})

describe('overlap', () => {
  const end = async (): Promise<void> => {
    for (const run of await session.claim()) await session.complete(run)
    await t.settle(LOOP)
  }

  test('RAIL-16 allow starts beside what runs', async () => {
    await create({ overlap: 'allow' })
    await to(0)
    await to(1)
    expect(runs()).toHaveLength(2)
  })

  test('RAIL-16 skip skips a tick while a run of an earlier one has not ended, and says which', async () => {
    await create({ overlap: 'skip' })
    await to(0)
    await to(1)
    expect(await ticks()).toEqual(['0 started', '1 skipped'])
    expect((await detail()).ticks[0]?.note).toBe(`${only(runs())['id']} has not ended`)
    await end()
    await to(2)
    expect(await ticks()).toEqual(['0 started', '1 skipped', '2 started'])
  })

  test('RAIL-16 queue starts each tick when the runs of those before it have ended, in their order', async () => {
    await create({ overlap: 'queue' })
    for (const minute of [0, 1, 2]) await to(minute)
    expect(await ticks()).toEqual(['0 started', '1 waiting', '2 waiting'])
    await end()
    expect(await ticks()).toEqual(['0 started', '1 started', '2 waiting'])
    await end()
    expect(await ticks()).toEqual(['0 started', '1 started', '2 started'])
    await end()
    expect(runs().map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded'])
  })

  test('RAIL-16 cancel_running cancels the run, and the newest tick starts when it has ended', async () => {
    await create({ overlap: 'cancel_running' })
    await to(0)
    const [held] = await session.claim()
    await to(1)
    await t.settle('apply-orders')
    await to(2)
    expect(runs().map(({ status }) => status)).toEqual(['canceling'])
    expect(await ticks()).toEqual(['0 started', '1 replaced', '2 waiting'])
    if (held) await session.complete(held)
    await t.settle(LOOP)
    expect(await ticks()).toEqual(['0 started', '1 replaced', '2 started'])
    expect(runs().map(({ status }) => status)).toEqual(['canceled', 'queued'])
  })

  test('RAIL-16 a run that goes on as another has not ended', async () => {
    await create({ overlap: 'skip' })
    await to(0)
    const [run] = await session.claim()
    if (run) await session.end(run, { kind: 'continue', input: '2', runId: 'run_next' })
    await to(1)
    expect(await ticks()).toEqual(['0 started', '1 skipped'])
  })
})

describe('people', () => {
  test('RAIL-16 a paused schedule has no ticks, and goes on from the next one after it is resumed', async () => {
    await create({ missed: 'all' })
    await t.engine.act((tx) => pauseSchedule(tx, 's', 'bob', 'too loud'))
    await to(3)
    expect(runs()).toEqual([])
    const paused = await detail()
    expect(paused.schedule).toMatchObject({ nextAt: null, pausedBy: 'bob', why: 'too loud' })
    expect(paused.next).toHaveLength(10)
    await t.engine.act((tx) => resumeSchedule(tx, 's', calendar))
    expect((await t.engine.act((tx) => resumeSchedule(tx, 's', calendar))).answer).toMatchObject({
      code: 'not_paused',
    })
    await to(4)
    expect(await ticks()).toEqual(['4 started'])
  })

  test('RAIL-16 ticks that wait stay so while their schedule is paused', async () => {
    await create({ overlap: 'queue' })
    for (const minute of [0, 1]) await to(minute)
    await t.engine.act((tx) => pauseSchedule(tx, 's', 'bob', null))
    for (const run of await session.claim()) await session.complete(run)
    await t.settle(LOOP)
    expect(await ticks()).toEqual(['0 started', '1 waiting'])
    await t.engine.act((tx) => resumeSchedule(tx, 's', calendar))
    await t.settle(LOOP)
    expect(await ticks()).toEqual(['0 started', '1 started'])
  })

  test('RAIL-16 run now starts at once, also while it is paused; a repeat starts nothing more', async () => {
    await create({ overlap: 'skip' })
    await t.engine.act((tx) => pauseSchedule(tx, 's', 'bob', null))
    for (let i = 0; i < 2; i++) {
      const { answer } = await t.engine.act((tx, context) =>
        runNow(tx, 's', 'run_x', 'bob', context),
      )
      expect(answer).toEqual({ ok: true, name: 's', run: 'run_x' })
    }
    expect(only(runs())).toMatchObject({ id: 'run_x', status: 'queued' })
    await t.engine.act((tx) => resumeSchedule(tx, 's', calendar))
    await to(0)
    expect((await detail()).ticks.map(({ cause, outcome }) => `${cause} ${outcome}`)).toEqual([
      'time skipped',
      'person started',
    ])
  })

  test('RAIL-16 RAIL-08 run now that was refused is tried anew under its id, and what is another run’s is not answered as its own', async () => {
    await t.session({
      definitions: [
        definition('one', {
          limits: [{ key: 'only', value: 1, policy: 'reject', mode: 'whole_run' }],
        }),
      ],
    })
    await create({ workflow: 'one' })
    await create({}, 'other')
    const holder = await t.start('one', { input: '{"n":0}' })
    const go = async (name = 's') =>
      (await t.engine.act((tx, context) => runNow(tx, name, 'run_mine', 'ann', context))).answer
    for (let i = 0; i < 2; i++) expect(await go()).toMatchObject({ ok: false, code: 'limit_full' })
    expect(t.sql(`select kind from notices where run = 'run_mine'`)).toHaveLength(1)
    await t.engine.cancel({ run: holder, by: 'x', reason: null })
    for (let i = 0; i < 2; i++) expect(await go()).toEqual({ ok: true, name: 's', run: 'run_mine' })
    expect(t.run('run_mine')).toMatchObject({ status: 'queued', workflow: 'one' })
    expect((await detail()).ticks).toMatchObject([{ cause: 'person', outcome: 'started' }])
    expect(await go('other')).toMatchObject({ ok: false, code: 'command_reused' })
  })

  test('RAIL-16 a change of the calendar takes effect from now, another one from the next tick', async () => {
    await create()
    await to(0)
    const act = (change: Partial<ScheduleSpec>) =>
      t.engine.act((tx, context) => changeSchedule(tx, 's', change, 'bob', calendar, context))
    expect((await act({ cron: '*/10 * * * *', zone: 'Asia/Kolkata' })).answer).toMatchObject({
      ok: true,
    })
    expect((await detail()).schedule).toMatchObject({
      nextAt: start + 10_000 + 10 * MINUTE,
      updatedBy: 'bob',
    })
    expect((await act({ cron: '0 0 30 2 *' })).answer).toMatchObject({ code: 'invalid_request' })
    expect((await act({ workflow: 'nobody' })).answer).toMatchObject({ code: 'unknown_workflow' })
    expect((await act({ missed: 'skip' })).answer).toMatchObject({ ok: true })
    expect((await detail()).schedule).toMatchObject({
      nextAt: start + 10_000 + 10 * MINUTE,
      missed: 'skip',
    })
  })

  test('RAIL-16 a name is taken once; what could not start is refused; a schedule that is deleted leaves its runs', async () => {
    expect(await create({ workflow: 'nobody' })).toMatchObject({ code: 'unknown_workflow' })
    expect(await create({ cron: '0 0 30 2 *' })).toMatchObject({ code: 'invalid_request' })
    expect(await create()).toMatchObject({ ok: true })
    expect(await create()).toMatchObject({ ok: true })
    const other = { id: 'sch_other', name: 's', spec: spec(), paused: false, by: 'bob' }
    const again = await t.engine.act((tx, context) => createSchedule(tx, other, calendar, context))
    expect(again.answer).toMatchObject({ code: 'schedule_exists' })
    await to(0)
    await t.engine.act((tx) => deleteSchedule(tx, 's'))
    expect(t.sql('select 1 from schedules union all select 1 from ticks')).toEqual([])
    expect(runs()).toHaveLength(1)
    const gone = await t.engine.act((tx) => deleteSchedule(tx, 's'))
    expect(gone.answer).toMatchObject({ code: 'not_found' })
    await to(5)
    expect(runs()).toHaveLength(1)
  })

  test('RAIL-16 what became of a tick is forgotten with its run, and sooner where it had none', async () => {
    await create({ overlap: 'skip' })
    await to(0)
    await to(1)
    t.later(31 * 86_400_000)
    await t.pass('prune-ticks')
    expect(t.sql('select outcome from ticks')).toEqual([{ outcome: 'started' }])
  })
})

test('RAIL-01 a tick that is cut off at any statement is whole or not there', async () => {
  // given a schedule at a tick that meets a run, in each overlap
  for (const overlap of ['allow', 'skip', 'cancel_running', 'queue'] as const)
    await create({ overlap, owner: 'ann' }, overlap)
  await to(0)
  t.later(MINUTE)
  const { due, now } = await t.engine.read((tx) => dueSchedules(tx, 10))
  const knife = cutter(t.engine.store)
  for (const row of due) {
    const plan = planTick(row.next_at ?? 0, 'one', now, MINUTE, ticksOf(calendar, row))
    const before = dump(t)
    // when the process dies at statement after statement
    let cut = 1
    for (; ; cut++) {
      knife.at(cut)
      const died = await t.engine
        .act((tx, context) => fireTick(tx, row, plan, context))
        .then(
          () => false,
          (error: unknown) => error instanceof Crash,
        )
      knife.off()
      if (!died) break
      expect(dump(t)).toEqual(before)
    }
    expect(cut).toBeGreaterThan(4)
  }
  // then the ticks are what they would have been
  await t.settle(LOOP)
  expect(await Promise.all(due.map(({ name }) => ticks(name)))).toEqual(
    due.map(({ name }) => [
      '0 started',
      `1 ${{ allow: 'started', skip: 'skipped', cancel_running: 'waiting', queue: 'waiting' }[name]}`,
    ]),
  )
})
