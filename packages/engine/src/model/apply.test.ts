import { describe, expect, it } from 'vitest'
import { aRun, NOW } from '../../test/support/run.ts'
import type { Applied, Found } from './apply.ts'
import { applyWrite, touchesWaits } from './apply.ts'
import { emptyCatalog } from './definition.ts'
import type { Run } from './run.ts'
import type { Settings } from './settings.ts'
import { defaults } from './settings.ts'
import { ALONE } from './shard.ts'
import type { Wait } from './wait.ts'
import type { AttemptWrite, Entry } from './work.ts'

const entry = (n: number, key = `s${n}`, patch: Partial<Entry> = {}): Entry => ({
  n,
  key,
  kind: 'step',
  at: NOW,
  output: '1',
  error: null,
  ...patch,
})
const open = (key: string, patch: Partial<Wait> = {}): Wait => ({
  run: 'run_1',
  key,
  seq: 1,
  kind: 'signal',
  name: key,
  dueAt: null,
  state: 'open',
  result: null,
  tries: 0,
  error: null,
  ...patch,
})
const apply = (
  write: Partial<AttemptWrite>,
  found: Partial<Found> & { run?: Run } = {},
  settings: Settings = defaults,
) =>
  applyWrite(
    {
      run: aRun('running', { entries: 0, journalBytes: 0 }),
      waits: [],
      signals: [],
      lastTag: null,
      state: null,
      ...found,
    },
    { run: 'run_1', attempt: 3, entries: [], ...write },
    NOW,
    { catalog: emptyCatalog, settings, hash: (text) => text, virtual: () => 0, shard: ALONE },
  )
const applied = (...args: Parameters<typeof apply>): Applied => {
  const outcome = apply(...args)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.applied
}

describe('RUN-26 the numbering of entries', () => {
  it('RUN-26 takes the next numbers in order', () => {
    const { run, entries } = applied({ entries: [entry(1), entry(2)] })
    expect([run.entries, entries.map(({ key }) => key)]).toEqual([2, ['s1', 's2']])
  })

  it('RUN-07 a checkpoint that is repeated is stored once', () => {
    const run = aRun('running', { entries: 2 })
    const again = applied({ entries: [entry(1), entry(2), entry(3)] }, { run })
    expect(again.entries.map(({ n }) => n)).toEqual([3])
    expect(applied({ entries: [entry(1)] }, { run }).entries).toEqual([])
  })

  it('RUN-26 a gap is refused and nothing is applied', () => {
    expect(apply({ entries: [entry(2)] })).toMatchObject({ ok: false, code: 'invalid_request' })
    expect(apply({ entries: [entry(1), entry(3)] })).toMatchObject({ ok: false })
  })
})

describe('RUN-31 limits of the journal', () => {
  it('RUN-31 too many entries or bytes are refused, and the message says what to do', () => {
    const few = { ...defaults, entriesMax: 2 }
    expect(applied({ entries: [entry(1), entry(2)] }, {}, few).entries).toHaveLength(2)
    const many = apply({ entries: [entry(1), entry(2), entry(3)] }, {}, few)
    expect(many).toMatchObject({
      code: 'payload_too_large',
      message: expect.stringContaining('continueAs') as string,
    })
    const small = { ...defaults, journalMaxBytes: 10 }
    expect(
      applied({ entries: [entry(1, 'a', { output: '"1234567"' })] }, {}, small).run.journalBytes,
    ).toBe(9)
    expect(apply({ entries: [entry(1, 'a', { output: '"äääää"' })] }, {}, small)).toMatchObject({
      code: 'payload_too_large',
    })
  })
})

describe('RUN-12 progress', () => {
  it('RUN-12 a new entry resets the losses, the suspicion and the hand-backs, and sets progress_at', () => {
    const run = aRun('running', { entries: 0, losses: 3, suspectSince: 5, handBacks: 4 })
    expect(applied({ entries: [entry(1)] }, { run }).run).toMatchObject({
      losses: 0,
      suspectSince: null,
      handBacks: 0,
      progressAt: NOW,
    })
    expect(applied({}, { run }).run).toMatchObject({ losses: 3, handBacks: 4 })
  })
})

