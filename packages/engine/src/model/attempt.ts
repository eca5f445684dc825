// An attempt: one leased try at driving a run. Its ends, and the first reasons for which it may be asked to stop.
import { machine } from './machine.ts'

export const attemptMachine = machine({
  name: 'attempt',
  states: [
    'held',
    'completed',
    'failed',
    'suspended',
    'handed_back',
    'expired',
    'lost',
    'canceled',
    'stale',
    'revoked',
  ],
  terminal: [
    'completed',
    'failed',
    'suspended',
    'handed_back',
    'expired',
    'lost',
    'canceled',
    'stale',
    'revoked',
  ],
  moves: {
    complete: {
      from: ['held'],
      to: ['completed'],
      why: 'The function returned and its result is stored.',
    },
    fail: {
      from: ['held'],
      to: ['failed'],
      why: 'The function threw, or its result cannot be stored.',
    },
    suspend: { from: ['held'], to: ['suspended'], why: 'Every branch stands at a recorded wait.' },
    handBack: {
      from: ['held'],
      to: ['handed_back'],
      why: 'The holder lets go, unfinished and blameless.',
    },
    expire: {
      from: ['held'],
      to: ['expired'],
      why: 'The lease of its session ran out and a sweep ended the session.',
    },
    lose: { from: ['held'], to: ['lost'], why: 'Its process is proven to have ended.' },
    cancel: {
      from: ['held'],
      to: ['canceled'],
      why: 'The run was being canceled and the holder has settled.',
    },
    stale: {
      from: ['held'],
      to: ['stale'],
      why: 'The context that the attempt captured has changed.',
    },
    revoke: {
      from: ['held'],
      to: ['revoked'],
      why: 'The engine ends it without waiting: a grace is over.',
    },
  },
})

export type AttemptEnd = Exclude<(typeof attemptMachine.states)[number], 'held'>

export const firstReasons = [
  'canceled',
  'shutdown',
  'time_limit',
  'attempt_deadline',
  'stale',
  'lease_lost',
  'capture_failure',
] as const
export type FirstReason = (typeof firstReasons)[number]
