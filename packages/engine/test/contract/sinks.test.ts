// The sinks against real peers: a receiver that verifies with a library of others, a mail server, a stand-in for GitHub's
// REST, and names that resolve to where nothing must be sent.
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createVerify, generateKeyPairSync } from 'node:crypto'
import { SMTPServer } from 'smtp-server'
import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, it } from 'vitest'
import type { Log } from '../../src/kernel/log.ts'
import { noLog } from '../../src/kernel/log.ts'
import { systemOutgoing } from '../../src/kernel/outgoing.ts'
import { systemTime } from '../../src/kernel/time.ts'
import type { Message } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { GithubSinkConfig, WebhookSinkConfig } from '../../src/model/sinks.ts'
import { githubSink } from '../../src/orchestrator/sinks/github.ts'
import { mailSink } from '../../src/orchestrator/sinks/mail.ts'
import { webhookSink } from '../../src/orchestrator/sinks/webhook.ts'
import { makeSinks } from '../../src/orchestrator/sinks/sinks.ts'

const ends: (() => Promise<unknown> | void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

interface Got {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}
type Answer = (got: Got, response: ServerResponse) => void

/** A server on this machine that keeps what it gets. */
const peer = async (answer: Answer): Promise<{ url: string; port: number; got: Got[] }> => {
  const got: Got[] = []
  const server = createServer((request: IncomingMessage, response) => {
    let body = ''
    request.on('data', (part: Buffer) => (body += part.toString()))
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers as Record<string, string>,
        body,
      }
      got.push(one)
      answer(one, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, got }
}

const message: Message = {
  id: 'ntc_0123456789abcdef01234567',
  kind: 'run_failed',
  at: Date.UTC(2026, 0, 2),
  run: 'run_1',
  occurrence: '',
  sentence: 'run_1 (w) failed (error): boom @everyone <!-- x --> [a](b)',
  data: { reason: 'error', note: '```' },
  workflow: 'w',
  owner: 'ana',
  key: 'acme/shop#7',
  again: false,
}
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const around = { outgoing: systemOutgoing(), time: systemTime }
const live = (): AbortSignal => new AbortController().signal

const hook = (url: string, more: Partial<WebhookSinkConfig> = {}): WebhookSinkConfig => ({
  type: 'webhook',
  name: 'ops',
  kinds: noticeKinds,
  url,
  secrets: [SECRET],
  allowPrivate: true,
  ...more,
})

describe('RAIL-05 the webhook', () => {
  it('RAIL-05 is signed as Standard Webhooks says, under each secret, with one id however often it is sent', async () => {
    const other = `whsec_${Buffer.alloc(24, 9).toString('base64')}`
    const { url, got } = await peer((_got, response) => response.writeHead(204).end())
    const sink = webhookSink(hook(url, { secrets: [other, SECRET] }), around)
    expect(await sink.send(message, live())).toEqual({ ok: true, note: 'it answered 204' })
    await sink.send({ ...message, again: true }, live())
    for (const secret of [SECRET, other])
      for (const { headers, body } of got)
        expect(new Webhook(secret).verify(body, headers)).toMatchObject({
          type: 'run_failed',
          timestamp: '2026-01-02T00:00:00.000Z',
          data: { run: 'run_1', sentence: message.sentence, data: { reason: 'error' } },
        })
    expect(got.map(({ headers }) => headers['webhook-id'])).toEqual([message.id, message.id])
    const [first] = got
    expect(() =>
      new Webhook(SECRET).verify(`${first?.body} `, first?.headers as Record<string, string>),
    ).toThrow()
  })

  it.each([
    [500, {}, 'boom\n<b>', { ok: false, why: 'it answered 500: boom <b>' }],
    [410, {}, '', { ok: false, why: 'it answered 410', forGood: true }],
    [429, { 'retry-after': '7' }, '', { ok: false, why: 'it answered 429', afterMs: 7_000 }],
  ] as const)('RAIL-02 an answer of %i is a refusal', async (status, headers, body, expected) => {
    const { url } = await peer((_got, response) => response.writeHead(status, headers).end(body))
    expect(await webhookSink(hook(url), around).send(message, live())).toEqual(expected)
  })

  it('B137 SEC-03 a redirect is refused, and not followed', async () => {
    const inner = await peer((_got, response) => response.writeHead(200).end())
    const { url } = await peer((_got, response) =>
      response.writeHead(307, { location: inner.url }).end(),
    )
    expect(await webhookSink(hook(url), around).send(message, live())).toEqual({
      ok: false,
      why: 'it answered 307; redirects are not followed',
    })
    expect(inner.got).toEqual([])
  })

  it('B137 SEC-03 a name is judged by the address that is connected to, each time anew', async () => {
    const { port, got } = await peer((_got, response) => response.writeHead(200).end())
    const answers = ['93.184.216.34', '127.0.0.1', '169.254.169.254', '::ffff:127.0.0.1']
    const asked: string[] = []
    const outgoing = systemOutgoing((name, _options, found) => {
      const address = answers[asked.push(name) - 1] ?? ''
      // a name with a public and a private address is no better than the private one
      const all = address === '93.184.216.34' ? [address, '10.0.0.1'] : [address]
      found(
        null,
        all.map((each) => ({ address: each, family: each.includes(':') ? 6 : 4 })),
      )
    })
    const sink = webhookSink(hook(`http://rebound.example:${port}`, { allowPrivate: false }), {
      ...around,
      outgoing,
    })
    for (const address of ['10.0.0.1', ...answers.slice(1)])
      await expect(sink.send(message, live())).rejects.toThrow(
        `rebound.example: ${address} is not a public address`,
      )
    expect(asked).toHaveLength(4)
    const literal = webhookSink(hook(`http://127.0.0.1:${port}`, { allowPrivate: false }), around)
    await expect(literal.send(message, live())).rejects.toThrow('127.0.0.1 is not a public address')
    const shortened = webhookSink(
      hook(`http://2130706433:${port}`, { allowPrivate: false }),
      around,
    )
    await expect(shortened.send(message, live())).rejects.toThrow('127.0.0.1 is not a public')
    expect(got).toEqual([])
  })

  it('SEC-03 of an answer no more than its beginning is read, and one that does not end is given up', async () => {
    const long = await peer((_got, response) => {
      response.writeHead(500)
      response.write('x'.repeat(100_000))
    })
    expect(await webhookSink(hook(long.url), around).send(message, live())).toMatchObject({
      ok: false,
      why: expect.stringMatching(/^it answered 500: x{200} … \(\d+ more\)$/) as string,
    })
    const over = new AbortController()
    const silent = await peer(() => over.abort())
    await expect(webhookSink(hook(silent.url), around).send(message, over.signal)).rejects.toThrow(
      '127.0.0.1: it did not answer in time',
    )
  })
})

describe('RAIL-05 mail', () => {
  it('RAIL-05 a mail is sent with one id however often, and a recipient that is refused is a refusal', async () => {
    const mails: { to: string[]; text: string; user: string | null }[] = []
    let refuse = false
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      logger: false,
      onAuth: ({ username, password }, _session, done) =>
        password === 'hush' ? done(null, { user: username }) : done(new Error('wrong password')),
      onRcptTo: (_address, _session, done) =>
        refuse ? done(Object.assign(new Error('no such user'), { responseCode: 550 })) : done(),
      onData(stream, session, done) {
        let text = ''
        stream.on('data', (part: Buffer) => (text += part.toString()))
        stream.on('end', () => {
          mails.push({
            to: session.envelope.rcptTo.map(({ address }) => address),
            text,
            user: session.user ?? null,
          })
          done()
        })
      },
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ends.push(() => new Promise((resolve) => server.close(() => resolve(undefined))))
    const { port } = server.server.address() as AddressInfo
    const sink = await mailSink(
      {
        type: 'smtp',
        name: 'mail',
        kinds: noticeKinds,
        url: `smtp://ana@127.0.0.1:${port}`,
        password: 'hush',
        from: 'Leasehold <l@example.com>',
        to: 'ops@example.com',
      },
      5_000,
    )
    const hostile = { ...message, workflow: 'w\r\nBcc: eve@example.com' }
    expect(await sink.send(hostile, live())).toMatchObject({ ok: true })
    await sink.send({ ...message, again: true }, live())
    expect(mails.map(({ to, user }) => ({ to, user }))).toEqual([
      { to: ['ops@example.com'], user: 'ana' },
      { to: ['ops@example.com'], user: 'ana' },
    ])
    for (const { text } of mails) {
      expect(text).toContain(`Message-ID: <${message.id}@leasehold>`)
      expect(text).toMatch(/^Subject: A run failed: w/m)
      expect(text).not.toMatch(/^Bcc:/im)
      expect(text).toContain('run_1 (w) failed (error)')
    }
    refuse = true
    await expect(sink.send(message, live())).rejects.toThrow(/no such user/)
  })
})

describe('RAIL-05 a comment on GitHub', () => {
  /** Issues with their comments, and what the API would refuse. */
  const forge = async (options: { readonly key?: string } = {}) => {
    const comments: string[] = []
    const tokens: string[] = []
    let drops = false
    const stand = await peer(({ method, url, headers, body }, response) => {
      const say = (status: number, value: object): void =>
        void response
          .writeHead(status, { 'content-type': 'application/json' })
          .end(JSON.stringify(value))
      const auth = headers['authorization'] ?? ''
      if (headers['user-agent'] === undefined || headers['x-github-api-version'] !== '2022-11-28')
        return say(400, { message: 'headers are missing' })
      if (url === '/app/installations/9/access_tokens' && method === 'POST') {
        const [head, claims, signature] = auth.replace('Bearer ', '').split('.')
        const verified =
          options.key !== undefined &&
          createVerify('RSA-SHA256')
            .update(`${head}.${claims}`)
            .verify(options.key, signature ?? '', 'base64url')
        const { iss, iat, exp } = JSON.parse(
          Buffer.from(claims ?? '', 'base64url').toString(),
        ) as Record<string, number | string>
        if (!verified || iss !== '77' || Number(exp) - Number(iat) > 600)
          return say(401, { message: 'Bad credentials' })
        tokens.push(`ghs_${tokens.length + 1}`)
        const until = new Date(systemTime.now() + 3_600_000).toISOString()
        return say(201, { token: tokens.at(-1), expires_at: until })
      }
      if (auth !== `Bearer ${tokens.at(-1) ?? 'ghp_1'}`) return say(401, { message: 'Bad token' })
      const at = new URL(url, 'http://x')
      if (at.pathname !== '/repos/acme/shop/issues/7/comments') return say(404, { message: 'no' })
      if (method === 'GET') {
        const [page, size] = [Number(at.searchParams.get('page')), 100]
        return say(
          200,
          comments.slice((page - 1) * size, page * size).map((text) => ({ body: text })),
        )
      }
      comments.push((JSON.parse(body) as { body: string }).body)
      // it is there, and whoever sent it hears nothing of it
      if (drops) response.destroy()
      else say(201, { id: comments.length })
    })
    return { ...stand, comments, tokens, drop: (whether: boolean) => (drops = whether) }
  }
  const config = (api: string, more: Partial<GithubSinkConfig> = {}): GithubSinkConfig => ({
    type: 'github',
    name: 'forge',
    kinds: noticeKinds,
    api,
    repository: 'acme/shop',
    issue: 7,
    auth: { token: 'ghp_1' },
    allowPrivate: true,
    ...more,
  })

  it('RAIL-05 RAIL-04 a comment carries the mark of its notice, and is not made twice where its answer got lost', async () => {
    const { url, comments, drop } = await forge()
    for (let i = 0; i < 150; i++) comments.push(`<!-- leasehold:${message.id} --> says ${i}`)
    const sink = githubSink(config(url), around)
    drop(true)
    await expect(sink.send(message, live())).rejects.toThrow(/127\.0\.0\.1/)
    drop(false)
    expect(comments).toHaveLength(151)
    expect(await sink.send({ ...message, again: true }, live())).toEqual({
      ok: true,
      note: 'the comment on #7 was there',
    })
    expect(comments).toHaveLength(151)
    const made = comments.at(-1) ?? ''
    expect(made).toContain(`<!-- leasehold:${message.id} -->`)
    // what a run says mentions nobody, links nothing, and ends no fence
    expect(made.split('<details>')[0]).not.toMatch(/@everyone|(?<!\\)\[a\]|(?<!\\)<(?!\/)/u)
    expect(made).toContain('````json\n')
    expect(await sink.send({ ...message, id: 'ntc_other', again: true }, live())).toMatchObject({
      ok: true,
    })
    expect(comments).toHaveLength(152)
  })

  it('RAIL-05 an app signs who it is and comments with a token of its installation, which it keeps and renews', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
    const key = publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const { url, comments, tokens } = await forge({ key })
    const auth = { app: '77', installation: 9, privateKey: pem }
    let now = systemTime.now()
    const time = { ...systemTime, now: () => now }
    const sink = githubSink(config(url, { auth }), { ...around, time })
    await sink.send(message, live())
    await sink.send(message, live())
    expect({ comments: comments.length, tokens: tokens.length }).toEqual({ comments: 2, tokens: 1 })
    now += 3_590_000
    await sink.send(message, live())
    expect(tokens).toHaveLength(2)
    const wrong = githubSink(config(url, { auth: { ...auth, app: '78' } }), around)
    await expect(wrong.send(message, live())).rejects.toThrow(
      'the app 78 was given no token for the installation 9: it answered 401',
    )
  })

  it('RAIL-04 RAIL-05 the issue is the one that the run’s key names; a run that names none is not for this sink', async () => {
    const { url, comments } = await forge()
    const sink = githubSink(config(url, { issue: 'key' }), around)
    expect(await sink.send(message, live())).toMatchObject({ ok: true })
    expect(comments).toHaveLength(1)
    for (const key of [null, 'acme/other#7', 'acme/shop#', '../../x#7', 'acme/shop#7/../8'])
      expect(await sink.send({ ...message, key }, live())).toMatchObject({ ok: false, never: true })
    expect(await sink.send({ ...message, key: 'acme/shop#8' }, live())).toMatchObject({
      ok: false,
      why: expect.stringMatching(/^it answered 404/) as string,
    })
    expect(comments).toHaveLength(1)
  })
})

it('RAIL-05 the log gets a line with all that the notice says', async () => {
  const lines: unknown[] = []
  const log: Log = { ...noLog, warn: (event, facts) => lines.push([event, facts]) }
  const [sink] = await makeSinks(
    [{ type: 'log', name: 'log', kinds: noticeKinds }],
    { time: systemTime, log },
    systemOutgoing(),
    1_000,
  )
  expect(await sink?.send({ ...message, data: 'x'.repeat(70_000) }, live())).toEqual({
    ok: true,
    note: 'logged',
  })
  expect(lines).toMatchObject([
    ['notice', { id: message.id, kind: 'run_failed', data: { omitted: '70002 bytes' } }],
  ])
})
