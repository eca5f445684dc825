// Worlds of spawners: the same seed gives the same history, worlds hold, and what is planted is found.
import { fork } from 'node:child_process'
import { expect, test } from 'vitest'
import { buildWith, occurrences } from './planted/build.ts'
import { spawnBugs } from './planted/spawn-bugs.ts'
import type { SpawnVerdict } from './spawn-world.ts'
import { playSpawners } from './spawn-world.ts'

const NIGHTLY = process.env['LEASEHOLD_NIGHTLY'] === '1'
/** Worlds in which a bug must be found. */
const WORLDS = 30

test('PROOF-01 OPS-05 worlds of spawners hold, do what they are for, and are the same again from the same seed', async () => {
  let [faults, failed, completed] = [0, 0, 0]
  for (let seed = 1; seed <= (NIGHTLY ? 1_000 : 6); seed++) {
    const verdict = await playSpawners(seed)
    expect(verdict.rule, `world ${seed}: ${verdict.message}`).toBeNull()
    faults += verdict.faults
    failed += verdict.failed
    completed += verdict.completed
    if (seed === 1) expect(await playSpawners(seed)).toEqual(verdict)
  }
  expect(faults).toBeGreaterThan(100)
  expect(failed).toBeGreaterThan(10)
  expect(completed).toBeGreaterThan(300)
}, 600_000)

test.each(spawnBugs)(
  'PROOF-05 the text of the planted bug $name stands in its file once',
  (bug) => {
    expect(occurrences(bug)).toBe(1)
  },
)

test.each(spawnBugs.filter(({ name }) => NIGHTLY || name === 'spawn-given-up-early'))(
  'PROOF-05 worlds of spawners find the planted bug $name',
  async (bug) => {
    const child = fork(await buildWith(bug, '../spawn-player.ts'), { execArgv: [] })
    try {
      let found: string | null = null
      for (let seed = 1; seed <= WORLDS && found === null; seed++) {
        child.send({ seed })
        const verdict = await new Promise<SpawnVerdict>((resolve) =>
          child.once('message', (answer) => resolve(answer as SpawnVerdict)),
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
