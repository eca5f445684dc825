// The loss of the fence, driven across every handler of the server: each route and message of executors, by each way in, and
// each kind of sink. The tables here are typed by those of the source, so that a new one fails until it is driven too.
import { SMTPServer } from 'smtp-server'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { call } from '../../src/client/call.ts'
import type { Call } from '../../src/client/call.ts'
import type { LeaseholdError } from '../../src/kernel/errors.ts'
import { StaleAttemptError } from '../../src/kernel/errors.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemTime } from '../../src/kernel/time.ts'
import type { Outgoing } from '../../src/kernel/outgoing.ts'
import type { Sent, Sink } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { SinkConfig } from '../../src/model/sinks.ts'
import type {
  AttemptWrite,
  ClaimedRun,
  EndReport,
  ExecutorPort,
  Told,
} from '../../src/model/work.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import { makeSinks } from '../../src/orchestrator/sinks/sinks.ts'
import type { executorRoutes } from '../../src/protocol/executor-routes.ts'
import type { Route } from '../../src/protocol/route.ts'
import type { RouteName } from '../../src/protocol/routes.ts'
import { routes } from '../../src/protocol/routes.ts'
import { askedTypes } from '../../src/protocol/socket-messages.ts'
import type { Claimed } from '../../src/transitions/deliver.ts'
import { claimDeliveries, recordDeliveries } from '../../src/transitions/deliver.ts'
import { settled } from '../support/ports.ts'
import type { Session, TestStore } from '../support/store.ts'
import { entry, only, openStore, registration } from '../support/store.ts'
import { wayInto, ways } from '../support/ways.ts'

let t: TestStore
const ends: (() => unknown)[] = []
const opened = async (options: Parameters<typeof openStore>[0] = {}): Promise<TestStore> => {
  const made = await openStore(options)
  ends.push(() => made.close())
  return made
}
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A run that `first` has held as `stale`, and that has another attempt, or is over, since. */
interface Scene {
  readonly port: ExecutorPort
  readonly first: Session
  readonly stale: ClaimedRun
  /** A token for the stale attempt, from when it was held. */
  readonly token: string
  /** A route, called over HTTP. */
  http<N extends RouteName>(name: N, what: Call, token?: string): Promise<unknown>
}

/** What was thrown is the error of a fence that was lost, and nothing else. */
const refusedAs = async (asked: Promise<unknown>): Promise<{ code: string }> => {
  const error: unknown = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(StaleAttemptError)
  return { code: (error as LeaseholdError).code }
}

const STALE = { code: 'stale_attempt' }

const endReports: { readonly [K in EndReport['kind']]: Extract<EndReport, { kind: K }> } = {
  complete: { kind: 'complete', output: '1' },
  continue: { kind: 'continue', input: '1', runId: 'run_next' },
  fail: { kind: 'fail', reason: 'error', note: 'x', error: '{}' },
  suspend: { kind: 'suspend', keys: ['nap'] },
  hand_back: { kind: 'hand_back', reason: 'late' },
  park: { kind: 'park', reason: 'nondeterminism', note: 'x' },
  stale: { kind: 'stale', note: 'x' },
  revoke: { kind: 'revoke', reason: 'step', note: 'x' },
  lose: { kind: 'lose', note: 'x' },
}
const child = { id: 'run_child', workflow: 'w', input: '1', awaited: true } as const
const written: {
  readonly [K in Exclude<keyof AttemptWrite, 'run' | 'attempt' | 'end'>]-?: AttemptWrite[K]
} = {
  entries: [entry(1, 'late')],
  waits: [
    { key: 'nap', kind: 'time', dueInMs: 1 },
    { key: 'child', kind: 'child', child: { ...child, onParentEnd: 'cancel' } },
  ],
  closes: ['nap'],
  spawns: [{ ...child, awaited: false, onParentEnd: 'detach', as: 'child' }],
  state: '1',
  progress: '{}',
  stream: [{ stream: 's', seq: 1, data: '1' }],
  firstReason: 'shutdown',
  phase: 'launched',
  look: true,
}

