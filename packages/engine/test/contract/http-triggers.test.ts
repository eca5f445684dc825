// Triggers over real HTTP, signed by what senders of deliveries use themselves.
import { request } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { Facts } from '../../src/kernel/log.ts'
import type { Settings } from '../../src/model/settings.ts'
import type { Listening } from '../../src/orchestrator/http/server.ts'
import { serve } from '../../src/orchestrator/http/server.ts'
import type { TestEngine } from '../support/engine.ts'
import { definition, hands, openTestEngine } from '../support/engine.ts'
import { example, examples, githubHeaders } from '../support/hooks.ts'
import type { TestPorts } from '../support/ports.ts'
import { testPorts } from '../support/ports.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const SECRETS = {
  github: 'It’s a secret to everybody',
  next: 'the one after it',
  standard: `whsec_${Buffer.from('a key of twenty-four bytes').toString('base64')}`,
  standard_next: `whsec_${Buffer.from('another key of some bytes').toString('base64')}`,
  token: 'glpat-of-nobody',
}
const schema = { type: 'object', properties: { number: { type: 'number' } }, required: ['number'] }

interface World extends TestEngine, TestPorts {
  readonly server: Listening
  readonly client: Client
  readonly said: { event: string; facts: Facts }[]
  send(path: string, headers: Record<string, string>, body: string | Buffer): Promise<Answer>
  github(name: string, event: string, payload: unknown, delivery?: string): Promise<Answer>
  runs(): Promise<number>
}
interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

const world = async (settings: Partial<Settings> = {}): Promise<World> => {
  const ports = testPorts(Date.UTC(2026, 0, 1))
  const said: World['said'] = []
  const log = {
    ...ports.ports.log,
    warn: (event: string, facts: Facts = {}) => void said.push({ event, facts }),
  }
  const engine = await openTestEngine({ ...ports.ports, log }, { settings })
  closing.push(engine.close)
  await hands(engine.port, 'ses_1', [definition('review', { input: schema }), definition('w')])
  const server = await serve(engine.engine, {
    port: 0,
    tokens: [{ token: 'secret-of-the-api', role: 'admin' }],
    hookSecrets: SECRETS,
  })
  closing.push(() => server.close(0))
  const client = connect({ url: server.url, token: 'secret-of-the-api', actor: 'ada' })
  let deliveries = 0
  const send: World['send'] = async (path, headers, body) => {
    const answer = await fetch(`${server.url}${path}`, { method: 'POST', headers, body })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  return {
    ...engine,
    ...ports,
    server,
    client,
    said,
    send,
    async github(name, event, payload, delivery = `d${++deliveries}`) {
      const body = JSON.stringify(payload)
      return send(
        `/hooks/${name}`,
        await githubHeaders(SECRETS.github, body, delivery, event),
        body,
      )
    },
    runs: async () => (await client.list({ limit: '100' })).runs.length,
  }
}

const pulls = {
  kind: 'github' as const,
  secrets: ['github'],
  own: ['leasehold[bot]'],
  rules: [
    {
      events: ['pull_request.opened'],
      where: { '/pull_request/draft': false },
      workflow: 'review',
      start: {
        input: { number: { $: '/number' }, repository: { $: '/repository/full_name' } },
        priority: 5,
      },
    },
  ],
}

test('RAIL-15 a signed delivery of GitHub starts its run once; the same again answers 200 with the first run’s id', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', pulls)
  const payload = example('pull_request', 'opened')
  const first = await t.github('pulls', 'pull_request', payload, '72d3162e')
  expect(first).toMatchObject({ status: 200, body: { outcome: 'started', repeated: false } })
  const run = String(first.body['run'])
  const again = await t.github('pulls', 'pull_request', payload, '72d3162e')
  expect(again).toEqual({ status: 200, body: { ...first.body, repeated: true } })
  const detail = await t.client.get(run)
  expect(detail).toMatchObject({
    run: { workflow: 'review', priority: 5 },
    input: { number: payload['number'], repository: 'Codertocat/Hello-World' },
    events: [{ kind: 'run.started', actor: 'trigger:pulls' }],
  })
  expect(await t.runs()).toBe(1)
  const { deliveries } = await t.client.trigger('pulls')
  expect(deliveries).toMatchObject([
    { delivery: '72d3162e', event: 'pull_request', outcome: 'started', run, times: 1 },
  ])
})

