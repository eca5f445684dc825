// Figures for Prometheus, and the alarms that go by them.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { definitionKey } from '../../src/model/definition.ts'
import { EXPOSITION, SERIES_MAX } from '../../src/kernel/meters.ts'
import type { Sent, Sink } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'

let t: TestStore
let handler: Handler
let answer: Sent
const sink: Sink = {
  name: 'ops',
  type: 'test',
  kinds: noticeKinds,
  send: () => Promise.resolve(answer),
}
beforeEach(async () => {
  answer = { ok: true, note: 'heard' }
  t = await openStore({ sinks: [sink] })
  handler = makeHandler(t.engine, { tokens: [{ token: 'sees', role: 'viewer' }] })
  await t.pass('relay')
})
afterEach(async () => {
  handler.stop()
  await t.close()
})

const get = (path: string, token = 'sees'): Promise<Response> =>
  handler.fetch(
    new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${token}` } }),
  )

/** The figures by name and labels, as a scraper reads them: anything else in the text is a mistake. */
const scrape = async (): Promise<Map<string, number>> => {
  const response = await get('/metrics')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe(EXPOSITION)
  const figures = new Map<string, number>()
  const types = new Map<string, string>()
  for (const line of (await response.text()).trimEnd().split('\n')) {
    const [, what, name, rest = ''] = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line) ?? []
    if (what === 'TYPE') types.set(name ?? '', rest)
    if (what !== undefined) continue
    const [, series = '', value = ''] =
      /^([a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\})?) (\S+)$/.exec(line) ?? []
    const family = (/^[a-z_]+/.exec(series)?.[0] ?? '').replace(/_(bucket|sum|count)$/, '')
    expect([line, types.has(family) || types.has(series.split('{')[0] ?? '')]).toEqual([line, true])
    expect([line, Number.isFinite(Number(value))]).toEqual([line, true])
    expect([line, figures.has(series)]).toEqual([line, false])
    figures.set(series, Number(value))
  }
  return figures
}

it('OPS-05 says what waits in each queue and for how long, what is held, and which slots are free', async () => {
  const session = await t.session({
    definitions: [definition('w'), definition('v', { queue: 'slow "x"' })],
  })
  for (let i = 0; i < 3; i++) await t.start('w')
  await t.start('v', { queue: 'slow "x"' })
  await session.claim(1, { only: [definitionKey('w', '1')] })
  t.later(5_000)
  const figures = await scrape()
  const of = (name: string, queue: string) =>
    figures.get(`leasehold_queue_${name}{queue="${queue}"}`)
  expect(of('waiting_runs', 'default')).toBe(2)
  expect(of('oldest_wait_seconds', 'default')).toBe(5)
  expect(of('held_runs', 'default')).toBe(1)
  expect(of('slots', 'default')).toBe(10)
  expect(of('free_slots', 'default')).toBe(9)
  expect(of('executors', 'default')).toBe(1)
  expect(of('waiting_runs', 'slow \\"x\\"')).toBe(1)
  expect(figures.get('leasehold_sessions{state="live"}')).toBe(1)
  expect(figures.get('leasehold_renewal_age_seconds')).toBe(5)
})

it('OPS-05 counts claims, ends, lost fences, what was taken back, and how long transactions and requests took', async () => {
  const session = await t.session()
  await t.start('w')
  await t.start('w')
  const [first, second] = await session.claim()
  if (!first || !second) throw new Error('two runs were to be claimed')
  await session.complete(first)
  await t.kill(session)
  await session.write(second, { entries: [entry(1)] })
  const figures = await scrape()
  expect(figures.get('leasehold_claimed_runs_total')).toBe(2)
  expect(figures.get('leasehold_attempts_ended_total{how="complete"}')).toBe(1)
  expect(figures.get('leasehold_writes_refused_total{code="stale_attempt"}')).toBe(1)
  expect(figures.get('leasehold_notices_total{kind="attempt_lost"}')).toBe(1)
  expect(figures.get('leasehold_notices_total{kind="executor_lost"}')).toBe(1)
  for (const purpose of ['claim', 'write', 'start', 'sweep', 'read'])
    expect([
      purpose,
      (figures.get(`leasehold_transaction_seconds_count{purpose="${purpose}"}`) ?? 0) > 0,
    ]).toEqual([purpose, true])
  expect(figures.get('leasehold_sweep_pass_seconds_count{sweep="reap-sessions"}')).toBeGreaterThan(
    0,
  )
  const again = await scrape()
  expect(again.get('leasehold_request_seconds_count{route="metrics",status="200"}')).toBe(1)
})

it('RAIL-02 OPS-05 the lag of the relay is a figure, and past its limit an alarm in readyz', async () => {
  answer = { ok: false, why: 'it answered 500' }
  const session = await t.session()
  await t.start('w')
  const run = only(await session.claim())
  await session.end(run, { kind: 'fail', reason: 'error', note: 'boom', error: '{}' })
  await t.settle('relay')
  t.later(t.engine.settings.deliveryLateMs + 1_000)
  const figures = await scrape()
  expect(figures.get('leasehold_outbox_open{sink="ops"}')).toBe(1)
  expect(figures.get('leasehold_outbox_oldest_age_seconds{sink="ops"}')).toBe(901)
  expect(figures.get('leasehold_outbox_late{sink="ops"}')).toBe(1)
  expect(figures.get('leasehold_deliveries_total{sink="ops",how="refused"}')).toBe(1)
  const ready = (await (await get('/readyz')).json()) as { warnings: string[] }
  expect(ready.warnings).toEqual([expect.stringContaining('the sink ops is late')])

  answer = { ok: false, why: 'it answered 410', forGood: true }
  await t.settle('relay')
  const dead = await scrape()
  expect(dead.get('leasehold_outbox_open{sink="ops"}')).toBe(0)
  expect(dead.get('leasehold_outbox_dead{sink="ops"}')).toBe(1)
  expect(dead.get('leasehold_outbox_late{sink="ops"}')).toBe(0)
})

it('RAIL-02 OPS-05 orders that are not applied, and those that were set aside, are figures and alarms', async () => {
  t.sql(
    `insert into orders (id, kind, run, payload, created_at) values ('stuck', 'cancel', 'run_9', '{}', ${t.clock.time.now()}) returning id`,
  )
  t.sql(
    `insert into orders (id, kind, run, payload, created_at, set_aside_at) values ('bad', 'cancel', 'run_9', '{', 0, 1) returning id`,
  )
  t.later(61_000)
  const figures = await scrape()
  expect(figures.get('leasehold_orders_open')).toBe(1)
  expect(figures.get('leasehold_orders_oldest_age_seconds')).toBe(61)
  expect(figures.get('leasehold_orders_set_aside')).toBe(1)
  const { warnings } = (await (await get('/readyz')).json()) as { warnings: string[] }
  expect(warnings).toEqual([
    'orders are late: the oldest of 1 that are open has waited for 1 min 1 s',
    '1 orders were set aside; leasehold orders lists them',
  ])
  expect(await (await get('/v1/orders')).json()).toMatchObject({
    open: 1,
    oldestMs: 61_000,
    late: true,
    orders: [{ id: 'bad' }],
  })
})

it('OPS-05 no name that users choose makes it longer than its bounds', async () => {
  const limits = Array.from({ length: SERIES_MAX * 2 }, (_, i) => `tenant ${i}`)
  for (const key of limits)
    t.sql(
      `insert into limits (key, mode, code_value, policy, weight, updated_at) values ('${key}', 'whole_run', 1, 'queue', 1, 0) returning key`,
    )
  await t.session({
    definitions: limits.map((name) => definition(name, { queue: name })),
  })
  const figures = await scrape()
  const families = new Map<string, number>()
  for (const series of figures.keys()) {
    const [name = ''] = series.split('{')
    families.set(name, (families.get(name) ?? 0) + 1)
  }
  for (const [name, series] of families) {
    // a histogram has a line for each of its bounds
    if (!name.endsWith('_bucket')) expect([name, series <= SERIES_MAX]).toEqual([name, true])
  }
  expect(families.get('leasehold_limit_value')).toBe(50)
  expect([...figures.keys()].filter((series) => series.includes('run_'))).toEqual([])
})

it('OPS-05 SEC-02 is for viewers: no token, and a token of an executor, see nothing', async () => {
  const closed = makeHandler(t.engine, { tokens: [{ token: 'works', role: 'executor' }] })
  const ask = (headers: Record<string, string>): Promise<Response> =>
    closed.fetch(new Request('http://localhost/metrics', { headers }))
  expect((await ask({})).status).toBe(401)
  expect((await ask({ authorization: 'Bearer works' })).status).toBe(403)
  closed.stop()
})
