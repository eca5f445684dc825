import { afterEach, expect, test } from 'vitest'
import type { Hands, TestEngine } from '../../test/support/engine.ts'
import { definition, hands, openTestEngine } from '../../test/support/engine.ts'
import type { TestPorts } from '../../test/support/ports.ts'
import { testPorts } from '../../test/support/ports.ts'
import type { StartCommand } from '../model/start.ts'
import type { ClaimedRun, EndReport, WaitRecord } from '../model/work.ts'
import { pauseLine } from '../transitions/pause-line.ts'
import { setLimit } from '../transitions/set-limit.ts'
import { park } from '../transitions/park.ts'
import { admit } from '../transitions/admit.ts'
import { endOnEvidence } from '../transitions/end-session.ts'
import { explain } from './explain.ts'

const opened: TestEngine[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

interface World extends TestEngine, TestPorts {
  readonly executor: Hands
  start(id: string, more?: Partial<StartCommand>): Promise<void>
  why(
    id: string,
  ): Promise<{ sentence: string; codes: string[]; evidence: object; since: number | null }>
  suspend(run: ClaimedRun, waits: readonly WaitRecord[]): Promise<void>
}

const world = async (): Promise<World> => {
  const ports = testPorts()
  const test = await openTestEngine(ports.ports)
  opened.push(test)
  const executor = await hands(test.port, 'ses_1', [
    definition('hello'),
    definition('child'),
    definition('one', { limits: [{ key: 'customer:{id}', value: 1 }] }),
  ])
  return {
    ...test,
    ...ports,
    executor,
    async start(id, more = {}) {
      const answer = await test.engine.start({
        command: { id, workflow: 'hello', input: null, ...more },
      })
      if (!answer.ok) throw new Error(answer.message)
    },
    async why(id) {
      const found = await test.engine.read((tx) => explain(tx, id, test.engine.settings))
      if (!found) throw new Error(`there is no ${id}`)
      return {
        sentence: found.sentence,
        codes: found.conditions.map(({ code }) => code),
        evidence: found.conditions[0]?.evidence ?? {},
        since: found.conditions[0]?.since ?? null,
      }
    },
    async suspend(run, waits) {
      const end: EndReport = { kind: 'suspend', keys: waits.map(({ key }) => key) }
      const answer = await test.port.write('ses_1', {
        run: run.run,
        attempt: run.attempt,
        entries: [],
        waits,
        end,
      })
      if (!answer.ok) throw new Error(answer.message)
    },
  }
}

const first = async (executor: Hands): Promise<ClaimedRun> => {
  const [run] = await executor.claim(1)
  if (!run) throw new Error('nothing was claimed')
  return run
}

test('RUN-36 a queued run says how many are ahead of it, and what keeps claims away', async () => {
  const { start, why, engine } = await world()
  await start('run_a')
  await start('run_b')
  expect(await why('run_b')).toMatchObject({ codes: ['queued'], evidence: { ahead: 1 } })
  await engine.act((tx) =>
    pauseLine(tx, {
      kind: 'queue',
      name: 'default',
      by: 'ada',
      why: 'deploy',
      until: null,
      forMs: 60_000,
    }),
  )
  const paused = await why('run_b')
  expect(paused).toMatchObject({ codes: ['queue_paused', 'queued'], evidence: { by: 'ada' } })
  expect(paused.sentence).toContain('paused by ada')
  expect(paused.sentence).toContain('deploy')
})

test('RUN-36 a run that nobody serves says which executor is missing', async () => {
  const { start, why, engine } = await world()
  await start('run_a', { labels: ['gpu'] })
  expect(await why('run_a')).toMatchObject({ codes: ['no_executor', 'queued'] })
  const lane = JSON.stringify(['default', 'hello', '1', 'gpu'])
  await engine.act((tx) => park(tx, lane, 'no live executor has the labels gpu', 10))
  const parked = await why('run_a')
  expect(parked.codes).toEqual(['no_executor'])
  expect(parked.sentence).toContain('no live executor has the labels gpu')
})

test('RUN-36 RUN-12 a held run names its holder, since when, until when, and its last progress', async () => {
  const { start, why, executor, advance, ports, engine } = await world()
  await start('run_a')
  const run = await first(executor)
  const leasedAt = ports.time.now()
  await advance(1_000)
  await executor.step(run, 1, 'a', 1)
  await advance(1_000)
  const held = await why('run_a')
  expect(held).toMatchObject({
    codes: ['held', 'no_progress_since'],
    since: leasedAt,
    evidence: { session: 'ses_1', attempt: 1, leaseUntil: leasedAt + 30_000 },
  })
  expect(held.sentence).toContain('ses_1')
  const progress = await engine.read((tx) => explain(tx, 'run_a', engine.settings))
  expect(progress?.conditions[1]).toMatchObject({
    code: 'no_progress_since',
    since: leasedAt + 1_000,
    evidence: { session: 'ses_1' },
  })
  await engine.pause('run_a', 'ben', null)
  expect((await why('run_a')).codes).toEqual(['held', 'pause_asked', 'no_progress_since'])
  await engine.cancel({ run: 'run_a', by: 'ada', reason: null })
  expect(await why('run_a')).toMatchObject({
    codes: ['canceling', 'held', 'no_progress_since'],
    evidence: { by: 'ada', graceUntil: ports.time.now() + 30_000 },
  })
  await engine.store.run((tx) => endOnEvidence(tx, 'ses_1', 'exit code 137'))
  const orphan = await engine.read((tx) => explain(tx, 'run_a', engine.settings))
  expect(orphan?.conditions[1]).toMatchObject({ code: 'holder_ended' })
  expect(orphan?.conditions[1]?.sentence).toContain('exit code 137')
})

test('RUN-36 a run at a full limit says its value, who holds it, and its place in line', async () => {
  const { start, why, engine } = await world()
  const one = { workflow: 'one', input: '{"id":"7"}' }
  await start('run_a', one)
  await start('run_b', one)
  await start('run_c', one)
  const full = await why('run_c')
  expect(full).toMatchObject({
    codes: ['limit_full'],
    evidence: { limit: 'customer:7', value: 1, used: 1, place: 2, holders: [{ run: 'run_a' }] },
  })
  expect(full.sentence).toContain('held by run_a (queued)')
  expect(full.sentence).toContain('number 2 in line')
  await engine.act((tx) =>
    setLimit(tx, { key: 'customer:7', value: 2, mode: 'while_held', weight: null, by: 'ada' }),
  )
  expect(await why('run_b')).toMatchObject({ codes: ['admission', 'in_line'] })
  await engine.act((tx) => admit(tx, new Map([['customer:7', 9]])))
  expect((await why('run_b')).codes).toEqual(['queued'])
  expect(await why('run_c')).toMatchObject({
    codes: ['limit_full'],
    evidence: { value: 2, used: 2, place: 1 },
  })
})

test('RUN-36 every wait is named with what would end it', async () => {
  const { start, why, executor, suspend, ports } = await world()
  const now = ports.time.now()
  const waits: readonly [string, WaitRecord, string, object][] = [
    ['run_a', { key: 'nap', kind: 'time', dueInMs: 5_000 }, 'sleeping', { dueAt: now + 5_000 }],
    ['run_b', { key: 'go', kind: 'signal', name: 'go' }, 'signal', { name: 'go' }],
    [
      'run_c',
      {
        key: 'ship',
        kind: 'approval',
        dueInMs: 60_000,
        approval: { prompt: 'Ship?', data: null, deciders: ['ada', 'ben'] },
      },
      'approval',
      { approval: 'run_c:ship', deadline: now + 60_000, deciders: ['ada', 'ben'] },
    ],
    [
      'run_e',
      {
        key: 'call',
        kind: 'retry',
        dueInMs: 9_000,
        tries: 2,
        error: '{"message":"no route"}',
      },
      'step_retry',
      { tries: 2, error: { message: 'no route' } },
    ],
    [
      'run_d',
      {
        key: 'kid',
        kind: 'child',
        child: {
          id: 'run_kid',
          workflow: 'child',
          input: null,
          awaited: true,
          onParentEnd: 'cancel',
        },
      },
      'child',
      { child: 'run_kid', status: 'queued' },
    ],
  ]
  for (const [id, wait, code, evidence] of waits) {
    await start(id)
    await suspend(await first(executor), [wait])
    expect(await why(id)).toMatchObject({ codes: [code], evidence, since: now })
  }
  expect((await why('run_c')).sentence).toContain('ada, ben may decide')
})

test('RUN-36 a run that waits for its instant, was delayed or parked says until when, and by whom', async () => {
  const { start, why, executor, engine, ports } = await world()
  const now = ports.time.now()
  await start('run_a', { delayMs: 60_000 })
  expect(await why('run_a')).toMatchObject({
    codes: ['delayed'],
    evidence: { until: now + 60_000 },
  })
  await start('run_b')
  await executor.end(await first(executor), {
    kind: 'fail',
    reason: 'error',
    note: 'the disk was full',
    error: '{}',
    retryInMs: 4_000,
  })
  const retried = await why('run_b')
  expect(retried).toMatchObject({ codes: ['retry_backoff'], evidence: { until: now + 4_000 } })
  expect(retried.sentence).toContain('the disk was full')
  await start('run_c')
  await engine.pause('run_c', 'ada', 'lunch')
  const paused = await why('run_c')
  expect(paused).toMatchObject({ codes: ['paused'], since: now, evidence: { by: 'ada' } })
  expect(paused.sentence).toContain('paused by ada: lunch')
  await start('run_d')
  await executor.end(await first(executor), {
    kind: 'park',
    reason: 'nondeterminism',
    note: 'the journal has a, the function asked for b',
  })
  expect((await why('run_d')).sentence).toContain('the function asked for b')
  await engine.cancel({ run: 'run_d', by: 'ada', reason: null })
  expect((await why('run_d')).codes).toEqual(['ended'])
  expect(await engine.read((tx) => explain(tx, 'run_none', engine.settings))).toBeUndefined()
})
