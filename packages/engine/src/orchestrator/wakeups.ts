// Wake-ups between the processes of one database: what each of them tells the others after its commits. All of it is
// hints, gathered while the last is under way and never part of a hot transaction; polling finds what gets lost.
import type { Told } from '../model/work.ts'
import type { Notifications } from '../store/notifications.ts'
import { openNotifications } from '../store/notifications.ts'
import { catalogMark } from '../store/tables/sessions.ts'
import { ask } from '../store/sql.ts'
import type { Engine } from './engine.ts'
import type { Place } from './lanes.ts'

interface Options {
  readonly url: string
  readonly channel: string
  readonly self: string
}

export interface Wakeups {
  readonly listening: boolean
  close(): Promise<void>
}

/** What is said, by short names, since 8 kB is all that one notification carries. */
interface Said {
  readonly lanes?: readonly (readonly [string, number | null, string])[]
  readonly told?: readonly (Told & { readonly session: string })[]
  /** Runs that have ended. */
  readonly runs?: readonly string[]
  /** A user's transaction has placed orders. */
  readonly orders?: true
}

/** PostgreSQL refuses a payload of 8,000 bytes; the rest is its frame. */
const MOST_BYTES = 7_500
const GATHER_MS = 5

export const startWakeups = (engine: Engine, { url, channel, self }: Options): Wakeups => {
  const { ports, lanes, hub } = engine
  const { timers, log } = ports
  let woken = new Map<string, Place>()
  let told: (Told & { session: string })[] = []
  let runs = new Set<string>()
  let gathering = false
  let mark: string | null = null
  let closed = false

  const flush = (): void => {
    gathering = false
    const parts: Said[] = [
      ...[...woken].map(([lane, { rank, id }]): Said => ({ lanes: [[lane, rank, id]] })),
      ...told.map((each): Said => ({ told: [each] })),
      ...[...runs].map((run): Said => ({ runs: [run] })),
    ]
    woken = new Map()
    told = []
    runs = new Set()
    for (const text of packed(parts)) notifications.say(text)
  }

  engine.onFollowed((follow) => {
    if (notifications.alone) return
    for (const [lane, at] of follow.lanes) {
      const known = woken.get(lane)
      if (!known || at.rank < known.rank || (at.rank === known.rank && at.id < known.id))
        woken.set(lane, at)
    }
    told.push(...follow.told)
    for (const run of follow.ended) runs.add(run)
    if (gathering || (woken.size === 0 && told.length === 0 && runs.size === 0)) return
    gathering = true
    timers.after(GATHER_MS, flush)
  })

  /** Anybody who may connect can say anything here, and so can a server of another build: what cannot be read is no wake-up. */
  const hear = (text: string): void => {
    try {
      heard(JSON.parse(text) as Said)
    } catch (error) {
      log.debug('wakeup.unreadable', { error })
    }
  }
  const heard = (said: Said): void => {
    for (const [lane, rank, id] of said.lanes ?? []) {
      // a rank below all others is no number in JSON
      lanes.wake(lane, { rank: rank ?? Number.NEGATIVE_INFINITY, id })
      hub.lane(lane)
    }
    for (const { session, ...each } of said.told ?? []) hub.tell(session, each)
    for (const run of said.runs ?? []) hub.changed(run)
    if (said.orders) engine.ordersCame()
  }

  /** Definitions and lanes that another process has registered. */
  const look = async (): Promise<void> => {
    try {
      const [[row]] = await engine.read(function* () {
        return yield* ask(catalogMark())
      })
      if (row && row.mark !== mark) {
        await engine.reload()
        mark = row.mark
      }
    } catch (error) {
      log.debug('catalog.not_read', { error })
    }
    if (!closed)
      cancel = timers.after(engine.settings.pollMs, () => {
        looking = look()
      })
  }

  const notifications: Notifications = openNotifications({
    url,
    channel,
    self,
    timers,
    log,
    hear,
    gap: () => lanes.refresh(lanes.known),
  })
  let cancel: () => void = () => undefined
  let looking = look()
  return {
    get listening() {
      return notifications.listening
    },
    async close() {
      closed = true
      cancel()
      await looking
      cancel()
      await notifications.close()
    },
  }
}

/** As few texts as carry all of it, each short enough. */
const packed = (parts: readonly Said[]): string[] => {
  const texts: string[] = []
  let open: Required<{ [K in Exclude<keyof Said, 'orders'>]: unknown[] }> = {
    lanes: [],
    told: [],
    runs: [],
  }
  let bytes = 0
  const close = (): void => {
    if (bytes > 0) texts.push(JSON.stringify(open))
    open = { lanes: [], told: [], runs: [] }
    bytes = 0
  }
  for (const part of parts) {
    const size = Buffer.byteLength(JSON.stringify(part))
    // what fits into none is found by polling
    if (size > MOST_BYTES - 100) continue
    if (bytes + size > MOST_BYTES - 100) close()
    open.lanes.push(...(part.lanes ?? []))
    open.told.push(...(part.told ?? []))
    open.runs.push(...(part.runs ?? []))
    bytes += size
  }
  close()
  return texts
}
