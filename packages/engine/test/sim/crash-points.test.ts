// Every submission plays some of each scenario's points, and finds bugs that a single strike shows; `npm run sim --
// --crash-points` plays all.
import { describe, expect, test } from 'vitest'
import { callsOf, pairs, playAsked, scenarios, singles } from './crash-points.ts'
import type { Plan } from './play.ts'
import type { Bug } from './planted/bugs.ts'
import { bugs } from './planted/bugs.ts'
import { startPlayer } from './planted/find.ts'

/** Of a scenario's single strikes, and of its pairs. */
const SINGLES = 12
const PAIRS = 4

const spread = <T>(all: readonly T[], count: number): T[] =>
  all.filter((_each, i) => i % Math.ceil(all.length / count) === 0)

const scenarioOf = (name: string): Plan => {
  const found = scenarios[name]
  if (!found) throw new Error(`there is no scenario ${name}`)
  return found
}

describe.each(Object.entries(scenarios))('PROOF-04 %s', (scenario, plan) => {
  test(`PROOF-04 ${scenario}: what dies at a call, after it, or without its answer strands nothing`, async () => {
    const calls = await callsOf(plan)
    expect(calls.length).toBeGreaterThan(20)
    const single = spread(singles(calls), SINGLES)
    const strikes = [...single, ...pairs(calls.length, PAIRS, calls.length)]
    const { failed, faults, worlds } = await playAsked({ scenario, strikes })
    expect(failed).toBeNull()
    expect(worlds).toBe(strikes.length)
    // what comes of the first of two may leave nothing for the second
    expect(faults).toBeGreaterThanOrEqual(single.length + PAIRS)
  })
})

test('PROOF-04 the same strikes give the same history', async () => {
  const strikes = singles(await callsOf(scenarioOf('a step'))).slice(60, 80)
  const first = await playAsked({ scenario: 'a step', strikes })
  expect(await playAsked({ scenario: 'a step', strikes })).toEqual(first)
})

test.each([
  ['entries-unnumbered', 'a step'],
  ['claim-number', 'a step'],
])(
  'PROOF-05 PROOF-04 single strikes find the planted bug %s',
  async (name, scenario) => {
    const bug = bugs.find((each): each is Bug => each.name === name)
    const player = await startPlayer(bug ?? null)
    const calls = await callsOf(scenarioOf(scenario))
    const { failed } = await player.strike({ scenario, strikes: singles(calls) })
    player.stop()
    expect(failed).not.toBeNull()
  },
  240_000,
)
