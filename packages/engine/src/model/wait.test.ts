import { describe, expect, it } from 'vitest'
import { NOW } from '../../test/support/run.ts'
import type { Signal, Wait } from './wait.ts'
import { earliestDue, settleWaits, waitOnOf } from './wait.ts'

const wait = (key: string, patch: Partial<Wait> = {}): Wait => ({
  run: 'run_1',
  key,
  seq: 1,
  kind: 'signal',
  name: 'go',
  dueAt: null,
  state: 'open',
  result: null,
  tries: 0,
  error: null,
  ...patch,
})
const signal = (id: string, seq: number, patch: Partial<Signal> = {}): Signal => ({
  run: 'run_1',
  id,
  seq,
  name: 'go',
  payload: JSON.stringify(id),
  takenBy: null,
  ...patch,
})
const pairs = (waits: Wait[], signals: Signal[], now = NOW) =>
  settleWaits(waits, signals, now).signals.map(({ id, takenBy }) => [id, takenBy])

describe('RUN-30 signals meet waits', () => {
  it('RUN-30 first in, first out, to the earliest recorded wait, whatever order they are read in', () => {
    const waits = [wait('late', { seq: 2 }), wait('early', { seq: 1 })]
    expect(pairs(waits, [signal('b', 2), signal('a', 1), signal('c', 3)])).toEqual([
      ['a', 'early'],
      ['b', 'late'],
    ])
  })

  it('RUN-30 only those of its name, and none that another wait has taken', () => {
    expect(
      pairs([wait('w')], [signal('x', 1, { name: 'no' }), signal('y', 2, { takenBy: 'other' })]),
    ).toEqual([])
  })

  it('RUN-30 a null payload satisfies the wait; it is no time-out', () => {
    const { waits } = settleWaits([wait('w')], [signal('a', 1, { payload: null })], NOW)
    expect(waits).toMatchObject([{ key: 'w', state: 'satisfied', result: null }])
  })

  it('S12 a signal that is there beats the instant that has come, and excludes it', () => {
    const { waits, signals } = settleWaits([wait('w', { dueAt: NOW - 5 })], [signal('a', 1)], NOW)
    expect(waits).toMatchObject([{ state: 'satisfied', result: '"a"' }])
    expect(signals).toHaveLength(1)
  })

  it('RUN-30 a settled wait takes nothing more', () => {
    for (const state of ['satisfied', 'lapsed', 'closed', 'taken'] as const)
      expect(pairs([wait('w', { state })], [signal('a', 1)])).toEqual([])
  })

  it('RUN-30 waits of other kinds take no signal of their name', () => {
    for (const kind of ['time', 'approval', 'child', 'retry'] as const)
      expect(pairs([wait('w', { kind })], [signal('a', 1)])).toEqual([])
  })
})

describe('RUN-29 instants', () => {
  it('RUN-29 a wait lapses at its instant and not a millisecond before', () => {
    const waits = [wait('w', { kind: 'time', dueAt: NOW })]
    expect(settleWaits(waits, [], NOW - 1).waits).toEqual([])
    expect(settleWaits(waits, [], NOW).waits).toMatchObject([{ key: 'w', state: 'lapsed' }])
  })

  it('RUN-29 one without an instant never lapses', () => {
    expect(settleWaits([wait('w')], [], Number.MAX_SAFE_INTEGER).waits).toEqual([])
  })

  it('RUN-29 ready_at is the earliest instant of those that stand', () => {
    expect(earliestDue([wait('a', { dueAt: 30 }), wait('b', { dueAt: 20 }), wait('c')])).toBe(20)
    expect(earliestDue([wait('a', { dueAt: 0 }), wait('b', { dueAt: 20 })])).toBe(0)
    expect(earliestDue([wait('c')])).toBeNull()
  })

  it('RUN-01 a later retry is a wait for time', () => {
    expect(
      ['time', 'signal', 'approval', 'child', 'retry'].map((kind) =>
        waitOnOf(kind as Wait['kind']),
      ),
    ).toEqual(['time', 'signal', 'approval', 'child', 'time'])
  })
})
