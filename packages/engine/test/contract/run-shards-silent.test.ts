// Several databases of which one is open and says nothing, or was away for a while: what is on the others does not wait for it.
import { expect, onTestFinished, test } from 'vitest'
import { Fault, LeaseholdError } from '../../src/kernel/errors.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { Engine } from '../../src/orchestrator/engine.ts'
import { ofPlace } from '../../src/orchestrator/main.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { shardedPort } from '../../src/orchestrator/shards/shard-port.ts'
import { joinShards } from '../../src/orchestrator/shards/shards.ts'
import { gate } from '../support/executor.ts'
import { settled, testPorts } from '../support/ports.ts'
import { COUNT, join, ownerOn, serve } from '../support/shards.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

const never = (): Promise<never> => new Promise(() => undefined)
const run = { run: 'run_a', attempt: 1 }
const found = { ok: true as const, claim: 1, now: 0, leaseUntil: 30_000 }

test('RUN-05 RUN-10 a shard that falls silent while a claim waits does not keep back what another has given', async () => {
  const { ports, advance } = testPorts()
  let give: (answer: unknown) => void = () => undefined
  const port = (waits: () => Promise<unknown>): ExecutorPort =>
    ({
      claim: ({ waitMs }: { readonly waitMs: number }) =>
        waitMs === 0 ? Promise.resolve({ ...found, runs: [] }) : waits(),
    }) as never
  const joined = shardedPort(
    [port(() => new Promise((resolve) => (give = resolve))), port(never)],
    { ...ports, pollMs: 1_000, patienceMs: 1_000 },
  )
  let answer: unknown = null
  const asked = { session: 's', claim: 1, most: 4, except: [], waitMs: 10_000 }
  void joined.claim(asked).then((came) => (answer = came))
  await settled()
  give({ ...found, runs: [run] })
  await advance(1_000)
  expect(answer).toMatchObject({ ok: true, runs: [run] })
  // with nothing from anybody it is over a little later than it would be
  answer = null
  const quiet = shardedPort([port(never), port(never)], {
    ...ports,
    pollMs: 1_000,
    patienceMs: 1_000,
  })
  void quiet.claim(asked).then((came) => (answer = came))
  await advance(10_999)
  expect(answer).toBeNull()
  await advance(1)
  expect(answer).toMatchObject({ ok: true, runs: [] })
})

test('OPS-06 that a shard is away is logged once, and that it is back', async () => {
  const { ports, advance } = testPorts()
  const said: unknown[] = []
  const hear = (event: string, facts?: object): void => {
    said.push([event, (facts as { readonly shard: number }).shard])
  }
  let still = true
  const one = { claim: () => Promise.resolve({ ...found, runs: [] }) }
  const other = { claim: () => (still ? never() : one.claim()) }
  const joined = shardedPort([one as never, other as never], {
    ...ports,
    log: { ...ports.log, info: hear, warn: hear },
    pollMs: 1_000,
    patienceMs: 1_000,
  })
  for (let claim = 1; claim <= 4; claim++) {
    const asked = joined.claim({ session: 's', claim, most: 4, except: [], waitMs: 0 })
    // longer than it is left alone
    await advance(30_000)
    await asked
  }
  expect(said).toEqual([['shard.away', 1]])
  still = false
  await joined.claim({ session: 's', claim: 5, most: 4, except: [], waitMs: 0 })
  expect(said).toEqual([
    ['shard.away', 1],
    ['shard.back', 1],
  ])
})

test('RUN-05 RAIL-10 a write to a shard that says nothing does not hold up those of others in its request', async () => {
  const { ports, advance } = testPorts()
  const joined = shardedPort([{} as never, { write: never } as never], {
    ...ports,
    pollMs: 1_000,
    patienceMs: 1_000,
  })
  let lost: unknown = null
  const write = { run: 'run_b~1', attempt: 1, entries: [] }
  void joined.write('s', write).catch((error: unknown) => (lost = error))
  await advance(3_999)
  expect(lost).toBeNull()
  await advance(1)
  expect(lost).toMatchObject({ code: 'store_unavailable', retryable: true, detail: { shard: 1 } })
})

