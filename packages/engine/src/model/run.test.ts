import { describe, expect, it, test } from 'vitest'
import { aRun, NOW } from '../../test/support/run.ts'
import { Defect } from '../kernel/errors.ts'
import { approvalMachine } from './approval.ts'
import { attemptMachine } from './attempt.ts'
import type { Machine } from './machine.ts'
import { allows } from './machine.ts'
import type { RunMove } from './run.ts'
import { isHeld, isTerminal, laneOf, moved, PRIORITY_STEP, rankOf, runMachine } from './run.ts'
import { sessionMachine } from './session.ts'
import { waitMachine } from './wait.ts'

/** The contract's arrows, written a second time so that a change of the table is seen here. */
const arrows: Record<RunMove, string> = {
  claim: 'queued>running',
  adopt: 'running>same',
  checkpoint: 'running,canceling>same',
  endAttempt: 'running>queued,waiting,paused,succeeded,failed',
  endCanceling: 'canceling>canceled',
  orderCancel: 'running>canceling',
  cancel: 'queued,waiting,paused>canceled',
  admit: 'waiting>queued',
  wake: 'waiting>queued,waiting',
  park: 'queued>waiting',
  pause: 'queued,waiting>paused',
  askPause: 'running,canceling>same',
  resume: 'paused>queued,waiting',
  note: 'queued,waiting,paused>same',
  fail: 'queued,waiting,paused>failed',
  reversion: 'queued,waiting,paused>same',
}
const moves = Object.keys(runMachine.moves) as RunMove[]
const statuses = runMachine.states

describe('RUN-01 the statuses', () => {
  it('RUN-01 are these eight, of which three are terminal', () => {
    expect(statuses).toEqual([
      'queued',
      'running',
      'waiting',
      'paused',
      'canceling',
      'succeeded',
      'failed',
      'canceled',
    ])
    expect(statuses.filter(isTerminal)).toEqual(['succeeded', 'failed', 'canceled'])
    expect(statuses.filter(isHeld)).toEqual(['running', 'canceling'])
  })
})

describe('RUN-02 every status, move and target', () => {
  it('RUN-02 has an arrow written for every move of the table', () => {
    expect(Object.keys(arrows).sort()).toEqual([...moves].sort())
  })

  for (const move of moves)
    for (const from of statuses)
      for (const to of statuses) {
        const [sources = '', targets = ''] = arrows[move].split('>')
        const may =
          sources.split(',').includes(from) &&
          (targets === 'same' ? to === from : targets.split(',').includes(to))
        test(`RUN-02 ${move} from ${from} to ${to} is ${may ? 'allowed' : 'refused'}`, () => {
          const run = aRun(from)
          const attempt = (): unknown => moved(run, move, to, NOW, { waitOn: 'time', readyAt: NOW })
          if (!may) {
            expect(attempt).toThrow(Defect)
            return
          }
          const next = moved(run, move, to, NOW, { waitOn: 'time', readyAt: NOW })
          expect(next.status).toBe(to)
          expect(next.rev).toBe(run.rev + 1)
          // what the CHECK constraints of the table say, on the row that would be written
          if (!isHeld(to))
            expect([next.session, next.claim, next.leasedAt]).toEqual([null, null, null])
          if (!isHeld(to)) expect(next.attemptDeadline).toBeNull()
          expect(next.endedAt !== null).toBe(isTerminal(to))
          if (to !== 'waiting' && to !== 'paused')
            expect([next.waitOn, next.readyAt]).toEqual([null, null])
          else expect([next.waitOn, next.readyAt]).toEqual(['time', NOW])
        })
      }

  it('RUN-03 leads nowhere from a terminal status', () => {
    for (const from of statuses.filter(isTerminal))
      for (const move of moves)
        for (const to of statuses) expect(allows(runMachine, move, from, to)).toBe(false)
  })
})

describe('what a move keeps and clears', () => {
  it('RUN-04 keeps the holder while the run stays held', () => {
    const run = aRun('running')
    const next = moved(run, 'orderCancel', 'canceling', NOW)
    expect(next).toMatchObject({ session: run.session, claim: run.claim, leasedAt: run.leasedAt })
    expect(next.attemptDeadline).toBe(run.attemptDeadline)
  })

  it('RUN-01 takes a stale reason off a queued run and keeps one that is given', () => {
    const run = aRun('waiting', { reason: 'limit', note: 'the line is long' })
    expect(moved(run, 'admit', 'queued', NOW)).toMatchObject({ reason: null, note: null })
    expect(moved(run, 'wake', 'queued', NOW, { reason: 'x' }).reason).toBe('x')
  })

  it('RUN-16 an end forgets the pause and the suspicion', () => {
    const run = aRun('running', { pauseRequestedAt: NOW, suspectSince: NOW })
    const next = moved(run, 'endAttempt', 'succeeded', NOW)
    expect(next).toMatchObject({ pauseRequestedAt: null, suspectSince: null, endedAt: NOW })
  })

  it('SLOT-07 ranks by tag less ten for each step of priority', () => {
    expect(PRIORITY_STEP).toBe(10)
    expect(rankOf(50, 2)).toBe(30)
    const run = aRun('running', { priority: 3 })
    expect(moved(run, 'endAttempt', 'queued', NOW, { tag: 100 }).rank).toBe(70)
  })

  it('RUN-05 a lane is told apart by queue, workflow, version and every label', () => {
    const lanes = [
      laneOf('q', 'w', '1', []),
      laneOf('q', 'w', '1', ['gpu']),
      laneOf('q', 'w', '2', []),
      laneOf('q', 'w,1', '', []),
      laneOf('p', 'w', '1', []),
    ]
    expect(new Set(lanes).size).toBe(lanes.length)
  })
})

describe('the other machines', () => {
  const machines: readonly Machine<string, string>[] = [
    approvalMachine,
    attemptMachine,
    sessionMachine,
    waitMachine,
  ]
  for (const table of machines)
    it(`RUN-02 ${table.name}: no move leaves a terminal state, and every state can be reached`, () => {
      const all = Object.values(table.moves)
      for (const { from } of all)
        expect(from.filter((each) => table.terminal.includes(each))).toEqual([])
      const reached = new Set([
        ...table.states.slice(0, 1),
        ...all.flatMap(({ to }) => (to === 'same' ? [] : to)),
      ])
      expect([...reached].sort()).toEqual([...table.states].sort())
    })

  it('RUN-04 an attempt ends in one of nine ways', () => {
    const ends: string[] = attemptMachine.terminal.slice()
    expect(ends.sort()).toEqual(
      [
        'completed',
        'failed',
        'suspended',
        'handed_back',
        'expired',
        'lost',
        'canceled',
        'stale',
        'revoked',
      ].sort(),
    )
  })
})
