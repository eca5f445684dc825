// Runs made by hand, for the pure functions of the model.
import type { Run, RunStatus, WaitOn } from '../../src/model/run.ts'
import { isHeld, isTerminal, rankOf } from '../../src/model/run.ts'

export const NOW = 1_767_225_600_000

/** A run of this status whose row is one that the store could hold. */
export const aRun = (status: RunStatus, patch: Partial<Run> = {}): Run => {
  const held = isHeld(status)
  const waitOn: WaitOn | null = status === 'waiting' ? 'signal' : null
  const run: Run = {
    id: 'run_1',
    workflow: 'w',
    version: '1',
    queue: 'default',
    labels: [],
    lane: '["default","w","1"]',
    priority: 0,
    tag: 1,
    rank: 1,
    owner: '',
    key: null,
    status,
    waitOn,
    reason: null,
    note: null,
    attempt: held ? 3 : 2,
    session: held ? 'ses_1' : null,
    claim: held ? 7 : null,
    leasedAt: held ? NOW - 5_000 : null,
    entries: 4,
    journalBytes: 100,
    rev: 9,
    createdAt: NOW - 60_000,
    readyAt: null,
    progressAt: NOW - 6_000,
    endedAt: isTerminal(status) ? NOW - 1_000 : null,
    deadline: null,
    attemptLimitMs: null,
    attemptDeadline: held ? NOW + 90_000 : null,
    startBy: null,
    cancelRequestedAt: status === 'canceling' ? NOW - 2_000 : null,
    cancelBy: status === 'canceling' ? 'ana' : null,
    pauseRequestedAt: status === 'paused' ? NOW - 2_000 : null,
    pauseBy: status === 'paused' ? 'ana' : null,
    losses: 0,
    suspectSince: null,
    handBacks: 0,
    failures: 0,
    resumed: 0,
    parent: null,
    parentKey: null,
    awaited: 0,
    onParentEnd: 'cancel',
    depth: 0,
    root: 'run_1',
    children: 0,
    waits: 0,
    retryOf: null,
    series: 'run_1',
    onEnd: null,
    onEndOf: null,
    limitOwner: null,
    limitGlobal: null,
    limitA: null,
    limitB: null,
    limitModes: '',
    unitsA: 1,
    unitsB: 1,
    ...patch,
  }
  return { ...run, rank: rankOf(run.tag, run.priority) }
}
