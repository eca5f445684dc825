// An approval: a question to people, with one decision or none.
import { machine } from './machine.ts'

export const approvalMachine = machine({
  name: 'approval',
  states: ['open', 'approved', 'denied', 'lapsed', 'canceled'],
  terminal: ['approved', 'denied', 'lapsed', 'canceled'],
  moves: {
    approve: { from: ['open'], to: ['approved'], why: 'Somebody who may says yes, in time.' },
    deny: { from: ['open'], to: ['denied'], why: 'Somebody who may says no, in time.' },
    lapse: {
      from: ['open'],
      to: ['lapsed'],
      why: 'Its deadline has passed by the store’s clock, and nobody had decided.',
    },
    cancel: {
      from: ['open'],
      to: ['canceled'],
      why: 'Its run has ended, or a race was won by another branch.',
    },
  },
})

export type ApprovalState = (typeof approvalMachine.states)[number]
export type ApprovalMove = keyof typeof approvalMachine.moves
