// Deliveries: a notice on its way to a sink. Whoever relays has claimed it, and what it records is guarded by the number of
// its claim, so that of two who were given the same one only one is heard.
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { machine } from './machine.ts'
import type { NoticeKind } from './notice.ts'
import type { Settings } from './settings.ts'

export const deliveryMachine = machine({
  name: 'delivery',
  states: ['due', 'sending', 'delivered', 'dead', 'dropped', 'void'],
  terminal: ['delivered', 'dropped', 'void'],
  moves: {
    claim: {
      from: ['due', 'sending'],
      to: ['sending'],
      why: 'A server takes it to send it: one that is due, or whose claim has lapsed.',
    },
    deliver: { from: ['sending'], to: ['delivered'], why: 'The sink has taken it.' },
    refuse: {
      from: ['sending'],
      to: ['due'],
      why: 'The sink has not taken it, and is tried later.',
    },
    bury: {
      from: ['sending'],
      to: ['dead'],
      why: 'The sink has refused it for the last time, or for good.',
    },
    shed: {
      from: ['sending'],
      to: ['due'],
      why: 'Who has claimed it cannot send it in time, or was cut off while it did.',
    },
    revive: { from: ['dead'], to: ['due'], why: 'An operator has it tried anew.' },
    drop: { from: ['due', 'dead'], to: ['dropped'], why: 'An operator drops it.' },
    annul: {
      from: ['due', 'sending'],
      to: ['void'],
      why: 'It can never be done: its sink was removed, its notice is gone, or it is not for its sink.',
    },
  },
})
export type DeliveryState = (typeof deliveryMachine.states)[number]
/** A notice as a sink is given it. */
export interface Message {
  /** The same each time that this notice is sent, to whatever sink. */
  readonly id: string
  readonly kind: NoticeKind
  /** When its cause was stored. */
  readonly at: number
  readonly run: string
  readonly occurrence: string
  readonly sentence: string
  readonly data: unknown
  /** Of the run that it is about, where it is about one. */
  readonly workflow: string | null
  readonly owner: string | null
  readonly key: string | null
  /** It may have been sent before. */
  readonly again: boolean
}

/** What came of a send. A sink that throws has refused, as one that answers so. */
export type Sent =
  | { readonly ok: true; readonly note: string }
  /**
   * `forGood`: it is not tried again. `never`: it is not for this sink, and never will be. `afterMs`: not sooner than so long
   * from now.
   */
  | {
      readonly ok: false
      readonly why: string
      readonly forGood?: boolean
      readonly never?: boolean
      readonly afterMs?: number
    }

/** Where notices are sent. */
export interface Sink {
  /** Small letters, digits and hyphens: it is part of what a delivery is called. */
  readonly name: string
  readonly type: string
  readonly kinds: readonly NoticeKind[]
  /** Sends once. It gives up when the signal does, which it does when the time of a send is over. */
  send(message: Message, signal: AbortSignal): Promise<Sent>
  close?(): Promise<void>
}

/** Sends at once to one sink. */
export const AT_ONCE = 4

/** How many are claimed together: as many as can be sent, one after another, before the claim lapses. */
export const batchSize = ({ deliveryLeaseMs, deliveryTimeoutMs }: Settings): number =>
  AT_ONCE * Math.max(1, Math.floor(deliveryLeaseMs / deliveryTimeoutMs))

/** How long after its n-th refusal a delivery is tried again, before chance is added. */
export const refusedForMs = (
  refusals: number,
  { deliveryBackoffMs, deliveryBackoffMaxMs }: Settings,
): number => growingDelayMs(refusals, { firstMs: deliveryBackoffMs, maxMs: deliveryBackoffMaxMs })
