import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LogLine, LogPart } from '../../src/model/log.ts'
import type { ClaimedRun } from '../../src/model/work.ts'
import { logPage } from '../../src/queries/logs.ts'
import { keepLogs } from '../../src/transitions/keep-logs.ts'
import type { TestStore } from '../support/store.ts'
import { definition, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => (t = await openStore({ settings: { retentionMs: 1_000 } })))
afterEach(() => t.close())

const line = (n: number, text = `line ${n}`): LogLine => ({
  n,
  at: 5,
  source: 'log',
  text,
  facts: null,
})
const part = ({ run, attempt }: { run: string; attempt: number }, ...ns: number[]): LogPart => ({
  run,
  attempt,
  lines: ns.map((n) => line(n)),
})
const page = (
  run: string,
  attempt: number | null = null,
  after = { attempt: 0, n: 0 },
  most = 100,
) => t.engine.read((tx) => logPage(tx, run, attempt, after, most))
const shown = async (...of: Parameters<typeof page>) =>
  (await page(...of))?.lines.map(
    ({ attempt, n, dropped }) => `${attempt}:${n}${dropped > 0 ? `-${dropped}` : ''}`,
  )

/** A run that a session holds. */
const held = async () => {
  const session = await t.session({ definitions: [definition('w')] })
  const run = await t.start('w')
  const [claimed] = (await session.claim()) as [ClaimedRun]
  return { session, run, claimed }
}

test('EX-25 lines are kept with the attempt that its session holds or has held, and a part that comes again is kept once', async () => {
  const { session, run, claimed } = await held()
  expect(await t.port.logs(session.id, [part(claimed, 1, 2)])).toEqual({ ok: true, kept: 1 })
  expect(await t.port.logs(session.id, [part(claimed, 1, 2), part(claimed, 3)])).toEqual({
    ok: true,
    kept: 1,
  })
  await session.complete(claimed)
  // late lines of an attempt that is over
  expect(await t.port.logs(session.id, [part(claimed, 6)])).toEqual({ ok: true, kept: 1 })
  expect(await shown(run)).toEqual(['1:1', '1:2', '1:3', '1:6-2'])
})

test('EX-25 B016 a stale attempt’s late lines stay under its own attempt, and it can put none under another’s', async () => {
  const { session, run, claimed } = await held()
  await t.kill(session)
  const next = await t.session({ definitions: [definition('w')] })
  const [second] = (await next.claim()) as [ClaimedRun]
  expect(second.attempt).toBe(2)
  expect(await t.port.logs(next.id, [part(second, 1)])).toEqual({ ok: true, kept: 1 })
  expect(await t.port.logs(session.id, [part(claimed, 1), part(second, 2)])).toEqual({
    ok: true,
    kept: 1,
  })
  expect(await t.port.logs(next.id, [part(claimed, 7)])).toEqual({ ok: true, kept: 0 })
  expect(await t.port.logs(session.id, [part({ run: 'run_none', attempt: 1 }, 1)])).toEqual({
    ok: true,
    kept: 0,
  })
  expect(await shown(run)).toEqual(['1:1', '2:1'])
  expect(await shown(run, 2)).toEqual(['2:1'])
})

test('EX-25 pages go on after a line, within a part and across attempts, and say what was dropped', async () => {
  const { session, run, claimed } = await held()
  await t.port.logs(session.id, [part(claimed, 1, 2, 3, 9, 10)])
  await t.port.logs(session.id, [part(claimed, 11)])
  await session.end(claimed, { kind: 'hand_back', reason: 'shutdown' })
  const [second] = (await session.claim()) as [ClaimedRun]
  await t.port.logs(session.id, [part(second, 3)])
  expect(await shown(run, null, { attempt: 0, n: 0 }, 2)).toEqual(['1:1', '1:2'])
  expect(await shown(run, null, { attempt: 1, n: 2 }, 3)).toEqual(['1:3', '1:9-5', '1:10'])
  expect(await shown(run, null, { attempt: 1, n: 10 })).toEqual(['1:11', '2:3-2'])
  expect(await shown(run, 1, { attempt: 1, n: 10 })).toEqual(['1:11'])
  expect(await page('run_none')).toBeNull()
  const over = async (attempt: number | null) => (await page(run, attempt))?.over
  expect([await over(null), await over(1), await over(2)]).toEqual([false, true, false])
})

test('EX-25 of a long log the middle goes, here as where it is written', async () => {
  const { session, run, claimed } = await held()
  const most = 20_000
  for (let n = 1; n <= 100; n++)
    await t.engine.store.run((tx) =>
      keepLogs(tx, {
        session: session.id,
        parts: [{ run, attempt: 1, lines: [line(n, 'x'.repeat(1_000))] }],
        most,
      }),
    )
  const found = (await page(run, claimed.attempt, undefined, 1_000))?.lines ?? []
  expect(found.length).toBeGreaterThan(15)
  expect(found.length).toBeLessThan(25)
  expect(found[0]?.n).toBe(1)
  expect(found.at(-1)?.n).toBe(100)
  expect(found.filter(({ dropped }) => dropped > 0)).toHaveLength(1)
  expect(found.reduce((sum, { dropped }) => sum + dropped, 0) + found.length).toBe(100)
})

test('EX-25 B109 what no database keeps as it is comes back as it was written', async () => {
  const { session, run, claimed } = await held()
  const text = 'a\u0000b \ud800 é 😀'
  await t.port.logs(session.id, [{ run, attempt: claimed.attempt, lines: [line(1, text)] }])
  expect((await page(run))?.lines[0]?.text).toBe(text)
})

test('EX-25 lines go with their run when it is pruned', async () => {
  const { session, run, claimed } = await held()
  await t.port.logs(session.id, [part(claimed, 1)])
  await session.complete(claimed)
  t.later(2_000)
  await t.pass('prune-ended')
  expect(await page(run)).toBeNull()
  expect(t.sql('select * from attempt_logs')).toEqual([])
})
