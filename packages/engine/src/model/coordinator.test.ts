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

describe('EX-06 EX-09 jobs', () => {
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