test('RAIL-15 every payload that GitHub documents is read, filtered and mapped, and comes to one run a delivery', async () => {
  const t = await world()
  await t.client.setTrigger('all', {
    kind: 'github',
    secrets: ['github'],
    own: [],
    rules: [
      { events: ['issues', 'pull_request'], workflow: 'w', start: { input: { $: '/action' } } },
      { events: ['push'], workflow: 'w', start: { input: { ref: { $: '/ref' } } } },
    ],
  })
  const all = examples()
  let taken = 0
  for (const [i, { event, payload }] of all.entries()) {
    const answer = await t.github('all', event, payload, `d${i}`)
    expect(answer.status).toBe(200)
    const mine = ['issues', 'pull_request', 'push'].includes(event)
    expect(answer.body['outcome']).toBe(mine ? 'started' : 'ignored')
    if (mine) taken += 1
  }
  expect(all.length).toBeGreaterThan(100)
  const { n } = t.store.db.prepare('select count(*) as n from runs').get() as { n: number }
  expect(n).toBe(taken)
})

test('RAIL-15 what the engine’s own actor caused is ignored; where nobody has said who that is, the log, the trigger and health say so', async () => {
  const t = await world()
  const opened = example('pull_request', 'opened')
  const by = (sender: object) => ({
    ...opened,
    sender: { ...(opened['sender'] as object), ...sender },
  })
  await t.client.setTrigger('pulls', { ...pulls, own: ['Leasehold[bot]', 41_898_282] })
  for (const sender of [{ login: 'leasehold[BOT]' }, { id: 41_898_282 }])
    expect(await t.github('pulls', 'pull_request', by(sender))).toMatchObject({
      status: 200,
      body: { outcome: 'ignored', run: null },
    })
  expect(await t.runs()).toBe(0)
  expect((await t.client.trigger('pulls')).trigger.faults).toEqual([])

  const { own: _own, ...unresolved } = pulls
  const set = await t.client.setTrigger('pulls', unresolved)
  expect(set.trigger.faults).toEqual([expect.stringContaining('own actor')])
  expect(await (await fetch(`${t.server.url}/readyz`)).json()).toMatchObject({
    warnings: [expect.stringContaining('1 trigger')],
  })
  expect(await t.github('pulls', 'pull_request', opened)).toMatchObject({
    body: { outcome: 'started' },
  })
  expect(t.said.map(({ event }) => event)).toContain('hook.own_actor_unknown')
})

test('RAIL-15 a stranger is told one sentence, whatever there is and is not, and nothing is changed', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', pulls)
  await t.client.setTrigger('none', { ...pulls, secrets: ['not_here'] })
  const body = JSON.stringify(example('pull_request', 'opened'))
  const right = await githubHeaders(SECRETS.github, body, 'd1', 'pull_request')
  const without = (name: string) =>
    Object.fromEntries(Object.entries(right).filter(([key]) => key !== name))
  const signature = String(right['x-hub-signature-256'])
  const wrong: [string, Record<string, string>, string][] = [
    ['nobody', right, body],
    ['none', right, body],
    ['%00', right, body],
    ['__proto__', right, body],
    ['pulls', await githubHeaders(SECRETS.next, body, 'd1', 'pull_request'), body],
    ['pulls', right, `${body} `],
    ['pulls', without('x-hub-signature-256'), body],
    ['pulls', without('x-github-delivery'), body],
    ['pulls', { ...right, 'x-hub-signature-256': signature.slice(0, -1) }, body],
    ['pulls', { ...right, 'x-hub-signature-256': signature.slice('sha256='.length) }, body],
    ['pulls', { ...right, 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }, body],
    ['pulls', { ...right, 'x-hub-signature-256': 'sha1=0000' }, body],
    ['pulls', { ...right, 'x-github-delivery': 'd'.repeat(201) }, body],
    ['pulls', { authorization: 'Bearer secret-of-the-api' }, body],
  ]
  const answers = []
  for (const [name, headers, sent] of wrong)
    answers.push(await t.send(`/hooks/${name}`, headers, sent))
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  expect(answers[0]).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
  expect(await t.runs()).toBe(0)
  expect((await t.client.trigger('pulls')).deliveries).toEqual([])
  // and who may read the log finds out
  const why = t.said
    .filter(({ event }) => event === 'hook.refused')
    .map(({ facts }) => String(facts['why']))
  expect(why.join('\n')).toContain('there is no trigger of this name')
  expect(why.join('\n')).toContain('this server has none of its secrets: not_here')
  expect(JSON.stringify(t.said)).not.toContain(SECRETS.github)
})

