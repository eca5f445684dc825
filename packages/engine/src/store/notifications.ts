// Texts from each process on a database to the others, through NOTIFY: hints, which may be lost. One connection listens;
// it is made anew when it is lost, or when its own beat does not come back, since a connection may be open and dead.
import pg from 'pg'
import type { Log } from '../kernel/log.ts'
import type { Cancel, Timers } from '../kernel/timers.ts'

export interface NotificationOptions {
  /** A connection of its own, not through a pooler that gives each transaction another. */
  readonly url: string
  readonly channel: string
  /** Names this process: what it says itself it does not hear. */
  readonly self: string
  readonly timers: Timers
  readonly log: Log
  readonly hear: (text: string) => void
  /** Something may have been missed: called whenever listening begins anew. */
  readonly gap: () => void
}

export interface Notifications {
  /** Whether the last beat came back. */
  readonly listening: boolean
  /** No other process has been heard of for a while: there is nobody to say anything to. */
  readonly alone: boolean
  /** Says a text of at most 7,500 bytes; one that cannot be said is dropped. */
  say(text: string): void
  close(): Promise<void>
}

/** How often a beat is sent, and how long it may take to come back; both and a new connection fit into 5 s. */
const BEAT_MS = 1_500
const BEAT_LIMIT_MS = 1_500
const RETRY_MS = [0, 100, 250, 500, 1_000]
const MARK = 'beat'
/** Beats of ours after which another that has not been heard of is taken to be gone. */
const COMPANY_BEATS = 4

export const openNotifications = (options: NotificationOptions): Notifications => {
  const { url, channel, self, timers, log, hear, gap } = options
  let client: pg.Client | null = null
  let closed = false
  let tries = 0
  let beats = 0
  let company = 0
  let listening = false
  let waiting: Cancel | null = null
  let ended: (() => void) | null = null

  /** One after the other: a connection takes one query at a time. */
  let before: Promise<unknown> = Promise.resolve()
  const say = (to: pg.Client, kind: string, text: string): void => {
    before = before
      .then(() =>
        client === to
          ? to.query('select pg_notify($1, $2)', [channel, `${self} ${kind} ${text}`])
          : undefined,
      )
      .catch((error: unknown) => lose(to, error))
  }

  /** The connection is of no more use: another one takes its place after a while. */
  const lose = (lost: pg.Client, error: unknown): void => {
    if (client !== lost) return
    client = null
    waiting?.()
    if (listening)
      log.warn('store.notifications_lost', {
        error: error instanceof Error ? error.message : String(error),
      })
    listening = false
    ;(
      lost as unknown as { connection: { stream: { destroy(): void } } }
    ).connection.stream.destroy()
    if (closed) return ended?.()
    const wait = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] ?? 0
    tries += 1
    waiting = timers.after(wait, open)
  }

  /** Sends a beat, and waits for it to come back. */
  const beat = (on: pg.Client): void => {
    beats += 1
    say(on, MARK, String(beats))
    waiting = timers.after(BEAT_LIMIT_MS, () => lose(on, new Error('a beat did not come back')))
  }

  const heard = (on: pg.Client, payload: string): void => {
    const [from = '', kind = ''] = payload.split(' ', 2)
    const text = payload.slice(from.length + kind.length + 2)
    if (kind !== MARK) {
      if (from !== self) hear(text)
      return
    }
    if (from !== self) company = COMPANY_BEATS
    if (from !== self || text !== String(beats)) return
    company -= 1
    if (!listening) {
      listening = true
      tries = 0
      gap()
    }
    waiting?.()
    waiting = timers.after(BEAT_MS, () => beat(on))
  }

  const open = (): void => {
    const made = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: BEAT_LIMIT_MS,
      keepAlive: true,
      application_name: 'leasehold-listener',
    })
    client = made
    made.on('error', (error) => lose(made, error))
    made.on('end', () => lose(made, new Error('the server ended it')))
    made.on('notification', ({ payload }) => heard(made, payload ?? ''))
    made
      .connect()
      .then(() => {
        // its answer may never come
        if (client === made)
          waiting = timers.after(BEAT_LIMIT_MS, () => lose(made, new Error('it does not listen')))
        return made.query(`listen "${channel.replaceAll('"', '""')}"`)
      })
      .then(
        () => {
          if (client !== made) return
          waiting?.()
          beat(made)
        },
        (error: unknown) => lose(made, error),
      )
  }

  open()
  return {
    get listening() {
      return listening
    },
    get alone() {
      return company <= 0
    },
    say(text) {
      if (client && listening) say(client, 'said', text)
    },
    async close() {
      closed = true
      // it ends because it is told to, and nobody needs to hear of it
      listening = false
      waiting?.()
      const last = client
      if (!last) return
      const gone = new Promise<void>((resolve) => (ended = resolve))
      lose(last, new Error('closed'))
      await gone
    },
  }
}
