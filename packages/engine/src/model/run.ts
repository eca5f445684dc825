// A run: its states, its moves, and the state columns of its row. `moved` is the only way from one status to another.
import { machine, mustAllow } from './machine.ts'

export const runMachine = machine({
  name: 'run',
  states: [
    'queued',
    'running',
    'waiting',
    'paused',
    'canceling',
    'succeeded',
    'failed',
    'canceled',
  ],
  terminal: ['succeeded', 'failed', 'canceled'],
  moves: {
    claim: {
      from: ['queued'],
      to: ['running'],
      why: 'A session takes the run and becomes its holder.',
    },
    adopt: {
      from: ['running'],
      to: 'same',
      why: 'The launcher’s attempt moves to the runner’s own session.',
    },
    checkpoint: {
      from: ['running', 'canceling'],
      to: 'same',
      why: 'The holder records entries and goes on.',
    },
    endAttempt: {
      from: ['running'],
      to: ['queued', 'waiting', 'paused', 'succeeded', 'failed'],
      why: 'The attempt ends; the settlement table says where the run goes.',
    },
    endCanceling: {
      from: ['canceling'],
      to: ['canceled'],
      why: 'The attempt of a run that is being canceled ends, whatever it ends as.',
    },
    orderCancel: {
      from: ['running'],
      to: ['canceling'],
      why: 'Somebody cancels a held run; its holder is told.',
    },
    cancel: {
      from: ['queued', 'waiting', 'paused'],
      to: ['canceled'],
      why: 'Somebody cancels a run that nobody holds.',
    },
    admit: { from: ['waiting'], to: ['queued'], why: 'The run gets all its slots.' },
    wake: {
      from: ['waiting'],
      to: ['queued', 'waiting'],
      why: 'One of its waits is satisfied, or due.',
    },
    park: {
      from: ['queued'],
      to: ['waiting'],
      why: 'No executor serves its queue, version and labels.',
    },
    pause: {
      from: ['queued', 'waiting'],
      to: ['paused'],
      why: 'Somebody pauses a run that nobody holds.',
    },
    askPause: {
      from: ['running', 'canceling'],
      to: 'same',
      why: 'Somebody pauses a held run, or takes that back; it takes effect at the next end of a step, and an end that comes first stands.',
    },
    resume: { from: ['paused'], to: ['queued', 'waiting'], why: 'Somebody resumes the run.' },
    note: {
      from: ['queued', 'waiting', 'paused'],
      to: 'same',
      why: 'A fact is recorded while nobody holds the run: a signal, a decision, a child’s end.',
    },
    fail: {
      from: ['queued', 'waiting', 'paused'],
      to: ['failed'],
      why: 'A limit of time ends a run that nobody holds.',
    },
    reversion: {
      from: ['queued', 'waiting', 'paused'],
      to: 'same',
      why: 'An operator moves the run to another version.',
    },
  },
})

export type RunStatus = (typeof runMachine.states)[number]
export type RunMove = keyof typeof runMachine.moves
export type TerminalStatus = 'succeeded' | 'failed' | 'canceled'

export const waitKinds = ['child', 'workspace', 'approval', 'signal', 'time', 'slot'] as const
export type WaitOn = (typeof waitKinds)[number]

