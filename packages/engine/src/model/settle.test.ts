import { describe, expect, it, test } from 'vitest'
import { aRun, NOW } from '../../test/support/run.ts'
import type { Run, RunStatus } from './run.ts'
import { isTerminal } from './run.ts'
import type { End } from './settle.ts'
import { due, settle } from './settle.ts'
import { defaults } from './settings.ts'

const note = 'why'
/** Each way for an attempt to end, with what it comes to when nothing else is in play. */
const ends: Record<string, { end: End; alone: RunStatus; attempt: string }> = {
  'a clean result': { end: { kind: 'complete' }, alone: 'succeeded', attempt: 'completed' },
  'a continuation': {
    end: { kind: 'complete', continued: true },
    alone: 'succeeded',
    attempt: 'completed',
  },
  'an error': { end: { kind: 'fail', reason: 'error', note }, alone: 'failed', attempt: 'failed' },
  'an error with a try left': {
    end: { kind: 'fail', reason: 'error', note, retryInMs: 500 },
    alone: 'waiting',
    attempt: 'failed',
  },
  'the total limit': {
    end: { kind: 'fail', reason: 'time_limit', note },
    alone: 'failed',
    attempt: 'failed',
  },
  'the attempt’s limit': {
    end: { kind: 'fail', reason: 'attempt_deadline', note },
    alone: 'failed',
    attempt: 'failed',
  },
  'a suspend': {
    end: { kind: 'suspend', waitOn: 'signal', readyAt: NOW + 9 },
    alone: 'waiting',
    attempt: 'suspended',
  },
  'a hand-back for shutdown': {
    end: { kind: 'hand_back', reason: 'shutdown' },
    alone: 'queued',
    attempt: 'handed_back',
  },
  'a hand-back for lease_lost': {
    end: { kind: 'hand_back', reason: 'lease_lost' },
    alone: 'queued',
    attempt: 'handed_back',
  },
  'a departure from the journal': {
    end: { kind: 'park', reason: 'nondeterminism', note },
    alone: 'paused',
    attempt: 'suspended',
  },
  'a changed context': { end: { kind: 'stale', note }, alone: 'failed', attempt: 'stale' },
  'a lapsed lease': { end: { kind: 'expire', note }, alone: 'queued', attempt: 'expired' },
  'a proven death': { end: { kind: 'lose', note }, alone: 'queued', attempt: 'lost' },
  'a limit enforced by the store': {
    end: { kind: 'revoke', reason: 'time_limit', note, outcome: 'fail' },
    alone: 'failed',
    attempt: 'revoked',
  },
  'a step past its limit': {
    end: { kind: 'revoke', reason: 'step_limit', note, outcome: 'requeue' },
    alone: 'queued',
    attempt: 'revoked',
  },
}
const settled = (run: Run, end: End) => settle(run, end, NOW, defaults)

/** What a pause that was asked never keeps from ending the run (RUN-17 puts it below these). */
const beatPause = [
  'a clean result',
  'a continuation',
  'the total limit',
  'the attempt’s limit',
  'a changed context',
  'a limit enforced by the store',
]

describe('RUN-17 how an attempt’s end settles its run', () => {
  for (const [name, { end, alone, attempt }] of Object.entries(ends)) {
    test(`RUN-17 ${name} alone: the run is ${alone}, the attempt ${attempt}`, () => {
      const result = settled(aRun('running'), end)
      expect([result.run.status, result.end]).toEqual([alone, attempt])
    })

    test(`RUN-17 ${name} of a canceling run: canceled, whatever else was asked`, () => {
      for (const asked of [null, NOW - 1]) {
        const result = settled(aRun('canceling', { pauseRequestedAt: asked, note: 'by ana' }), end)
        expect(result.run).toMatchObject({ status: 'canceled', reason: 'canceled', note: 'by ana' })
        expect(result.end).toBe(
          ['expired', 'lost', 'revoked'].includes(attempt) ? attempt : 'canceled',
        )
      }
    })

    const expected = beatPause.includes(name) ? alone : 'paused'
    test(`RUN-17 ${name} where a pause was asked: ${expected}`, () => {
      const result = settled(aRun('running', { pauseRequestedAt: NOW - 1, pauseBy: 'bob' }), end)
      expect([result.run.status, result.end]).toEqual([expected, attempt])
      if (expected === 'paused') expect(result.run.pauseRequestedAt).not.toBeNull()
    })
  }

  it('RUN-17 a changed context fails the run with its cause', () => {
    expect(settled(aRun('running'), { kind: 'stale', note: 'HEAD moved' }).run).toMatchObject({
      reason: 'stale',
      note: 'HEAD moved',
    })
  })

  it('RUN-16 a pause keeps what the run waits on, and since when', () => {
    const asked = aRun('running', { pauseRequestedAt: NOW - 1, pauseBy: 'bob' })
    const end: End = { kind: 'suspend', waitOn: 'approval', readyAt: NOW + 9 }
    expect(settled(asked, end).run).toMatchObject({
      status: 'paused',
      waitOn: 'approval',
      readyAt: NOW + 9,
      reason: 'paused',
      note: 'paused by bob',
    })
    expect(settled(asked, { kind: 'hand_back', reason: 'pause' }).run).toMatchObject({
      status: 'paused',
      waitOn: null,
    })
  })

  it('RUN-04 nobody holds the run when its attempt has ended, whichever way', () => {
    for (const status of ['running', 'canceling'] as const)
      for (const { end } of Object.values(ends)) {
        const { run } = settled(aRun(status), end)
        expect([run.session, run.claim, run.leasedAt]).toEqual([null, null, null])
        expect(run.attempt).toBe(aRun(status).attempt)
        expect(run.endedAt !== null).toBe(isTerminal(run.status))
      }
  })

  it('SLOT-07 a run that was driven is admitted before new ones when it must line up again', () => {
    for (const { end } of Object.values(ends)) {
      const { run } = settled(aRun('running'), end)
      if (!isTerminal(run.status)) expect(run.resumed).toBe(1)
    }
  })
})

