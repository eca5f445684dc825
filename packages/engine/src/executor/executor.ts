// An executor: claims runs and drives them within its slots, keeps its session's lease, and lets go of everything when it
// stops. Its coordinator (`model/coordinator.ts`) is the single owner of jobs, slots and markers; one synchronous turn
// decides. Here is its life: idle, starting, running, draining, stopped.
import { LeaseholdError } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import { makeCoordinator } from '../model/coordinator.ts'
import { clearMarkers } from './preparing/clean-up.ts'
import type { Core, Drive, ExecutorState, Session } from './core.ts'
import { drain } from './draining.ts'
import { LogSending } from './logs/log-sending.ts'
import type { ExecutorOptions } from './options.ts'
import { mustEndBefore, mustIsolateAll, mustSandboxAll } from './options.ts'
import { poll } from './polling.ts'
import { recover, recoverPods } from './preparing/recovery.ts'
import { register, watchLease } from './session/session.ts'
import type { ExecutorStatus } from './status.ts'
import { statusOf } from './status.ts'
import { makeTurns } from './driving/turns.ts'
import { definitionsOf } from './authoring/workflow.ts'

export type { ExecutorOptions } from './options.ts'
export type { ExecutorState } from './core.ts'
export type { ExecutorStatus } from './status.ts'

export interface Executor {
  readonly state: ExecutorState
  start(): Promise<void>
  /** Drains, hands back what is left, closes the session. A second call gets the first one's promise. */
  stop(options?: { readonly exiting?: boolean }): Promise<void>
  status(): ExecutorStatus
  /** Changes a class's limit; work in progress is never stopped by it. */
  setSlots(slotClass: string, limit: number): void
  /** Somebody has seen to what this run left here: its slots are free again. How many there were. */
  clear(run: string): number
}

export const makeExecutor = (options: ExecutorOptions): Executor => {
  mustEndBefore(options)
  definitionsOf(options.workflows)
  mustIsolateAll(options)
  const core = makeCore(options, () => void executor.stop())
  const { coordinator } = core
  let polling: Promise<void> | null = null
  let stopped: Promise<void> | null = null
  let starting: Promise<Session> | null = null
  const isStarting = (): boolean => core.state === 'starting'
  const recoverThenPoll = async (): Promise<void> => {
    if (options.scratch && core.session) await recover(core, core.session)
    await poll(core)
  }

  const executor: Executor = {
    get state() {
      return core.state
    },
    async start() {
      if (core.state !== 'idle')
        throw new LeaseholdError(
          'draining',
          `the executor is ${core.state}; make a new one to start again`,
          { state: core.state },
        )
      core.state = 'starting'
      const sandboxes = mustSandboxAll(options)
      starting = sandboxes === null ? register(core) : sandboxes.then(() => register(core))
      try {
        core.session = await starting
      } catch (error) {
        if (isStarting()) core.state = 'idle'
        throw error
      }
      if (!isStarting())
        throw new LeaseholdError('draining', 'the executor was stopped while it registered')
      core.state = 'running'
      watchLease(core)
      void recoverPods(core, core.session)
      // what an earlier life could not release is known before anything is claimed
      polling = recoverThenPoll().catch((error: unknown) =>
        core.stopForGood('executor.poll_failed', error),
      )
    },
    stop({ exiting = true } = {}) {
      if (stopped) return stopped
      if (core.state === 'idle') {
        core.state = 'stopped'
        stopped = Promise.resolve()
        return stopped
      }
      const registered = isStarting() ? starting : null
      core.state = 'draining'
      // a registration under way is waited for, so that its session is closed and not left to its lease
      stopped = (registered ?? Promise.resolve()).then(
        () => drain(core, polling, exiting),
        () => {
          core.state = 'stopped'
        },
      )
      return stopped
    },
    status: () => statusOf(core),
    clear: (run) => clearMarkers(core, run),
    setSlots(slotClass, limit) {
      coordinator.setLimit(slotClass, limit)
      core.wakePoll?.()
      core.wider?.(false)
    },
  }
  return executor
}

const makeCore = (options: ExecutorOptions, stop: () => void): Core => {
  const { log, timers } = options.ports
  const coordinator = makeCoordinator<Drive>(options.slots ?? { default: 10 }, (job) =>
    Object.assign(job, { work: null }),
  )
  for (const { definition } of options.workflows) coordinator.ensure(definition.slotClass)
  const core: Core = {
    options,
    coordinator,
    workflows: new Map(options.workflows.map((each) => [`${each.name}@${each.version}`, each])),
    turns: makeTurns(timers),
    logs: new LogSending({
      send: (session, parts) => options.port.logs(session, parts),
      ports: options.ports,
      secrets: options.secrets ?? [],
    }),
    stopping: new AbortController(),
    state: 'idle',
    session: null,
    pollInProgress: false,
    stoppedBecause: null,
    wakePoll: null,
    wider: null,
    settledOne: null,
    cancelFence: null,
    warnedUnknownCall: false,
    statusText: () => JSON.stringify(statusOf(core)),
    stopForGood(event, error) {
      log.error(event, { error })
      core.stoppedBecause ??= messageOf(error)
      stop()
      options.onStopped?.(error instanceof Error ? error : new Error(messageOf(error)))
    },
  }
  return core
}
