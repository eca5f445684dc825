// The one loop: a bounded pass, again after an interval or as soon as somebody wants it, one pass at a time, with a record
// of each pass. A pass that fails is recorded, and the next one goes on; no error ends a loop.
import { Fault } from '../kernel/errors.ts'
import type { Growth } from '../kernel/growing-delay.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { messageOf } from '../kernel/json.ts'
import type { Ports } from '../kernel/ports.ts'
import { seldom } from '../kernel/seldom.ts'
import type { Catalog } from '../model/definition.ts'
import type { Follow } from '../model/follow.ts'
import type { Settings } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import type { PlanContext, StartCommand } from '../model/start.ts'
import type { Steps, Tx } from '../store/sql.ts'
import type { PassRow } from '../transitions/beat.ts'

/** What loops need of the engine around them. */
export interface Upkeep {
  readonly ports: Ports
  readonly settings: Settings
  readonly shard: Shard
  readonly catalog: Catalog
  act<T extends { readonly follow: Follow }>(
    transition: (tx: Tx, context: PlanContext) => Steps<T>,
  ): Promise<T>
  read<T>(transition: (tx: Tx) => Steps<T>): Promise<T>
  /** What the clock says by which the store judges leases: on a file that of this process, else the database's own. */
  storeClock(): Promise<number>
  /** Reads the definitions anew where one of these is not known. */
  learn(starts: readonly Pick<StartCommand, 'workflow' | 'version'>[]): Promise<void>
  readonly store: { run<T>(transition: (tx: Tx) => Steps<T>): Promise<T> }
}

export interface Pass {
  readonly examined: number
  readonly acted: number
  readonly skipped?: number
  /** What is wanted could not be had for now: another pass after so many ms, if that is sooner than the interval. */
  readonly againMs?: number
}

export interface Sweep {
  readonly name: string
  readonly intervalMs: number
  pass(upkeep: Upkeep): Promise<Pass>
  /** What it must have seen for its own turn is looked at also in those of others. */
  watch?(upkeep: Upkeep): Promise<void>
}

/**
 * When to look again for rows that somebody else's transaction holds: soon, since most are held for a moment, and ever
 * later while some are, up to the interval.
 */
export const patience = (): ((busy: boolean) => Pick<Pass, 'againMs'>) => {
  let times = 0
  return (busy) => {
    times = busy ? times + 1 : 0
    return busy ? { againMs: growingDelayMs(times, BUSY_AGAIN) } : {}
  }
}
const BUSY_AGAIN: Growth = { firstMs: 20, maxMs: 60_000 }

/** A pass that the store could not serve is made up for once it can, also where the next would be a minute away. */
const FAILED_AGAIN_MS = 5_000

export interface Loop {
  readonly name: string
  /** A pass as soon as none is running, whosever turn it is: there is something to do. */
  soon(): void
  /** A pass as soon as none is running, if it is our turn. */
  look(): void
  /** A pass at this instant of the store's clock, if that is earlier than the next. */
  at(instant: number): void
  /** Runs one pass now and answers it; for tests and `doctor`. */
  once(): Promise<Pass>
  stop(): Promise<void>
}

export interface LoopOptions {
  /** Nothing happens by itself, only what `once` is called for; for tests that own the clock. */
  readonly manual?: boolean
  /** Whether it is our turn to look without being asked to. */
  readonly mine?: () => boolean
}

export const startLoop = (
  sweep: Sweep,
  upkeep: Upkeep,
  record: (row: PassRow) => Promise<void>,
  { manual = false, mine = () => true }: LoopOptions = {},
): Loop => {
  const { timers, time, log } = upkeep.ports
  let cancel: (() => void) | null = null
  let nextAt = Number.POSITIVE_INFINITY
  let running: Promise<Pass> | null = null
  let wanted = false
  let stopped = false
  /** When a pass is due that was asked for. */
  let askedAt = Number.POSITIVE_INFINITY
  const say = seldom(log, time)

  const once = async (): Promise<Pass> => {
    const began = time.mono()
    let pass: Pass = { examined: 0, acted: 0 }
    let failure: string | null = null
    try {
      pass = await sweep.pass(upkeep)
    } catch (error) {
      failure = messageOf(error)
      pass = { examined: 0, acted: 0, againMs: FAILED_AGAIN_MS }
      if (error instanceof Fault) log.warn('sweep.failed', { sweep: sweep.name, error })
      // a mistake of our own comes again with each pass
      else
        say('sweep.defect', error instanceof Error ? error.name : typeof error, {
          sweep: sweep.name,
          error,
        })
    }
    await record({
      name: sweep.name,
      interval_ms: sweep.intervalMs,
      examined: pass.examined,
      acted: pass.acted,
      skipped: pass.skipped ?? 0,
      error: failure,
      duration_ms: time.mono() - began,
    })
    return pass
  }

  const arm = (ms: number): void => {
    const at = time.mono() + ms
    if (manual || stopped || at >= nextAt) return
    cancel?.()
    nextAt = at
    cancel = timers.after(ms, run)
  }

  const run = (): void => {
    cancel?.()
    cancel = null
    nextAt = Number.POSITIVE_INFINITY
    if (stopped) return
    const asked = time.mono() >= askedAt
    if (running) {
      wanted ||= asked
      return
    }
    wanted = false
    if (asked) askedAt = Number.POSITIVE_INFINITY
    running = asked || mine() ? once() : watch()
    void running.then(({ againMs }) => {
      running = null
      if (wanted) ask(0)
      // what could not be had for now was asked for, and is still to be done
      else if (againMs !== undefined && againMs < sweep.intervalMs) ask(againMs)
      else arm(sweep.intervalMs)
    })
  }

  const watch = async (): Promise<Pass> => {
    try {
      await sweep.watch?.(upkeep)
    } catch (error) {
      log.debug('sweep.not_watched', { sweep: sweep.name, error })
    }
    return { examined: 0, acted: 0 }
  }

  const ask = (ms: number): void => {
    askedAt = Math.min(askedAt, time.mono() + ms)
    arm(ms)
  }

  arm(0)
  return {
    name: sweep.name,
    soon: () => {
      if (running) wanted = true
      else ask(0)
    },
    look: () => {
      if (!running) arm(0)
    },
    at: (instant) => ask(Math.max(0, instant - time.now())),
    once,
    async stop() {
      stopped = true
      cancel?.()
      await running
    },
  }
}
