// `npm run example`: the bot against a forge that runs offline. Signed deliveries arrive, one of them twice; the executor and
// then the server are killed while people are asked; an answer comes, and what the forge has at the end is checked.
import { createHmac, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'leasehold/client'
import { setup as build } from '../../scripts/built.ts'
import { root } from '../../scripts/files.ts'
import { startCommand } from './commands.ts'
import type { Command } from './commands.ts'
import { startForge } from './stub.ts'

const SECRET = randomUUID()
const TOKEN = randomUUID()
const LIMIT_MS = 120_000
const say = (line: string): void => void process.stdout.write(`${line}\n`)

build()
const home = mkdtempSync(path.join(tmpdir(), 'leasehold-forge-'))
const forge = await startForge(TOKEN)
const running = new Set<Command>()
const begin = (args: readonly string[], env: Readonly<Record<string, string>>): Command => {
  const command = startCommand(args, { cwd: home, env })
  running.add(command)
  return command
}
const serve = (port: string): Command =>
  begin(['serve', '--file', 'forge.db', '--port', port], {
    LEASEHOLD_HOOK_SECRETS: JSON.stringify({ forge: SECRET }),
    // what the killed executor held is taken back when its lease has lapsed
    LEASEHOLD_LEASE_MS: '6s',
    LEASEHOLD_RENEW_MS: '1500ms',
    LEASEHOLD_SWEEP_MS: '500ms',
  })
const work = (url: string): Command =>
  begin(['work', path.join(root, 'examples/forge-bot/workflows.ts'), '--url', url], {
    FORGE_API: forge.url,
    FORGE_TOKEN: TOKEN,
  })

const until = async <T>(what: string, ask: () => Promise<T | false> | T | false): Promise<T> => {
  for (const end = Date.now() + LIMIT_MS; ;) {
    const answer = await ask()
    if (answer !== false) return answer
    if (Date.now() > end) throw new Error(`waited ${LIMIT_MS / 1_000} s for ${what}`)
    await pause(50)
  }
}

const expectThat = (isSo: boolean, what: string): void => {
  if (!isSo) throw new Error(`not so: ${what}`)
  say(`  checked: ${what}`)
}

try {
  const server = serve('0')
  const url = (await server.line(' at http')).split(' at ').at(-1) ?? ''
  const executor = work(url)
  await executor.line(' works at ')
  const client = connect({ url, actor: 'example', retryForMs: 30_000 })
  const spec = readFileSync(path.join(root, 'examples/forge-bot/trigger.json'), 'utf8')
  await client.setTrigger('forge', JSON.parse(spec) as Parameters<typeof client.setTrigger>[1])
  say(`server and executor are up: ${url}; GitHub would deliver to ${url}/hooks/forge`)

  const repository = { full_name: 'octo/shop' }
  const person = { login: 'octocat', id: 1 }
  const deliver = async (event: string, payload: object, delivery: string = randomUUID()) => {
    const body = JSON.stringify({ repository, sender: person, ...payload })
    const response = await fetch(`${url}/hooks/forge`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-github-event': event,
        'x-github-delivery': delivery,
        'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
      },
    })
    return (await response.json()) as { outcome: string; run: string | null; repeated: boolean }
  }
  const opened = (number: number, title: string, body: string, delivery?: string) =>
    deliver('issues', { action: 'opened', issue: { number, title, body, user: person } }, delivery)
  const says = (number: number, body: string, user: object = person) =>
    deliver('issue_comment', {
      action: 'created',
      sender: user,
      issue: { number },
      comment: { body, user },
    })

  const small = await opened(1, 'Basket is broken', '- [ ] fix the sum\n- [ ] the impossible\n')
  const large = await opened(2, 'Leave the old host', '- [ ] migrate the orders\n', 'twice')
  const again = await opened(2, 'Leave the old host', '- [ ] migrate the orders\n', 'twice')
  expectThat(
    again.repeated && again.run === large.run,
    'a delivery that came twice started one run',
  )
  const empty = await opened(3, 'Say hello', 'Hello.')

  await until('the question', () => forge.comments('octo/shop/issues/2').length > 0)
  say('people are asked; the executor is killed, and then the server')
  executor.kill('SIGKILL')
  server.kill('SIGKILL')
  await Promise.all([executor.ended, server.ended])
  const later = serve(new URL(url).port)
  await later.line(' at http')
  await work(url).line(' works at ')
  await says(2, 'Hm, let me think.')
  const own = await says(2, '/approve', { login: 'forge-bot[bot]', id: 2 })
  expectThat(own.outcome === 'ignored', 'what the bot itself says does not answer its question')
  await says(2, 'All right.\n/approve')

  const ended = async (run: string | null) =>
    until(`the end of ${run}`, async () => {
      const detail = await client.get(run ?? '')
      return detail.run.endedAt !== null && detail
    })
  const [one, two, three] = await Promise.all([small, large, empty].map(({ run }) => ended(run)))
  for (const detail of [one, two, three]) say(`  ${JSON.stringify(detail?.output)}`)
  const comments = (number: number) => forge.comments(`octo/shop/issues/${number}`)
  expectThat(
    [one, two, three].every((detail) => detail?.run.status === 'succeeded'),
    'every issue was seen to its end',
  )
  expectThat(comments(1).length === 1, 'one report on the small issue, and no question')
  expectThat(
    comments(1).some((text) => text.includes('- [x] fix the sum') && text.includes('failed')),
    'it says what was done and what was not',
  )
  expectThat(comments(2).length === 2, 'one question and one report on the large one')
  expectThat(comments(3).length === 1, 'one comment where there was nothing to do')
  expectThat(forge.labels('octo/shop/issues/1')[0] === 'bug', 'the broken basket is a bug')
  expectThat(
    forge.failed.refused === 1 && forge.failed.lost === 1,
    'although the forge refused a request and lost an answer',
  )
} finally {
  for (const command of running) command.kill('SIGTERM')
  await Promise.all([...running].map(({ ended }) => ended))
  forge.close()
  rmSync(home, { recursive: true, force: true })
}
