// Executors on a test store, each behind a port that a test can cut, hold back or look at. Time moves when it is told.
import type { Executor, ExecutorOptions } from '../../src/executor/executor.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import type { AnyWorkflow } from '../../src/executor/authoring/context.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import type { Facts, Log } from '../../src/kernel/log.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { ProcessesInMemory } from '../../src/testing/processes.ts'
import { processesInMemory } from '../../src/testing/processes.ts'
import type { TestStore } from './store.ts'
import { settled } from './ports.ts'

type Call = 'register' | 'claim' | 'journal' | 'write' | 'renew' | 'close' | 'logs'

export interface Logged {
  readonly level: string
  readonly event: string
  readonly facts: Facts
}

export interface TestExecutor {
  readonly executor: Executor
  /** Those of its isolated attempts. */
  readonly processes: ProcessesInMemory
  /** Calls that were made, in order, with what was sent. */
  readonly calls: { readonly call: Call; readonly sent: unknown }[]
  readonly logged: Logged[]
  /** What happens to a call from here on: an error instead of it, or in place of its answer. */
  cut: Partial<Record<Call, 'before' | 'after' | 'never' | undefined>>
  count(call: Call): number
}

interface Options extends Partial<Omit<ExecutorOptions, 'port' | 'ports' | 'workflows'>> {
  readonly workflows: readonly AnyWorkflow[]
  readonly embedded?: boolean
  readonly error?: () => Error
  /** The number of the first process that drives an isolated attempt. */
  readonly firstPid?: number
  readonly seed?: number
  /** A claim that is cut short fails, as a request over a network does, instead of being answered. */
  readonly cutFails?: boolean
}

export const executorOn = (t: TestStore, options: Options): TestExecutor => {
  const {
    workflows,
    embedded = false,
    error,
    seed = 7,
    firstPid = 100,
    cutFails,
    ...rest
  } = options
  const real = embedded ? t.opened.embedded : t.opened.remote
  const logged: Logged[] = []
  const note =
    (level: string) =>
    (event: string, facts: Facts = {}): void =>
      void logged.push({ level, event, facts })
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  } as Log
  const made: TestExecutor = {
    executor: undefined as unknown as Executor,
    processes: undefined as unknown as ProcessesInMemory,
    calls: [],
    logged,
    cut: {},
    count: (call) => made.calls.filter((each) => each.call === call).length,
  }
  const through = async <T>(call: Call, sent: unknown, go: () => Promise<T>): Promise<T> => {
    made.calls.push({ call, sent })
    const how = made.cut[call]
    if (how === 'never') return new Promise(() => undefined)
    if (how === 'before') throw error?.() ?? new Error(`${call} did not arrive`)
    const answer = await go()
    if (how === 'after') throw error?.() ?? new Error(`the answer of ${call} did not arrive`)
    return answer
  }
  const port: ExecutorPort = {
    register: (request) => through('register', request, () => real.register(request)),
    claim: (request, signal) =>
      through('claim', request, async () => {
        const answer = await real.claim(request, signal)
        if (cutFails === true) signal?.throwIfAborted()
        return answer
      }),
    journal: (session, run, after) =>
      through('journal', { run, after }, () => real.journal(session, run, after)),
    write: (session, write) => through('write', write, () => real.write(session, write)),
    renew: (request) => through('renew', request, () => real.renew(request)),
    close: (request) => through('close', request, () => real.close(request)),
    logs: (session, parts) => through('logs', { session, parts }, () => real.logs(session, parts)),
    listen: (session, tell) => real.listen(session, tell),
  }
  const random = seededRandom(seed)
  const { time } = t.clock
  const ids = mintIds(time, random)
  const ports = { time, timers: t.clock.timers(), random, ids, log }
  const processes = processesInMemory(workflows, ports, { first: firstPid })
  const executor = makeExecutor({
    port,
    ports,
    workflows,
    processes,
    ...rest,
  })
  return Object.assign(made, { executor, processes })
}

/** Moves time on, stopping at each timer, with turns of the event loop between. */
export const advance = async (t: TestStore, ms: number): Promise<void> => {
  const until = t.clock.time.mono() + ms
  await settled(30)
  for (;;) {
    const next = t.clock.next()
    if (next === null || next > until) break
    t.clock.moveTo(next)
    await settled(30)
  }
  t.clock.moveTo(until)
  await settled(30)
}

/** A body that settles when the test says so. */
export const gate = <T = void>() => {
  let open: (value: T) => void = () => undefined
  let fail: (error: unknown) => void = () => undefined
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open: (value: T) => open(value), fail: (error: unknown) => fail(error) }
}