describe('RUN-12 losses', () => {
  const lose: End = { kind: 'lose', note: 'exit 137' }

  it('RUN-12 the fifth in a row ends the run attempts_exhausted, not the fourth', () => {
    let run = aRun('running')
    const seen: string[] = []
    for (let i = 0; i < 5; i++) {
      const next = settled(run, i % 2 === 0 ? lose : { kind: 'expire', note: 'late' }).run
      seen.push(next.status)
      run = { ...aRun('running'), losses: next.losses, suspectSince: next.suspectSince }
    }
    expect(seen).toEqual(['queued', 'queued', 'queued', 'queued', 'failed'])
    const last = settled(aRun('running', { losses: 4 }), lose).run
    expect(last).toMatchObject({ reason: 'attempts_exhausted', losses: 5 })
    expect(last.note).toContain('exit 137')
  })

  it('RUN-12 the second in a row makes the run suspect, since then', () => {
    const first = settled(aRun('running'), lose).run
    expect(first).toMatchObject({ losses: 1, suspectSince: null })
    const second = settled(aRun('running', { losses: 1 }), lose).run
    expect(second).toMatchObject({ losses: 2, suspectSince: NOW })
    const third = settled(aRun('running', { losses: 2, suspectSince: NOW - 70 }), lose).run
    expect(third).toMatchObject({ losses: 3, suspectSince: NOW - 70 })
  })

  it('RUN-12 hand-backs, failures and limits are no losses and charge nothing to them', () => {
    for (const [name, { end }] of Object.entries(ends)) {
      const { run } = settled(aRun('running', { losses: 1 }), end)
      const loses = name === 'a lapsed lease' || name === 'a proven death'
      expect(run.losses).toBe(loses ? 2 : 1)
      const charged = run.failures
      const fails = end.kind === 'fail' || (end.kind === 'revoke' && end.outcome === 'fail')
      expect(charged).toBe(fails ? 1 : 0)
    }
  })
})

describe('RUN-12 hand-backs in a row', () => {
  const back: End = { kind: 'hand_back', reason: 'marker' }

  it('RUN-12 the first is free, then 1 s doubling, and the tenth parks the run', () => {
    const seen = Array.from({ length: 10 }, (_, handBacks) => {
      const { run } = settled(aRun('running', { handBacks }), back)
      return [run.status, run.readyAt === null ? null : run.readyAt - NOW, run.reason]
    })
    expect(seen).toEqual([
      ['queued', null, null],
      ...[1, 2, 4, 8, 16, 32, 64, 128].map((s) => ['waiting', s * 1_000, 'handed_back']),
      ['paused', null, 'no_progress'],
    ])
  })

  it('RUN-12 the delay never passes five minutes', () => {
    const patient = { ...defaults, handBacksMax: 100 }
    const { run } = settle(aRun('running', { handBacks: 40 }), back, NOW, patient)
    expect(run.readyAt).toBe(NOW + 300_000)
  })

  it('RUN-12 a parked run can be resumed: a pause stands on it', () => {
    const { run } = settled(aRun('running', { handBacks: 9 }), back)
    expect(run).toMatchObject({ status: 'paused', pauseRequestedAt: NOW, handBacks: 10 })
    expect(run.note).toContain('marker')
  })

  it('RUN-12 a hand-back for shutdown, a chain, a pause or a cancel neither counts nor delays', () => {
    for (const reason of ['shutdown', 'chain', 'pause', 'canceled']) {
      const { run } = settled(aRun('running', { handBacks: 9 }), { kind: 'hand_back', reason })
      expect(run).toMatchObject({ status: 'queued', handBacks: 9, readyAt: null })
    }
  })

  it('RUN-09 the run keeps its old place, and EX-21 goes to the end of its priority when told', () => {
    const run = aRun('running', { tag: 5, priority: 1 })
    expect(settled(run, { kind: 'hand_back', reason: 'shutdown' }).run.rank).toBe(-5)
    expect(settled(run, { kind: 'hand_back', reason: 'chain', tag: 40 }).run).toMatchObject({
      tag: 40,
      rank: 30,
    })
  })

  it('RUN-27 a failed attempt with a try left waits for it and is charged one failure', () => {
    const end: End = { kind: 'fail', reason: 'error', note: 'boom', retryInMs: 3_000 }
    expect(settled(aRun('running', { failures: 1 }), end).run).toMatchObject({
      status: 'waiting',
      waitOn: 'time',
      readyAt: NOW + 3_000,
      failures: 2,
      reason: 'retry',
      note: 'boom',
    })
  })
})

describe('RUN-16 where a due run goes', () => {
  it('RUN-16 queued where it holds all its slots, else in line for them', () => {
    const asleep = aRun('waiting', { waitOn: 'time', readyAt: NOW })
    expect(due(asleep, 'wake', NOW)).toMatchObject({ status: 'queued', readyAt: null })
    const keyed = aRun('waiting', { waitOn: 'time', readyAt: NOW, limitModes: 'h', limitA: 'k' })
    expect(due(keyed, 'wake', NOW)).toMatchObject({
      status: 'waiting',
      waitOn: 'slot',
      readyAt: null,
      reason: 'limit',
    })
    const paused = aRun('paused', { limitModes: 'h', limitA: 'k' })
    expect(due(paused, 'resume', NOW)).toMatchObject({ status: 'waiting', waitOn: 'slot' })
    expect(due(aRun('paused'), 'resume', NOW).status).toBe('queued')
  })
})
