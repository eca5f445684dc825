// Worlds of two databases as one store: the same seed gives the same history, worlds hold, and what is planted is found.
import { fork } from 'node:child_process'
import { expect, test } from 'vitest'
import { buildWith, occurrences } from './planted/build.ts'
import { shardBugs } from './planted/shard-bugs.ts'
import { brokenAtEnd, brokenNow } from './shard-rules.ts'
import type { ShardRow } from './shard-rules.ts'
import type { ShardVerdict } from './shard-world.ts'
import { playShards } from './shard-world.ts'

const NIGHTLY = process.env['LEASEHOLD_NIGHTLY'] === '1'
/** Worlds in which a bug must be found. */
const WORLDS = 30

test('PROOF-01 RUN-18 worlds of two databases hold, do what they are for, and are the same again from the same seed', async () => {
  let faults = 0
  const completed = [0, 0]
  for (let seed = 1; seed <= (NIGHTLY ? 500 : 6); seed++) {
    const verdict = await playShards(seed)
    expect(verdict.rule, `world ${seed}: ${verdict.rule}`).toBeNull()
    faults += verdict.faults
    for (const [shard, n] of verdict.completed.entries())
      completed[shard] = (completed[shard] ?? 0) + n
    if (seed === 1) expect(await playShards(seed)).toEqual(verdict)
  }
  expect(faults).toBeGreaterThan(100)
  for (const n of completed) expect(n).toBeGreaterThan(50)
}, 600_000)

test('PROOF-05 the rules of two databases say what is where nobody looks for it', () => {
  const run = (id: string, more: Partial<ShardRow> = {}): ShardRow => ({
    id,
    workflow: 'w',
    owner: '',
    key: null,
    status: 'succeeded',
    parent: null,
    retry_of: null,
    on_end_of: null,
    on_end: null,
    series: id,
    ...more,
  })
  const now = (
    here: ShardRow[],
    there: ShardRow[] = [],
    notices: { run: string; kind: string }[] = [],
  ) =>
    brokenNow([
      { runs: here, notices },
      { runs: there, notices: [] },
    ])
  expect(now([run('run_a')])).toBeNull()
  expect(now([], [run('run_a')])).toMatch(/nobody looks/)
  expect(now([], [run('run_a~1')])).toMatch(/on shard 1/)
  expect(now([run('run_a', { parent: 'run_b' })], [run('run_b~1')])).toMatch(/not beside/)
  expect(now([run('run_a')], [], [{ run: 'run_b', kind: 'run_failed' }])).toMatch(/notice/)
  expect(now([run('run_a', { key: 'k' }), run('run_b', { key: 'k' })])).toMatch(/two runs/)
  const holds = ['a', 'b', 'c', 'd'].map((id) => run(id, { workflow: 'limited', status: 'queued' }))
  expect(now(holds)).toMatch(/4 runs hold a limit of 3/)
  const end = (runs: ShardRow[]) => brokenAtEnd([{ runs, notices: [] }], [])
  expect(end([run('a')])).toBeNull()
  expect(end([run('a', { status: 'queued' })])).toMatch(/for ever/)
  expect(end([run('a', { status: 'canceled', on_end: 'x' })])).toMatch(/nothing runs at the end/)
  expect(end([run('a', { status: 'failed' })])).toMatch(/reason to/)
  expect(end([run('a', { status: 'failed', workflow: 'fails' })])).toMatch(/nobody is told/)
  expect(brokenAtEnd([{ runs: [], notices: [] }], [{ id: 'a', owner: '', key: null }])).toMatch(
    /was acknowledged/,
  )
})

test.each(shardBugs)(
  'PROOF-05 the text of the planted bug $name stands in its file once',
  (bug) => {
    expect(occurrences(bug)).toBe(1)
    if (bug.also) expect(occurrences(bug.also)).toBe(1)
  },
)

test.each(shardBugs.filter(({ name }) => NIGHTLY || name === 'shard-end-astray'))(
  'PROOF-05 worlds of two databases find the planted bug $name',
  async (bug) => {
    const child = fork(await buildWith(bug, '../shard-player.ts'), { execArgv: [] })
    try {
      let found: string | null = null
      for (let seed = 1; seed <= WORLDS && found === null; seed++) {
        child.send({ seed })
        const verdict = await new Promise<ShardVerdict>((resolve) =>
          child.once('message', (answer) => resolve(answer as ShardVerdict)),
        )
        found = verdict.rule
      }
      expect(found).not.toBeNull()
    } finally {
      child.kill()
    }
  },
  600_000,
)
