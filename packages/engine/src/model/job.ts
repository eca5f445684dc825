// A job: one attempt as its executor has it in memory, from the turn that admits it until all its work has settled. A plain
// record and the few functions that change it; the shell in `executor/` starts and stops what these decide.
//
// What must hold here:
// 1. The first reason to stop wins; a later one changes nothing.
// 2. A job whose work has not settled is never settled, so that its slot is not free.
import { Defect } from '../kernel/errors.ts'
import type { FirstReason } from './attempt.ts'
import { machine, mustAllow } from './machine.ts'

export const jobMachine = machine({
  name: 'job',
  states: ['reserved', 'preparing', 'launching', 'running', 'settling', 'settled'],
  terminal: ['settled'],
  moves: {
    prepare: {
      from: ['reserved'],
      to: ['preparing'],
      why: 'What the workflow needs before it begins is being made.',
    },
    launch: {
      from: ['reserved', 'preparing'],
      to: ['launching'],
      why: 'The launch check has passed, and the function is called in the same turn.',
    },
    run: { from: ['launching'], to: ['running'], why: 'The function has been called.' },
    end: {
      from: ['reserved', 'preparing', 'launching', 'running', 'settling'],
      to: ['settling'],
      why: 'It is asked to stop, or its attempt has ended; what it has begun is awaited.',
    },
    settle: {
      from: ['settling'],
      to: ['settled'],
      why: 'Its attempt has left and all that it began has come to an end.',
    },
  },
})

export type JobPhase = (typeof jobMachine.states)[number]
type JobMove = keyof typeof jobMachine.moves

export interface Job {
  readonly run: string
  readonly attempt: number
  readonly slotClass: string
  readonly since: number
  phase: JobPhase
  /** The first reason to stop, with its sentence; null while there is none. */
  reason: FirstReason | null
  note: string
  /** Whether the store knows the first reason. */
  saved: boolean
  /** Whether the attempt has left: it has ended in the store, or is let go of. */
  left: boolean
  /** Whether something of it was still to settle when it left: its run may have been queued again meanwhile. */
  lingered: boolean
  /** What has begun and not settled: its preparation, the bodies of its steps. */
  bodies: number
}

export const makeJob = (run: string, attempt: number, slotClass: string, since: number): Job => ({
  run,
  attempt,
  slotClass,
  since,
  phase: 'reserved',
  reason: null,
  note: '',
  saved: false,
  left: false,
  lingered: false,
  bodies: 0,
})

export const moveJob = (job: Job, move: JobMove, to: JobPhase): void => {
  mustAllow(jobMachine, move, job.phase, to)
  job.phase = to
}

/** Asks a job to stop; false where it has a reason already, ends before its launch, or has left: nothing changes then. */
export const askToStop = (job: Job, reason: FirstReason, note: string): boolean => {
  if (job.reason !== null || job.left || job.phase === 'settling' || job.phase === 'settled')
    return false
  job.reason = reason
  job.note = note
  moveJob(job, 'end', 'settling')
  return true
}

/** The attempt ends, for a reason of its own or by what it returned. */
export const endJob = (job: Job): void => {
  if (job.phase !== 'settling') moveJob(job, 'end', 'settling')
}

/** The attempt has left its executor; what it began may still be at work. */
export const leaveJob = (job: Job): void => {
  endJob(job)
  job.left = true
  job.lingered = job.bodies > 0
}

export const isSettled = (job: Job): boolean => job.left && job.bodies === 0

/** Throws a defect where something of the job is still at work, or it has not left. */
export const settleJob = (job: Job): void => {
  if (!isSettled(job))
    throw new Defect(
      `${job.run}#${job.attempt} was to settle with ${job.bodies} bodies at work, its attempt ${job.left ? 'over' : 'not over'}`,
    )
  moveJob(job, 'settle', 'settled')
}
