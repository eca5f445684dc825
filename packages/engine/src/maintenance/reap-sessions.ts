// Takes back what dead sessions held. Elapsed time is never proof of death: a session is ended by a compare-and-set when
// its lease has lapsed by the store's clock, and not at all while that clock cannot be trusted.
import { endLapsed, recount, takeBack } from '../transitions/end-session.ts'
import type { Sweep } from './loop.ts'

/**
 * How far the store's clock may move against our own within a lease before it counts as a jump: between two passes, or by
 * little and little over several, since a lease is counted by it as a whole.
 */
const JUMP_MS = 2_000

interface Reading {
  readonly wall: number
  readonly mono: number
}

export const reapSessions = (sweepMs: number): Sweep => {
  /** Of the passes of the last lease, oldest first. */
  let readings: Reading[] = []
  let notBefore = Number.NEGATIVE_INFINITY
  return {
    name: 'reap-sessions',
    intervalMs: sweepMs,
    async pass(upkeep) {
      const { time, log } = upkeep.ports
      const wall = time.now()
      const mono = time.mono()
      const before = readings.at(-1) ?? null
      const stalled = before !== null && mono - before.mono > 2 * sweepMs
      const jumped = readings.some(
        (each) => Math.abs(wall - each.wall - (mono - each.mono)) > JUMP_MS,
      )
      // what a jump has made of the earlier ones is known
      readings = jumped
        ? [{ wall, mono }]
        : [
            ...readings.filter((each) => mono - each.mono <= upkeep.settings.leaseMs),
            { wall, mono },
          ]
      if (before === null || stalled || jumped) {
        // renewals may be queued behind us, or instants may lie: give every session one lease to show that it lives
        if (before !== null)
          log.warn('reap.waits', { stalled, jumped, leaseMs: upkeep.settings.leaseMs })
        notBefore = before === null ? Number.NEGATIVE_INFINITY : mono + upkeep.settings.leaseMs
        // after a jump backward the lease of a dead session would last as much longer
        if (jumped) await upkeep.store.run((tx) => recount(tx))
      }
      let examined = 0
      let acted = 0
      if (mono >= notBefore) {
        // judged by the clock as it was looked at above: it may jump before this transaction begins
        const ended = await upkeep.store.run((tx) => endLapsed(tx, wall))
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
          return { examined, acted, skipped: mono < notBefore ? 1 : 0 }
      }
    },
  }
}
