// A spawner: asks its engine whether an executor is to be started, starts it, and settles what became of it. Executors end by
// themselves when they are idle; one that does not come, or whose session is over, is ended. Nothing outlives it: when it stops, so
// do they, and each is settled by the end of its process.
import type { Ports } from '../../kernel/ports.ts'
import { seldom } from '../../kernel/seldom.ts'
import { sleep } from '../../kernel/timers.ts'
import type { SpawnPolicy, SpawnPort } from '../../model/spawn.ts'
import { judgeSpawned } from '../../model/spawn.ts'

/** An executor that was started, as the place where it runs knows it. */
export interface StartedExecutor {
  /** Tells it to stop in order. */
  tell(): void
  /** Ends it with all that it started. */
  kill(): void
  /** How it is known that nothing of it is left. */
  readonly gone: Promise<string>
}

/** Where executors are started: processes of this host, or whatever has this port. */
export interface Starter {
  readonly kind: string
  start(order: {
    readonly session: string
    readonly queue: string
    readonly slots: number
    readonly startByMs: number
  }): Promise<StartedExecutor>
}

export interface SpawnerOptions {
  readonly port: SpawnPort
  readonly starter: Starter
  readonly ports: Pick<Ports, 'time' | 'timers' | 'log'>
  /** Names it among those that spawn. */
  readonly name: string
  readonly queue: string
  readonly policy: SpawnPolicy
  /** How long an executor may take from being told to stop until it is killed. */
  readonly stopMs: number
  /** How often the queue is looked at. Default 1 s. */
  readonly lookMs?: number
  /** Hears of each one that is started, and of its end. */
  readonly tell?: (sentence: string) => void
}

export interface Spawner {
  /** Sessions whose executors are alive here. */
  readonly alive: readonly string[]
  /** Ends all that it has started, and settles it. A second call gets the first one's promise. */
  stop(): Promise<void>
}

interface Child {
  readonly startedAt: number
  readonly executor: StartedExecutor
  seen: 'starting' | 'live' | 'ended'
  toldAt: number | null
  killed: boolean
}

const LOOK_MS = 1_000
const SETTLE_AGAIN_MS = 500
/** How long a stop goes on telling what has ended to a server that does not answer: it finds out by itself later. */
const SETTLE_FOR_MS = 10_000

export const startSpawner = ({
  port,
  starter,
  ports: { time, timers, log },
  name,
  queue,
  policy,
  stopMs,
  lookMs = LOOK_MS,
  tell = () => undefined,
}: SpawnerOptions): Spawner => {
  const children = new Map<string, Child>()
  const ending = new Set<Promise<void>>()
  const stopping = new AbortController()
  const say = seldom(log, time, 'warn')
  let stopBy = Number.POSITIVE_INFINITY
  let stopped: Promise<void> | null = null

  /** Tells the engine until it has heard; what it never hears it finds by the session's lease. */
  const settle = async (session: string, evidence: string): Promise<void> => {
    for (;;)
      try {
        return await port.settle(session, evidence)
      } catch (error) {
        say('spawn.not_settled', session, { session, error })
        if (time.mono() >= stopBy) return
        await sleep(timers, SETTLE_AGAIN_MS)
      }
  }

  const follow = (work: Promise<void>): void => {
    const done = work
      .catch((error: unknown) => log.error('spawn.defect', { queue, error }))
      .finally(() => ending.delete(done))
    ending.add(done)
  }

  const start = async (session: string, reason: string): Promise<void> => {
    const { slots, startByMs } = policy
    let executor: StartedExecutor
    try {
      executor = await starter.start({ session, queue, slots, startByMs })
    } catch (error) {
      log.warn('spawn.not_started', { session, error })
      follow(settle(session, `it could not be started: ${(error as Error).message}`))
      return
    }
    const child: Child = {
      startedAt: time.mono(),
      executor,
      seen: 'starting',
      toldAt: null,
      killed: false,
    }
    children.set(session, child)
    tell(`${session} is started: ${reason}`)
    follow(
      executor.gone.then((evidence) => {
        children.delete(session)
        tell(`${session} is gone: ${evidence}`)
        return settle(session, evidence)
      }),
    )
    // it was told while this one was on its way
    if (stopping.signal.aborted) end(child)
  }

  const end = (child: Child): void => {
    if (child.toldAt !== null) return
    child.toldAt = time.mono()
    child.executor.tell()
  }

  /** Ends those that do not do what they were started for. */
  const judge = (): void => {
    const limits = { startByMs: policy.startByMs + lookMs, stopMs }
    for (const [session, child] of children) {
      const what = judgeSpawned(child, limits, time.mono())
      if (what === 'tell') end(child)
      if (what !== 'kill' || child.killed) continue
      log.warn('spawn.killed', { session, seen: child.seen })
      child.killed = true
      child.executor.kill()
    }
  }

  const look = async (): Promise<void> => {
    const mine = [...children.keys()]
    const begun = await port.begin({ ...policy, queue, spawner: name, kind: starter.kind, mine })
    for (const { session, seen } of begun.mine) {
      const child = children.get(session)
      if (child) child.seen = seen
    }
    if (begun.session !== null) await start(begun.session, begun.reason)
  }

  const going = (async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await look()
      } catch (error) {
        say('spawn.not_asked', queue, { queue, error })
      }
      judge()
      await sleep(timers, lookMs, stopping.signal)
    }
  })()

  const stop = async (): Promise<void> => {
    stopping.abort()
    await going
    for (const child of children.values()) end(child)
    stopBy = time.mono() + stopMs + SETTLE_FOR_MS
    const over = new AbortController()
    const judging = (async (): Promise<void> => {
      while ((await sleep(timers, lookMs, over.signal)) === 'slept') judge()
    })()
    while (ending.size > 0) await Promise.all(ending)
    over.abort()
    await judging
  }

  return {
    get alive() {
      return [...children.keys()]
    },
    stop: () => (stopped ??= stop()),
  }
}
