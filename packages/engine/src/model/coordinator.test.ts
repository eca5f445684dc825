import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Coordinator, Room } from './coordinator.ts'
import { makeCoordinator, markerKinds } from './coordinator.ts'
import type { Job, JobPhase } from './job.ts'
import { askToStop, jobMachine, leaveJob, makeJob, moveJob, settleJob } from './job.ts'
import { launchCheck } from './launch.ts'
import { allows } from './machine.ts'

const mark = (kind: (typeof markerKinds)[number]) => ({ kind, note: 'left behind', at: 1 })
const room = (it: Coordinator): Room => {
  const made = it.reserve()
  if (!made) throw new Error('no room')
  return made
}
const done = (job: Job): void => {
  leaveJob(job)
  job.bodies = 0
}

describe('EX-02 EX-03 slots and reservations', () => {
  it('EX-02 a limit that is no whole number of 0 or more is refused', () => {
    for (const limit of [-1, 1.5, Number.NaN])
      expect(() => makeCoordinator({ a: limit })).toThrow(/a are/)
    expect(makeCoordinator({ a: 0 }).reserve()).toBeNull()
  })

  it('EX-03 a reservation that was given back cannot be given back or used again', () => {
    const it = makeCoordinator({ a: 2 })
    const made = room(it)
    it.admit(made, 'run_1', 1, 'a', 0)
    it.release(made)
    expect(it.slots()).toEqual([{ class: 'a', limit: 2, used: 1, reserved: 0 }])
    expect(() => it.release(made)).toThrow(/twice/)
    expect(() => it.admit(made, 'run_2', 1, 'a', 0)).toThrow(/over/)
  })

  it('EX-02 a limit that is refused is a fault of the configuration', () => {
    expect(() => makeCoordinator({ a: -1 })).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    )
  })

  it('EX-02 a class that nobody has set has ten slots, and keeps what is set later', () => {
    const it = makeCoordinator({ a: 2 })
    it.ensure('new')
    expect(it.slots()).toEqual([
      { class: 'a', limit: 2, used: 0, reserved: 0 },
      { class: 'new', limit: 10, used: 0, reserved: 0 },
    ])
    it.setLimit('new', 3)
    it.ensure('new')
    expect(it.slots()[1]?.limit).toBe(3)
    expect(it.capacity()).toBe(5)
  })

  it('EX-03 what is reserved is no room for another claim', () => {
    const it = makeCoordinator({ a: 3 })
    const first = room(it)
    expect(first).toEqual({ classes: ['a'], most: 3, partial: false })
    expect(it.reserve()).toBeNull()
    it.release(first)
    expect(room(it).most).toBe(3)
  })

  it('EX-03 a claim is for as many as the fullest of the open classes takes, and says which are left out', () => {
    const it = makeCoordinator({ a: 1, b: 3 })
    const both = room(it)
    expect(both).toEqual({ classes: ['a', 'b'], most: 1, partial: false })
    it.admit(both, 'run_1', 1, 'a', 0)
    it.release(both)
    const rest = room(it)
    expect(rest).toEqual({ classes: ['b'], most: 3, partial: true })
    expect(it.hasMoreThan(rest)).toBe(false)
    it.setLimit('a', 2)
    expect(it.hasMoreThan(rest)).toBe(true)
    it.setLimit('a', 1)
    expect(it.hasMoreThan(rest)).toBe(false)
    expect(it.isFull('a')).toBe(true)
    expect(it.isFull('b')).toBe(false)
  })

  it('EX-03 what a class has room for, and the reservation has, is not more than it', () => {
    const it = makeCoordinator({ a: 2 })
    const made = room(it)
    it.setLimit('a', 5)
    expect(it.hasMoreThan(made)).toBe(false)
  })

  it('EX-03 a run of a class that was not asked for is driven, and takes nothing of what others have reserved', () => {
    const it = makeCoordinator({ a: 1, b: 1 })
    it.setLimit('b', 0)
    const made = room(it)
    it.setLimit('b', 1)
    const other = room(it)
    it.admit(made, 'run_1', 1, 'b', 0)
    expect(it.slots()[1]).toEqual({ class: 'b', limit: 1, used: 1, reserved: 1 })
    it.release(other)
    it.admit(made, 'run_2', 1, 'a', 0)
    it.admit(made, 'run_3', 1, 'a', 0)
    it.release(made)
    expect(it.slots()).toEqual([
      { class: 'a', limit: 1, used: 2, reserved: 0 },
      { class: 'b', limit: 1, used: 1, reserved: 0 },
    ])
  })

  it('EX-10 an attempt is found while it holds its run here, and the latest of a run until it is gone', () => {
    const it = makeCoordinator({ a: 3 })
    const made = room(it)
    const first = it.admit(made, 'run_1', 1, 'a', 0)
    expect(it.holding('run_1', 1)).toBe(first)
    expect(it.holding('run_1', 2)).toBeUndefined()
    expect(it.holding('run_2', 1)).toBeUndefined()
    first.bodies = 1
    leaveJob(first)
    expect(it.holding('run_1', 1)).toBeUndefined()
    expect(it.latest('run_1')).toBe(first)
    const second = it.admit(made, 'run_1', 2, 'a', 0)
    first.bodies = 0
    it.settle(first)
    expect(it.latest('run_1')).toBe(second)
    expect(it.holding('run_1', 2)).toBe(second)
    done(second)
    it.settle(second)
    expect(it.latest('run_1')).toBeUndefined()
  })

  it('EX-10 a job whose work has not settled keeps its slot, whatever asks for it', () => {
    const it = makeCoordinator({ a: 1 })
    const made = room(it)
    const job = it.admit(made, 'run_1', 1, 'a', 0)
    it.release(made)
    job.bodies = 1
    expect(() => it.settle(job)).toThrow(/still at work/)
    leaveJob(job)
    expect(() => it.settle(job)).toThrow(/still at work/)
    expect(() => settleJob(job)).toThrow(/1 bodies/)
    job.bodies = 0
    it.settle(job)
    expect(() => it.settle(job)).toThrow(/gone already/)
    expect(it.slots()).toMatchObject([{ used: 0 }])
  })
})

