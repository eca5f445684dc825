// A store with its engine for tests of what it promises: SQLite in memory, a clock that moves when told, loops that pass
// when told, and sessions whose every call is made by hand.
import { mintIds } from '../../src/kernel/ids.ts'
import type { Log } from '../../src/kernel/log.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import type { Definition } from '../../src/model/definition.ts'
import type { Sink } from '../../src/model/delivery.ts'
import type { Settings } from '../../src/model/settings.ts'
import type { Shard } from '../../src/model/shard.ts'
import type { StartCommand } from '../../src/model/start.ts'
import type {
  AttemptWrite,
  ClaimAnswer,
  ClaimedRun,
  ClaimRequest,
  EndReport,
  Entry,
  ExecutorPort,
  RegisterAnswer,
  RenewAnswer,
  RenewRequest,
  WriteAnswer,
  RegisterRequest,
} from '../../src/model/work.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import { openOnSqlite } from '../../src/orchestrator/open.ts'
import { keep } from '../../src/store/keep.ts'
import type { SqliteStore } from '../../src/store/sqlite.ts'
import type { Param } from '../../src/store/sql.ts'
import { endOnEvidence } from '../../src/transitions/end-session.ts'
import type { StartAnswer } from '../../src/transitions/start.ts'
import type { VirtualClock } from '../../src/testing/clock.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import type { Shards } from '../../src/orchestrator/shards/shards.ts'
import { databases, engineOver, homeOf, joined } from './store-of-several.ts'
import { postgresUrl, testSchema } from './postgres.ts'
import { NOW } from './run.ts'

export type Row = Readonly<Record<string, string | number | null>>

export interface TestStore {
  readonly opened: Opened
  readonly engine: Engine
  readonly clock: VirtualClock
  readonly port: ExecutorPort
  /** All that it is joined of, where the project's tests run on several databases. */
  readonly shards: Shards | null
  /** Rows of the database as they are. */
  sql(text: string, ...params: Param[]): Row[]
  run(id: string): Row
  start(workflow: string, command?: Partial<StartCommand>): Promise<string>
  startAnswer(workflow: string, command?: Partial<StartCommand>): Promise<StartAnswer>
  session(options?: SessionOptions): Promise<Session>
  /** Passes of these loops, or of all, until none of them has anything left to do. */
  settle(...loops: string[]): Promise<void>
  /** One pass of each of these loops, or of all. */
  pass(...loops: string[]): Promise<void>
  /** Moves time without letting anything happen. */
  later(ms: number): void
  /** Ends a session as one whose process is proven gone, and takes back what it held. */
  kill(session: Session): Promise<void>
  close(): Promise<void>
}

export interface SessionOptions {
  readonly definitions?: readonly Definition[]
  readonly queues?: readonly string[]
  readonly labels?: readonly string[]
  readonly embedded?: boolean
  /** The way in that it takes, where another than the remote direct one. */
  readonly port?: ExecutorPort
  readonly id?: string
  readonly protocol?: number
}

/** A session that does what it is told, and nothing else. */
export interface Session {
  readonly id: string
  readonly answer: RegisterAnswer
  claimNo: number
  claim(most?: number, more?: Partial<ClaimRequest>): Promise<readonly ClaimedRun[]>
  claimAnswer(most?: number, more?: Partial<ClaimRequest>): Promise<ClaimAnswer>
  write(run: ClaimedRun, write: Partial<AttemptWrite>): Promise<WriteAnswer>
  checkpoint(run: ClaimedRun, ...keys: string[]): Promise<WriteAnswer>
  end(run: ClaimedRun, end: EndReport): Promise<WriteAnswer>
  complete(run: ClaimedRun, output?: unknown): Promise<WriteAnswer>
  renew(more?: Partial<RenewRequest>): Promise<RenewAnswer>
  closeSession(except?: readonly string[]): ReturnType<ExecutorPort['close']>
}

/** What a session says of itself: by default an executor of the workflow `w` with ten slots. */
export const registration = (
  session: string,
  more: Partial<RegisterRequest> = {},
): RegisterRequest => ({
  protocol: PROTOCOL_VERSION,
  session,
  build: 'test',
  host: 'host',
  pid: 1,
  queues: [],
  labels: [],
  capacity: 10,
  definitions: [definition('w')],
  ...more,
})

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

export const entry = (n: number, key = `s${n}`, more: Partial<Entry> = {}): Entry => ({
  n,
  key,
  kind: 'step',
  at: NOW,
  output: '1',
  error: null,
  ...more,
})

interface StoreOptions {
  readonly settings?: Partial<Settings>
  readonly file?: string
  readonly clock?: VirtualClock
  readonly log?: Log
  /** Where notices are sent. */
  readonly sinks?: readonly Sink[]
  /** In place of the store of this project's tests. */
  readonly on?: 'sqlite'
  /** Which of several databases that are joined as one store. */
  readonly shard?: Shard
}

