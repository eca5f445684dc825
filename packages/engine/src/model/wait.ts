// Waits: a durable pause of a run. Which of them are satisfied is decided here, from rows read under the run's lock.
import { machine } from './machine.ts'
import type { WaitOn } from './run.ts'

export const waitMachine = machine({
  name: 'wait',
  states: ['open', 'satisfied', 'lapsed', 'closed', 'taken'],
  terminal: ['closed', 'taken'],
  moves: {
    satisfy: {
      from: ['open'],
      to: ['satisfied'],
      why: 'What it waits for has come, and came first.',
    },
    lapse: { from: ['open'], to: ['lapsed'], why: 'Its instant has come by the store’s clock.' },
    close: {
      from: ['open', 'satisfied', 'lapsed'],
      to: ['closed'],
      why: 'A race was won by another, or the run has ended.',
    },
    take: {
      from: ['satisfied', 'lapsed'],
      to: ['taken'],
      why: 'The function received its outcome as an entry of the journal.',
    },
  },
})

export type WaitState = (typeof waitMachine.states)[number]
export type WaitKind = 'time' | 'signal' | 'approval' | 'child' | 'retry'

export interface Wait {
  readonly run: string
  readonly key: string
  /** Order of recording within the run. */
  readonly seq: number
  readonly kind: WaitKind
  /** The signal's name, the approval's id, the child's run id. */
  readonly name: string | null
  readonly dueAt: number | null
  readonly state: WaitState
  /** JSON text of what came. */
  readonly result: string | null
  /** For a retry: failed tries so far. */
  readonly tries: number
  readonly error: string | null
}

export interface Signal {
  readonly run: string
  readonly id: string
  readonly seq: number
  readonly name: string
  readonly payload: string | null
  readonly takenBy: string | null
}

export const waitOnOf = (kind: WaitKind): WaitOn => (kind === 'retry' ? 'time' : kind)

/** What the settling of a run's waits changes: waits with their new state, and the signals that they took. */
export interface Settled {
  readonly waits: readonly Wait[]
  readonly signals: readonly Signal[]
}

/**
 * Pairs unread signals with open waits (first in, first out per name, the earliest recorded wait first) and lapses what
 * is due. A signal that is there beats the instant that has come: it arrived before this transaction looked.
 */
export const settleWaits = (
  waits: readonly Wait[],
  signals: readonly Signal[],
  now: number,
): Settled => {
  const unread = signals.filter((signal) => signal.takenBy === null).sort((a, b) => a.seq - b.seq)
  const taken: Signal[] = []
  const changed: Wait[] = []
  for (const wait of [...waits]
    .filter((each) => each.state === 'open')
    .sort((a, b) => a.seq - b.seq)) {
    const at = wait.kind === 'signal' ? unread.findIndex((signal) => signal.name === wait.name) : -1
    const signal = unread[at]
    if (signal) {
      unread.splice(at, 1)
      taken.push({ ...signal, takenBy: wait.key })
      changed.push({ ...wait, state: 'satisfied', result: signal.payload })
    } else if (wait.dueAt !== null && wait.dueAt <= now) changed.push({ ...wait, state: 'lapsed' })
  }
  return { waits: changed, signals: taken }
}

/** The earliest instant at which one of these waits is due, or null. */
export const earliestDue = (waits: readonly Wait[]): number | null =>
  waits.reduce<number | null>(
    (least, wait) =>
      wait.dueAt !== null && (least === null || wait.dueAt < least) ? wait.dueAt : least,
    null,
  )
