import { expect, test } from 'vitest'
import { countByStatus, readRuns, remark, span, type Run } from './runs.ts'
import { statuses, statusWords } from './words/status.ts'

const run: Run = {
  id: 'run_1',
  workflow: 'mail',
  status: 'queued',
  waitOn: null,
  reason: null,
  attempt: 0,
  session: null,
  leasedAt: null,
  createdAt: 0,
  endedAt: null,
}

test('every status has a label and is counted, also when no run has it', () => {
  expect(statuses.toSorted()).toEqual(Object.keys(statusWords).toSorted())
  const counts = new Map(countByStatus([run, { ...run, status: 'failed' }, run]))
  expect(counts.get('queued')).toBe(2)
  expect(counts.get('failed')).toBe(1)
  expect(counts.get('running')).toBe(0)
})

test('a held run names its holder, a waiting one what it waits on, an ended one its reason', () => {
  expect(remark({ ...run, session: 'ses_1', attempt: 3 })).toBe('held by ses_1, attempt 3')
  expect(remark({ ...run, waitOn: 'slot', reason: 'no_executor' })).toBe(
    'on a free slot; no executor',
  )
  expect(remark({ ...run, reason: 'attempts_exhausted' })).toBe('attempts exhausted')
  expect(remark(run)).toBe('')
})

test('a span is given in the unit that people would use', () => {
  expect([-5, 59_999, 61_000, 3_660_000, 172_800_000].map(span)).toEqual([
    '0 s',
    '59 s',
    '1 min',
    '1 h 1 min',
    '2 days',
  ])
})

test('a list is read bare or as a page, and anything else is refused', () => {
  expect(readRuns([run])).toEqual([run])
  expect(readRuns({ runs: [run] })).toEqual([run])
  expect(() => readRuns({ error: 'no' })).toThrow('no list of runs')
})
