// An engine for the public cases: the real store, loops and ports on a virtual clock, with sessions that a test drives by
// hand, executors that can be killed or cut off, a store's clock that can jump, and faults inside a transaction.
import type Database from 'better-sqlite3'
import { expect } from 'vitest'
import type { Executor, ExecutorOptions } from '../../src/executor/executor.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import type { AnyWorkflow } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import { encode } from '../../src/kernel/json.ts'
import type { Log } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { Time } from '../../src/kernel/time.ts'
import type { Settings } from '../../src/model/settings.ts'
import type { StartCommand } from '../../src/model/start.ts'
import type {
  AttemptWrite,
  ClaimedRun,
  ClaimOk,
  EndReport,
  Entry,
  ExecutorPort,
  RenewAnswer,
  RenewRequest,
  WriteAnswer,
} from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import type { VirtualClock } from '../../src/testing/clock.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import type { RunView } from '../../src/testing/inspect.ts'
import { inspect } from '../../src/testing/inspect.ts'
import { registration } from './store.ts'

export const LEASE_MS = 2_000
export const SWEEP_MS = 500
const START = Date.UTC(2026, 0, 1)

export interface BenchOptions {
  readonly settings?: Partial<Settings>
  readonly file?: string
  readonly seed?: number
  /** Loops pass only when the test says so. */
  readonly manual?: boolean
  /** The clock of an earlier bench, so that one on the same file goes on where that one stopped. */
  readonly clock?: VirtualClock
}

/** A session whose every call the test makes. */
export interface Hand {
  readonly id: string
  readonly port: ExecutorPort
  claim(most?: number): Promise<readonly ClaimedRun[]>
  /** The claim as it was asked for, to be sent again under its number. */
  claimNumbered(claim: number, most?: number): ReturnType<ExecutorPort['claim']>
  write(
    claimed: Held,
    write: Omit<AttemptWrite, 'run' | 'attempt' | 'entries'> & { entries?: readonly Entry[] },
  ): Promise<WriteAnswer>
  end(claimed: Held, end: EndReport): Promise<WriteAnswer>
  renew(more?: Partial<RenewRequest>): Promise<RenewAnswer>
  close(): Promise<void>
}
export type Held = Pick<ClaimedRun, 'run' | 'attempt'>

/** An executor with a process of its own, which can be killed, or cut off from the engine. */
export interface Process {
  readonly executor: Executor
  kill(): void
  /** Calls neither leave nor arrive until it is false again. */
  cut: boolean
  /** Called around each call: may throw, delay, or keep an answer back. */
  around: (<T>(name: keyof ExecutorPort, call: () => Promise<T>) => Promise<T>) | null
}

export interface ProcessOptions extends Partial<
  Omit<ExecutorOptions, 'port' | 'ports' | 'workflows'>
> {
  readonly embedded?: boolean
  /** How far its wall clock is off, in milliseconds. */
  readonly skew?: number
}

export interface Bench {
  readonly engine: Engine
  readonly opened: Opened
  readonly clock: VirtualClock
  readonly db: Database.Database
  readonly ports: Ports
  readonly lines: { level: string; event: string; facts: Readonly<Record<string, unknown>> }[]
  now(): number
  /** The wall clock of the store jumps by so much; monotonic time goes on. */
  jump(ms: number): void
  hand(
    workflows: readonly AnyWorkflow[],
    options?: { embedded?: boolean; labels?: readonly string[] },
  ): Promise<Hand>
  process(workflows: readonly AnyWorkflow[], options?: ProcessOptions): Promise<Process>
  start(
    workflow: AnyWorkflow | string,
    input?: unknown,
    more?: Partial<StartCommand>,
  ): Promise<string>
  get(run: string): Promise<RunView>
  attempts(run: string): ReturnType<typeof inspect.attempts>
  journal(run: string): Promise<Entry[]>
  /** Lets happen what happens now. */
  settle(): Promise<void>
  /** Moves time on, stopping at each timer. */
  advance(ms: number): Promise<void>
  /** Moves time on until it is so, at most `ms`; answers the milliseconds that it took. */
  until(what: () => Promise<boolean> | boolean, ms: number): Promise<number>
  /** One pass of a loop, by its name; all of them without a name. */
  pass(name?: string): Promise<void>
  /** Every row of every table but what loops note of themselves. */
  dump(): string
  /** Units held of a limit. */
  used(key: string): number
  count(sql: string, ...params: unknown[]): number
  /** Each such statement fails inside its transaction, until the returned function is called. */
  fail(when: string, condition?: string): () => void
  close(): Promise<void>
}

