// Deliveries, newest first, a page at a time; and each sink with how far behind it is.
import { inWords } from '../kernel/duration.ts'
import type { DeliveryState } from '../model/delivery.ts'
import type { Settings } from '../model/settings.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { DeliveryRow } from '../store/tables/deliveries.ts'
import { allSinks, backlogOfSinks, deliveriesBefore } from '../store/tables/deliveries.ts'

export const deliveryView = (row: DeliveryRow) => ({
  id: row.id,
  run: row.run,
  kind: row.kind,
  occurrence: row.occurrence,
  sink: row.sink,
  state: row.state,
  holder: row.holder,
  dueAt: row.due_at,
  refusals: row.refusals,
  lapses: row.lapses,
  error: row.error,
  note: row.note,
  createdAt: row.created_at,
  settledAt: row.settled_at,
})

export function* deliveries(
  _tx: Tx,
  cursor: string | null,
  limit: number,
  state: DeliveryState | null,
): Steps<{ deliveries: ReturnType<typeof deliveryView>[]; next: string | null }> {
  const [, at = '1e15', id = ''] = /^(\d+):(.*)$/su.exec(cursor ?? '') ?? []
  const [rows] = yield* ask(deliveriesBefore({ at: Number(at), id }, limit + 1, state))
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    deliveries: page.map(deliveryView),
    next: rows.length > limit && last ? `${last.created_at}:${last.id}` : null,
  }
}

/** Counted as far as this, so that the answer costs the same however many there are. */
const COUNTED = 10_000

export function* sinks(tx: Tx, { deliveryLateMs, sinkGoneMs }: Settings) {
  const [rows, backlog] = yield* ask(allSinks(), backlogOfSinks(COUNTED))
  const names = [...new Set([...rows.map(({ name }) => name), ...backlog.map(({ sink }) => sink)])]
  return {
    now: tx.now,
    sinks: names.sort().map((name) => {
      const own = rows.filter((row) => row.name === name)
      const behind = backlog.find(({ sink }) => sink === name)
      const oldestAt = behind?.oldest_at ?? null
      const ageMs = oldestAt === null ? 0 : Math.max(0, tx.now - oldestAt)
      const seenAt = own.length === 0 ? null : Math.max(...own.map((row) => row.seen_at))
      return {
        name,
        type: own[0]?.type ?? null,
        kinds: own.map(({ kind }) => kind),
        seenAt,
        /** No server says any more that it has it. */
        gone: seenAt === null || tx.now - seenAt > sinkGoneMs / 2,
        open: behind?.open ?? 0,
        dead: behind?.dead ?? 0,
        oldestAt,
        ageMs,
        late: ageMs > deliveryLateMs,
      }
    }),
  }
}

/** What is wrong with deliveries, in words; an empty list when nothing is. */
export function* deliveryWarnings(tx: Tx, settings: Settings): Steps<string[]> {
  const { sinks: all } = yield* sinks(tx, settings)
  return all.flatMap(({ name, late, ageMs, open, dead, gone }) => [
    ...(late
      ? [
          `the sink ${name} is late: its oldest open delivery is ${inWords(ageMs)} old, of ${open}${gone ? '; no server has the sink' : ''}`,
        ]
      : []),
    ...(dead > 0
      ? [
          `${dead} deliveries to the sink ${name} are dead; leasehold deliveries --state dead lists them`,
        ]
      : []),
  ])
}