/** Every write that an attempt can make, as one that holds nothing any more. */
const lateWrites = async ({ first, stale }: Scene): Promise<unknown[]> => {
  const writes = [
    ...Object.entries(written).map(([key, value]) => ({ [key]: value })),
    ...Object.values(endReports).map((end) => ({ end })),
  ] as readonly Partial<AttemptWrite>[]
  const answers = await Promise.all(writes.map((write) => first.write(stale, write)))
  // an attempt whose end was a hand-back may say so again, and gets the first answer
  return answers.filter((_answer, i) => writes[i]?.end?.kind !== 'hand_back')
}

interface Driven {
  /** What its caller is told. */
  readonly drive: (scene: Scene) => Promise<unknown>
  readonly expect: unknown
  /** Where its own session has the run again, if that is another. */
  readonly again?: unknown
  /** Where what is driven changes something itself: another’s doing, or the end of the session that has the run again. */
  readonly changes?: 'always' | 'again'
}

/** Each route of executors, called for an attempt that has lost its run. */
const driven: {
  readonly [K in keyof typeof executorRoutes | 'beginSpawn' | 'settleSpawn']: Driven
} = {
  register: {
    drive: async ({ first, port }) => {
      const { ok } = await port.register(registration(first.id))
      return { ok }
    },
    expect: { ok: true },
  },
  claim: {
    drive: async ({ first, stale }) => {
      const answer = await first.claimAnswer(10, { claim: 1 })
      return (
        answer.ok &&
        answer.runs.some(({ run, attempt }) => run === stale.run && attempt === stale.attempt)
      )
    },
    expect: false,
  },
  write: {
    drive: lateWrites,
    expect: [...Object.keys(written), ...Object.keys(endReports)]
      .slice(1)
      .map(() => expect.objectContaining({ ok: false, ...STALE })),
  },
  renew: {
    drive: async ({ first, stale }) => {
      const mine = { run: stale.run, attempt: stale.attempt }
      const answer = await first.renew({
        letGo: [{ ...mine, reason: 'late' }],
        held: { claim: 1, runs: [mine] },
      })
      await settled()
      return answer.ok && answer.pending
    },
    expect: [],
  },
  close: {
    drive: async ({ first, stale, port }) => {
      const answer = await port.close({ session: first.id, reason: 'stopped', except: [stale.run] })
      return answer
    },
    expect: { ok: true, handedBack: 0 },
  },
  logs: {
    // lines of what it did hold are kept; of what another has held since they are not its to tell
    drive: ({ port, first, stale }) => {
      const attempt = t.run(stale.run)['session'] === first.id ? 99 : stale.attempt + 1
      const line = { n: 1, at: 1, source: 'log', text: 'x', facts: null } as const
      return port.logs(first.id, [{ run: stale.run, attempt, lines: [line] }])
    },
    expect: { ok: true, kept: 0 },
  },
  journal: {
    // what it asks for is of the run, which its session may read while it holds it
    drive: ({ port, first, stale }) =>
      t.run(stale.run)['session'] === first.id
        ? port.journal(first.id, stale.run, 0)
        : refusedAs(port.journal(first.id, stale.run, 0)),
    expect: STALE,
    again: [],
  },
  grant: {
    drive: ({ http, first, stale }) =>
      refusedAs(
        http('grant', {
          body: {
            session: first.id,
            run: stale.run,
            attempt: stale.attempt,
            runner: 'ses_own',
            startByMs: 1_000,
          },
        }),
      ),
    expect: STALE,
  },
  adopt: {
    drive: ({ http, stale, token }) =>
      refusedAs(
        http(
          'adopt',
          { body: { session: `own_${stale.run}`, run: stale.run, attempt: stale.attempt } },
          token,
        ),
      ),
    expect: STALE,
  },
  exited: {
    drive: async ({ http, first }) => {
      await http('exited', { body: { session: first.id, evidence: 'its process ended' } })
      await t.pass('reap-sessions')
      return null
    },
    expect: null,
    changes: 'again',
  },
  beginSpawn: {
    drive: async ({ http, first }) => {
      const policy = { max: 0, slots: 1, afterMs: 0, cooldownMs: 0, startByMs: 1 }
      const answer = await http('beginSpawn', {
        body: { ...policy, queue: 'none', spawner: 's', kind: 'process', mine: [first.id] },
      })
      return (answer as { session: unknown }).session
    },
    expect: null,
  },
  settleSpawn: {
    // no session but those that were started so can be settled
    drive: async ({ http, first }) => {
      const error: unknown = await http('settleSpawn', {
        params: { session: first.id },
        body: { evidence: 'its process ended' },
      }).catch((thrown: unknown) => thrown)
      return { code: (error as LeaseholdError).code }
    },
    expect: { code: 'not_found' },
  },
  listen: {
    drive: async ({ port, first, stale }) => {
      const told: Told[] = []
      const leave = port.listen(first.id, (each) => void told.push(each))
      await settled()
      await t.engine.cancel({ run: stale.run, by: 'ada', reason: null })
      await settled()
      leave()
      return told.filter(({ attempt }) => attempt === stale.attempt)
    },
    expect: [],
    changes: 'always',
  },
}

