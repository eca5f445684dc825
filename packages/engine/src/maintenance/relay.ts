// The relay: sends what is due to the sinks that this server has. A pass claims and begins, and never waits for a sink: what
// is under way goes on beside it, so that a slow sink holds up neither another one nor anything else. What came of a send is
// recorded under its claim, again and again until the store takes it or the claim has lapsed.
import type { Batcher } from '../kernel/batcher.ts'
import { batcher } from '../kernel/batcher.ts'
import { messageOf } from '../kernel/json.ts'
import { jittered } from '../kernel/random.ts'
import { sleep } from '../kernel/timers.ts'
import type { Message, Sent, Sink } from '../model/delivery.ts'
import { AT_ONCE, refusedForMs } from '../model/delivery.ts'
import type { Came, Claimed, Result } from '../transitions/deliver.ts'
import { claimDeliveries, dueSinks, recordDeliveries } from '../transitions/deliver.ts'
import { keepSinks, removeSinks } from '../transitions/keep-sinks.ts'
import type { Sweep, Upkeep } from './loop.ts'

export interface Relay extends Sweep {
  /** Resolves when nothing that was claimed is open any more. */
  idle(): Promise<void>
  /** Claims nothing more, waits so long for what is being sent, then cuts it off and lets the rest go. */
  stop(limitMs: number): Promise<void>
}

/** What a send came to in the store: what came of it, where it could be recorded under its claim. */
export type Became = Came['how'] | 'claim_lost' | 'not_recorded'

interface Options {
  readonly sinks: readonly Sink[]
  /** This process, among those that relay. */
  readonly self: string
  readonly upkeep: Pick<Upkeep, 'ports' | 'settings' | 'store' | 'read'>
  /** Something more may be due at once. */
  readonly more: () => void
  /** Hears what came of each send, and how long after its cause. */
  readonly came?: (sink: string, how: Became, afterMs: number) => void
  /** A pass ends when what it claimed is settled: for tests that own the clock. */
  readonly waits?: boolean
}

/** How often a server says which sinks it has, in parts of the time after which one counts as removed. */
const SAYS = 10
const RECORD_AGAIN_MS = 200

/** A sink that throws has refused. */
const answerOf = async (sink: Sink, message: Message, signal: AbortSignal): Promise<Sent> => {
  try {
    return await sink.send(message, signal)
  } catch (error) {
    return { ok: false, why: messageOf(error) }
  }
}