test('RAIL-15 the hook asks for no token of the API and for no name of this machine, and the API takes no hook’s secret', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', pulls)
  const body = JSON.stringify(example('pull_request', 'opened'))
  const headers = await githubHeaders(SECRETS.github, body, 'd1', 'pull_request')
  const answer = await raw(
    t,
    '/hooks/pulls',
    { ...headers, host: 'hooks.example.com', origin: 'https://example.com' },
    body,
  )
  expect(answer.status).toBe(200)
  const denied = await fetch(`${t.server.url}/v1/triggers`, {
    headers: { authorization: `Bearer ${SECRETS.next}` },
  })
  expect(denied.status).toBe(401)
})

test('RAIL-15 secrets stand in no answer and no row; either of two is taken while they are changed', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', { ...pulls, secrets: ['github', 'next'] })
  const payload = example('pull_request', 'opened')
  const body = JSON.stringify(payload)
  for (const [i, secret] of [SECRETS.github, SECRETS.next].entries())
    expect(
      await t.send(
        '/hooks/pulls',
        await githubHeaders(secret, body, `d${i}`, 'pull_request'),
        body,
      ),
    ).toMatchObject({ body: { outcome: 'started' } })
  const shown = JSON.stringify([await t.client.triggers(), await t.client.trigger('pulls')])
  const rows = t.store.db
    .prepare(`select name from sqlite_master where type = 'table'`)
    .pluck()
    .all()
    .map((table) => t.store.db.prepare(`select * from ${String(table)}`).all())
  for (const secret of Object.values(SECRETS)) {
    expect(shown).not.toContain(secret)
    expect(JSON.stringify(rows)).not.toContain(secret)
  }
})

test('RAIL-15 Standard Webhooks: signed over id, time and body; several secrets and signatures; five minutes either way', async () => {
  const t = await world()
  await t.client.setTrigger('events', {
    kind: 'standard',
    secrets: ['standard', 'standard_next'],
    rules: [{ events: ['user.created'], workflow: 'w', start: { input: { $: '/data' } } }],
  })
  const body = JSON.stringify({ type: 'user.created', timestamp: 'now', data: { id: 7 } })
  const now = t.ports.time.now()
  const headers = (id: string, at = now, secret = SECRETS.standard, prefix = 'webhook') => ({
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: String(Math.floor(at / 1_000)),
    [`${prefix}-signature`]: new Webhook(secret).sign(id, new Date(at), body),
  })
  const first = await t.send('/hooks/events', headers('msg_1'), body)
  expect(first).toMatchObject({ status: 200, body: { outcome: 'started' } })
  expect((await t.client.get(String(first.body['run']))).input).toEqual({ id: 7 })
  // signed anew, with another time, it is the same message
  const again = await t.send('/hooks/events', headers('msg_1', now + 60_000), body)
  expect(again.body).toEqual({ ...first.body, repeated: true })
  const next = await t.send('/hooks/events', headers('msg_2', now, SECRETS.standard_next), body)
  expect(next).toMatchObject({ body: { outcome: 'started' } })
  const svix = await t.send('/hooks/events', headers('msg_3', now, SECRETS.standard, 'svix'), body)
  expect(svix).toMatchObject({ body: { outcome: 'started' } })
  const two = headers('msg_4')
  two['webhook-signature'] = `v1a,bm8= v1,bm8= ${two['webhook-signature']}`
  expect(await t.send('/hooks/events', two, body)).toMatchObject({ body: { outcome: 'started' } })
  for (const refused of [
    headers('msg_9', now - 301_000),
    headers('msg_9', now + 301_000),
    { ...headers('msg_9'), 'webhook-id': 'msg_8' },
    { ...headers('msg_9'), 'webhook-timestamp': String(now / 1_000 + 1) },
    { ...headers('msg_9'), 'webhook-timestamp': '1e9' },
    { ...headers('msg_9'), 'webhook-signature': 'v1,' },
    { ...headers('msg_9'), 'webhook-signature': '' },
  ])
    expect(await t.send('/hooks/events', refused, body)).toMatchObject({ status: 401 })
  expect(await t.runs()).toBe(4)
})

