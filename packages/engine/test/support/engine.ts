// An engine in memory, with its loops, for tests of what stands around it; and the hands of a simple executor.
import type { Ports } from '../../src/kernel/ports.ts'
import type { Definition } from '../../src/model/definition.ts'
import type { Settings } from '../../src/model/settings.ts'
import { defaults } from '../../src/model/settings.ts'
import type {
  ClaimedRun,
  ClaimOk,
  EndReport,
  ExecutorPort,
  WriteAnswer,
} from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { openEngine } from '../../src/orchestrator/engine.ts'
import { executorPort } from '../../src/orchestrator/executor-port.ts'
import type { Loops } from '../../src/orchestrator/upkeep.ts'
import { startLoops } from '../../src/orchestrator/upkeep.ts'
import { migrateSqlite } from '../../src/store/migrate.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { registration } from './store.ts'

export interface TestEngine {
  readonly engine: Engine
  readonly store: SqliteStore
  /** The way in of executors in other processes. */
  readonly port: ExecutorPort
  /** Null where the engine was opened without. */
  readonly loops: Loops | null
  close(): Promise<void>
}

export const openTestEngine = async (
  ports: Ports,
  options: { readonly loops?: boolean; readonly settings?: Partial<Settings> } = {},
): Promise<TestEngine> => {
  const store = openSqlite(':memory:', ports, { synchronous: 'OFF' })
  migrateSqlite(store.db, ports.time.now())
  const engine = await openEngine({
    store,
    ports,
    settings: { ...defaults, ...options.settings },
  })
  const loops = options.loops === true ? startLoops(engine, 'self') : null
  return {
    engine,
    store,
    port: executorPort(engine, { process: 'test', embedded: false }),
    loops,
    async close() {
      await loops?.stop()
      await engine.idle()
      await store.close()
    },
  }
}

export const definition = (workflow: string, more: Partial<Definition> = {}): Definition => ({
  workflow,
  version: '1',
  queue: 'default',
  labels: [],
  input: null,
  output: null,
  limits: [],
  totalLimitMs: null,
  attemptLimitMs: null,
  startByMs: null,
  retry: null,
  onEnd: null,
  slotClass: 'default',
  isolation: 'inline',
  ...more,
})

/** A session that claims and writes when it is told to. */
export interface Hands {
  readonly session: string
  claim(most?: number): Promise<readonly ClaimedRun[]>
  end(run: ClaimedRun, end: EndReport): Promise<WriteAnswer>
  step(run: ClaimedRun, n: number, key: string, output: unknown): Promise<WriteAnswer>
}

export const hands = async (
  port: ExecutorPort,
  session: string,
  definitions: readonly Definition[],
  more: { readonly queues?: readonly string[]; readonly labels?: readonly string[] } = {},
): Promise<Hands> => {
  const registered = await port.register(
    registration(session, {
      host: 'here',
      queues: more.queues ?? [],
      labels: more.labels ?? [],
      capacity: 100,
      definitions,
    }),
  )
  if (!registered.ok) throw new Error(registered.message)
  let claims = 0
  return {
    session,
    async claim(most = 10) {
      claims += 1
      const answer = await port.claim({ session, claim: claims, most, except: [], waitMs: 0 })
      if (!answer.ok) throw new Error(`${answer.code}: ${answer.message}`)
      return (answer as ClaimOk).runs
    },
    end: (run, end) =>
      port.write(session, { run: run.run, attempt: run.attempt, entries: [], end }),
    step: (run, n, key, output) =>
      port.write(session, {
        run: run.run,
        attempt: run.attempt,
        entries: [{ n, key, kind: 'step', at: n, output: JSON.stringify(output), error: null }],
      }),
  }
}