describe('EX-14 EX-15 markers', () => {
  it('EX-14 a marker stands before its job goes: the slot is never free in between', () => {
    for (const kind of markerKinds) {
      const it = makeCoordinator({ a: 1 })
      const made = room(it)
      const job = it.admit(made, 'run_1', 1, 'a', 0)
      it.release(made)
      done(job)
      it.settle(job, mark(kind))
      expect(it.slots()).toMatchObject([{ used: 1 }])
      expect(it.reserve()).toBeNull()
      expect(it.except()).toEqual(['run_1'])
      expect(it.markers).toMatchObject([{ kind, run: 'run_1', note: 'left behind' }])
    }
  })

  it('EX-15 what is unreleased admits nothing, though slots are free, until it is cleared; once', () => {
    const it = makeCoordinator({ a: 3 })
    const made = room(it)
    const job = it.admit(made, 'run_1', 1, 'a', 0)
    it.release(made)
    done(job)
    it.settle(job, mark('unreleased'))
    expect(it.failedClosed).toBe(true)
    expect(it.reserve()).toBeNull()
    expect(it.clear('run_1')).toBe(1)
    expect(it.clear('run_1')).toBe(0)
    expect(it.reserve()?.most).toBe(3)
  })
})

describe('EX-14 EX-26 markers of several runs', () => {
  const left = (run: string, kind: (typeof markerKinds)[number] = 'result_not_saved') => ({
    kind,
    run,
    attempt: 1,
    slotClass: 'a',
    since: 1,
    note: 'left behind',
  })

  it('EX-26 the marker of an earlier life takes a slot, and the others stay where it is cleared', () => {
    const it = makeCoordinator({ a: 3 })
    it.hold(left('run_1'))
    it.hold(left('run_2'))
    it.hold(left('run_1'))
    expect(it.slots()).toMatchObject([{ used: 3 }])
    expect(it.clear('run_1')).toBe(2)
    expect(it.markers).toEqual([left('run_2')])
    expect(it.slots()).toMatchObject([{ used: 1 }])
  })

  it('EX-15 only what is unreleased closes the executor', () => {
    for (const kind of markerKinds) {
      const it = makeCoordinator({ a: 2 })
      it.hold(left('run_1', kind))
      expect(it.failedClosed).toBe(kind === 'unreleased')
      expect(it.reserve() === null).toBe(kind === 'unreleased')
    }
  })
})

