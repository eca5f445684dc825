// What functions write, from where it is written to where it is read: bounded, redacted, beside all else.
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Isolation } from '../../src/executor/authoring/isolation.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { logPage } from '../../src/queries/logs.ts'
import { advance, executorOn, gate } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore()))
afterEach(() => t.close())

const lines = async (run: string, attempt: number | null = null) =>
  (await t.engine.read((tx) => logPage(tx, run, attempt, { attempt: 0, n: 0 }, 10_000)))?.lines ??
  []
const texts = async (run: string, attempt: number | null = null) =>
  (await lines(run, attempt)).map(({ text }) => text)

/** Logs, then stands in a step until the test says so. */
const talker = (
  isolation: Isolation,
  log: (say: (text: string, facts?: object) => void) => void,
) => {
  const body = gate()
  const w = workflow({ name: 'w', isolation }, async (ctx) => {
    log((text, facts) => ctx.log(text, facts as Record<string, unknown> | undefined))
    await ctx.step('a', () => body.opened)
    ctx.log('after')
  })
  return { body, w }
}

test.each(['inline', 'process'] as const)(
  'EX-25 what a function logs is kept with its attempt, in its order, with its facts (%s)',
  async (isolation) => {
    const { body, w } = talker(isolation, (say) => {
      say('began', { of: 3, big: 10n })
      say('went on')
    })
    const x = executorOn(t, { workflows: [w] })
    await x.executor.start()
    const run = await t.start('w')
    await advance(t, 1_000)
    body.open()
    await advance(t, 1_000)
    expect(t.run(run)['status']).toBe('succeeded')
    const all = await lines(run)
    expect(
      all.map(({ n, attempt, source, text, dropped }) => [attempt, n, source, text, dropped]),
    ).toEqual([
      [1, 1, 'log', 'began', 0],
      [1, 2, 'log', 'went on', 0],
      [1, 3, 'log', 'after', 0],
    ])
    expect(JSON.parse(String(all[0]?.facts))).toEqual({ of: 3, big: '10n' })
    expect(x.logged.filter(({ event }) => event === 'run.log')).toHaveLength(3)
  },
)

test('EX-25 what an isolated process prints is kept up to the last line before it is killed, also one without an end', async () => {
  const { w } = talker('process', (say) => say('began'))
  const x = executorOn(t, { workflows: [w] })
  await x.executor.start()
  const run = await t.start('w')
  await advance(t, 1_000)
  const [process] = x.processes.all
  process?.print('one\ntw')
  process?.print('oops\n', 'stderr')
  process?.print('o\nlast words')
  process?.members.clear()
  process?.members.add('leader')
  process?.exit('its process was ended by SIGKILL')
  await advance(t, 2_000)
  expect((await lines(run, 1)).map(({ source, text }) => `${source} ${text}`)).toEqual([
    'log began',
    'stdout one',
    'stderr oops',
    'stdout two',
    'stdout last words',
  ])
})

test('EX-25 a flood is bounded: its beginning and its end are kept, the rest is counted, and who prints it waits', async () => {
  const { w } = talker('process', () => undefined)
  const x = executorOn(t, { workflows: [w] })
  await x.executor.start()
  const run = await t.start('w')
  await advance(t, 1_000)
  const [process] = x.processes.all
  for (let i = 1; i <= 40_000; i++) process?.print(`line ${i} ${'x'.repeat(50)}\n`)
  // it is read no further than its share, until that is over
  expect(process?.flowing).toBe(false)
  await advance(t, 1_000)
  expect(process?.flowing).toBe(true)
  await advance(t, 5_000)
  const all = await lines(run)
  expect(all[0]?.text).toMatch(/^line 1 x/)
  expect(all.at(-1)?.text).toMatch(/^line 40000 x/)
  const dropped = all.reduce((sum, line) => sum + line.dropped, 0)
  expect(dropped).toBeGreaterThan(30_000)
  expect(dropped + all.length).toBe(40_000)
  const size = t.sql('select sum(size) as size from attempt_logs')[0]?.['size']
  expect(Number(size)).toBeLessThan(1024 ** 2)
})

