import { describe, expect, it } from 'vitest'
import { aRun } from '../../test/support/run.ts'
import type { RunStatus, WaitOn } from './run.ts'
import { runMachine, waitKinds } from './run.ts'
import { holds, holdsAll, limitKeys, limitUses, slotState } from './slots.ts'

// SLOT-02's table, row by row: [status, wait_on, whole_run, while_held]
const table: readonly [RunStatus, WaitOn | null, boolean, boolean][] = [
  ['queued', null, true, true],
  ['running', null, true, true],
  ['waiting', 'time', true, false],
  ['waiting', 'signal', true, false],
  ['waiting', 'approval', true, false],
  ['waiting', 'workspace', true, false],
  ['waiting', 'child', false, false],
  ['waiting', 'slot', false, false],
  ['paused', null, true, false],
  ['paused', 'time', true, false],
  ['paused', 'signal', true, false],
  ['paused', 'approval', true, false],
  ['paused', 'workspace', true, false],
  ['paused', 'child', false, false],
  ['paused', 'slot', false, false],
  ['canceling', null, false, true],
  ['succeeded', null, false, false],
  ['failed', null, false, false],
  ['canceled', null, false, false],
]

describe('SLOT-02 who holds a slot', () => {
  for (const [status, waitOn, whole, held] of table)
    it(`SLOT-02 ${status}${waitOn === null ? '' : ` on ${waitOn}`}: whole_run ${whole ? 'holds' : 'free'}, while_held ${held ? 'holds' : 'free'}`, () => {
      const state = slotState(status, waitOn)
      expect([holds(state, 'whole_run'), holds(state, 'while_held')]).toEqual([whole, held])
    })

  it('SLOT-02 the table above has a row for every status and wait that a row can have', () => {
    const possible = runMachine.states.flatMap((status) =>
      status === 'waiting'
        ? waitKinds.map((on) => `${status} ${on}`)
        : status === 'paused'
          ? [`${status} null`, ...waitKinds.map((on) => `${status} ${on}`)]
          : [`${status} null`],
    )
    expect(table.map(([status, on]) => `${status} ${on}`).sort()).toEqual(possible.sort())
  })

  it('SLOT-03 a run that becomes due goes straight on only where it holds a slot of every kind it has', () => {
    const asleep = { waitOn: 'time' as const }
    expect(holdsAll(aRun('waiting', { ...asleep, limitModes: '' }))).toBe(true)
    expect(holdsAll(aRun('waiting', { ...asleep, limitModes: 'w' }))).toBe(true)
    expect(holdsAll(aRun('waiting', { ...asleep, limitModes: 'h' }))).toBe(false)
    expect(holdsAll(aRun('waiting', { ...asleep, limitModes: 'wh' }))).toBe(false)
    expect(holdsAll(aRun('waiting', { waitOn: 'child', limitModes: 'w' }))).toBe(false)
    expect(holdsAll(aRun('paused', { limitModes: 'h' }))).toBe(false)
    expect(holdsAll(aRun('paused', { limitModes: 'w' }))).toBe(true)
  })

  it('SLOT-01 a run has at most four limits, each a column of its row', () => {
    const run = aRun('queued', { limitOwner: 'owner:a', limitB: 'b' })
    expect(limitKeys(run)).toEqual(['owner:a', 'b'])
  })

  it('SLOT-01 of its owner and of all it takes one unit, of others what it says', () => {
    const run = aRun('queued', { limitOwner: 'owner:a', limitGlobal: null, limitA: 'a', unitsA: 3 })
    expect(limitUses(run)).toEqual([
      { key: 'owner:a', units: 1 },
      { key: 'a', units: 3 },
    ])
    const all = aRun('queued', { limitOwner: null, limitGlobal: 'all', limitB: 'b', unitsB: 2 })
    expect(limitUses(all)).toEqual([
      { key: 'all', units: 1 },
      { key: 'b', units: 2 },
    ])
  })

  it('SLOT-02 the states are those of the column: 3 both, 2 while held, 1 whole run, 0 none', () => {
    expect(slotState('queued', null)).toBe(3)
    expect(slotState('canceling', null)).toBe(2)
    expect(slotState('paused', 'time')).toBe(1)
    for (const ended of ['succeeded', 'failed', 'canceled'] as const)
      expect(slotState(ended, null)).toBe(0)
  })
})