export const definitionOnly = (
  name: string,
  more: Partial<Parameters<typeof workflow>[0] & object> = {},
): AnyWorkflow => workflow({ name, ...more }, () => undefined)

export const openBench = async (options: BenchOptions = {}): Promise<Bench> => {
  const clock = options.clock ?? virtualClock(START)
  let offset = 0
  const time: Time = { now: () => clock.time.now() + offset, mono: () => clock.time.mono() }
  const random = seededRandom(options.seed ?? 7)
  const lines: Bench['lines'] = []
  const say =
    (level: string) =>
    (event: string, facts: Readonly<Record<string, unknown>> = {}): void => {
      lines.push({ level, event, facts })
    }
  const log: Log = {
    debug: say('debug'),
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
  }
  const timers = clock.timers()
  const ports: Ports = { time, timers, random, ids: mintIds(clock.time, random), log }
  const opened = await openOnSqlite({
    file: options.file ?? ':memory:',
    ports,
    synchronous: 'OFF',
    manualLoops: options.manual ?? false,
    settings: { leaseMs: LEASE_MS, renewMs: 600, sweepMs: SWEEP_MS, ...options.settings },
  })
  const { engine, loops } = opened
  const { db } = engine.store as SqliteStore
  const processes: { executor: Executor; dead: boolean }[] = []
  let sessions = 0
  let triggers = 0

  const settle = async (): Promise<void> => {
    let still = 0
    for (let i = 0; i < 20_000 && still < 6; i++) {
      await new Promise((resolve) => setImmediate(resolve))
      await engine.idle()
      const due = clock.next()
      if (due !== null && due <= clock.time.now()) {
        clock.moveTo(clock.time.now())
        still = 0
      } else still = clock.pending === 0 ? still + 1 : 0
    }
  }
  const step = async (end: number): Promise<void> => {
    const next = clock.next()
    clock.moveTo(next === null ? end : Math.max(clock.time.now(), Math.min(next, end)))
    await settle()
  }

  const bench: Bench = {
    engine,
    opened,
    clock,
    db,
    ports,
    lines,
    now: () => time.now(),
    jump(ms) {
      offset += ms
    },

    async hand(workflows, { embedded = false, labels = [] } = {}) {
      const port = embedded ? opened.embedded : opened.remote
      const id = `ses_hand${++sessions}`
      const answer = await port.register(
        registration(id, {
          pid: sessions,
          labels,
          capacity: 100,
          definitions: workflows.map((each) => each.definition),
        }),
      )
      expect(answer.ok).toBe(true)
      let claims = 0
      const hand: Hand = {
        id,
        port,
        async claim(most = 10) {
          const answer = await hand.claimNumbered(++claims, most)
          if (!answer.ok) throw new Error(answer.message)
          return (answer satisfies ClaimOk).runs
        },
        claimNumbered: (claim, most = 10) =>
          port.claim({ session: id, claim, most, except: [], waitMs: 0 }),
        write: (claimed, write) =>
          port.write(id, { entries: [], ...write, run: claimed.run, attempt: claimed.attempt }),
        end: (claimed, end) => hand.write(claimed, { end }),
        renew: (more = {}) =>
          port.renew({ session: id, draining: false, status: null, letGo: [], ...more }),
        async close() {
          await port.close({ session: id, reason: 'test' })
        },
      }
      return hand
    },

    async process(workflows, { embedded = false, skew = 0, ...more } = {}) {
      const own = clock.timers()
      const through = embedded ? opened.embedded : opened.remote
      const state = { dead: false }
      const call = async <T>(name: keyof ExecutorPort, make: () => Promise<T>): Promise<T> => {
        const lost = (): Promise<T> => new Promise<T>(() => undefined)
        if (state.dead) return lost()
        if (made.cut) throw new Error('the network is cut')
        const answer = await (made.around ? made.around(name, make) : make())
        if (state.dead) return lost()
        if (made.cut) throw new Error('the network is cut')
        return answer
      }
      const port: ExecutorPort = {
        register: (request) => call('register', () => through.register(request)),
        claim: (request, signal) => call('claim', () => through.claim(request, signal)),
        journal: (session, run, after) =>
          call('journal', () => through.journal(session, run, after)),
        write: (session, write) => call('write', () => through.write(session, write)),
        renew: (request) => call('renew', () => through.renew(request)),
        close: (request) => call('close', () => through.close(request)),
        logs: (session, parts) => call('logs', () => through.logs(session, parts)),
        listen: (session, tell) =>
          through.listen(session, (told) => !state.dead && !made.cut && tell(told)),
      }
      const executor = makeExecutor({
        port,
        ports: {
          ...ports,
          timers: own,
          time: { now: () => clock.time.now() + skew, mono: () => clock.time.mono() },
        },
        workflows,
        ...more,
      })
      const made: Process = {
        executor,
        cut: false,
        around: null,
        kill() {
          state.dead = true
          own.kill()
        },
      }
      processes.push({
        executor,
        get dead() {
          return state.dead
        },
      })
      await executor.start()
      return made
    },

    async start(what, input = null, more = {}) {
      const answer = await engine.start({
        command: {
          id: ports.ids.next('run'),
          workflow: typeof what === 'string' ? what : what.name,
          input: encode(input),
          ...more,
        },
      })
      if (!answer.ok) throw new Error(`${answer.code}: ${answer.message}`)
      return answer.id
    },
    get: (run) => inspect.run(engine, run),
    attempts: (run) => inspect.attempts(engine, run),
    journal: (run) => inspect.journal(engine, run),
    settle,
    async advance(ms) {
      const end = clock.time.now() + ms
      await settle()
      while (clock.time.now() < end) await step(end)
    },
    async until(what, ms) {
      const began = clock.time.now()
      await settle()
      while (!(await what())) {
        if (clock.time.now() - began >= ms) throw new Error(`it is not so after ${ms} ms`)
        await step(began + ms)
      }
      return clock.time.now() - began
    },
    async pass(name) {
      const named = loops.all.filter((loop) => name === undefined || loop.name === name)
      if (named.length === 0) throw new Error(`there is no loop ${name}`)
      for (const loop of named) await loop.once()
      await settle()
    },
    dump() {
      const tables = db
        .prepare(
          "select name from sqlite_master where type = 'table' and name not in ('sweeps') order by name",
        )
        .all() as { name: string }[]
      return JSON.stringify(
        tables.map(({ name }) => [name, db.prepare(`select * from ${name}`).all()]),
      )
    },
    used: (key) =>
      bench.count(
        `select coalesce(sum(case l.key when r.limit_a then r.units_a when r.limit_b then r.units_b else 1 end), 0) from runs r join limits l on l.key = ?
          where l.key in (r.limit_owner, r.limit_global, r.limit_a, r.limit_b)
            and (r.slot_state = 3 or r.slot_state = case l.mode when 'whole_run' then 1 else 2 end)`,
        key,
      ),
    count: (sql, ...params) =>
      db
        .prepare(sql)
        .pluck()
        .get(...params) as number,
    fail(when, condition = '1') {
      const name = `broken_${++triggers}`
      db.exec(
        `create temp trigger ${name} before ${when} when ${condition} begin select raise(abort, 'broken on purpose'); end`,
      )
      return () => void db.exec(`drop trigger if exists ${name}`)
    },
    async close() {
      for (const { executor, dead } of processes) {
        if (dead) continue
        let done = false
        const stopping = executor.stop().then(() => {
          done = true
        })
        for (let i = 0; i < 2_000 && !done; i++) {
          await new Promise((resolve) => setImmediate(resolve))
          const next = clock.next()
          if (i > 20 && next !== null) clock.moveTo(Math.min(next, clock.time.now() + 60_000))
        }
        await stopping
      }
      await opened.close()
      timers.kill()
    },
  }
  return bench
}

/** An entry of the journal as a scripted holder writes it. */
export const entry = (
  n: number,
  key: string,
  output: unknown = null,
  kind: Entry['kind'] = 'step',
): Entry => ({
  n,
  key,
  kind,
  at: 0,
  output: encode(output),
  error: null,
})

export const complete = (output: unknown = null): EndReport => ({
  kind: 'complete',
  output: encode(output),
})
export const failed = (message: string, retryInMs?: number): EndReport => ({
  kind: 'fail',
  reason: 'error',
  note: message,
  error: JSON.stringify({ name: 'Error', message }),
  ...(retryInMs === undefined ? {} : { retryInMs }),
})

/** A promise and what settles it. */
export const gate = <T = void>(): { readonly opened: Promise<T>; open(value: T): void } => {
  let open: (value: T) => void = () => undefined
  const opened = new Promise<T>((resolve) => {
    open = resolve
  })
  return { opened, open: (value) => open(value) }
}
