// Sockets without a network: two ends in this process, between which what is sent arrives later, in order; a test can cut
// them, hold them half open, or let what a server sends pile up.
import type { Timers } from '../../src/kernel/timers.ts'
import type { Hearing, Socket } from '../../src/protocol/socket.ts'

export type End = 'dialer' | 'server'

export interface Wire {
  /** Nothing arrives any more, and neither end is told: half open. */
  silent: boolean
  /** Bytes that the dialer has not read. */
  unread: number
  /** What it says of a text that it is lost, and the connection with it. */
  loses: ((text: string) => boolean) | null
  readonly sent: string[]
  /** How each end heard that it was over. */
  readonly closed: { readonly end: End; readonly code: number; readonly reason: string }[]
  cut(): void
}

export const socketPair = (
  timers: Timers,
): { readonly dialer: Socket; readonly server: Socket; readonly wire: Wire } => {
  const hearing: Partial<Record<End, Hearing>> = {}
  const over = new Set<End>()
  /** Arrives at this end, unless it does not any more. */
  const arrives = (at: End, act: (hearing: Hearing) => void): void => {
    timers.soon(() => {
      const heard = hearing[at]
      if (heard && !wire.silent && !over.has(at)) act(heard)
    })
  }
  const ends = (at: End, code: number, reason: string): void => {
    if (over.has(at)) return
    over.add(at)
    wire.closed.push({ end: at, code, reason })
    hearing[at]?.closed(code, reason)
  }
  const wire: Wire = {
    silent: false,
    unread: 0,
    loses: null,
    sent: [],
    closed: [],
    cut() {
      ends('server', 1006, 'it was cut')
      ends('dialer', 1006, 'it was cut')
    },
  }
  const half = (own: End, other: End): Socket => {
    const leave = (code: number, reason: string): void => {
      // what was sent before arrives first
      arrives(other, () => ends(other, code, reason))
      timers.soon(() => ends(own, code, reason))
    }
    return {
      send(text) {
        if (over.has(own)) return
        wire.sent.push(text)
        if (wire.loses?.(text) === true) return wire.cut()
        arrives(other, (heard) => heard.text(text))
      },
      ping() {
        arrives(other, (heard) => {
          heard.alive()
          arrives(own, (back) => back.alive())
        })
      },
      get buffered() {
        return own === 'server' ? wire.unread : 0
      },
      close: leave,
      cut: () => leave(1006, ''),
      hear(heard) {
        hearing[own] = heard
      },
    }
  }
  return { dialer: half('dialer', 'server'), server: half('server', 'dialer'), wire }
}