test('RUN-18 OPS-06 health, figures and deliveries do not wait for a database that says nothing', async () => {
  const s = await serve({ patienceMs: 1_000 })
  const rule = { workflow: 'w', owner: { $: '/who' } }
  const trigger = { kind: 'token', secrets: ['shop'], deliveryHeader: 'x-id', rules: [rule] }
  expect(await s.ask('PUT', '/v1/triggers/shop', trigger)).toMatchObject({ status: 200 })
  for (const silent of [0, 1]) {
    s.silent(silent, true)
    const asked = [
      s.ask('GET', '/readyz'),
      s.ask('GET', '/metrics'),
      s.ask(
        'POST',
        '/hooks/shop',
        { who: ownerOn(1 - silent) },
        { authorization: 'Bearer secret-of-the-shop', 'x-id': `d${silent}` },
      ),
      s.ask('GET', '/v1/triggers'),
    ]
    for (let i = 0; i < 6; i++) {
      await s.answered()
      s.stores[0]?.later(1_000)
    }
    const [ready, figures, delivery, triggers] = await Promise.all(asked)
    expect(ready).toMatchObject({ status: 200, body: { ready: true, faults: [] } })
    expect(JSON.stringify(ready?.body['warnings'])).toContain(`shard ${silent}: the store does not`)
    expect(figures?.body['text']).toContain(`leasehold_shard_up{shard="${silent}"} 0`)
    expect(figures?.body['text']).toContain(`leasehold_shard_up{shard="${1 - silent}"} 1`)
    expect(delivery).toMatchObject({ status: 200, body: { outcome: 'started' } })
    expect(triggers?.body['triggers']).toHaveLength(1)
    s.silent(silent, false)
  }
})

test('RUN-18 OPS-01 a list of all is given up after five seconds where one says nothing, and says which', async () => {
  const s = await serve({ patienceMs: 1_000 })
  const id = await s.begin(ownerOn(0))
  s.silent(1, true)
  const asked = ['/v1/runs', '/v1/runs/counts', '/v1/executors', '/v1/slots', '/v1/notices'].map(
    (path) => s.ask('GET', path),
  )
  for (let i = 0; i < 6; i++) {
    await s.answered()
    s.stores[0]?.later(1_000)
  }
  for (const { status, body } of await Promise.all(asked)) {
    expect({ status, code: body['code'] }).toEqual({ status: 503, code: 'store_unavailable' })
    expect(JSON.stringify(body)).toContain(
      'shard 1 of 2: the database did not answer within 5000 ms',
    )
  }
  // what is of one database is answered by it
  expect(await s.ask('GET', `/v1/runs/${id}`)).toMatchObject({ status: 200 })
  s.silent(1, false)
})

test('RUN-18 OPS-06 where all databases are slow, the server is ready as soon as one has said so, whoever is silent', async () => {
  const s = await serve({ patienceMs: 1_000 })
  const slow = gate()
  s.silent(0, true)
  s.hold(1, slow.opened)
  const asked = s.ask('GET', '/readyz')
  await settled()
  s.stores[0]?.later(3_000)
  await settled()
  slow.open()
  expect(await asked).toMatchObject({ status: 200, body: { ready: true } })
})

test('RUN-29 RUN-18 a schedule is seen to where it is, also while another database is away', async () => {
  const s = await serve()
  const made = { cron: '0 3 * * *', workflow: 'w', input: null }
  for (const shard of [0, 1])
    await s.ask('POST', '/v1/schedules', { ...made, name: `on-${shard}`, owner: ownerOn(shard) })
  for (const away of [0, 1]) {
    s.away(away, true)
    for (const path of ['run', 'pause', 'resume'])
      expect(await s.ask('POST', `/v1/schedules/on-${1 - away}/${path}`, {})).toMatchObject({
        status: 200,
      })
    // where it is nobody can look, and whether its name is free neither
    expect(await s.ask('GET', `/v1/schedules/on-${away}`)).toMatchObject({ status: 503 })
    const more = { ...made, name: 'more', owner: ownerOn(1 - away) }
    expect(await s.ask('POST', '/v1/schedules', more)).toMatchObject({ status: 503 })
    s.away(away, false)
  }
})