/** Messages over a WebSocket beside the routes: those that are routes in other words, and what is driven by which. */
const messages: Readonly<Record<string, keyof typeof executorRoutes>> = {
  'session:register': 'register',
  'session:ready': 'claim',
  'session:busy': 'claim',
  'session:renew': 'renew',
  'session:close': 'close',
  'run:accept': 'claim',
  'run:reject': 'claim',
  'run:checkpoint': 'write',
  'run:journal': 'journal',
  'run:logs': 'logs',
}

/** How a run is taken from an attempt: what it came to since. */
const losses: Readonly<
  Record<string, (scene: Pick<Scene, 'first' | 'stale'>, second: Session) => Promise<unknown>>
> = {
  'another session has it': async ({ stale }, second) => {
    await t.engine.takeFrom(stale.run, 'ada', 'late')
    await t.pass('wake-due')
    only(await second.claim())
  },
  'the same session has it again': async ({ first, stale }) => {
    await t.engine.takeFrom(stale.run, 'ada', 'late')
    await t.pass('wake-due')
    only(await first.claim())
  },
  'nobody has it': ({ stale }) => t.engine.takeFrom(stale.run, 'ada', 'late'),
  'it is over': async ({ stale }) => {
    await t.engine.takeFrom(stale.run, 'ada', 'late')
    await t.engine.cancel({ run: stale.run, by: 'ada', reason: null })
  },
}

const rows = (): unknown =>
  Object.fromEntries(
    [
      'runs',
      'steps',
      'waits',
      'attempts',
      'orders',
      'events',
      'receipts',
      'streams',
      'attempt_logs',
    ].map((table) => [
      table,
      t
        .sql(`select * from ${table}`)
        .map((row) => JSON.stringify(row))
        .sort(),
    ]),
  )

describe('RAIL-06 whoever calls for an attempt that holds nothing any more', () => {
  it('RAIL-06 every route of executors, and every message of theirs, is driven', () => {
    const ofExecutors = (Object.keys(routes) as RouteName[]).filter((name) => {
      const { role, refusals }: Route = routes[name]
      return role === 'executor' || refusals.includes('stale_attempt')
    })
    expect(Object.keys(driven).sort()).toEqual(ofExecutors.sort())
    expect(Object.keys(messages).sort()).toEqual([...askedTypes].sort())
  })

  it.each(ways)(
    'RAIL-06 is told so by every route, in the same words by %s, and changes nothing',
    async (way) => {
      t = await opened()
      const handler = makeHandler(t.engine)
      ends.push(() => handler.stop())
      const timers = t.clock.timers()
      for (const [loss, lose] of Object.entries(losses))
        for (const [name, { drive, expect: usual, again = usual, changes }] of Object.entries(
          driven,
        )) {
          const port = wayInto(t, way)
          const first = await t.session({ port })
          const second = await t.session()
          const run = await t.start('w')
          const stale = only(await first.claim())
          const http: Scene['http'] = (route, what, token) =>
            call(
              {
                url: 'http://localhost',
                token: token ?? null,
                actor: null,
                timers,
                fetch: (url, init) => handler.fetch(new Request(url, init)),
              },
              route,
              what,
            )
          const runner = await t.session({ id: `own_${run}`, definitions: [] })
          const granted = (await http('grant', {
            body: {
              session: first.id,
              run,
              attempt: stale.attempt,
              runner: runner.id,
              startByMs: 60_000,
            },
          })) as { token: string }
          const scene: Scene = { port, first, stale, token: granted.token, http }
          await lose(scene, second)
          await settled()
          const before = rows()
          const itself = t.run(run)['session'] === first.id
          const expected = itself ? again : usual
          expect(await drive(scene), `${name} where ${loss}`).toEqual(expected)
          if (changes !== 'always' && !(changes === 'again' && itself))
            expect(rows(), `${name} where ${loss}`).toEqual(before)
          for (const session of [first, second, runner]) await t.kill(session)
          await t.engine.cancel({ run, by: 'ada', reason: null })
        }
    },
  )
})

