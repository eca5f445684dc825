// Two databases joined as one store, as tests of it begin with; either can be taken away.
import { onTestFinished } from 'vitest'
import type { StartCommand } from '../../src/model/start.ts'
import { shardOfOwner } from '../../src/model/shard.ts'
import type { ClaimedRun, RegisterRequest } from '../../src/model/work.ts'
import type { Shards } from '../../src/orchestrator/shards/shards.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import { joinShards } from '../../src/orchestrator/shards/shards.ts'
import { virtualClock } from '../../src/testing/clock.ts'
import { settled } from './ports.ts'
import { NOW } from './run.ts'
import type { TestStore } from './store.ts'
import { openStore, registration } from './store.ts'
import { takeable } from './takeable.ts'

export const COUNT = 2

export interface Joined {
  readonly shards: Shards
  /** Takes the database of a shard away, as seen from here, or brings it back. */
  away(shard: number, is: boolean): void
  /** Leaves it open without a word, or brings it back. */
  silent(shard: number, is: boolean): void
  /** What a shard is asked from now on is answered after this. */
  hold(shard: number, until: Promise<unknown>): void
  readonly stores: readonly TestStore[]
  start(workflow: string, command?: Partial<StartCommand>): Promise<string>
  register(session: string, more?: Partial<RegisterRequest>): ReturnType<Shards['port']['register']>
  claim(session: string, claim: number, most?: number): Promise<readonly ClaimedRun[]>
  complete(session: string, run: ClaimedRun): Promise<unknown>
  settle(): Promise<void>
  /** Until the databases have answered all that they were asked, save one that says nothing: then time may be moved. */
  answered(): Promise<void>
  statuses(): Promise<Record<string, number>>
}

/** An owner whose runs are on this shard. */
export const ownerOn = (shard: number, nth = 0): string => {
  const found = Array.from({ length: 100 }, (_, i) => `owner-${i}`).filter(
    (owner) => shardOfOwner(owner, COUNT) === shard,
  )[nth]
  if (found === undefined) throw new Error(`no owner is on shard ${shard}`)
  return found
}

/** `patienceMs`: time that a test moves itself tells nothing of a database that answers in its own. */
export const join = async ({ at = NOW, patienceMs = 1e9 } = {}): Promise<Joined> => {
  const clock = virtualClock(at)
  const stores: TestStore[] = []
  for (let i = 0; i < COUNT; i++) {
    const store = await openStore({ clock, shard: { number: i, count: COUNT } })
    stores.push(store)
    onTestFinished(() => store.close())
  }
  const [first] = stores as [TestStore]
  const seen = stores.map(({ opened }) => takeable(opened))
  const shards = await joinShards(
    seen.map(({ opened }) => opened),
    { patienceMs },
  )
  const { ids } = first.engine.ports
  return {
    shards,
    stores,
    away: (shard, is) => seen[shard]?.away(is),
    silent: (shard, is) => seen[shard]?.silent(is),
    hold: (shard, until) => seen[shard]?.hold(until),
    async start(name, command = {}) {
      const answer = await shards.start({
        command: { id: ids.next('run'), workflow: name, input: 'null', ...command },
      })
      if (!answer.ok) throw new Error(`${answer.code}: ${answer.message}`)
      return answer.id
    },
    register: (session, more = {}) => shards.port.register(registration(session, more)),
    async claim(session, claim, most = 10) {
      const answer = await shards.port.claim({ session, claim, most, except: [], waitMs: 0 })
      if (!answer.ok) throw new Error(`${answer.code}: ${answer.message}`)
      return answer.runs
    },
    complete: (session, run) =>
      shards.port.write(session, {
        run: run.run,
        attempt: run.attempt,
        entries: [],
        end: { kind: 'complete', output: '1' },
      }),
    async settle() {
      for (const store of stores) await store.settle()
    },
    async answered() {
      do await settled()
      while (seen.some(({ asked }) => asked > 0))
    },
    async statuses() {
      const counts = await shards.countRuns()
      return Object.fromEntries(
        counts.filter(({ count }) => count > 0).map(({ status, count }) => [status, count]),
      )
    },
  }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}
export interface Server extends Joined {
  readonly handler: Handler
  ask(method: string, path: string, body?: unknown, headers?: object): Promise<Answer>
  begin(owner: string | null, more?: object): Promise<string>
}

/** A server of two databases, with an executor on both. */
export const serve = async (options: Parameters<typeof join>[0] = {}): Promise<Server> => {
  const t = await join(options)
  const handler = makeHandler(t.shards.engines[0] as never, {
    shards: t.shards,
    hookSecrets: { shop: 'secret-of-the-shop' },
  })
  onTestFinished(() => handler.stop())
  const ask: Server['ask'] = async (method, path, body, headers = {}) => {
    const response = await handler.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: (text.startsWith('{') ? JSON.parse(text) : { text }) as Answer['body'],
    }
  }
  await ask('POST', '/v1/executor/register', registration('ses_a'))
  return {
    ...t,
    handler,
    ask,
    async begin(owner, more = {}) {
      const { status, body } = await ask('POST', '/v1/runs', {
        workflow: 'w',
        input: null,
        ...(owner === null ? {} : { owner }),
        ...more,
      })
      if (status !== 200) throw new Error(JSON.stringify(body))
      return String(body['id'])
    },
  }
}
