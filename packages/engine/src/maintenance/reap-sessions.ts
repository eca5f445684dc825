// Takes back what dead sessions held. Elapsed time is never proof of death: a session is ended by a compare-and-set when
// its lease has lapsed by the store's clock, and not at all while that clock cannot be trusted. Whether it can is judged by
// the monotonic clock of this process, which nothing sets: it has to have seen the whole of a lease go by on both.
import { endLapsed, recount, takeBack } from '../transitions/end-session.ts'
import type { Sweep, Upkeep } from './loop.ts'

/**
 * How far the store's clock may move against our own within a lease before it counts as a jump: between two passes, or by
 * little and little over several, since a lease is counted by it as a whole.
 */
const JUMP_MS = 2_000

/** What the store's clock said, at some moment of ours between two. */
export interface Reading {
  readonly wall: number
  readonly early: number
  readonly late: number
}

/** Reads the store's clock between two looks at our own. */
export const readClock = async ({
  ports: { time },
  storeClock,
}: Pick<Upkeep, 'ports' | 'storeClock'>): Promise<Reading> => {
  const early = time.mono()
  const wall = await storeClock()
  return { wall, early, late: time.mono() }
}

/** Whether more or less time has gone by on the store's clock than can have on ours. */
const apart = (then: Reading, now: Reading): boolean => {
  const elapsed = now.wall - then.wall
  return elapsed < now.early - then.late - JUMP_MS || elapsed > now.late - then.early + JUMP_MS
}

export interface Opened {
  /** What the clock of the store said then. */
  readonly reading: Reading
  /** Whether others may have had the store open before, whose leases go on: those of a file are counted anew as it is opened. */
  readonly shared: boolean
}

/**
 * What happened to the clock of a shared store before it was opened this process cannot know, so that it ends nobody before it
 * has watched a whole lease.
 */
export const reapSessions = (sweepMs: number, { reading: atOpen, shared }: Opened): Sweep => {
  /** Of the passes of the last lease, oldest first; the clock may jump before there is one. */
  let readings: Reading[] = [atOpen]
  /** Since when the clock has been right all the time, by ours. */
  let watched = shared ? atOpen.late : Number.NEGATIVE_INFINITY
  let last: Reading | null = null
  /** Reads the clock, and answers what it says and for how long it has been right. */
  const look = async (upkeep: Upkeep): Promise<{ wall: number; early: number; seenMs: number }> => {
    const { log } = upkeep.ports
    const { leaseMs } = upkeep.settings
    const reading = await readClock(upkeep)
    const { wall, late: mono } = reading
    const before = last
    last = reading
    const stalled = before !== null && mono - before.late > 2 * sweepMs
    // an answer that was long under way says little about when the clock said so
    const vague = mono - reading.early > JUMP_MS
    const jumped = readings.some((each) => apart(each, reading))
    // what a jump has made of the earlier ones is known
    readings = jumped
      ? [reading]
      : [...readings.filter((each) => mono - each.late <= leaseMs), reading]
    if (stalled || vague || jumped) {
      // renewals may be queued behind us, or instants may lie: give every session one lease to show that it lives
      log.warn('reap.waits', { stalled, vague, jumped, leaseMs })
      watched = mono
      // after a jump backward the lease of a dead session would last as much longer
      if (jumped) await upkeep.store.run((tx) => recount(tx))
    }
    return { wall, early: reading.early, seenMs: mono - watched }
  }
  return {
    name: 'reap-sessions',
    intervalMs: sweepMs,
    // whose turn comes has watched the clock for as long as it has been up
    watch: async (upkeep) => void (await look(upkeep)),
    async pass(upkeep) {
      const { log, time } = upkeep.ports
      const { wall, early, seenMs } = await look(upkeep)
      const waits = seenMs < upkeep.settings.leaseMs
      let examined = 0
      let acted = 0
      if (!waits) {
        // judged by the clock as it was looked at above: it may jump before this transaction begins, and back for as long as
        // a renewal takes
        const { ended } = await upkeep.act((tx) =>
          endLapsed(tx, wall, seenMs, wall + time.mono() - early + JUMP_MS),
        )
        for (const { id, evidence } of ended) log.warn('session.reaped', { session: id, evidence })
        examined += ended.length
      }
      for (;;) {
        const pass = await upkeep.act((tx, context) => takeBack(tx, 500, context))
        for (const { run, attempt, session, status } of pass.ended)
          log.info('attempt.taken_back', { run, attempt, session, status })
        examined += pass.examined
        acted += pass.ended.length
        if (pass.examined < 500 || pass.ended.length === 0)
          return { examined, acted, skipped: waits ? 1 : 0 }
      }
    },
  }
}
