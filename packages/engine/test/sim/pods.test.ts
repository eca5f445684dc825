// Worlds of pods: the same seed gives the same history, worlds hold, and what is planted is found.
import { expect, test } from 'vitest'
import { BUDGET } from './planted/bugs.ts'
import { occurrences } from './planted/build.ts'
import { huntedIn } from './planted/find.ts'
import { podBugs } from './planted/pod-bugs.ts'
import { playPods } from './pod-world.ts'

const NIGHTLY = process.env['LEASEHOLD_NIGHTLY'] === '1'

test('PROOF-01 RAIL-14 EX-24 EX-26 worlds of pods hold, do what they are for, and are the same again from the same seed', async () => {
  let [faults, adopted, completed] = [0, 0, 0]
  for (let seed = 1; seed <= (NIGHTLY ? 400 : 3); seed++) {
    const verdict = await playPods(seed)
    expect(verdict.rule, `world ${seed}: ${verdict.message}`).toBeNull()
    faults += verdict.faults
    adopted += verdict.adopted
    completed += verdict.completed
    if (seed === 1) expect(await playPods(seed)).toEqual(verdict)
  }
  expect(faults).toBeGreaterThan(300)
  expect(adopted).toBeGreaterThan(100)
  expect(completed).toBeGreaterThan(80)
}, 3_600_000)

test.each(podBugs)('PROOF-05 the text of the planted bug $name stands in its file once', (bug) => {
  expect(occurrences(bug)).toBe(1)
})

test.each(podBugs.filter(({ name }) => NIGHTLY || name === 'pod-removed-at-work'))(
  'PROOF-05 worlds of pods find the planted bug $name',
  async (bug) => {
    const { failed } = await huntedIn('../pod-player.ts', bug, 1, bug.budget ?? BUDGET)
    expect(failed).not.toBeNull()
  },
  3_600_000,
)
