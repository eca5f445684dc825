// The checker against histories with something planted in them: what it does not find here it would not find there.
import { expect, test } from 'vitest'
import { check } from './checker.ts'
import type { History } from './history.ts'
import { newHistory } from './history.ts'
import type { Attempt, Entry, Rows, Run } from './rows.ts'
import { rowsOf } from './rows.ts'

const run = (id: string, more: Partial<Run> = {}): Run => ({
  id,
  workflow: 'chain',
  status: 'succeeded',
  reason: null,
  note: null,
  session: null,
  attempt: 2,
  parent: null,
  parentKey: null,
  series: id,
  createdAt: 1_000,
  endedAt: 9_000,
  limits: [],
  input: { steps: 2, ms: 0 },
  output: [`${id} first`, `${id} second`],
  ...more,
})
const attempt = (of: string, n: number, rev: number, more: Partial<Attempt> = {}): Attempt => ({
  run: of,
  attempt: n,
  session: `ses_${n}`,
  leasedAt: 1_000 * n,
  endedAt: 1_000 * n + 900,
  end: 'completed',
  reason: null,
  rev,
  ...more,
})
const entry = (of: string, n: number, by: number, rev: number, output: string): Entry => ({
  run: of,
  n,
  key: `step ${n - 1}`,
  kind: 'step',
  attempt: by,
  rev,
  output,
  failed: false,
})

type Tables = Parameters<typeof rowsOf>[0]
type Planted = { readonly [K in keyof Tables]?: Tables[K] }

/** A run whose first step the first attempt did, and whose second was done twice, and counts as the second attempt's. */
const played = (planted: Planted = {}): { history: History; rows: Rows } => {
  const history = newHistory()
  history.asked.set('r', { run: 'r', workflow: 'chain', input: { steps: 2, ms: 0 }, by: 'client' })
  history.started.add('r')
  history.told.push({ run: 'r', status: 'succeeded', output: ['r first', 'r second'] })
  history.did.push(
    { run: 'r', attempt: 1, step: 'step 0', value: 'r first' },
    { run: 'r', attempt: 1, step: 'step 1', value: 'r second, by the stale one' },
    { run: 'r', attempt: 2, step: 'step 1', value: 'r second' },
  )
  const rows = rowsOf({
    runs: [run('r')],
    attempts: [attempt('r', 1, 4, { end: 'expired' }), attempt('r', 2, 7)],
    entries: [entry('r', 1, 1, 3, 'r first'), entry('r', 2, 2, 6, 'r second')],
    events: [],
    signals: [],
    approvals: [],
    openWaits: [],
    orders: [],
    sessions: [],
    ...planted,
  })
  return { history, rows }
}

const rulesOf = ({ history, rows }: { history: History; rows: Rows }): string[] => [
  ...new Set(check(history, rows).map(({ rule }) => rule)),
]

test('what went as it should is judged so, also with a body that ran twice and counts once', () => {
  const { history, rows } = played()
  expect(check(history, rows)).toEqual([])
})

test('S6 an acknowledged start, signal, cancel or decision that is not there is found', () => {
  const lost = played()
  lost.history.started.add('lost')
  lost.history.signaled.push({ run: 'r', id: 'go-r' })
  lost.history.canceled.add('r')
  lost.history.approved.add('apr_1')
  expect(check(lost.history, lost.rows).map(({ what }) => what)).toEqual([
    'its start was acknowledged, and it is not there',
    'its signal go-r was acknowledged, and is not there',
    'its cancel was acknowledged, and it is succeeded',
    'apr_1 was decided, and is not there',
  ])
})

test('S22 RUN-21 two runs of one key, and a run that was rolled back, are found', () => {
  const double = played()
  double.history.keys.set('k', new Set(['r', 'other']))
  double.history.rolledBack.add('r')
  expect(rulesOf(double)).toEqual(['kept'])
  expect(check(double.history, double.rows)).toHaveLength(2)
  double.history.rolledBack.clear()
  double.history.keys.set('k', new Set(['r']))
  expect(rulesOf(double)).toEqual([])
})

test('an effect that counts twice is found', () => {
  const entries = [entry('r', 1, 1, 3, 'r first'), entry('r', 2, 2, 6, 'r first')]
  const { history, rows } = played({ entries })
  expect(check(history, rows)).toContainEqual(
    expect.objectContaining({ rule: 'bodies', run: 'r', what: expect.stringContaining('counts twice') }), // prettier-ignore
  )
})

test('S2 a result that a stale attempt recorded after it had lost the run is found', () => {
  const entries = [
    entry('r', 1, 1, 3, 'r first'),
    entry('r', 2, 1, 6, 'r second, by the stale one'),
  ]
  const output = ['r first', 'r second, by the stale one']
  const stale = played({ entries, runs: [run('r', { output })] })
  expect(rulesOf(stale)).toEqual(['told', 'fenced'])
})