export const openStore = async (options: StoreOptions = {}): Promise<TestStore> => {
  const clock = options.clock ?? virtualClock(NOW)
  const random = seededRandom(1)
  const ids = mintIds(clock.time, random)
  const ports = { time: clock.time, timers: clock.timers(), random, ids, log: options.log ?? noLog }
  // a file that is opened again is of one
  const one = options.shard !== undefined || options.file !== undefined || options.on !== undefined
  const count = one ? 1 : databases()
  const all: Database[] = []
  for (let number = 0; number < count; number++)
    all.push(
      await database({ ...options, ports, ...(count > 1 ? { shard: { number, count } } : {}) }),
    )
  const home = all[count > 1 ? homeOf(count) : 0] as Database
  const shards = count > 1 ? await joined(all.map(({ opened }) => opened)) : null
  const opened = home.opened
  const engine = shards === null ? opened.engine : engineOver(shards)
  const port = shards === null ? opened.remote : shards.port
  const others = all.filter((each) => each !== home)
  const sql = (text: string, ...params: Param[]): Row[] => {
    const found = home.sql(text, ...params)
    // what is of an owner may be on another
    for (const other of others) if (found.length === 0) found.push(...other.sql(text, ...params))
    return found
  }
  const pass = async (...names: string[]): Promise<number> => {
    let acted = 0
    for (const loop of all.flatMap((each) => each.opened.loops.all)) {
      if (names.length > 0 && !names.includes(loop.name)) continue
      const done = await loop.once()
      if (loop.name !== 'poll-lanes') acted += done.acted
    }
    return acted
  }
  const startAnswer = (
    workflow: string,
    command: Partial<StartCommand> = {},
  ): Promise<StartAnswer> =>
    engine.start({ command: { id: ids.next('run'), workflow, input: 'null', ...command } })

  const session = async (given: SessionOptions = {}): Promise<Session> => {
    const id = given.id ?? ids.next('ses')
    const way = given.port ?? (given.embedded === true ? opened.embedded : port)
    const answer = await way.register(
      registration(id, {
        protocol: given.protocol ?? PROTOCOL_VERSION,
        queues: given.queues ?? [],
        labels: given.labels ?? [],
        definitions: given.definitions ?? [definition('w')],
      }),
    )
    const made: Session = {
      id,
      answer,
      claimNo: 0,
      claimAnswer(most = 10, more = {}) {
        const claim = more.claim ?? ++made.claimNo
        return way.claim({ session: id, claim, most, except: [], waitMs: 0, ...more })
      },
      async claim(most, more) {
        const claimed = await made.claimAnswer(most, more)
        if (!claimed.ok) throw new Error(`${claimed.code}: ${claimed.message}`)
        return claimed.runs
      },
      write: (run, write) =>
        way.write(id, { run: run.run, attempt: run.attempt, entries: [], ...write }),
      checkpoint: (run, ...keys) =>
        made.write(run, { entries: keys.map((key, i) => entry(run.entries + i + 1, key)) }),
      end: (run, end) => made.write(run, { end }),
      complete: (run, output = null) =>
        made.end(run, { kind: 'complete', output: JSON.stringify(output) }),
      renew: (more = {}) =>
        way.renew({ session: id, draining: false, status: null, letGo: [], ...more }),
      closeSession: (except) =>
        way.close({ session: id, reason: 'stopped', ...(except ? { except } : {}) }),
    }
    return made
  }

  return {
    opened,
    engine,
    clock,
    port,
    shards,
    sql,
    run(id) {
      const [row] = sql('select * from runs where id = ?', id)
      if (!row) throw new Error(`there is no run ${id}`)
      return row
    },
    startAnswer,
    async start(workflow, command) {
      const answer = await startAnswer(workflow, command)
      if (!answer.ok) throw new Error(`${answer.code}: ${answer.message}`)
      return answer.id
    },
    session,
    async settle(...names) {
      for (let i = 0; i < 100; i++) if ((await pass(...names)) === 0) return
      throw new Error('the loops never come to rest')
    },
    pass: async (...names) => void (await pass(...names)),
    later: (ms) => clock.moveTo(clock.time.mono() + ms),
    async kill(dead) {
      for (const each of all)
        await each.opened.engine.act((tx) => endOnEvidence(tx, dead.id, 'the test killed it'))
      await pass('reap-sessions')
    },
    async close() {
      for (const each of all) await each.close()
    },
  }
}

interface Database {
  readonly opened: Opened
  sql(text: string, ...params: Param[]): Row[]
  close(): Promise<void>
}

/** The store of the tests of this process: SQLite in memory, or the PostgreSQL that they were given. */
const database = async ({
  file = ':memory:',
  settings = {},
  ports,
  on,
  sinks = [],
  shard,
}: StoreOptions & { readonly ports: Ports }): Promise<Database> => {
  const given = on === 'sqlite' ? null : postgresUrl()
  if (given !== null) {
    const { url, schema, psql, free } = testSchema(given)
    const opened = await openOnPostgres({
      url,
      ports,
      schema,
      settings,
      clockOfPorts: true,
      manualLoops: true,
      sinks,
      ...(shard ? { shard } : {}),
    })
    return {
      opened,
      sql: (text, ...params) => psql.query(text, params),
      async close() {
        await opened.close()
        free()
      },
    }
  }
  const opened = await openOnSqlite({
    file,
    ports,
    synchronous: 'OFF',
    manualLoops: true,
    settings,
    sinks,
    ...(shard ? { shard } : {}),
  })
  const { db } = opened.engine.store as SqliteStore
  const prepared = new Map<string, ReturnType<typeof db.prepare>>()
  return {
    opened,
    sql(text, ...params) {
      const found = prepared.get(text) ?? keep(db.prepare(text))
      prepared.set(text, found)
      return found.all(...params) as Row[]
    },
    close: () => opened.close(),
  }
}

/** The only one of a list; anything else is a mistake of the test. */
export const only = <T>(list: readonly T[]): T => {
  const [first] = list
  if (first === undefined || list.length !== 1) throw new Error(`${list.length} items, not one`)
  return first
}
