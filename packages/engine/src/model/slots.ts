// Slots: whether a run holds one is a function of its own row. This is the table; the column `slot_state` of the schema
// says the same in SQL and a test compares the two.
import type { Run, RunStatus, WaitOn } from './run.ts'

/** The least weight of an owner; each of its starts is placed one over its weight behind the last. */
export const WEIGHT_MIN = 0.001

export type LimitMode = 'whole_run' | 'while_held'

/** 3 holds both kinds, 1 only whole_run limits, 2 only while_held limits, 0 none. */
export type SlotState = 0 | 1 | 2 | 3

export const slotState = (status: RunStatus, waitOn: WaitOn | null): SlotState => {
  switch (status) {
    case 'queued':
    case 'running':
      return 3
    case 'waiting':
    case 'paused':
      return waitOn === 'child' || waitOn === 'slot' ? 0 : 1
    case 'canceling':
      return 2
    case 'succeeded':
    case 'failed':
    case 'canceled':
      return 0
  }
}

export const holds = (state: SlotState, mode: LimitMode): boolean =>
  (state & (mode === 'whole_run' ? 1 : 2)) !== 0

/** Whether the run holds a slot of every limit that it has, so that it may go straight to `queued`. */
export const holdsAll = (run: Pick<Run, 'status' | 'waitOn' | 'limitModes'>): boolean => {
  const state = slotState(run.status, run.waitOn)
  return (
    (!run.limitModes.includes('w') || holds(state, 'whole_run')) &&
    (!run.limitModes.includes('h') || holds(state, 'while_held'))
  )
}

/** What the run takes of each limit that it has. */
export const limitUses = (
  run: Pick<Run, 'limitOwner' | 'limitGlobal' | 'limitA' | 'limitB' | 'unitsA' | 'unitsB'>,
): { readonly key: string; readonly units: number }[] =>
  [
    { key: run.limitOwner, units: 1 },
    { key: run.limitGlobal, units: 1 },
    { key: run.limitA, units: run.unitsA },
    { key: run.limitB, units: run.unitsB },
  ].flatMap(({ key, units }) => (key === null ? [] : [{ key, units }]))

export const limitKeys = (
  run: Pick<Run, 'limitOwner' | 'limitGlobal' | 'limitA' | 'limitB'>,
): string[] =>
  [run.limitOwner, run.limitGlobal, run.limitA, run.limitB].filter((key) => key !== null)
