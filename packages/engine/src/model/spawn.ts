// Executors that are started because a queue waits: when one is, and what is done with one that does not do what it was started for.
// Decided by the server for all spawners of a queue together, on the store's clock.
import { inWords } from '../kernel/duration.ts'
import { growingDelayMs } from '../kernel/growing-delay.ts'
import { machine } from './machine.ts'

export const spawnMachine = machine({
  name: 'spawn',
  states: ['open', 'ended', 'failed'],
  terminal: ['ended', 'failed'],
  moves: {
    end: {
      from: ['open'],
      to: ['ended'],
      why: 'Its executor has been there and is gone: its process ended, or its session did.',
    },
    fail: {
      from: ['open'],
      to: ['failed'],
      why: 'No executor came of it: its process ended before it registered, or it never did.',
    },
  },
})
export type SpawnState = (typeof spawnMachine.states)[number]

export interface SpawnPolicy {
  /** Executors of the queue at once that were started so. */
  readonly max: number
  /** Runs at once of each. */
  readonly slots: number
  /** How long the oldest run must have waited. */
  readonly afterMs: number
  /** How long after one was started the next is. */
  readonly cooldownMs: number
  /** How long one may take to register. */
  readonly startByMs: number
}

/** What a queue looks like, as `GET /v1/queues/:queue` says it. */
export interface QueueLoad {
  readonly waiting: number
  readonly oldestWaitMs: number
  readonly capacity: number
  readonly free: number
}

/** What has been started for a queue before. */
export interface SpawnHistory {
  readonly open: number
  /** Those of them that have not registered. */
  readonly starting: number
  readonly lastAt: number | null
  /** How many of the newest failed, one after another, and when the newest of them was settled. */
  readonly failures: number
  readonly failedAt: number | null
}

export type SpawnDecision =
  | { readonly spawn: true; readonly reason: string }
  | { readonly spawn: false; readonly reason: string }

const BACKOFF_MAX_MS = 600_000

/** How long after the n-th failure in a row nothing is started. */
export const spawnBackoffMs = (failures: number, cooldownMs: number): number =>
  failures === 0
    ? 0
    : Math.max(
        cooldownMs,
        growingDelayMs(failures, {
          firstMs: 2 * Math.max(1_000, cooldownMs),
          maxMs: BACKOFF_MAX_MS,
        }),
      )

/** Whether an instant is less than so long ago; one in the future was written by a clock that was ahead, and says nothing. */
const within = (now: number, at: number | null, ms: number): boolean =>
  at !== null && at <= now && now - at < ms

export const decideSpawn = (
  { waiting, oldestWaitMs, capacity, free }: QueueLoad,
  { open, starting, lastAt, failures, failedAt }: SpawnHistory,
  { max, slots, afterMs, cooldownMs }: SpawnPolicy,
  now: number,
): SpawnDecision => {
  const no = (reason: string): SpawnDecision => ({ spawn: false, reason })
  if (waiting === 0) return no('nothing waits')
  if (free > 0) return no(`${free} of ${capacity} slots are free`)
  if (oldestWaitMs < afterMs)
    return no(`the oldest run has waited for ${inWords(oldestWaitMs)}, of ${inWords(afterMs)}`)
  if (open >= max) return no(`${open} of at most ${max} that were started are there`)
  if (starting * slots >= waiting)
    return no(`${starting} that are on their way have room for the ${waiting} that wait`)
  const backoffMs = spawnBackoffMs(failures, cooldownMs)
  if (within(now, failedAt, backoffMs))
    return no(`the last ${failures} came to nothing; none is started for ${inWords(backoffMs)}`)
  if (within(now, lastAt, cooldownMs))
    return no(`the last was started less than ${inWords(cooldownMs)} ago`)
  const slotsFull =
    capacity === 0 ? 'no executor serves the queue' : `none of ${capacity} slots is free`
  return {
    spawn: true,
    reason: `${waiting} runs wait, the oldest for ${inWords(oldestWaitMs)}, and ${slotsFull}`,
  }
}

/** An executor that its spawner has started, as it sees it: on its own clock, and by what the server says of the session. */
export interface Spawned {
  readonly startedAt: number
  readonly seen: 'starting' | 'live' | 'ended'
  /** When it was told to stop. */
  readonly toldAt: number | null
}

/** What is done with one whose process is alive. */
export const judgeSpawned = (
  { startedAt, seen, toldAt }: Spawned,
  { startByMs, stopMs }: { readonly startByMs: number; readonly stopMs: number },
  now: number,
): 'leave' | 'tell' | 'kill' => {
  if (toldAt !== null) return now - toldAt >= stopMs ? 'kill' : 'leave'
  if (seen === 'starting') return now - startedAt >= startByMs ? 'kill' : 'leave'
  return seen === 'ended' ? 'tell' : 'leave'
}

// what passes between a spawner and the engine

export interface BeginSpawn extends SpawnPolicy {
  readonly queue: string
  readonly spawner: string
  readonly kind: string
  /** Sessions that this spawner has started and whose processes are alive. */
  readonly mine: readonly string[]
}

export interface BegunSpawn {
  /** The session that is to be started, if one is. */
  readonly session: string | null
  /** Why it is, or why none is. */
  readonly reason: string
  readonly mine: readonly { readonly session: string; readonly seen: Spawned['seen'] }[]
}

/** The engine as a spawner sees it. */
export interface SpawnPort {
  begin(request: BeginSpawn): Promise<BegunSpawn>
  /** Says that exactly the process of this session is gone, with the evidence. A repeat is a no-op. */
  settle(session: string, evidence: string): Promise<void>
}
