// Wake-ups between the processes of one database: what each of them tells the others after its commits. All of it is
// hints, gathered while the last is under way and never part of a hot transaction; polling finds what gets lost.
import * as z from 'zod'
import type { Told } from '../model/work.ts'
import { toldDirectives } from '../model/work.ts'
import type { Notifications } from '../store/notifications.ts'
import { openNotifications } from '../store/notifications.ts'
import { catalogMark } from '../store/tables/definitions.ts'
import { ask } from '../store/sql.ts'
import type { Engine } from './engine.ts'
import type { Place } from './claims/lanes.ts'

interface Options {
  readonly url: string
  readonly channel: string
  readonly self: string
}

export interface Wakeups {
  readonly listening: boolean
  close(): Promise<void>
}

/** What is said, by short names, since 8 kB is all that one notification carries. Anybody who may connect can say anything. */
const said = z.object({
  /** The lowest place of each that has become claimable. */
  lanes: z.array(z.tuple([z.string(), z.number(), z.string()])).optional(),
  told: z
    .array(
      z.object({
        session: z.string(),
        run: z.string(),
        attempt: z.number(),
        directive: z.enum(toldDirectives),
        note: z.string().nullable(),
      }),
    )
    .optional(),
  /** Runs that have ended. */
  runs: z.array(z.string()).optional(),
  /** A user's transaction has placed orders. */
  orders: z.literal(true).optional(),
})
type Said = z.infer<typeof said>

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

  /** What cannot be read, from a server of another build or from anybody, is no wake-up. */
  const hear = (text: string): void => {
    const read = said.safeParse(decoded(text))
    if (!read.success) return log.debug('wakeup.unreadable', { error: read.error })
    for (const [lane, rank, id] of read.data.lanes ?? []) {
      lanes.wake(lane, { rank, id })
      hub.lane(lane)
    }
    for (const { session, ...each } of read.data.told ?? []) hub.tell(session, each)
    for (const run of read.data.runs ?? []) hub.changed(run)
    if (read.data.orders) engine.ordersCame()
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

const decoded = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
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
