import { expect, test } from 'vitest'
import { items } from '../packages/engine/src/cli/config/config.ts'
import { SETTINGS } from '../packages/engine/src/cli/declaring.ts'
import { makeProgram } from '../packages/engine/src/cli/program.ts'
import { makeOutput } from '../packages/engine/src/cli/output.ts'
import { decides, settingsPage } from './settings.ts'

test('each setting is a row: what it decides, as one may write its default, its variable and its flag', () => {
  const page = settingsPage(
    {
      drainMs: { expected: 'a duration', fallback: 25_000 },
      token: { expected: 'a text', fallback: null, secret: true },
      url: { expected: 'an address', fallback: null, otherwise: 'of host and port' },
    },
    { drainMs: 'How long | steps may finish.', token: 'Who is let in.', url: 'Where it is.' },
    { sweepMs: 90_000, depthMax: 20, payloadMaxBytes: 1024 ** 2, leaseMs: 1 },
    {
      sweepMs: 'How often.',
      depthMax: 'How deep.',
      payloadMaxBytes: 'How large.',
      leaseMs: 'How long.',
    },
    ['drainMs'],
  )
  for (const line of [
    '| `drainMs` | How long \\| steps may finish. | a duration | `25s` | `LEASEHOLD_DRAIN_MS` | `--drain-ms` |',
    '| `token` | Who is let in. | a text | none | `LEASEHOLD_TOKEN` (secret) |  |',
    '| `url` | Where it is. | an address | of host and port | `LEASEHOLD_URL` |  |',
    '| `sweepMs` | How often. | ms | `90s` | `LEASEHOLD_SWEEP_MS` |',
    '| `depthMax` | How deep. |  | `20` | `LEASEHOLD_DEPTH_MAX` |',
    '| `payloadMaxBytes` | How large. | bytes | `1048576` (1 MiB) | `LEASEHOLD_PAYLOAD_MAX_BYTES` |',
    '| `leaseMs` | How long. | ms | `1ms` | `LEASEHOLD_LEASE_MS` |',
  ])
    expect(page).toContain(`\n${line}\n`)
})

test('what a setting decides is what stands above it, on one line, and has to stand there', () => {
  const source =
    'export interface A {\n  /**\n   * One\n   * thing.\n   */\n  readonly a: 1\n  readonly b: 2\n}'
  const said = decides(source, 'A')
  expect(said).toEqual({ a: 'One thing.', b: '' })
  expect(() => decides(source, 'B')).toThrow('there is no interface B')
  expect(() => settingsPage({}, {}, { a: 1, b: 2 }, said, [])).toThrow('b: say above it')
})

test('OPS-03 a flag is taken for a setting exactly where it has the name of one', () => {
  const program = makeProgram({
    out: makeOutput(),
    env: {},
    cwd: '/',
    version: '0',
    json: false,
    ended: () => undefined,
  })
  const flags = new Set(
    program.commands.flatMap((each) => each.options.map((option) => option.attributeName())),
  )
  const named = [...flags].filter((name) => name === 'config' || Object.hasOwn(items, name))
  expect(named.toSorted()).toEqual([...SETTINGS].toSorted())
})
