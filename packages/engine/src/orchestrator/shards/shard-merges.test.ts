import { expect, it } from 'vitest'
import type { RunPage } from '../../queries/run-list.ts'
import { mergeRunPages } from './shard-merges.ts'

const page = (ids: readonly string[], next: string | null): RunPage => ({
  runs: ids.map((id) => ({ id })) as unknown as RunPage['runs'],
  next,
})

it('OPS-03 RUN-18 pages of several databases are joined in the order that a database has, by bytes', () => {
  // in JavaScript’s order the first of these comes before the second
  const [beyond, below] = ['\u{1f600}', '\uffee']
  const joined = mergeRunPages([page([beyond, 'b'], null), page([below, 'a'], null)], 3)
  expect(joined.runs.map(({ id }) => id)).toEqual([beyond, below, 'b'])
  expect(joined.next).toBe('b')
  const cut = mergeRunPages([page([beyond], beyond), page([below], below)], 10)
  expect(cut.runs.map(({ id }) => id)).toEqual([beyond])
  expect(cut.next).toBe(beyond)
})
