// The configuration of the program: where values come from, and that all faults are told at once.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { fixture, folder, ran } from './processes.ts'

const put = (cwd: string, value: unknown): void =>
  writeFileSync(path.join(cwd, 'leasehold.config.json'), JSON.stringify(value))

test('OPS-06 flag beats environment beats file beats default, and each value says where it comes from', async () => {
  const cwd = folder()
  put(cwd, { port: 1111, host: '127.0.0.2', slots: 3, settings: { leaseMs: '40s' } })
  const inside = path.join(cwd, 'deep', 'er')
  mkdirSync(inside, { recursive: true })
  const { code, out } = await ran(['config', '--json'], {
    cwd: inside,
    env: { LEASEHOLD_PORT: '2222', LEASEHOLD_SLOTS: '4' },
  })
  expect(code).toBe(0)
  const shown = JSON.parse(out) as Record<string, { value: unknown; origin: string }>
  expect(shown['port']).toEqual({ value: 2222, origin: 'environment LEASEHOLD_PORT' })
  expect(shown['slots']?.value).toBe(4)
  expect(shown['host']).toEqual({
    value: '127.0.0.2',
    origin: `file ${path.join(cwd, 'leasehold.config.json')}`,
  })
  expect(shown['settings.leaseMs']?.value).toBe(40_000)
  expect(shown['settings.renewMs']).toEqual({ value: 10_000, origin: 'default' })
  expect(shown['url']?.value).toBe('http://127.0.0.2:2222')
})

test('OPS-06 secrets come from files too, and are never shown', async () => {
  const cwd = folder()
  writeFileSync(path.join(cwd, 'token'), 'hush-hush\n')
  const { code, out, err } = await ran(['config'], {
    cwd,
    env: { LEASEHOLD_TOKEN_FILE: 'token', LEASEHOLD_VIEWER_TOKEN: 'look-only' },
  })
  expect(code).toBe(0)
  expect(out + err).not.toMatch(/hush-hush|look-only/)
  expect(out).toMatch(/token +hidden +environment LEASEHOLD_TOKEN_FILE/)
})

test('OPS-06 RAIL-05 faults of sinks are listed at once too, each with what was expected, and no secret is shown', async () => {
  const cwd = folder()
  put(cwd, {
    sinks: {
      Ops: { type: 'log' },
      fax: { type: 'fax' },
      hook: { type: 'webhook', url: 'ftp://x/hush-hush', secret: 'hush-hush', kinds: ['all'] },
      mail: { type: 'smtp', url: 'smtp://h', from: 'a@b.c', to: ['a@b.c', 'a@b.c'], cc: 'x' },
      forge: { type: 'github', repository: 'shop', issue: 0 },
      open: { type: 'github', repository: 'acme/shop', issue: 'key' },
      list: { type: 'smtp', url: 'smtp://h', from: 'a@b.c', to: ['a@b.c', 'A@b.c'] },
    },
  })
  const { code, err } = await ran(['serve'], {
    cwd,
    env: { LEASEHOLD_SINK_FORGE_TOKEN_FILE: 'nowhere' },
  })
  expect(code).toBe(2)
  expect(err).not.toContain('hush-hush')
  for (const part of [
    'sinks.Ops is not a name for a sink',
    'sinks.fax.type is "fax" (file ',
    'expected log, webhook, smtp, github',
    'sinks.hook.url is not usable (file ',
    'sinks.hook.secret is not usable (file ',
    'make one with: echo whsec_$(openssl rand -base64 32)',
    'sinks.hook.kinds is ["all"] (file ',
    'sinks.mail.cc is not a setting of a smtp sink',
    'sinks.forge.repository is "shop" (file ',
    'sinks.forge.issue is 0 (file ',
    'sinks.forge.token cannot be read from nowhere (environment LEASEHOLD_SINK_FORGE_TOKEN_FILE)',
    'sinks.open says not how to authorize',
    'two sinks are called list-a-b-c',
  ])
    expect(err).toContain(part)
})

test('OPS-06 all faults are listed at once, each with its origin, with exit code 2', async () => {
  const cwd = folder()
  put(cwd, { logLevel: 'loud', prot: 1, settings: { leaseMs: 'soon', renewMs: 9_000, leasems: 1 } })
  const { code, err } = await ran(['serve', '--port', 'high'], {
    cwd,
    env: { LEASEHOLD_URL: 'ftp://x', LEASEHOLD_TOKEN_FILE: 'nowhere' },
  })
  expect(code).toBe(2)
  for (const part of [
    'port is "high" (flag --port)',
    'url is "ftp://x" (environment LEASEHOLD_URL)',
    'logLevel is "loud" (file ',
    'prot is not a setting',
    'settings.leaseMs is "soon"',
    'did you mean leaseMs?',
    'token cannot be read from nowhere',
  ])
    expect(err).toContain(part)
})

test('OPS-06 a file that is named and is not there, or is not JSON, is a fault', async () => {
  const cwd = folder()
  expect(await ran(['config', '--config', 'none.json'], { cwd })).toMatchObject({ code: 2 })
  writeFileSync(path.join(cwd, 'leasehold.config.json'), '{ "port": ')
  const { code, err } = await ran(['config'], { cwd })
  expect(code).toBe(2)
  expect(err).toContain('is not JSON')
})

test('SEC-01 a server for other machines needs a token; what Kubernetes sets for a Service named leasehold is no setting', async () => {
  const cwd = folder()
  const open = await ran(['serve', '--host', '0.0.0.0', '--port', '0'], { cwd })
  expect(open.code).toBe(2)
  expect(open.err).toContain('configure a token')
  const { out } = await ran(['config', '--json'], {
    cwd,
    env: { LEASEHOLD_PORT: 'tcp://10.0.0.1:7400' },
  })
  expect((JSON.parse(out) as Record<string, unknown>)['port']).toEqual({
    value: 7400,
    origin: 'default',
  })
})

test.each(['work', 'dev'])(
  'EX-20 %s refuses to start where it could not stop before it is killed',
  async (command) => {
    const cwd = folder()
    put(cwd, { drainMs: '25s' })
    const late = await ran([command, fixture('workflows.js'), '--kill-limit-ms', '20s'], { cwd })
    expect(late.code).toBe(2)
    expect(late.err).toContain('the process is killed after 20 s; lower drainMs')
  },
)
