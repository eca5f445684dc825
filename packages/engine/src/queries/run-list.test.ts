import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestEngine } from '../../test/support/engine.ts'
import { openTestEngine } from '../../test/support/engine.ts'
import { testPorts } from '../../test/support/ports.ts'
import type { RunStatus } from '../model/run.ts'
import { sqliteText } from '../store/dialect.ts'
import type { Statement } from '../store/sql.ts'
import { auditStatements } from '../store/tables/audits.ts'
import { holdersOf } from '../store/tables/limits.ts'
import type { RunFilter } from '../store/tables/run-lists.ts'
import { aheadInLane, laneDepths } from '../store/tables/lanes.ts'
import { aheadInLine, lineOf, slots } from '../store/tables/lines.ts'
import { children, series } from '../store/tables/views.ts'
import { NO_FILTER, runsPage, scanBound, statusCounts } from '../store/tables/run-lists.ts'
import type { RunPage } from './run-list.ts'
import { runCounts, runList } from './run-list.ts'

let world: TestEngine
const TOTAL = 25_000

/** Mostly ended runs of ten workflows and five owners, a few failed, canceled and queued ones among them. */
beforeAll(async () => {
  world = await openTestEngine(testPorts().ports)
  const insert = world.store.db.prepare(
    `insert into runs (id, workflow, version, queue, labels, lane, tag, rank, owner, input_hash, status, created_at, ended_at, note, error, root, series)
     values (?, ?, '1', ?, ?, ?, 1, 1, ?, 'h', ?, ?, ?, ?, ?, ?, ?)`,
  )
  world.store.db.transaction(() => {
    for (let i = 0; i < TOTAL; i++) {
      const id = `run_${String(i).padStart(6, '0')}`
      const status: RunStatus =
        i % 1_000 === 0
          ? 'failed'
          : i % 1_500 === 1
            ? 'canceled'
            : i % 2_000 === 2
              ? 'queued'
              : 'succeeded'
      insert.run(
        id,
        `w${i % 10}`,
        i % 3 === 0 ? 'slow' : 'default',
        i % 5_000 === 0 ? '["gpu"]' : '["gpus"]',
        `lane${i % 10}`,
        `o${i % 5}`,
        status,
        1_000 + i,
        status === 'queued' ? null : 2_000 + i,
        i === 40 ? 'Out Of Paper' : null,
        status === 'failed' ? `{"message":"Disk ${i} is full"}` : null,
        id,
        id,
      )
    }
  })()
}, 60_000)
afterAll(() => world.close())

const all = async (filter: Partial<RunFilter>, limit = 200) => {
  const ids: string[] = []
  let cursor: string | null = null
  let pages = 0
  do {
    const from: string | null = cursor
    const page: RunPage = await world.engine.read((tx) =>
      runList(tx, { ...NO_FILTER, ...filter }, from, limit),
    )
    ids.push(...page.runs.map((run) => run.id))
    cursor = page.next
    pages += 1
  } while (cursor !== null)
  return { ids, pages }
}
const where = (keep: (i: number) => boolean): string[] =>
  Array.from({ length: TOTAL }, (_each, i) => i)
    .filter(keep)
    .reverse()
    .map((i) => `run_${String(i).padStart(6, '0')}`)

test('OPS-01 pages follow one another without a gap or a repeat, newest first', async () => {
  const failed = where((i) => i % 1_000 === 0)
  const canceled = where((i) => i % 1_000 !== 0 && i % 1_500 === 1)
  expect((await all({ statuses: ['failed'] }, 7)).ids).toEqual(failed)
  const both = [...failed, ...canceled].sort().reverse()
  expect((await all({ statuses: ['failed', 'canceled'] }, 5)).ids).toEqual(both)
  expect((await all({ workflow: 'w3', owner: 'o3' })).ids).toEqual(where((i) => i % 10 === 3))
  expect((await all({ statuses: ['queued', 'failed'], workflow: 'w0' }, 3)).ids).toEqual(
    where((i) => i % 10 === 0 && (i % 1_000 === 0 || (i % 1_500 !== 1 && i % 2_000 === 2))),
  )
  expect((await all({}, 200)).ids).toHaveLength(TOTAL)
})

test('OPS-01 lists filter by time, label, and text of the error or note', async () => {
  expect((await all({ text: 'disk 7000 IS' })).ids).toEqual(['run_007000'])
  expect((await all({ text: 'out of paper' })).ids).toEqual(['run_000040'])
  expect((await all({ text: "%'; drop table runs; --" })).ids).toEqual([])
  expect((await all({ label: 'gpu' })).ids).toEqual(where((i) => i % 5_000 === 0))
  expect((await all({ startedAfter: 1_100, startedBefore: 1_103 })).ids).toEqual([
    'run_000102',
    'run_000101',
    'run_000100',
  ])
})