/** The sink of each kind as it is, on a network that answers. */
const outgoing: Outgoing = () =>
  Promise.resolve({ status: 201, headers: {}, body: '{}', cut: false })
const common = { name: 'ops', kinds: noticeKinds }
const sinkConfigs: {
  readonly [K in SinkConfig['type']]: () => Promise<Extract<SinkConfig, { type: K }>>
} = {
  log: () => Promise.resolve({ ...common, type: 'log' }),
  webhook: () =>
    Promise.resolve({
      ...common,
      type: 'webhook',
      url: 'https://hooks.example',
      secrets: ['s'],
      allowPrivate: false,
    }),
  github: () =>
    Promise.resolve({
      ...common,
      type: 'github',
      api: 'https://forge.example',
      repository: 'a/b',
      issue: 1,
      auth: { token: 't' },
      allowPrivate: false,
    }),
  async smtp() {
    const server = new SMTPServer({ disabledCommands: ['AUTH', 'STARTTLS'] })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ends.push(() => new Promise<void>((resolve) => server.close(resolve)))
    const { port } = server.server.address() as AddressInfo
    return {
      ...common,
      type: 'smtp',
      url: `smtp://127.0.0.1:${port}`,
      password: null,
      from: 'a@example.org',
      to: 'b@example.org',
    }
  },
}

describe('RAIL-06 a sink that is sent to under a claim that another server has since', () => {
  it.each(Object.keys(sinkConfigs) as SinkConfig['type'][])(
    'RAIL-06 RAIL-04 has its late answer counted for nothing, whatever it is: %s',
    async (type) => {
      const warned: string[] = []
      const log = { ...noLog, warn: (event: string) => void warned.push(event) }
      const config = await sinkConfigs[type]()
      const [real] = (await makeSinks(
        [config],
        { time: systemTime, log: noLog },
        outgoing,
        5_000,
      )) as [Sink]
      let sent: Sent | undefined
      let others: Claimed | undefined
      const slow: Sink = {
        ...real,
        async send(message, signal) {
          sent = await real.send(message, signal)
          // while it was sent its claim has lapsed, and another server has the delivery; by the clock of this one there is
          // time left, so that nothing but the claim stands against the answer
          t.sql(`update deliveries set due_at = 0 where state = 'sending' returning id`)
          const { claimed } = await t.engine.store.run((tx) =>
            claimDeliveries(tx, 'ops', 'other', t.engine.settings),
          )
          others = only(claimed)
          return sent
        },
      }
      t = await opened({ sinks: [slow], log })
      await t.pass('relay')
      const session = await t.session()
      await t.start('w')
      await session.end(only(await session.claim()), endReports.fail)
      const stored = (): unknown =>
        t.sql('select state, claim, refusals, error, note from deliveries')
      await t.settle('relay')
      // the relay records beside its passes
      await vi.waitFor(() => expect(warned).toContain('delivery.claim_lost'), 60_000)
      expect(sent).toMatchObject({ ok: true })
      expect(stored()).toEqual([
        { state: 'sending', claim: 2, refusals: 0, error: null, note: null },
      ])

      // and what the other server records stands
      const { id, claim } = others as Claimed
      const came = { how: 'refused', why: 'gone', forGood: true, afterMs: 0 } as const
      await t.engine.store.run((tx) =>
        recordDeliveries(tx, [{ id, claim, came }], t.engine.settings),
      )
      expect(stored()).toEqual([
        { state: 'dead', claim: 2, refusals: 1, error: 'gone', note: null },
      ])
      expect(t.sql('select * from receipts')).toEqual([])
    },
  )
})