test('OPS-02 RUN-18 a place in the audit that nobody gave is refused, and the server goes on', async () => {
  const s = await serve()
  for (const place of ['begin~2', 'begin~1000', 'begin~99999999999999999999', 'run_x~7'])
    expect(await s.ask('GET', `/v1/audit?after=${place}`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    })
  expect(await s.ask('GET', '/v1/audit?after=begin~1')).toMatchObject({ status: 200 })
})

test('OPS-04 RUN-18 who follows all runs is told to read anew once a database is back', async () => {
  const s = await serve()
  const response = await s.handler.fetch(new Request('http://localhost/v1/events'))
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  let text = ''
  const reading = (async () => {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      text += new TextDecoder().decode(value)
    }
  })()
  await s.answered()
  const id = await s.begin(ownerOn(1))
  s.away(1, true)
  for (let i = 0; i < 4; i++) {
    await s.answered()
    s.stores[0]?.later(100)
  }
  expect(text).not.toContain(id)
  s.away(1, false)
  for (let i = 0; i < 3; i++) {
    await s.answered()
    s.stores[0]?.later(1_000)
  }
  await s.answered()
  expect(text).toContain('event: reset')
  const more = await s.begin(ownerOn(1))
  for (let i = 0; i < 3; i++) {
    await s.answered()
    s.stores[0]?.later(200)
  }
  await s.answered()
  expect(text).toContain(more)
  await reader.cancel()
  await reading
})

test('RUN-05 claims go past a shard that says nothing, and ask it ever more seldom until a renewal reaches it', async () => {
  const { ports, advance } = testPorts()
  let asked = 0
  let still = true
  const other = {
    claim: () => {
      asked += 1
      return still ? never() : Promise.resolve({ ...found, runs: [] })
    },
    renew: () => Promise.resolve({ ok: true, told: [], pending: [], now: 0, leaseUntil: null }),
  }
  const one = { ...other, claim: () => Promise.resolve({ ...found, runs: [] }) }
  const joined = shardedPort([one as never, other as never], {
    ...ports,
    pollMs: 1_000,
    patienceMs: 1_000,
  })
  let claim = 0
  const ask = async (): Promise<void> => {
    claim += 1
    await joined.claim({ session: 's', claim, most: 4, except: [], waitMs: 0 })
  }
  for (let second = 0; second < 60; second++) {
    // two at a time: while one waits for it the other goes past it
    const both = [ask(), ask()]
    await advance(1_000)
    await Promise.all(both)
  }
  expect(asked).toBeLessThan(12)
  still = false
  await joined.renew({ session: 's', draining: false, status: null, letGo: [] })
  const before = asked
  await ask()
  expect(asked).toBe(before + 1)
})

test('RUN-18 an id with the mark of another shard is refused, wherever it is given', async () => {
  const s = await serve()
  const owner = ownerOn(1)
  const start = { workflow: 'w', input: null, owner }
  const no = { status: 400, body: { code: 'invalid_request' } }
  expect(await s.ask('POST', '/v1/runs', { ...start, id: 'run_x~7' })).toMatchObject(no)
  const items = [{ ...start, id: 'run_x~7' }, start]
  expect((await s.ask('POST', '/v1/runs/bulk', { items })).body).toMatchObject({
    answers: [{ ok: false, code: 'invalid_request' }, { ok: true }],
  })
  const run = await s.begin(owner, { id: 'run_x~1' })
  expect(run).toBe('run_x~1')
  await s.ask('POST', `/v1/runs/${run}/cancel`, {})
  expect(await s.ask('POST', `/v1/runs/${run}/retry`, { id: 'run_y~7' })).toMatchObject(no)
})