test('EX-25 secrets are taken out where a line is written: no request and no log of the process has them', async () => {
  const { body, w } = talker('process', (say) => {
    say('with canary-one', { password: 'canary-two', url: 'https://a:canary-three@h/' })
    say(`${'y'.repeat(4_090)}canary-one${'z'.repeat(9_000)}`)
  })
  const x = executorOn(t, { workflows: [w], secrets: ['canary-one'] })
  await x.executor.start()
  const run = await t.start('w')
  await advance(t, 100)
  const [process] = x.processes.all
  process?.print(
    'printed canary-one\n-----BEGIN EC PRIVATE KEY-----\ncanary-four\n-----END EC PRIVATE KEY-----\nafter\n',
  )
  body.open()
  await advance(t, 1_000)
  const said = JSON.stringify([
    x.calls,
    x.logged.filter(({ event }) => event.startsWith('run.')),
    await lines(run),
  ])
  expect(said).toContain('printed [redacted]')
  expect(said.match(/canary/g)).toBeNull()
  expect(await texts(run)).toContain('after')
})

test('EX-25 while the engine does not take lines, checkpoints, renewals and a stop go on, and the lines come later', async () => {
  const { body, w } = talker('inline', (say) => say('early'))
  const x = executorOn(t, { workflows: [w] })
  await x.executor.start()
  x.cut.logs = 'before'
  const run = await t.start('w')
  await advance(t, 60_000)
  expect(x.count('renew')).toBeGreaterThan(3)
  expect(await texts(run)).toEqual([])
  body.open()
  await advance(t, 100)
  expect(t.run(run)['status']).toBe('succeeded')
  x.cut.logs = undefined
  await advance(t, 15_000)
  expect(await texts(run)).toEqual(['early', 'after'])
  expect(x.logged.filter(({ event }) => event === 'logs.not_sent')).toHaveLength(1)
})

test('EX-25 a request that hangs delays no stop, and the last lines go with the close', async () => {
  const { w } = talker('inline', (say) => say('early'))
  const x = executorOn(t, { workflows: [w], drainMs: 1_000, abortGraceMs: 100 })
  await x.executor.start()
  x.cut.logs = 'never'
  const run = await t.start('w')
  await advance(t, 1_000)
  expect(x.count('logs')).toBe(1)
  const began = t.clock.time.mono()
  const stopped = x.executor.stop().then(() => t.clock.time.mono() - began)
  await advance(t, 1_200)
  expect(await stopped).toBeLessThanOrEqual(1_100)
  await t.engine.idle()
  expect(await texts(run)).toEqual(['early'])
})

test('EX-25 an answer that is lost keeps nothing twice', async () => {
  const { w } = talker('inline', (say) => say('once'))
  const x = executorOn(t, { workflows: [w] })
  await x.executor.start()
  x.cut.logs = 'after'
  const run = await t.start('w')
  await advance(t, 1_000)
  x.cut.logs = undefined
  await advance(t, 5_000)
  expect(x.count('logs')).toBeGreaterThan(1)
  expect(await texts(run)).toEqual(['once'])
})

test('EX-25 what a replay passes again is not logged again', async () => {
  const w = workflow('w', async (ctx) => {
    ctx.log('one')
    await ctx.step('a', () => 1)
    ctx.log('two')
    await ctx.sleep('s', '1m')
    ctx.log('three')
  })
  const x = executorOn(t, { workflows: [w] })
  await x.executor.start()
  const run = await t.start('w')
  await advance(t, 70_000)
  expect((await lines(run)).map(({ attempt, text }) => [attempt, text])).toEqual([
    [1, 'one'],
    [1, 'two'],
    [2, 'three'],
  ])
})