test('RAIL-15 a token: in a header of its own or as Bearer; the delivery by a header, or by the digest of the body', async () => {
  const t = await world()
  const rules = [{ events: ['Pipeline Hook'], workflow: 'w' }]
  await t.client.setTrigger('gitlab', {
    kind: 'token',
    secrets: ['token'],
    tokenHeader: 'X-Gitlab-Token',
    deliveryHeader: 'X-Gitlab-Event-UUID',
    eventHeader: 'X-Gitlab-Event',
    rules,
  })
  const gitlab = {
    'x-gitlab-token': SECRETS.token,
    'x-gitlab-event-uuid': 'u1',
    'x-gitlab-event': 'Pipeline Hook',
  }
  const first = await t.send('/hooks/gitlab', gitlab, '{"n":1}')
  expect(first).toMatchObject({ status: 200, body: { outcome: 'started' } })
  const again = await t.send('/hooks/gitlab', gitlab, '{"n":2}')
  expect(again.body).toEqual({ ...first.body, repeated: true })
  for (const wrong of [
    { ...gitlab, 'x-gitlab-token': 'glpat-of-nobod' },
    { ...gitlab, 'x-gitlab-token': '' },
    { ...gitlab, 'x-gitlab-event-uuid': '' },
  ])
    expect(await t.send('/hooks/gitlab', wrong, '{}')).toMatchObject({ status: 401 })

  await t.client.setTrigger('any', {
    kind: 'token',
    secrets: ['token'],
    rules: [{ workflow: 'w' }],
  })
  const bearer = { authorization: `Bearer ${SECRETS.token}` }
  const one = await t.send('/hooks/any', bearer, '{"n":1}')
  expect((await t.send('/hooks/any', bearer, '{"n":1}')).body).toMatchObject({
    run: one.body['run'],
    repeated: true,
  })
  expect((await t.send('/hooks/any', bearer, '{"n":2}')).body).toMatchObject({ outcome: 'started' })
})