describe('EX-06 EX-09 jobs', () => {
  it('EX-10 a job begins with nothing at work, and no reason; one that settled takes none', () => {
    const job = makeJob('run_1', 2, 'a', 5)
    expect(job).toEqual({
      run: 'run_1',
      attempt: 2,
      slotClass: 'a',
      since: 5,
      phase: 'reserved',
      reason: null,
      note: '',
      saved: false,
      left: false,
      lingered: false,
      bodies: 0,
    })
    leaveJob(job)
    leaveJob(job)
    settleJob(job)
    expect(askToStop(job, 'canceled', 'late')).toBe(false)
    expect(job).toMatchObject({ reason: null, phase: 'settled' })
  })

  it('EX-09 whatever of the three has come first, no reason comes after it', () => {
    const reasoned = { ...makeJob('run_1', 1, 'a', 0), reason: 'shutdown' as const }
    expect(askToStop(reasoned, 'stale', 'late')).toBe(false)
    expect(reasoned).toMatchObject({ reason: 'shutdown', note: '', phase: 'reserved' })
    const left = { ...makeJob('run_1', 1, 'a', 0), left: true }
    expect(askToStop(left, 'stale', 'late')).toBe(false)
    expect(left.phase).toBe('reserved')
    const settling = { ...makeJob('run_1', 1, 'a', 0), phase: 'settling' as const }
    expect(askToStop(settling, 'stale', 'late')).toBe(false)
    expect(settling.reason).toBeNull()
  })

  it('EX-10 the defect of a job that was to settle too early says what is at work', () => {
    const job = { ...makeJob('run_1', 2, 'a', 0), bodies: 3 }
    expect(() => settleJob(job)).toThrow(
      'run_1#2 was to settle with 3 bodies at work, its attempt not over',
    )
    leaveJob(job)
    expect(() => settleJob(job)).toThrow(
      'run_1#2 was to settle with 3 bodies at work, its attempt over',
    )
  })

  it('EX-10 a job goes from its reservation to its end by these moves and no others', () => {
    const { name, states, terminal, moves } = jobMachine
    expect({ name, states, terminal }).toEqual({
      name: 'job',
      states: ['reserved', 'preparing', 'launching', 'running', 'settling', 'settled'],
      terminal: ['settled'],
    })
    const ways = Object.entries(moves).map(([move, { from, to }]) => [move, from, to])
    expect(ways).toEqual([
      ['prepare', ['reserved'], ['preparing']],
      ['launch', ['reserved', 'preparing'], ['launching']],
      ['run', ['launching'], ['running']],
      ['end', ['reserved', 'preparing', 'launching', 'running', 'settling'], ['settling']],
      ['settle', ['settling'], ['settled']],
    ])
  })

  it('EX-09 the first reason wins, and what ends before its launch or has left takes none', () => {
    const job = makeJob('run_1', 1, 'a', 0)
    expect(askToStop(job, 'shutdown', 'first')).toBe(true)
    expect(askToStop(job, 'stale', 'second')).toBe(false)
    expect(job).toMatchObject({ reason: 'shutdown', note: 'first', phase: 'settling' })
    const ended = makeJob('run_2', 1, 'a', 0)
    leaveJob(ended)
    expect(askToStop(ended, 'canceled', 'late')).toBe(false)
    expect(ended.reason).toBeNull()
  })

  it('EX-06 the check is made in its order: holder, first reason, context, time, failed closed', () => {
    const facts = {
      holder: false,
      context: { captured: 'a', current: 'b' },
      now: 10,
      deadline: 10,
      attemptDeadline: 10,
      failedClosed: true,
    }
    const job = makeJob('run_1', 1, 'a', 0)
    job.reason = 'canceled'
    const because = (it: ReturnType<typeof launchCheck>) => (it.launch ? 'launch' : it.because)
    expect(because(launchCheck(job, facts))).toBe('not_holder')
    expect(because(launchCheck(job, { ...facts, holder: true }))).toBe('first_reason')
    job.reason = null
    expect(because(launchCheck(job, { ...facts, holder: true }))).toBe('stale')
    const current = { ...facts, holder: true, context: null }
    expect(because(launchCheck(job, current))).toBe('time_limit')
    expect(because(launchCheck(job, { ...current, deadline: 11 }))).toBe('attempt_deadline')
    const timely = { ...current, deadline: 11, attemptDeadline: null }
    expect(because(launchCheck(job, timely))).toBe('failed_closed')
    expect(because(launchCheck(job, { ...timely, failedClosed: false }))).toBe('launch')
  })

  it('EX-06 the check says why in a sentence, and shows the beginning of a long context', () => {
    const facts = {
      holder: true,
      context: { captured: 'c'.repeat(900), current: 'd'.repeat(900) },
      now: 10,
      deadline: null,
      attemptDeadline: null,
      failedClosed: false,
    }
    const job = makeJob('run_1', 1, 'a', 0)
    const said = (
      over: Partial<typeof facts> | { deadline: number } | { attemptDeadline: number },
    ) => launchCheck(job, { ...facts, context: null, ...over })
    expect(said({ holder: false })).toMatchObject({
      note: 'the attempt no longer holds the run',
    })
    expect(said({ deadline: 10 })).toMatchObject({ note: 'Timed out' })
    expect(said({ attemptDeadline: 10 })).toMatchObject({ note: 'Timed out' })
    expect(said({ failedClosed: true })).toMatchObject({
      note: 'the executor takes nothing new: something could not be released',
    })
    expect(said({ context: { captured: 'same', current: 'same' } })).toMatchObject({ launch: true })
    const stale = launchCheck(job, facts)
    if (stale.launch) throw new Error('launched')
    expect(stale.note).toBe(
      `the context was ${'c'.repeat(120)} when the attempt began and is ${'d'.repeat(120)} now`,
    )
  })

  it('EX-10 from every phase exactly the moves of the table lead on', () => {
    for (const from of jobMachine.states)
      for (const move of Object.keys(jobMachine.moves) as (keyof typeof jobMachine.moves)[])
        for (const to of jobMachine.states) {
          const job = { ...makeJob('run_1', 1, 'a', 0), phase: from as JobPhase }
          const go = () => moveJob(job, move, to)
          if (allows(jobMachine, move, from, to)) expect(go).not.toThrow()
          else expect(go).toThrow(/does not lead/)
        }
  })
})