test('OPS-01 a page looks at a bounded number of runs, however few match', async () => {
  const { ids, pages } = await all({ text: 'out of paper' })
  expect(ids).toHaveLength(1)
  expect(pages).toBe(3)
})

test('OPS-01 counting stops where it has seen enough', async () => {
  const counts = new Map(
    (await world.engine.read(runCounts)).map(({ status, count, more }) => [
      status,
      { count, more },
    ]),
  )
  expect(counts.get('failed')).toEqual({ count: 25, more: false })
  expect(counts.get('succeeded')).toEqual({ count: 10_000, more: true })
  expect(counts.get('queued')).toEqual({
    count: where((i) => i % 2_000 === 2 && i % 1_500 !== 1).length,
    more: false,
  })
})

const planOf = (statement: Statement<unknown>): string =>
  (
    world.store.db
      .prepare(`explain query plan ${sqliteText(statement.sql.text)}`)
      .all(
        Object.fromEntries([...statement.params, 0].map((value, i) => [i + 1, String(value)])),
      ) as { detail: string }[]
  )
    .map(({ detail }) => detail)
    .join('\n')

/** A read of the whole table, or of it in the order of its ids. */
const WHOLE = /SCAN (r|runs)\b(?! USING (COVERING )?INDEX runs_)/

test('UI-01 lists are read from the index that fits them', () => {
  const page = (branch: Parameters<typeof runsPage>[0], filter: Partial<RunFilter> = {}) =>
    planOf(runsPage(branch, { ...NO_FILTER, ...filter }, 'z', '', 50))
  expect(page('all')).toContain('sqlite_autoindex_runs_1 (id>? AND id<?)')
  expect(page('active', { statuses: ['running'], workflow: 'w1', owner: 'o1' })).toContain(
    'runs_active (id>? AND id<?)',
  )
  expect(page('failed', { workflow: 'w1' })).toContain('runs_failed (id>? AND id<?)')
  expect(page('canceled')).toContain('runs_canceled (id>? AND id<?)')
  expect(page('all', { workflow: 'w1', owner: 'o1' })).toContain('runs_workflow (workflow=?')
  expect(page('all', { owner: 'o1' })).toContain('runs_owner (owner=?')
  expect(page('succeeded', { workflow: 'w1' })).toContain('runs_workflow (workflow=?')
  const bound = scanBound('active', { ...NO_FILTER, text: 'x' }, 'z')
  expect(bound && planOf(bound)).toContain('INDEX runs_active (id<?)')
})

test('UI-01 no view of lines, slots or families reads the whole table', () => {
  for (const statement of [
    children('run_1', 10),
    series('run_1', 10),
    slots(10),
    holdersOf('a', 'whole_run', 10),
    lineOf('a', 10),
    aheadInLine(['a'], 0, 1, 'run_1'),
    aheadInLane('lane1', 1, 'run_1'),
    laneDepths(10),
  ])
    expect(`${statement.sql.name}\n${planOf(statement)}`).not.toMatch(WHOLE)
  // succeeded runs have no index of their own: counting them stops at its bound
  expect(planOf(statusCounts()).match(new RegExp(WHOLE, 'g')) ?? []).toHaveLength(1)
})

test('OPS-04 the audit looks at active runs and the newest ended ones, never at all of them', () => {
  for (const { name, broken } of auditStatements(1)) {
    const plan = planOf(broken).replace(
      /SCAN r USING COVERING INDEX sqlite_autoindex_runs_1/g,
      'newest',
    )
    expect(`${name}\n${plan}`).not.toMatch(WHOLE)
  }
})

test('B129 no list sorts what no index gives in its order, on the first page as on a deep one, by whatever it is filtered', () => {
  const branches = ['all', 'active', 'failed', 'canceled', 'succeeded'] as const
  const filters: Partial<RunFilter>[] = [
    { workflow: 'w1' },
    { owner: 'o1' },
    { queue: 'slow' },
    { text: 'x' },
    { label: 'gpu' },
  ]
  const some = Array.from(
    { length: 2 ** filters.length },
    (_each, bits) =>
      Object.assign({}, ...filters.filter((_filter, i) => (bits >> i) & 1)) as Partial<RunFilter>,
  )
  for (const branch of branches)
    for (const filter of some)
      // places are ids, so a deep page begins where it is and skips nothing
      for (const below of ['z', 'run_000300']) {
        const full = { ...NO_FILTER, ...filter }
        for (const statement of [
          runsPage(branch, full, below, '', 50),
          scanBound(branch, full, below),
        ])
          if (statement) {
            const plan = `${branch} ${JSON.stringify(filter)}\n${planOf(statement)}`
            expect(plan).not.toContain('TEMP B-TREE')
            expect(plan).not.toMatch(WHOLE)
            expect(statement.sql.text.replace('offset 10000', '')).not.toMatch(/\boffset\b/i)
          }
      }
})
