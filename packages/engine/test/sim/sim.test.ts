// The simulator in every submission: the same seed gives the same history, a batch of worlds holds, and the simulator finds
// what is planted. `npm run sim` plays more.
import { expect, test } from 'vitest'
import { play } from './play.ts'
import { bugs } from './planted/bugs.ts'
import { occurrences } from './planted/build.ts'
import { hunted, startPlayer } from './planted/find.ts'
import { planOf, run } from './run.ts'
import seeds from './seeds.json' with { type: 'json' }
import { points } from './sometimes.ts'

const FAULTS = 15_000

test('PROOF-01 the same seed gives the same history, bit for bit, also shared among processes', async () => {
  // given a batch twice in this process, and once shared by two others
  const first = await run(7, 8_000)
  const second = await run(7, 8_000)
  const players = await Promise.all([startPlayer(null), startPlayer(null)])
  const elsewhere = await run(
    7,
    8_000,
    players.map(({ play: one }) => one),
  )
  for (const player of players) player.stop()

  // then all three are the same
  expect(second).toEqual(first)
  expect(elsewhere).toEqual(first)
}, 240_000)

test.each(seeds.worlds)(
  'PROOF-01 the world $seed/$world holds: $found',
  async ({ seed, world }) => {
    const { rule, message } = await play(planOf(seed, world))
    expect(rule, message ?? '').toBeNull()
  },
)

// a batch of this size comes to most points, a larger one must come to all: `npm run sim` names those that it missed
test.each(seeds.batches)(
  'PROOF-03 worlds of the seed %i hold and come to most of the points',
  async (seed) => {
    const { failed, points: reached, faults, soft, completed } = await run(seed, FAULTS)
    expect(failed, `npm run sim -- --seed ${seed} --world ${failed?.world}`).toBeNull()
    expect(faults).toBeGreaterThanOrEqual(FAULTS)
    expect(soft).toBeLessThanOrEqual(faults / 2)
    expect(completed).toBeGreaterThan(0)
    const missed = points.filter((point) => reached[point] === undefined)
    expect(missed.length, missed.join('; ')).toBeLessThan(points.length / 3)
  },
  240_000,
)

test('PROOF-02 at least one world in ten has no faults, and in a third two strike at once', () => {
  const plans = Array.from({ length: 2_000 }, (_each, world) => planOf(1, world))
  const calm = plans.filter(({ rates }) => Object.keys(rates).length === 0)
  const pairs = plans.filter((plan) => plan.pairs)
  expect(calm.length / plans.length).toBeGreaterThan(0.1)
  expect(calm.length / plans.length).toBeLessThan(0.15)
  expect(pairs.length / plans.length).toBeGreaterThan(0.31)
})

test('PROOF-02 a world without faults tries nothing again', async () => {
  let calm = 0
  for (let world = 0; calm < 3; world++) {
    const plan = planOf(11, world)
    if (Object.keys(plan.rates).length > 0) continue
    calm += 1
    const { rule, message, faults } = await play(plan)
    expect(rule, message ?? '').toBeNull()
    expect(faults).toBe(0)
  }
}, 240_000)

test.each(bugs)('PROOF-05 the text of the planted bug $name stands in its file once', (bug) => {
  expect(occurrences(bug)).toBe(1)
  if (bug.also) expect(occurrences(bug.also)).toBe(1)
})

test.each(
  bugs.filter(({ name }) =>
    [
      'fence-state-only',
      'reap-early',
      'admit-over-limit',
      'entries-unnumbered',
      'timer-early',
    ].includes(name),
  ),
)(
  'PROOF-05 the simulator finds the planted bug $name',
  async (bug) => {
    expect((await hunted(bug, 1, 40_000)).failed).not.toBeNull()
  },
  240_000,
)