/** What a person would keep on paper: how many slots of each class are taken, and by whom. */
interface Paper {
  readonly rooms: { room: Room; left: Record<string, number> }[]
  readonly jobs: Job[]
  readonly marked: { run: string; slotClass: string }[]
  readonly gone: Job[]
}

const CLASSES = ['a', 'b'] as const
const step = fc.oneof(
  fc.record({ do: fc.constant('reserve' as const) }),
  fc.record({
    do: fc.constant('admit' as const),
    at: fc.nat(5),
    slotClass: fc.constantFrom(...CLASSES),
  }),
  fc.record({ do: fc.constant('release' as const), at: fc.nat(5) }),
  fc.record({ do: fc.constant('begin' as const), at: fc.nat(9) }),
  fc.record({ do: fc.constant('body' as const), at: fc.nat(9) }),
  fc.record({ do: fc.constant('stop' as const), at: fc.nat(9) }),
  fc.record({ do: fc.constant('leave' as const), at: fc.nat(9) }),
  fc.record({
    do: fc.constant('settle' as const),
    at: fc.nat(9),
    marker: fc.option(fc.constantFrom(...markerKinds), { nil: null }),
  }),
  fc.record({ do: fc.constant('again' as const), at: fc.nat(9) }),
  fc.record({ do: fc.constant('clear' as const), at: fc.nat(9) }),
  fc.record({
    do: fc.constant('limit' as const),
    slotClass: fc.constantFrom(...CLASSES),
    to: fc.nat(4),
  }),
)