describe('RUN-28 suspending', () => {
  const suspend = (keys: string[], waits: Wait[], run = aRun('running', { entries: 0 })) =>
    applied({ end: { kind: 'suspend', keys } }, { waits, run })

  it('RUN-28 waits on what was recorded first, until the earliest instant of any', () => {
    const { run, end } = suspend(
      ['b', 'a'],
      [
        open('a', { seq: 2, kind: 'time', dueAt: NOW + 50 }),
        open('b', { seq: 1, kind: 'approval', dueAt: NOW + 900 }),
      ],
    )
    expect([run.status, run.waitOn, run.readyAt, end]).toEqual([
      'waiting',
      'approval',
      NOW + 50,
      'suspended',
    ])
  })

  it('RUN-28 is answered with the satisfied waits, and goes on, when one of them is due', () => {
    const { run, end, answer } = suspend(
      ['a', 'b'],
      [open('a'), open('b', { seq: 2, kind: 'time', dueAt: NOW })],
    )
    expect([run.status, end]).toEqual(['running', null])
    expect(answer).toMatchObject({ ended: null, satisfied: [{ key: 'b', state: 'lapsed' }] })
  })

  it('RUN-16 a pause that was asked is not put off by a satisfied wait', () => {
    const run = aRun('running', { entries: 0, pauseRequestedAt: NOW - 1 })
    const { run: after } = suspend(['a'], [open('a', { state: 'satisfied' })], run)
    expect(after).toMatchObject({ status: 'paused', waitOn: 'signal' })
  })

  it('RUN-28 parks the run when a wait is open at which no branch stands, or a branch stands at none', () => {
    const stray = suspend(['a'], [open('a'), open('b')])
    expect(stray.run).toMatchObject({ status: 'paused', reason: 'nondeterminism' })
    expect(stray.run.note).toContain('b (signal)')
    expect(suspend(['a', 'x'], [open('a')]).run.note).toContain('x, which is not recorded')
    expect(suspend([], []).run).toMatchObject({ status: 'paused', reason: 'nondeterminism' })
  })

  it('RUN-28 records waits and suspends at them in one write', () => {
    const { run, waits } = applied({
      waits: [{ key: 'nap', kind: 'time', dueInMs: 5_000 }],
      end: { kind: 'suspend', keys: ['nap'] },
    })
    expect(run).toMatchObject({ waitOn: 'time', readyAt: NOW + 5_000, waits: 1 })
    expect(waits).toMatchObject([{ key: 'nap', dueAt: NOW + 5_000, state: 'open' }])
  })

  it('RUN-07 a wait that is recorded again stays as it was; a retry is counted on', () => {
    const known = [open('a', { seq: 4, dueAt: NOW + 70 }), open('r', { kind: 'retry', tries: 1 })]
    const { waits } = applied(
      {
        waits: [
          { key: 'a', kind: 'signal', name: 'a', dueInMs: 9 },
          { key: 'r', kind: 'retry', tries: 2, dueInMs: 10 },
        ],
      },
      { waits: known },
    )
    expect(waits).toMatchObject([{ key: 'r', tries: 2, dueAt: NOW + 10 }])
  })
})

