import { describe, expect, it } from 'vitest'
import { aRun } from '../../test/support/run.ts'
import type { RunStatus, WaitOn } from './run.ts'
import { runMachine, waitKinds } from './run.ts'
import { holds, holdsAll, limitKeys, slotState } from './slots.ts'

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
})