describe('EX-03 EX-10 EX-14 in any order of events', () => {
  it('EX-10 no slot is freed twice or leaked, and what has begun is always awaited', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const it = makeCoordinator({ a: 2, b: 3 })
        const paper: Paper = { rooms: [], jobs: [], marked: [], gone: [] }
        let runs = 0
        const pick = <T>(list: readonly T[], at: number): T | undefined => list[at % list.length]
        for (const each of steps) {
          switch (each.do) {
            case 'reserve': {
              const made = it.reserve()
              if (made)
                paper.rooms.push({
                  room: made,
                  left: Object.fromEntries(made.classes.map((name) => [name, made.most])),
                })
              break
            }
            case 'admit': {
              const reserved = pick(paper.rooms, each.at)
              if (!reserved || (reserved.left[each.slotClass] ?? 0) === 0) break
              reserved.left[each.slotClass] = (reserved.left[each.slotClass] ?? 0) - 1
              paper.jobs.push(it.admit(reserved.room, `run_${++runs}`, 1, each.slotClass, 0))
              break
            }
            case 'release': {
              const reserved = pick(paper.rooms, each.at)
              if (!reserved) break
              it.release(reserved.room)
              paper.rooms.splice(paper.rooms.indexOf(reserved), 1)
              expect(() => it.release(reserved.room)).toThrow()
              break
            }
            case 'begin': {
              const job = pick(paper.jobs, each.at)
              if (job && !job.left) job.bodies += 1
              break
            }
            case 'body': {
              const job = pick(paper.jobs, each.at)
              if (job && job.bodies > 0) job.bodies -= 1
              break
            }
            case 'stop': {
              const job = pick(paper.jobs, each.at)
              if (!job) break
              const before = job.reason
              askToStop(job, before === null ? 'shutdown' : 'stale', 'told')
              if (before !== null) expect(job.reason).toBe(before)
              break
            }
            case 'leave': {
              const job = pick(paper.jobs, each.at)
              if (job) leaveJob(job)
              break
            }
            case 'settle': {
              const job = pick(paper.jobs, each.at)
              if (!job) break
              const go = () => it.settle(job, each.marker ? mark(each.marker) : undefined)
              if (!job.left || job.bodies > 0) {
                expect(go).toThrow(/still at work/)
                break
              }
              go()
              paper.jobs.splice(paper.jobs.indexOf(job), 1)
              paper.gone.push(job)
              if (each.marker) paper.marked.push({ run: job.run, slotClass: job.slotClass })
              break
            }
            case 'again': {
              const job = pick(paper.gone, each.at)
              if (job) expect(() => it.settle(job)).toThrow(/gone already/)
              break
            }
            case 'clear': {
              const marked = pick(paper.marked, each.at)
              if (!marked) break
              expect(it.clear(marked.run)).toBe(1)
              paper.marked.splice(paper.marked.indexOf(marked), 1)
              break
            }
            case 'limit':
              it.setLimit(each.slotClass, each.to)
              break
          }
          for (const slots of it.slots()) {
            const mine = (list: readonly { slotClass: string }[]) =>
              list.filter(({ slotClass }) => slotClass === slots.class).length
            expect(slots.used).toBe(mine(paper.jobs) + mine(paper.marked))
            expect(slots.reserved).toBe(
              paper.rooms.reduce((sum, { left }) => sum + (left[slots.class] ?? 0), 0),
            )
          }
          expect(it.jobs.size).toBe(paper.jobs.length)
        }
      }),
      { numRuns: 300 },
    )
  })
})