/** The state columns of a run's row: all that decisions are made from. Payloads are read apart. */
export interface Run {
  readonly id: string
  readonly workflow: string
  readonly version: string
  readonly queue: string
  /** Labels that an executor must have, sorted. */
  readonly labels: readonly string[]
  readonly lane: string
  readonly priority: number
  /** Virtual start time of fair queueing; `rank` is it less the priority's step. */
  readonly tag: number
  readonly rank: number
  readonly owner: string
  readonly key: string | null
  readonly status: RunStatus
  readonly waitOn: WaitOn | null
  readonly reason: string | null
  /** A sentence for people behind `reason`. */
  readonly note: string | null
  readonly attempt: number
  readonly session: string | null
  readonly claim: number | null
  readonly leasedAt: number | null
  readonly entries: number
  readonly journalBytes: number
  /** Raised by every write of the row; a stream's position is (run, rev). */
  readonly rev: number
  readonly createdAt: number
  readonly readyAt: number | null
  readonly progressAt: number | null
  readonly endedAt: number | null
  readonly deadline: number | null
  readonly attemptLimitMs: number | null
  readonly attemptDeadline: number | null
  readonly startBy: number | null
  readonly cancelRequestedAt: number | null
  readonly cancelBy: string | null
  readonly pauseRequestedAt: number | null
  readonly pauseBy: string | null
  /** Attempts in a row that ended expired or lost without a new entry. */
  readonly losses: number
  readonly suspectSince: number | null
  /** Hand-backs in a row, other than for shutdown, without a new entry. */
  readonly handBacks: number
  /** Failed attempts, charged to the workflow's own retry. */
  readonly failures: number
  /** 1 once the run has been driven: a resumed run is admitted before a new one. */
  readonly resumed: number
  readonly parent: string | null
  readonly parentKey: string | null
  /** Whether the parent waits for this run's end. */
  readonly awaited: number
  readonly onParentEnd: 'cancel' | 'detach'
  readonly depth: number
  readonly root: string
  readonly children: number
  readonly waits: number
  readonly retryOf: string | null
  /** The first run of those that continue one another. */
  readonly series: string
  readonly onEnd: string | null
  readonly onEndOf: string | null
  readonly limitOwner: string | null
  readonly limitGlobal: string | null
  readonly limitA: string | null
  readonly limitB: string | null
  /** Which kinds of limit the run has: `w` whole_run, `h` while_held, both or none. */
  readonly limitModes: '' | 'w' | 'h' | 'wh'
  /** Units that it takes of `limitA` and of `limitB`; of its owner’s limit and the global one it takes one. */
  readonly unitsA: number
  readonly unitsB: number
}

export const isTerminal = (status: RunStatus): status is TerminalStatus =>
  runMachine.terminal.includes(status as TerminalStatus)
export const isHeld = (status: RunStatus): boolean => status === 'running' || status === 'canceling'

/** What `moved` may set beside the status; all else follows from the status. */
export type RunPatch = Partial<Omit<Run, 'id' | 'status' | 'rev' | 'rank'>>

/**
 * The run after a move: checked against the table, `rev` raised, and whatever a status rules out is cleared (a holder
 * while nobody holds it, waits at an end), so that a wrong combination cannot be written.
 */
export const moved = (
  run: Run,
  move: RunMove,
  to: RunStatus,
  now: number,
  patch: RunPatch = {},
): Run => {
  mustAllow(runMachine, move, run.status, to)
  const next = { ...run, ...patch, status: to, rev: run.rev + 1 }
  next.rank = rankOf(next.tag, next.priority)
  if (!isHeld(to)) {
    next.session = null
    next.claim = null
    next.leasedAt = null
    next.attemptDeadline = null
  }
  if (to !== 'waiting' && to !== 'paused') {
    next.waitOn = null
    next.readyAt = null
  }
  if (to === 'queued' && patch.reason === undefined) {
    next.reason = null
    next.note = null
  }
  if (isTerminal(to)) {
    next.endedAt = now
    next.pauseRequestedAt = null
    next.suspectSince = null
  }
  return next
}

/** How many virtual units one step of priority is worth; small enough that waiting outgrows it, so nothing starves. */
export const PRIORITY_STEP = 10

export const rankOf = (tag: number, priority: number): number => tag - priority * PRIORITY_STEP

/** What claims look at: runs of one lane can be driven by the same executors. */
export const laneOf = (
  queue: string,
  workflow: string,
  version: string,
  labels: readonly string[],
): string => JSON.stringify([queue, workflow, version, ...labels])
