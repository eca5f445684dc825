// A session: one registered life of an executor's process. What it holds ends with it, so it ends in few ways, each with
// its evidence.
import { machine } from './machine.ts'

export const sessionMachine = machine({
  name: 'session',
  states: ['live', 'draining', 'retired', 'ended'],
  terminal: ['ended'],
  moves: {
    claim: { from: ['live'], to: 'same', why: 'It takes runs that are due.' },
    renew: {
      from: ['live', 'draining', 'retired'],
      to: 'same',
      why: 'It says that it lives; a retired one gets no longer lease for it.',
    },
    drain: {
      from: ['live'],
      to: ['draining'],
      why: 'It says with a renewal that it takes nothing new.',
    },
    retire: {
      from: ['live', 'draining', 'retired'],
      to: ['retired'],
      why: 'It is closed in a program that lives on, with bodies that have not settled: one last lease.',
    },
    close: {
      from: ['live', 'draining', 'retired'],
      to: ['ended'],
      why: 'It is closed by itself, or its process is proven to have ended.',
    },
    lapse: {
      from: ['live', 'draining', 'retired'],
      to: ['ended'],
      why: 'Its lease has run out by the store’s clock, and a sweep saw it.',
    },
    disown: {
      from: ['live', 'draining'],
      to: ['ended'],
      why: 'It lived in the process that owned the file, and another process owns it now.',
    },
    restore: {
      from: ['live', 'draining', 'retired'],
      to: ['ended'],
      why: 'The store was restored from a backup: nobody from before is honoured.',
    },
  },
})

export type SessionState = (typeof sessionMachine.states)[number]
export type SessionMove = keyof typeof sessionMachine.moves