describe('RUN-30 what a race and an entry do to signals', () => {
  const taken = { run: 'run_1', id: 'x', seq: 1, name: 'go', payload: '1', takenBy: 'lost' }

  it('RUN-30 the loser of a race lets its signal go to the wait that stands', () => {
    const { taken: given, released } = applied(
      { entries: [entry(1, 'race', { kind: 'race' })], closes: ['lost'] },
      {
        waits: [
          open('lost', { name: 'go', state: 'satisfied' }),
          open('next', { name: 'go', seq: 2 }),
        ],
        signals: [taken],
      },
    )
    expect(released).toEqual(['lost'])
    expect(given).toMatchObject([{ id: 'x', takenBy: 'next' }])
  })

  it('RUN-30 the entry takes its wait, and its signal is read for good', () => {
    const {
      waits,
      read,
      taken: given,
    } = applied(
      { entries: [entry(1, 'lost', { kind: 'signal' })] },
      {
        waits: [
          open('lost', { name: 'go', state: 'satisfied' }),
          open('next', { name: 'go', seq: 2 }),
        ],
        signals: [taken],
      },
    )
    expect(waits).toMatchObject([{ key: 'lost', state: 'taken' }])
    expect(read).toEqual(['lost'])
    expect(given).toEqual([])
  })

  it('RUN-28 waits are read only for writes that can touch them', () => {
    const write: AttemptWrite = { run: 'run_1', attempt: 1, entries: [] }
    expect(touchesWaits(write)).toBe(false)
    expect(touchesWaits({ ...write, entries: [entry(1)] })).toBe(false)
    expect(touchesWaits({ ...write, entries: [entry(1, 'x', { kind: 'signal' })] })).toBe(true)
    expect(touchesWaits({ ...write, closes: ['a'] })).toBe(true)
    expect(touchesWaits({ ...write, waits: [{ key: 'a', kind: 'time' }] })).toBe(true)
    expect(touchesWaits({ ...write, look: true })).toBe(true)
    expect(touchesWaits({ ...write, end: { kind: 'suspend', keys: ['a'] } })).toBe(true)
  })
})

describe('RUN-17 the first reason', () => {
  const ends: AttemptWrite['end'][] = [
    { kind: 'complete', output: '1' },
    { kind: 'continue', input: null, runId: 'run_2' },
    { kind: 'suspend', keys: [] },
    { kind: 'hand_back', reason: 'shutdown' },
    { kind: 'park', reason: 'nondeterminism', note: 'x' },
  ]
  for (const firstReason of ['time_limit', 'attempt_deadline'] as const)
    for (const end of ends)
      it(`RUN-17 ${firstReason} beats ${end?.kind}`, () => {
        if (!end) return
        const { run, output, error } = applied({ firstReason, end })
        expect(run).toMatchObject({ status: 'failed', reason: firstReason })
        expect(output).toBeNull()
        expect(JSON.parse(error ?? '')).toMatchObject({ code: firstReason })
      })

  it('RUN-17 a changed context beats a clean result', () => {
    const { run, end } = applied({ firstReason: 'stale', end: { kind: 'complete', output: '1' } })
    expect([run.status, run.reason, end]).toEqual(['failed', 'stale', 'stale'])
  })

  it('RUN-17 a clean result stands after a stop was asked', () => {
    for (const firstReason of ['shutdown', 'lease_lost', 'capture_failure'] as const) {
      const { run, output } = applied({ firstReason, end: { kind: 'complete', output: '1' } })
      expect([run.status, output]).toEqual(['succeeded', '1'])
    }
  })
})

describe('RUN-14 what the holder is told', () => {
  it('RUN-14 a cancel before a pause, with its sentence', () => {
    const asked = { entries: 0, pauseRequestedAt: NOW - 1 }
    const canceling = aRun('canceling', { ...asked, note: 'canceled by ana' })
    expect(applied({ entries: [entry(1)] }, { run: canceling }).answer).toMatchObject({
      directive: 'cancel',
      note: 'canceled by ana',
      ended: null,
    })
    const running = aRun('running', asked)
    expect(applied({ entries: [entry(1)] }, { run: running }).answer.directive).toBe('pause')
    expect(applied({ entries: [entry(1)] }).answer.directive).toBeNull()
  })

  it('EX-21 a run that goes to the end of its priority lands behind the last one queued there', () => {
    const end = { kind: 'hand_back', reason: 'chain', toEnd: true } as const
    const run = aRun('running', { tag: 5, entries: 0 })
    expect(applied({ end }, { run, lastTag: 40 }).run).toMatchObject({ status: 'queued', tag: 41 })
    expect(applied({ end }, { run, lastTag: 2 }).run.tag).toBe(5)
    expect(applied({ end }, { run }).run.tag).toBe(5)
  })
})
