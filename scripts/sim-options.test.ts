import { describe, expect, it } from 'vitest'
import { simOptions } from './sim-options.ts'

const said = (...args: string[]): unknown => {
  const read = simOptions(args, 2, ['no_fence'])
  return 'options' in read ? read.options : read.mistakes
}

describe('PROOF-08 the simulator as a command', () => {
  it('PROOF-08 takes what its head says, and has a default for the rest', () => {
    expect(said('--faults', '10', '--seed', '7')).toMatchObject({
      faults: 10,
      seed: 7,
      world: undefined,
      processes: 2,
      shrink: false,
    })
    expect(said('--plan', '{"world":1}', '--shrink')).toMatchObject({
      plan: { world: 1 },
      shrink: true,
      seed: 1,
    })
    expect(said('--planted', 'no_fence')).toMatchObject({ planted: 'no_fence' })
    expect(said('--planted', 'all')).toMatchObject({ planted: 'all' })
    expect(said('--crash-points', '0')).toMatchObject({ crashPoints: 0 })
  })

  it.each([
    [['--faults'], /--faults.*argument missing/],
    [['--faults', '--seed', '1'], /--faults.*argument/],
    [['--fault', '1'], /Unknown option '--fault'/],
    [['all'], /Unexpected argument 'all'/],
    [['--faults', 'many'], /--faults is "many"; expected a whole number of 1 or more/],
    [['--faults', '0'], /--faults is "0"/],
    [['--seed', ''], /--seed is ""/],
    [['--crash-points', '-1'], /--crash-points.*argument/],
    [['--crash-points', 'all'], /--crash-points is "all"; expected a whole number of 0 or more/],
    [['--world', '1.5'], /--world is "1\.5"/],
    [['--plan', '{'], /--plan is "\{"; expected the JSON that --shrink printed/],
    [['--planted', 'nobody'], /no bug is named nobody; known: all, no_fence/],
  ])('PROOF-08 says in one sentence what is wrong with %j', (args, sentence) => {
    expect(said(...args)).toEqual([expect.stringMatching(sentence)])
  })

  it('PROOF-08 lists all mistakes at once', () => {
    expect(said('--faults', 'x', '--seed', 'y')).toHaveLength(2)
  })
})