test('RUN-15 RUN-18 approvals of a run are asked for where it is, also while another database is away', async () => {
  const s = await serve()
  const run = await s.begin(ownerOn(1))
  s.away(0, true)
  const list = { status: 200, body: { approvals: [], next: null } }
  expect(await s.ask('GET', `/v1/approvals?run=${run}`)).toMatchObject(list)
  expect(await s.ask('GET', '/v1/approvals')).toMatchObject({ status: 503 })
  s.away(0, false)
  expect(await s.ask('GET', '/v1/approvals?run=run_x~7')).toMatchObject(list)
})

test('RUN-18 OPS-05 what a database is not opened, migrated or raised for says which of several it is', async () => {
  const bad = { file: 'nowhere' }
  const lost = new Fault('store_unavailable', 'refused', { retryable: false })
  const failing = (): Promise<never> => Promise.reject(lost)
  await expect(ofPlace(bad, { number: 1, count: 2 }, failing)).rejects.toMatchObject({
    code: 'store_unavailable',
    retryable: false,
    message: expect.stringMatching(/^the database at place 1 of 2.*: refused$/su) as string,
  })
  await expect(
    ofPlace(bad, { number: 1, count: 2 }, () =>
      Promise.reject(new LeaseholdError('invalid_config', 'no')),
    ),
  ).rejects.toMatchObject({ code: 'invalid_config' })
  // of one nothing is added
  await expect(ofPlace(bad, { number: 0, count: 1 }, failing)).rejects.toBe(lost)
})

test('RUN-18 a database that is named twice is refused', async () => {
  const store = await openStore({ shard: { number: 0, count: COUNT } })
  onTestFinished(() => store.close())
  const { engine } = store
  const again = { ...engine, shard: { number: 1, count: COUNT }, store: engine.store } as Engine
  await expect(
    joinShards([store.opened, { engine: again, remote: store.opened.remote }]),
  ).rejects.toMatchObject({
    code: 'invalid_config',
    message: expect.stringMatching(/is shard 0 of 2; expected 1 of 2/) as string,
  })
})

/** As `opened`, with something to wait for before it is written to. */
const heldUp = (opened: Opened, until: () => Promise<unknown>): Opened => {
  const { engine } = opened
  const store = {
    ...engine.store,
    run: async (...given: Parameters<Engine['store']['run']>) => {
      await until()
      return engine.store.run(...given)
    },
  }
  return { ...opened, engine: { ...engine, store } as Engine }
}

test('RUN-18 two servers that join the same databases at the same moment join one set', async () => {
  const stores: TestStore[] = []
  for (let number = 0; number < COUNT; number++) {
    const store = await openStore({ shard: { number, count: COUNT } })
    stores.push(store)
    onTestFinished(() => store.close())
  }
  const [one, two] = stores.map(({ opened }) => opened) as [Opened, Opened]
  const told = (store: TestStore): unknown[] =>
    store.sql("select value from meta where name = 'shard'")
  let others: Promise<unknown> = Promise.resolve()
  const first = joinShards([one, heldUp(two, () => others)])
  others = joinShards([
    heldUp(one, async () => {
      while (told(stores[0] as TestStore).length === 0) await settled(1)
    }),
    two,
  ])
  await first
  await others
  const [zero, other] = stores.map((store) => JSON.stringify(told(store)))
  expect(zero?.replace('0 of', '1 of')).toBe(other)
  expect(await joinShards([one, two])).toBeDefined()
})

test('RUN-18 an empty database in the place of one of a set that has runs is refused', async () => {
  const t = await join()
  await t.register('ses_a')
  await t.start('w', { owner: ownerOn(0) })
  const fresh = await openStore({ shard: { number: 1, count: COUNT } })
  onTestFinished(() => fresh.close())
  await expect(joinShards([(t.stores[0] as TestStore).opened, fresh.opened])).rejects.toMatchObject(
    {
      code: 'invalid_config',
      message: expect.stringMatching(/place 1 is of no set.*name that database/) as string,
    },
  )
})
