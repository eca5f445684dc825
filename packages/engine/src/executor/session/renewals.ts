// Keeps a session's lease: one renewal for all that it holds. A renewal that is not answered within a second is repeated
// each second, jittered. Trust in the lease is counted from the sending of the last renewal that succeeded.
import { jittered } from '../../kernel/random.ts'
import type { Ports } from '../../kernel/ports.ts'
import type { RenewAnswer, RenewRequest } from '../../model/work.ts'

export interface RenewalsOptions {
  readonly ports: Pick<Ports, 'time' | 'timers' | 'random' | 'log'>
  readonly session: string
  readonly renewMs: number
  readonly send: (request: RenewRequest) => Promise<RenewAnswer>
  /** What the next renewal says. */
  readonly say: () => RenewRequest
  readonly heard: (answer: RenewAnswer, request: RenewRequest, sent: Sent) => void
}

/** When a renewal was sent, on both clocks. */
export interface Sent {
  readonly wall: number
  readonly mono: number
}

export interface Renewals {
  /** Renews now rather than at the next interval. */
  soon(): void
  stop(): void
}

const ANSWER_MS = 1_000

export const startRenewals = ({ ports, renewMs, send, say, heard }: RenewalsOptions): Renewals => {
  let stopped = false
  let cancel: (() => void) | null = null
  let answered = true

  const arm = (ms: number): void => {
    cancel?.()
    cancel = stopped ? null : ports.timers.after(ms, beat)
  }

  const beat = (): void => {
    if (stopped) return
    const sent: Sent = { wall: ports.time.now(), mono: ports.time.mono() }
    const request = say()
    answered = false
    arm(jittered(ports.random, ANSWER_MS))
    send(request).then(
      (answer) => {
        if (stopped) return
        answered = true
        heard(answer, request, sent)
        arm(renewMs)
      },
      (error: unknown) => {
        if (!stopped) ports.log.debug('renewal.failed', { session: request.session, error })
      },
    )
  }

  arm(renewMs)
  return {
    soon: () => {
      if (answered) arm(0)
    },
    stop() {
      stopped = true
      cancel?.()
    },
  }
}

/** Milliseconds since `sent` by the clock that says more: a process that slept may have stopped one of them. */
export const elapsedSince = (sent: Sent, time: Ports['time']): number =>
  Math.max(time.mono() - sent.mono, time.now() - sent.wall)