test('RAIL-15 hostile bodies of a known sender are refused with a sentence, or kept as the data that they are', async () => {
  const t = await world({ hookBodyMaxBytes: 10_000 })
  await t.client.setTrigger('any', {
    kind: 'token',
    secrets: ['token'],
    rules: [{ workflow: 'w' }],
  })
  const bearer = { authorization: `Bearer ${SECRETS.token}` }
  const send = (body: string | Buffer, more: Record<string, string> = {}) =>
    t.send('/hooks/any', { ...bearer, ...more }, body)
  const refused: [string | Buffer, Record<string, string>, RegExp][] = [
    ['', {}, /not JSON/],
    ['nonsense', {}, /not JSON/],
    ['{"a":1}{"b":2}', {}, /not JSON/],
    [Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), {}, /not UTF-8/],
    [Buffer.from('{"a":1}', 'utf16le'), {}, /not JSON|not UTF-8/],
    [`${'['.repeat(2_000)}${']'.repeat(2_000)}`, {}, /nested 2000 deep/],
    ['{}', { 'content-encoding': 'gzip' }, /encoded as gzip/],
    ['a=1', { 'content-type': 'application/x-www-form-urlencoded' }, /no member payload/],
  ]
  for (const [body, headers, why] of refused)
    expect(await send(body, headers)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', detail: expect.stringMatching(why) as string },
    })
  expect(await send(JSON.stringify('x'.repeat(10_001)))).toMatchObject({
    status: 413,
    body: { code: 'payload_too_large' },
  })
  const huge = new ReadableStream({
    pull: (to) => to.enqueue(new Uint8Array(4_000)),
  })
  const cut = await fetch(`${t.server.url}/hooks/any`, {
    method: 'POST',
    headers: bearer,
    body: huge,
    duplex: 'half',
  } as RequestInit)
  expect(cut.status).toBe(413)
  expect(await t.runs()).toBe(0)

  const evil =
    '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"a":"\\u0000\\ud800"}'
  const kept = await send(evil)
  expect(kept).toMatchObject({ status: 200, body: { outcome: 'started' } })
  const { input } = await t.client.get(String(kept.body['run']))
  expect(Object.hasOwn(input as object, '__proto__')).toBe(true)
  expect(({} as { admin?: unknown }).admin).toBeUndefined()
  const form = new URLSearchParams({ payload: '{"a":"ä & b"}' }).toString()
  const formed = await send(form, { 'content-type': 'application/x-www-form-urlencoded' })
  expect((await t.client.get(String(formed.body['run']))).input).toEqual({ a: 'ä & b' })
})

test('RAIL-15 pointers lead to own members alone, and one that leads to nothing refuses or has its default', async () => {
  const t = await world()
  const set = (input: unknown) =>
    t.client.setTrigger('any', {
      kind: 'token',
      secrets: ['token'],
      rules: [{ workflow: 'w', key: ['k', { $: '/n' }, '-', { $: 'delivery' }], start: { input } }],
    })
  const bearer = { authorization: `Bearer ${SECRETS.token}` }
  await set({ p: { $: '/constructor/name' } })
  expect(await t.send('/hooks/any', bearer, '{"n":1}')).toMatchObject({
    status: 422,
    body: { code: 'invalid_input', pointer: '/constructor/name' },
  })
  await set({
    __proto__: null,
    whole: { $: '' },
    item: { $: '/a/1' },
    odd: { $: '/x~1y/~0' },
    none: { $: '/a/7', default: null },
    by: { $: 'trigger' },
    as: '$: literal',
  })
  const taken = await t.send('/hooks/any', bearer, '{"n":2,"a":[1,{"b":2}],"x/y":{"~":3}}')
  const { input, run } = await t.client.get(String(taken.body['run']))
  expect(input).toEqual({
    whole: { n: 2, a: [1, { b: 2 }], 'x/y': { '~': 3 } },
    item: { b: 2 },
    odd: 3,
    none: null,
    by: 'any',
    as: '$: literal',
  })
  expect(run.key).toMatch(/^k2-sha256:[0-9a-f]{64}$/)
})

test('RAIL-15 what cannot be taken says why to its sender, is shown, and is taken when it comes again and can be', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', { ...pulls, rules: [{ workflow: 'review' }] })
  const answer = await t.github('pulls', 'push', example('push'), 'd1')
  expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_input' } })
  expect((await t.client.trigger('pulls')).deliveries).toMatchObject([
    {
      delivery: 'd1',
      outcome: 'refused',
      run: null,
      note: expect.stringContaining('number') as string,
    },
  ])
  await t.client.setTrigger('pulls', { ...pulls, rules: [{ workflow: 'w' }] })
  expect(await t.github('pulls', 'push', example('push'), 'd1')).toMatchObject({
    status: 200,
    body: { outcome: 'started', repeated: false },
  })
})

