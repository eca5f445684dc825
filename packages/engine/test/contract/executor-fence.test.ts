// The loss of the fence, driven across every verb of an author's context, by each way in: whatever a function catches, it does
// not catch that. A verb that is new fails here until it is driven too.
import { afterEach, describe, expect, it } from 'vitest'
import type { Context } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Message, Sink } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import { finish } from '../../src/store/sql.ts'
import { putPause } from '../../src/store/tables/limits.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'
import { wayInto, ways } from '../support/ways.ts'

let t: TestStore
afterEach(() => t.close())

const sinkThat = (hears: (message: Message) => void): Sink => ({
  name: 'ops',
  type: 'test',
  kinds: noticeKinds,
  send(message) {
    hears(message)
    return Promise.resolve({ ok: true, note: 'heard' })
  },
})

/** Each verb of a context, as an author calls it who catches whatever it throws. */
const other = workflow('other', () => 1)
const verbs: {
  readonly [K in Exclude<keyof Context, 'info' | 'abort'>]: (ctx: Context) => unknown
} = {
  step: (ctx) =>
    ctx.step('a', () => 1, { retry: { maxAttempts: 9 }, retryIf: (error) => error !== undefined }),
  sleep: (ctx) => ctx.sleep('a', '1s'),
  sleepUntil: (ctx) => ctx.sleepUntil('a', ctx.now() + 1_000),
  signal: (ctx) => ctx.signal('a', { timeout: '1s' }),
  approval: (ctx) => ctx.approval('a', { prompt: 'May it?' }),
  run: (ctx) => ctx.run(other, undefined),
  spawn: (ctx) => ctx.spawn(other, undefined),
  continueAs: (ctx) => ctx.continueAs(1),
  setState: (ctx) => ctx.setState(1),
  map: (ctx) => ctx.map('a', [1, 2], (inner, item) => inner.step('x', () => item)),
  mapSettled: (ctx) => ctx.mapSettled('a', [1, 2], (inner, item) => inner.step('x', () => item)),
  scope: (ctx) => ctx.scope('a', (inner) => inner.step('x', () => 1)),
  all: (ctx) =>
    ctx.all('a', { x: (inner) => inner.step('x', () => 1), y: (inner) => inner.sleep('y', '1s') }),
  race: (ctx) =>
    ctx.race('a', { x: (inner) => inner.step('x', () => 1), y: (inner) => inner.sleep('y', '1s') }),
  any: (ctx) =>
    ctx.any('a', { x: (inner) => inner.step('x', () => 1), y: (inner) => inner.sleep('y', '1s') }),
  patched: (ctx) => ctx.patched('a'),
  prepared: (ctx) => ctx.prepared(),
  now: (ctx) => ctx.now(),
  random: (ctx) => ctx.random(),
  uuid: (ctx) => ctx.uuid(),
  log: (ctx) => ctx.log('a'),
  progress: (ctx) => ctx.progress(1, 2),
}
/** A function goes on behind these while they are written: its end is what the fence refuses then. */
const passable: readonly string[] = [
  'step',
  'spawn',
  'continueAs',
  'setState',
  'map',
  'mapSettled',
  'scope',
  'patched',
  'prepared',
  'now',
  'random',
  'uuid',
  'log',
  'progress',
]

describe('RAIL-06 an author’s function whose attempt has lost its run', () => {
  it.each([...ways, 'a process of its own'] as const)(
    'RAIL-06 catches nothing of it in any verb, and nothing is recorded, charged or reported as its failure: by %s',
    async (way) => {
      const told: Message[] = []
      t = await openStore({ sinks: [sinkThat((message) => void told.push(message))] })
      await t.pass('relay')
      const known = new Set<string>()
      const caught: unknown[] = []
      const passed: string[] = []
      const isolation = way === 'a process of its own' ? 'process' : 'inline'
      const workflows = Object.entries(verbs).map(([name, verb]) =>
        workflow({ name, retry: { maxAttempts: 5 }, isolation }, async (ctx) => {
          for (const each of Object.getOwnPropertyNames(Object.getPrototypeOf(ctx))) known.add(each)
          try {
            await verb(ctx)
            passed.push(name)
          } catch (error) {
            caught.push(error)
          }
          return name
        }),
      )
      const real = way === 'a process of its own' ? t.port : wayInto(t, way)
      const claimed: string[] = []
      const all = gate()
      const taken = new Set<string>()
      const port: ExecutorPort = {
        ...real,
        async claim(request, signal) {
          const answer = await real.claim(request, signal)
          if (answer.ok) claimed.push(...answer.runs.map(({ run }) => run))
          if (claimed.length === workflows.length) all.open()
          return answer
        },
        // what it writes first finds that the run was taken since, and it is not given again
        async write(session, write) {
          await all.opened
          if (!taken.has(write.run)) {
            taken.add(write.run)
            await t.engine.store.run(() => finish(putPause('queue', 'default', 'ada', null, null)))
            expect(await t.engine.takeFrom(write.run, 'ada', 'late')).toMatchObject({ ok: true })
          }
          return real.write(session, write)
        },
      }
      const x = executorOn(
        { ...t, opened: { ...t.opened, remote: port } },
        { workflows: [...workflows, other], slots: { default: 40 } },
      )
      await x.executor.start()
      const runs = await Promise.all(workflows.map(({ name }) => t.start(name)))
      await advance(t, 0)
      await t.settle('relay')
      expect(
        [...known].filter((each) => !['constructor', 'info', 'abort'].includes(each)).sort(),
      ).toEqual(Object.keys(verbs).sort())
      expect([...taken].sort()).toEqual(runs.sort())
      expect(caught).toEqual([])
      expect(passed.filter((name) => !passable.includes(name))).toEqual([])
      expect(t.sql('select * from steps')).toEqual([])
      expect(t.sql('select * from waits')).toEqual([])
      expect(t.sql('select distinct "end", reason from attempts where attempt = 1')).toEqual([
        { end: 'handed_back', reason: 'operator' },
      ])
      expect(t.sql('select distinct failures, losses, error from runs')).toEqual([
        { failures: 0, losses: 0, error: null },
      ])
      expect(x.logged.filter(({ level }) => level === 'error')).toEqual([])
      expect(told).toEqual([])
      void x.executor.stop()
      await advance(t, 30_000)
    },
  )
})
