// What a server does with executors over WebSockets: offers, messages that do not fit, connections that replace each other.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { definitionKey } from '../../src/model/definition.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import { OFFER_TTL_MS } from '../../src/orchestrator/claims/offers.ts'
import { closeCodes, PULSE_MS } from '../../src/protocol/socket.ts'
import { settled } from '../support/ports.ts'
import type { Speaker } from '../support/speaker.ts'
import { gate } from '../support/executor.ts'
import { speaker, until } from '../support/speaker.ts'
import type { TestStore } from '../support/store.ts'
import { definition, entry, only, openStore } from '../support/store.ts'
import { socketWay } from '../support/ways.ts'

let t: TestStore
let server: Handler
beforeEach(async () => {
  t = await openStore()
  server = makeHandler(t.engine)
})
afterEach(async () => {
  server.stop()
  server.cut()
  await t.close()
})

const speak = (to: Handler = server): Speaker => speaker(to, t.clock.timers())
const registered = async (session: string, connection = 1, to = server): Promise<Speaker> => {
  const made = speak(to)
  expect(await made.register(session, connection)).toMatchObject({
    type: 'reply',
    body: { ok: true },
  })
  return made
}
/** Time passes in steps, each as long as what it brings takes. */
const pass = async (ms: number): Promise<void> => {
  const end = t.clock.time.mono() + ms
  for (;;) {
    const next = t.clock.next()
    if (next === null || next > end) break
    t.clock.moveTo(next)
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  t.clock.moveTo(end)
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
}

const ready = (claim: number, more: object = {}) => ({
  claim,
  most: 10,
  except: [],
  waitMs: 20_000,
  ...more,
})
const accept = (offer: string | null, claim: number, runs: readonly string[]) => ({
  offer,
  claim,
  most: 10,
  except: [],
  runs,
})
const write = (run: string, attempt: number, n: number) => ({
  writes: [{ run, attempt, entries: [entry(n)] }],
})

test('RAIL-12 an offer reserves nothing: until it is accepted the row says so, and whoever claims the run gets it', async () => {
  const one = await registered('ses_1')
  const other = await t.session()
  const id = await t.start('w')
  void one.ask('session:ready', ready(1))
  const { body: offer } = await one.next('run:offer')
  expect(offer).toMatchObject({ claim: 1, runs: [id], ttlMs: OFFER_TTL_MS })
  expect(t.run(id)).toMatchObject({ status: 'queued', session: null, attempt: 0 })
  only(await other.claim())

  // then the accept is an ordinary claim, which finds nothing
  expect(await one.ask('run:accept', accept(offer.offer, 1, [id]))).toMatchObject({
    body: { ok: true, claim: 1, runs: [] },
  })
  expect(t.run(id)).toMatchObject({ session: other.id, attempt: 1 })
})

test('RAIL-12 an accept claims exactly what was offered, and a repeat under its number gets the same', async () => {
  const one = await registered('ses_1')
  const ids = [await t.start('w'), await t.start('w')]
  void one.ask('session:ready', ready(1, { most: 1 }))
  const { body: offer } = await one.next('run:offer')
  expect(offer.runs).toEqual([ids[0]])
  const first = await one.ask('run:accept', accept(offer.offer, 1, offer.runs))
  expect(first).toMatchObject({ body: { ok: true, runs: [{ run: ids[0], attempt: 1 }] } })
  const again = await one.ask('run:accept', accept(null, 1, offer.runs))
  expect((again as { body: { runs: unknown } }).body.runs).toEqual(
    (first as { body: { runs: unknown } }).body.runs,
  )
  expect(t.run(ids[1] ?? '')).toMatchObject({ status: 'queued' })
})

test('RAIL-12 an accept takes nothing that the session does not serve, that was not in its room, or that is excluded', async () => {
  const one = await registered('ses_1')
  await t.session({ definitions: [definition('other')] })
  const foreign = [await t.start('other'), await t.start('w', { queue: 'elsewhere' })]
  const [a, b, c] = [await t.start('w'), await t.start('w'), await t.start('w')]
  const all = [...foreign, a, b, c]
  expect(
    await one.ask('run:accept', { ...accept(null, 1, all), most: 1, except: [a] }),
  ).toMatchObject({ body: { ok: true, runs: [{ run: b }] } })
  expect(
    await one.ask('run:accept', { ...accept(null, 2, all), only: [definitionKey('other', '1')] }),
  ).toMatchObject({
    body: { ok: true, runs: [] },
  })
  for (const id of foreign) expect(t.run(id)).toMatchObject({ status: 'queued' })
})

test('RAIL-12 two that look for work in the same turn are not offered the same run', async () => {
  const [one, two] = [await registered('ses_1'), await registered('ses_2')]
  const ids = [await t.start('w'), await t.start('w')]
  void one.ask('session:ready', ready(1, { most: 2 }))
  void two.ask('session:ready', ready(1, { most: 2 }))
  const offered = (): readonly string[] =>
    [...one.heard, ...two.heard].flatMap((each) =>
      each.type === 'run:offer' ? each.body.runs : [],
    )
  await until(() => offered().length >= 2)
  // who has looked in vain looks again, and is offered what nobody has been
  const more = await t.start('w')
  await until(() => offered().includes(more) || offered().length > 3)
  expect([...offered()].sort()).toEqual([...ids, more].sort())
})

test('RAIL-12 L3 who looked in the same turn as another, and for whom that one left nothing, is offered what stands elsewhere', async () => {
  const [one, two] = [speak(), speak()]
  for (const [session, it] of [
    ['ses_1', one],
    ['ses_2', two],
  ] as const)
    expect(await it.register(session, 1, ['u', 'v', 'w'])).toMatchObject({ body: { ok: true } })
  const ids = await Promise.all(['u', 'u', 'v', 'v', 'w', 'w'].map((name) => t.start(name)))
  // each begins with another lane, and the first takes what stands in the one that the second begins with
  void one.ask('session:ready', ready(1, { most: 4 }))
  void two.ask('session:ready', ready(1, { most: 2 }))
  // in one offer each, or in two where a row was locked by the other's look
  const offered = () =>
    [...one.heard, ...two.heard].flatMap((each) =>
      each.type === 'run:offer' ? each.body.runs : [],
    )
  await until(() => offered().length >= ids.length)
  expect(offered().sort()).toEqual([...ids].sort())
})

test('RAIL-12 L3 who looked and found only what it excludes is told so, and asks anew without what it excludes no more', async () => {
  const one = await registered('ses_1')
  const id = await t.start('w')
  const none = await one.ask('session:ready', ready(1, { except: [id] }))
  expect(none).toMatchObject({ body: { ok: true, offer: null } })
  // with the same exclusion it waits from here on, and is not asked again and again
  let isAnswered = false
  void one.ask('session:ready', ready(2, { except: [id] })).then(() => (isAnswered = true))
  await settled()
  expect(isAnswered).toBe(false)
  void one.ask('session:ready', ready(3))
  expect((await one.next('run:offer')).body.runs).toEqual([id])
})

test('RAIL-12 one run is not offered to two at once, and what is not accepted in its time, or rejected, is offered elsewhere', async () => {
  const [one, two] = [await registered('ses_1'), await registered('ses_2')]
  const id = await t.start('w')
  void one.ask('session:ready', ready(1))
  const first = await one.next('run:offer')
  void two.ask('session:ready', ready(1))
  await pass(OFFER_TTL_MS - 1)
  expect(two.heard.filter(({ type }) => type === 'run:offer')).toEqual([])
  await pass(1)
  const second = await two.next('run:offer')
  expect(second.body.runs).toEqual([id])

  // when the second has no room either, the first is offered it again
  void one.ask('session:ready', ready(2))
  expect(
    await two.ask('run:reject', { offer: second.body.offer, reason: 'no room' }),
  ).toMatchObject({ body: { ok: true } })
  const third = await one.next('run:offer')
  expect(third.body.runs).toEqual([id])
  expect(third.body.offer).not.toBe(first.body.offer)

  // and an offer that has gone may still be accepted, as a claim
  expect(await two.ask('run:accept', accept(second.body.offer, 1, [id]))).toMatchObject({
    body: { ok: true, runs: [{ run: id }] },
  })
})

test('RAIL-12 what was offered to a connection that breaks is offered elsewhere at once', async () => {
  const [one, two] = [await registered('ses_1'), await registered('ses_2')]
  const id = await t.start('w')
  void one.ask('session:ready', ready(1))
  await one.next('run:offer')
  void two.ask('session:ready', ready(1))
  one.wire.cut()
  expect((await two.next('run:offer')).body.runs).toEqual([id])
})

test('RAIL-12 a message that does not fit is answered with an error that names what was expected, and does no harm', async () => {
  const one = speak()
  expect(
    await one.ask('session:renew', { draining: false, status: null, letGo: [] }),
  ).toMatchObject({
    type: 'error',
    body: {
      code: 'invalid_request',
      message: expect.stringContaining('session:register') as string,
    },
  })
  await one.register('ses_1')
  for (const [text, id, what] of [
    ['not JSON', null, 'is not JSON'],
    ['{"type":"run:steal","id":7,"body":{}}', 7, 'expected one of session:register'],
    ['{"type":"run:reject","id":8,"body":{"offer":1}}', 8, '$.body.offer'],
    ['[]', null, 'expected one of'],
    ['{"type":"session:renew"}', null, '$.id'],
    ['null', null, 'expected one of'],
  ] as const) {
    one.say(text)
    expect(await one.next('error')).toMatchObject({
      id,
      body: { code: 'invalid_request', message: expect.stringContaining(what) as string },
    })
  }
  expect(
    await one.ask('session:renew', { draining: false, status: null, letGo: [] }),
  ).toMatchObject({ type: 'reply', body: { ok: true } })
  expect(await one.register('ses_2')).toMatchObject({ type: 'error' })
})

test('RAIL-11 a connection that does not register in time is closed, and one of another protocol with a code of its own', async () => {
  const silent = speak()
  await pass(10_000)
  expect(await silent.untilClosed()).toMatchObject({ code: closeCodes.not_registered })
  const { port } = socketWay(t.clock.timers(), server)
  const { answer } = await t.session({ port, protocol: PROTOCOL_VERSION + 1 })
  expect(answer).toMatchObject({ ok: false, code: 'incompatible_protocol' })
  const other = speak()
  await other.ask('session:register', {
    connection: 1,
    protocol: PROTOCOL_VERSION - 1,
    session: 'ses_1',
    build: 'old',
    host: 'h',
    pid: 1,
    queues: [],
    labels: [],
    capacity: 1,
    definitions: [],
  })
  expect(await other.untilClosed()).toMatchObject({
    code: closeCodes.incompatible_protocol,
    reason: expect.stringContaining('upgrade the executor') as string,
  })
})

test('RAIL-13 the newest connection of a session stands: an older one is closed, and what it still says is refused', async () => {
  const older = await registered('ses_1')
  const id = await t.start('w')
  void older.ask('session:ready', ready(1))
  const { body: offer } = await older.next('run:offer')
  await older.ask('run:accept', accept(offer.offer, 1, [id]))
  const newer = await registered('ses_1', 2)
  expect(await older.untilClosed()).toMatchObject({ code: closeCodes.connection_superseded })

  // what the session held it holds, and goes on with
  expect(t.run(id)).toMatchObject({ session: 'ses_1', attempt: 1 })
  expect(await newer.ask('run:checkpoint', write(id, 1, 1))).toMatchObject({
    body: { answers: [{ ok: true }] },
  })
  // a connection with a lower number, or the same, is not taken
  const late = speak()
  expect(await late.register('ses_1', 2)).toMatchObject({
    body: { ok: false, code: 'connection_superseded' },
  })
  expect(await late.untilClosed()).toMatchObject({ code: closeCodes.connection_superseded })
})

test('RAIL-13 another replica takes a session over within its lease, waiting for nothing else, and the older connection’s messages are refused', async () => {
  const older = await registered('ses_1')
  const id = await t.start('w')
  void older.ask('session:ready', ready(1))
  const { body: offer } = await older.next('run:offer')
  await older.ask('run:accept', accept(offer.offer, 1, [id]))
  const replica = makeHandler(t.engine)
  const newer = await registered('ses_1', 2, replica)

  // the first server has not been told, and takes nothing over the old connection all the same
  expect(await older.ask('run:checkpoint', write(id, 1, 1))).toMatchObject({
    type: 'error',
    body: { code: 'connection_superseded' },
  })
  expect(t.sql('select key from steps')).toEqual([])
  expect(await older.untilClosed()).toMatchObject({ code: closeCodes.connection_superseded })
  expect(await newer.ask('run:checkpoint', write(id, 1, 1))).toMatchObject({
    body: { answers: [{ ok: true }] },
  })
  replica.cut()
})

test('RAIL-13 an idle connection is closed within a second of a newer one through another replica, or of the end of its session', async () => {
  const [moved, ended] = [await registered('ses_1'), await registered('ses_2')]
  const replica = makeHandler(t.engine)
  await registered('ses_1', 2, replica)
  t.sql(
    `update sessions set state = 'ended', ended_at = 1, end_reason = 'gone', evidence = 'seen' where id = 'ses_2' returning id`,
  )
  await pass(1_000)
  expect(await moved.untilClosed()).toMatchObject({ code: closeCodes.connection_superseded })
  expect((await ended.next('session:ended')).body.message).toContain('gone (seen)')
  expect(await ended.untilClosed()).toMatchObject({ code: closeCodes.session_ended })
  replica.cut()
})

test('RAIL-13 a session that was ended is told so, drops its attempts and registers anew', async () => {
  const way = socketWay(t.clock.timers(), server)
  const { opened, open } = gate<string>()
  let bodies = 0
  const hold = workflow({ name: 'hold' }, (ctx) =>
    ctx.step('wait', () => {
      bodies += 1
      return opened
    }),
  )
  const executor = makeExecutor({
    port: way.port,
    ports: { ...t.engine.ports, timers: t.clock.timers() },
    workflows: [hold],
    slots: { default: 2 },
  })
  await executor.start()
  const first = executor.status().session
  const id = await t.start('hold')
  await until(() => bodies === 1)
  t.sql(
    `update sessions set state = 'ended', ended_at = 1, end_reason = 'gone', evidence = 'seen' where id = '${first}' returning id`,
  )
  await t.pass('reap-sessions')
  await pass(1_000)

  // then it lives on as another session, and what the first attempt still brings is nobody's
  await until(() => executor.status().session !== first && executor.status().session !== null)
  expect(way.wires).toHaveLength(2)
  expect(executor.status().jobs).toMatchObject([{ run: id, attempt: 1, left: true }])
  open('done')
  await until(() => executor.status().jobs.length === 0)
  expect(t.sql('select key from steps')).toEqual([])
  const stopping = executor.stop()
  await pass(60_000)
  await stopping
})

test('RAIL-13 an executor whose connection breaks comes back with the next, through another replica, and goes on with what it holds', async () => {
  const way = socketWay(t.clock.timers(), server)
  const s = await t.session({ port: way.port })
  const id = await t.start('w')
  const run = only(await s.claim())
  const replica = makeHandler(t.engine)
  way.server = replica
  server.cut()
  await until(() => only(way.wires).closed.length === 2)
  const writing = s.checkpoint(run, 'a')
  await pass(1_000)
  expect(await writing).toMatchObject({ ok: true })
  expect(way.wires).toHaveLength(2)
  expect(t.sql('select connection from sessions')).toEqual([{ connection: 2 }])
  expect(t.run(id)).toMatchObject({ session: s.id, attempt: 1, entries: 1 })
  replica.cut()
})

test('RAIL-12 a claim whose answer was lost with its connection is asked for again under its number, and takes the same', async () => {
  const way = socketWay(t.clock.timers(), server)
  const s = await t.session({ port: way.port })
  const id = await t.start('w')
  const wire = only(way.wires)
  wire.loses = (text) => text.startsWith('{"type":"reply"') && text.includes('"attempt":1')
  await expect(s.claimAnswer(10, { claim: 1 })).rejects.toMatchObject({ code: 'peer_unreachable' })
  expect(t.run(id)).toMatchObject({ status: 'running', attempt: 1 })
  const again = s.claim(10, { claim: 1 })
  await pass(1_000)
  expect(await again).toMatchObject([{ run: id, attempt: 1 }])
})

test('RAIL-12 a connection that is half open is noticed at both ends, and its session comes back with another', async () => {
  const way = socketWay(t.clock.timers(), server)
  const s = await t.session({ port: way.port })
  const wire = only(way.wires)
  wire.silent = true
  await pass(3 * PULSE_MS)
  expect(wire.closed.map(({ end }) => end).sort()).toEqual(['dialer', 'server'])
  await pass(1_000)
  await until(() => way.wires.length === 2)
  expect(await s.renew()).toMatchObject({ ok: true })
})

test('RAIL-12 an executor that does not read is offered nothing, and cut when too much waits for it', async () => {
  const one = await registered('ses_1')
  const id = await t.start('w')
  one.wire.unread = 2 * 1024 ** 2
  expect(await one.ask('session:ready', ready(1))).toMatchObject({
    type: 'reply',
    body: { ok: true, offer: null },
  })
  expect(one.wire.sent.filter((text) => text.includes('"run:offer"'))).toEqual([])
  one.wire.unread = 200 * 1024 ** 2
  void one.ask('run:journal', { run: id, after: 0 })
  expect(await one.untilClosed()).toMatchObject({ code: closeCodes.does_not_read })
})