test('RAIL-15 a trigger is tried on a payload: what it would do, why nothing, or what is wrong; nothing is kept', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', pulls)
  const payload = example('pull_request', 'opened')
  expect(await t.client.tryTrigger('pulls', { event: 'pull_request', payload })).toEqual({
    ignored: null,
    action: {
      workflow: 'review',
      key: null,
      owner: '',
      start: {
        input: { number: payload['number'], repository: 'Codertocat/Hello-World' },
        queue: null,
        labels: [],
        priority: 5,
      },
      signal: null,
    },
  })
  expect(await t.client.tryTrigger('pulls', { event: 'push', payload: {} })).toEqual({
    ignored: 'no rule of pulls takes the event push',
    action: null,
  })
  const wrong = { ...payload, number: 'seven' }
  const refused = t.client.tryTrigger('pulls', { event: 'pull_request', payload: wrong })
  await expect(refused).rejects.toMatchObject({ code: 'invalid_input' })
  expect(await t.runs()).toBe(0)
  expect((await t.client.trigger('pulls')).deliveries).toEqual([])
})

test('RAIL-15 a paused trigger refuses deliveries so that they come again; one that drains does too', async () => {
  const t = await world()
  await t.client.setTrigger('pulls', pulls)
  const paused = await t.client.pauseTrigger('pulls', 'noise')
  expect(paused.trigger).toMatchObject({ pausedBy: 'ada', why: 'noise' })
  const payload = example('pull_request', 'opened')
  expect(await t.github('pulls', 'pull_request', payload, 'd1')).toMatchObject({
    status: 503,
    body: { code: 'trigger_paused' },
  })
  // setting it does not resume it
  expect((await t.client.setTrigger('pulls', pulls)).trigger.pausedAt).not.toBeNull()
  await t.client.resumeTrigger('pulls')
  await expect(t.client.resumeTrigger('pulls')).rejects.toMatchObject({ code: 'not_paused' })
  expect(await t.github('pulls', 'ping', { zen: 'x' })).toMatchObject({
    body: { outcome: 'ignored' },
  })
  expect(await t.github('pulls', 'pull_request', payload, 'd1')).toMatchObject({ status: 200 })
  t.server.drain()
  expect(await t.github('pulls', 'pull_request', payload, 'd2')).toMatchObject({
    status: 503,
    body: { code: 'draining' },
  })
})

test('RAIL-15 what could never work is refused when it is set, with all its faults', async () => {
  const { client } = await world()
  const set = (more: object) => client.setTrigger('x', { ...pulls, ...more })
  const rule = (more: object) => set({ rules: [{ workflow: 'w', ...more }] })
  const refused = [
    [set({ kind: 'github', deliveryHeader: 'x-id' }), 'deliveryHeader is of the kind token'],
    [rule({ where: { 'no/slash': 1 } }), 'is no JSON pointer'],
    [rule({ where: { '/a~2': 1 } }), 'neither ~0 nor ~1'],
    [rule({ key: { $: 'nothing' } }), 'one of delivery, event, trigger'],
    [rule({ start: { input: { a: [{ $: '/x', or: 1 }] } } }), 'the member or beside $'],
    [rule({ signal: { name: 'go' } }), 'it sends a signal and has no key'],
    [
      client.setTrigger('x', { kind: 'standard', secrets: ['s'], own: ['me'], rules: pulls.rules }),
      'give actorAt',
    ],
  ] as const
  for (const [done, why] of refused)
    await expect(done).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(why) as string,
    })
  for (const wrong of [{ secrets: [] }, { rules: [] }, { kind: 'other' }, { more: 1 }])
    await expect(set(wrong)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(rule({ workflow: 'nobody' })).rejects.toMatchObject({ code: 'unknown_workflow' })
  await expect(client.setTrigger('No Such', pulls)).rejects.toMatchObject({
    code: 'invalid_request',
  })
  await expect(client.trigger('x')).rejects.toMatchObject({ code: 'not_found' })
  await expect(client.deleteTrigger('x')).rejects.toMatchObject({ code: 'not_found' })
})

/** A request with headers that `fetch` would not send. */
const raw = (t: World, path: string, headers: Record<string, string>, body: string) =>
  new Promise<{ status: number | undefined }>((resolve, reject) => {
    const sent = request(
      { port: t.server.port, host: '127.0.0.1', path, method: 'POST', headers },
      (answer) => {
        answer.resume()
        answer.on('end', () => resolve({ status: answer.statusCode }))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