test('a recorded result that no body returned under that attempt is found', () => {
  const entries = [entry('r', 1, 1, 3, 'r first'), entry('r', 2, 2, 6, 'made up')]
  expect(rulesOf(played({ entries }))).toEqual(['ended', 'bodies'])
  const swapped = [entry('r', 1, 1, 3, 'r first'), entry('r', 2, 2, 6, 'r second, by the stale one')] // prettier-ignore
  expect(rulesOf(played({ entries: swapped }))).toContain('bodies')
})

test('a result that is not what the journal makes, and one that differs from what was told, are found', () => {
  expect(rulesOf(played({ runs: [run('r', { output: ['r first'] })] }))).toEqual(['ended', 'told'])
})

test('S1 L11 a run that is held at the end, or has not ended, is found', () => {
  const held = run('r', { status: 'running', session: 'ses_2', endedAt: null, output: null })
  const { history, rows } = played({ runs: [held] })
  history.told.length = 0
  expect(rulesOf({ history, rows })).toEqual(['ended', 'nothing left'])
})

test('S3 a run that two attempts completed, or one that failed with a completed attempt, is found', () => {
  const attempts = [attempt('r', 1, 4), attempt('r', 2, 7)]
  expect(rulesOf(played({ attempts }))).toEqual(['ended'])
  expect(rulesOf(played({ runs: [run('r', { status: 'failed', output: null })] }))).toEqual([
    'ended',
    'told',
  ])
})

test('a run that ended canceled though nobody asked for it is found, and one whose parent ended is not', () => {
  const canceled = { status: 'canceled', output: null }
  const attempts = [attempt('r', 1, 4, { end: 'expired' }), attempt('r', 2, 7, { end: 'canceled' })]
  const unasked = played({ runs: [run('r', canceled)], attempts })
  unasked.history.told.length = 0
  expect(rulesOf(unasked)).toEqual(['ended'])
  const parent = run('p', { ...canceled, workflow: 'family' })
  const child = played({ runs: [run('r', { ...canceled, parent: 'p' }), parent], attempts })
  child.history.told.length = 0
  child.history.cancelAsked.add('p')
  expect(rulesOf(child)).toEqual([])
})

test('S4 attempts with a gap, or out of their order, are found', () => {
  const gap = [attempt('r', 1, 4, { end: 'expired' }), attempt('r', 3, 7)]
  const entries = [entry('r', 1, 1, 3, 'r first'), entry('r', 2, 3, 6, 'r second')]
  expect(rulesOf(played({ attempts: gap, entries }))).toContain('numbered')
  const back = [attempt('r', 1, 8, { end: 'expired' }), attempt('r', 2, 7)]
  expect(rulesOf(played({ attempts: back }))).toContain('numbered')
})

test('S5 more attempts at once than a limit lets in are found, and as many as it lets in are not', () => {
  const many = (count: number, limits: string[]): { history: History; rows: Rows } => {
    const ids = Array.from({ length: count }, (_, i) => `l${i}`)
    return played({
      runs: ids.map((id) => run(id, { limits, input: { steps: 0 }, output: [] })),
      attempts: ids.map((id) => attempt(id, 1, 4)),
      entries: [],
    })
  }
  const judged = (count: number, limits: string[]): string[] => {
    const { history, rows } = many(count, limits)
    history.started.clear()
    history.told.length = 0
    return rulesOf({ history, rows })
  }
  expect(judged(2, ['shared'])).toEqual([])
  expect(judged(3, ['shared'])).toEqual(['limited'])
  expect(judged(2, ['one:a'])).toEqual(['limited'])
})

test('what is left open, ordered or alive at the end is found', () => {
  const { history, rows } = played({
    openWaits: [{ run: 'r', key: 'go' }],
    approvals: [{ id: 'apr_1', run: 'r', state: 'open' }],
    orders: [{ id: 'start:x', kind: 'start', run: 'x' }],
    sessions: [{ id: 'ses_9', state: 'live' }],
  })
  expect(check(history, rows).map(({ rule }) => rule)).toEqual(
    Array.from({ length: 4 }, () => 'nothing left'),
  )
})

test('RUN-30 a signal that took what was not sent is found', () => {
  const took: Entry = { ...entry('r', 3, 2, 7, 'for another'), key: 'go', kind: 'signal' }
  const entries = [entry('r', 1, 1, 3, 'r first'), entry('r', 2, 2, 6, 'r second'), took]
  expect(rulesOf(played({ entries }))).toEqual(['signals'])
})