export const makeRelay = ({
  sinks,
  self,
  upkeep,
  more,
  came: tell = () => undefined,
  waits = false,
}: Options): Relay => {
  const { ports, settings } = upkeep
  const { time, timers, log, random } = ports
  const { deliveryLeaseMs, deliveryTimeoutMs } = settings
  const began = time.mono()
  const busy = new Map<string, Promise<void>>()
  const cut = new AbortController()
  let saidAt = Number.NEGATIVE_INFINITY
  let judgedAt = began
  let stopping = false
  /** Since the last pass. */
  let acted = 0
  let skipped = 0

  const record: Batcher<Result, Became> = batcher(timers, async (results) => {
    const done = await upkeep.store.run((tx) => recordDeliveries(tx, results, settings))
    acted += done.delivered
    skipped += done.refused + done.lost.length
    for (const id of done.dead) log.error('delivery.dead', { delivery: id })
    for (const id of done.lost)
      log.warn('delivery.claim_lost', {
        delivery: id,
        sentence: 'another server has claimed it since, and may send it once more',
      })
    return results.map(({ id, came: { how } }) => (done.lost.includes(id) ? 'claim_lost' : how))
  })

  /** Records what came of one; the store may be down for a while, and its claim lasts no longer. */
  const recorded = async (claimed: Claimed, came: Came, until: number): Promise<Became> => {
    const { id, claim } = claimed
    for (;;)
      try {
        return await record.add({ id, claim, came })
      } catch (error) {
        if (cut.signal.aborted || time.mono() + RECORD_AGAIN_MS > until) {
          skipped += 1
          log.warn('delivery.not_recorded', { delivery: id, how: came.how, error })
          return 'not_recorded'
        }
        await sleep(timers, RECORD_AGAIN_MS)
      }
  }

  /** Sends one; `cut` where the server stops before an answer came. */
  const sent = async (sink: Sink, { message }: Claimed): Promise<Sent | 'cut'> => {
    const over = new AbortController()
    const late = sleep(timers, deliveryTimeoutMs, over.signal)
    const stop = (): void => over.abort()
    cut.signal.addEventListener('abort', stop, { once: true })
    const send = answerOf(sink, message, over.signal)
    const first = await Promise.race([send, late])
    cut.signal.removeEventListener('abort', stop)
    // whatever it does with it: nobody listens to it any more
    over.abort()
    if (typeof first === 'object') return first
    return first === 'aborted'
      ? 'cut'
      : { ok: false, why: `it did not answer within ${deliveryTimeoutMs} ms` }
  }

  const cameOf = (claimed: Claimed, what: Sent | 'cut'): Came => {
    if (what === 'cut') return { how: 'cut' }
    if (what.ok) return { how: 'delivered', note: what.note }
    if (what.never === true) return { how: 'void', note: what.why }
    const ms = jittered(random, refusedForMs(claimed.refusals + 1, settings))
    return {
      how: 'refused',
      why: what.why,
      forGood: what.forGood === true,
      afterMs: Math.min(settings.deliveryBackoffMaxMs, Math.max(ms, what.afterMs ?? 0)),
    }
  }

  /** Sends a batch, a few at once; what would not be over before its claim lapses is let go. */
  const deliver = async (sink: Sink, batch: Claimed[], claimedAt: number): Promise<void> => {
    const until = claimedAt + deliveryLeaseMs
    const line = async (): Promise<void> => {
      for (let next = batch.shift(); next; next = batch.shift()) {
        const tooLate = stopping || time.mono() + deliveryTimeoutMs > until
        const came = tooLate ? ({ how: 'shed' } as const) : cameOf(next, await sent(sink, next))
        if (came.how === 'refused')
          log.warn('delivery.refused', {
            delivery: next.id,
            sink: sink.name,
            why: came.why,
            refusals: next.refusals + 1,
          })
        const became = await recorded(next, came, until)
        tell(sink.name, became, Math.max(0, time.now() - next.message.at))
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, batch.length) }, line))
  }

  /** Claims for one sink and begins to send; answers how many. */
  const begin = async (sink: Sink): Promise<number> => {
    // before the claim is made, so that it lapses here no later than at the store
    const claimedAt = time.mono()
    const { claimed, void: annulled } = await upkeep.store.run((tx) =>
      claimDeliveries(tx, sink.name, self, settings),
    )
    acted += annulled
    for (const { id, lapses } of claimed)
      if (lapses > 0) log.warn('delivery.claimed_again', { delivery: id, lapses })
    if (claimed.length === 0) return annulled
    const under = deliver(sink, [...claimed], claimedAt)
      .catch((error: unknown) => log.error('delivery.defect', { sink: sink.name, error }))
      .finally(() => {
        busy.delete(sink.name)
        if (!stopping) more()
      })
    busy.set(sink.name, under)
    return claimed.length
  }

  const say = async (): Promise<void> => {
    const now = time.mono()
    if (sinks.length > 0 && now - saidAt >= settings.sinkGoneMs / SAYS) {
      const first = saidAt === Number.NEGATIVE_INFINITY
      await upkeep.store.run((tx) => keepSinks(tx, sinks, first))
      saidAt = now
    }
    // who has not been up for as long cannot know that nobody has said so
    if (now - began < settings.sinkGoneMs || now - judgedAt < settings.sinkGoneMs / SAYS) return
    judgedAt = now
    const { removed, annulled } = await upkeep.store.run((tx) =>
      removeSinks(tx, settings.sinkGoneMs),
    )
    acted += annulled
    for (const sink of removed) log.warn('sink.removed', { sink, annulled })
  }

  const idle = async (): Promise<void> => {
    while (busy.size > 0) await Promise.all(busy.values())
  }

  return {
    name: 'relay',
    intervalMs: settings.pollMs,
    async pass() {
      await say()
      const free = sinks.filter(({ name }) => !busy.has(name))
      let examined = 0
      if (free.length > 0 && !stopping) {
        const names = free.map(({ name }) => name)
        const due = await upkeep.read((tx) => dueSinks(tx, names, settings))
        for (const sink of free) if (due.includes(sink.name)) examined += await begin(sink)
      }
      if (waits) await idle()
      const pass = { examined, acted, skipped }
      acted = 0
      skipped = 0
      return pass
    },
    idle,
    async stop(limitMs) {
      stopping = true
      const over = new AbortController()
      const late = sleep(timers, limitMs, over.signal).then(() => cut.abort())
      await idle()
      over.abort()
      await late
      for (const sink of sinks) await sink.close?.()
    },
  }
}
