// Renewals from a thread of their own with their own connection, so that a body which keeps the main loop busy does not
// look like death. The thread asks the main loop what to say; one that has hung past `stallLimitMs` is no longer vouched for.
import * as threads from 'node:worker_threads'
import type { RenewAnswer, RenewRequest } from '../../model/work.ts'
import { STALL_LIMIT_MS } from '../options.ts'
import { programs } from '../programs.ts'
import type { Renewals, RenewalsOptions } from './renewals.ts'
import { startRenewals } from './renewals.ts'

/** How the thread reaches a server. */
export interface HttpThread {
  readonly url: string
  readonly token?: string
}

export interface ThreadOptions {
  /** The program that the thread runs, with what it needs to reach the engine. */
  readonly program: URL
  readonly reach: object
  /** How long the main loop may hang while its lease is still renewed. Default 60 s. */
  readonly stallLimitMs?: number
  /** What follows in this process from a renewal that the thread has sent. */
  readonly answered?: (request: RenewRequest, answer: RenewAnswer) => RenewAnswer
}

/** What the main loop tells its thread, and the thread the main loop. */
export type ToThread =
  | { readonly kind: 'said'; readonly n: number; readonly request: RenewRequest }
  | { readonly kind: 'soon' }
  | { readonly kind: 'stop' }
export type FromThread =
  | { readonly kind: 'say'; readonly n: number }
  /** `absolute`: the monotonic clock of the sending, counted from the epoch, which both threads can tell. */
  | {
      readonly kind: 'answered'
      readonly n: number
      readonly answer: RenewAnswer
      readonly wall: number
      readonly absolute: number
    }
  | {
      readonly kind: 'note'
      readonly event: string
      readonly facts: Readonly<Record<string, unknown>>
    }

export interface ThreadData {
  readonly session: string
  readonly renewMs: number
  readonly stallLimitMs: number
}

/** As `threadRenewals`, over HTTP. */
export const httpRenewals = (
  reach: HttpThread,
  stallLimitMs?: number,
): ((options: RenewalsOptions) => Renewals) =>
  threadRenewals({
    program: programs.renewalsHttp,
    reach,
    ...(stallLimitMs === undefined ? {} : { stallLimitMs }),
  })

/** Makes renewals like `startRenewals`, in a thread; where that fails, the main loop renews from then on. */
export const threadRenewals =
  ({
    program,
    reach,
    stallLimitMs = STALL_LIMIT_MS,
    answered = (_, answer) => answer,
  }: ThreadOptions) =>
  (options: RenewalsOptions): Renewals => {
    const { ports, session, renewMs, say, heard } = options
    const running = new threads.Worker(program, {
      workerData: { ...reach, session, renewMs, stallLimitMs } satisfies ThreadData,
    })
    const said = new Map<number, RenewRequest>()
    let instead: Renewals | null = null
    let stopped = false
    running.on('message', (message: FromThread) => {
      if (stopped) return
      switch (message.kind) {
        case 'say': {
          const request = say()
          said.set(message.n, request)
          running.postMessage({ kind: 'said', n: message.n, request } satisfies ToThread)
          return
        }
        case 'answered': {
          // a renewal that went out while the main loop was busy said nothing but that the session lives
          const request = said.get(message.n) ?? {
            session,
            draining: false,
            status: null,
            letGo: [],
          }
          for (const n of said.keys()) if (n <= message.n) said.delete(n)
          heard(answered(request, message.answer), request, {
            wall: message.wall,
            mono: message.absolute - performance.timeOrigin,
          })
          return
        }
        case 'note':
          ports.log.warn(message.event, message.facts)
      }
    })
    running.on('error', (error) => {
      ports.log.error('renewal_thread.failed', { session, error })
      if (stopped) return
      instead = startRenewals(options)
      instead.soon()
    })
    running.unref()
    return {
      soon: () =>
        instead ? instead.soon() : running.postMessage({ kind: 'soon' } satisfies ToThread),
      stop() {
        stopped = true
        instead?.stop()
        running.postMessage({ kind: 'stop' } satisfies ToThread)
      },
    }
  }
