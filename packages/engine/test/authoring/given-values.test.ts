// What a program hands to the engine from outside of a workflow: values that JSON cannot carry, and options that nobody reads.
import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { connect } from '../../src/entry/client.ts'
import type { TransactionVerbs } from '../../src/orchestrator/user-transaction.ts'
import type { Embedded } from '../../src/entry/index.ts'
import { embedded, workflow } from '../../src/entry/index.ts'

const w = workflow('w', async (ctx, input: unknown) => {
  await ctx.signal('go')
  return input
})
let engine: Embedded | null = null
const opened = async (): Promise<Embedded> =>
  (engine = await embedded({ file: ':memory:', workflows: [w] }))
afterEach(async () => {
  await engine?.close()
  engine = null
})

const cycle = { self: null as unknown }
cycle.self = cycle
const hostile: readonly (readonly [string, unknown, RegExp])[] = [
  ['a BigInt', { n: 1n }, /n is a BigInt/],
  ['a cycle', cycle, /self is a cycle/],
  ['NaN', [Number.NaN], /\[0\] is NaN/],
  ['a Map', { m: new Map([[1, 2]]) }, /m is an instance of Map without toJSON/],
  ['a function', { f: () => 1 }, /f is a function/],
  ['undefined in a list', [undefined], /\[0\] is undefined/],
]

it.each(hostile)(
  'RUN-30 DX-05 %s is refused at once as an input, a signal and a decision, and nothing is written',
  async (_what, value, message) => {
    const { start, startMany, signal, approve, list, transaction } = await opened()
    const refused = { code: 'not_serializable', message: expect.stringMatching(message) }
    await expect(start(w, value)).rejects.toMatchObject(refused)
    await expect(signal('run', 'go', value)).rejects.toMatchObject(refused)
    await expect(approve('approval', { payload: value })).rejects.toMatchObject(refused)
    expect(() => transaction((tx) => tx.start(w, value))).toThrow(expect.objectContaining(refused))
    expect((await list()).runs).toEqual([])
    // an item that cannot be sent is a fault of its own alone, wherever it stands
    expect(await startMany(w, [{ input: 1 }, { input: value }, { input: 2 }])).toMatchObject([
      { ok: true },
      { ok: false, ...refused },
      { ok: true },
    ])
  },
)

it.each([
  ['a workflow of no name', (tx: TransactionVerbs) => tx.start({ workflow: 'w' } as never, 1)],
  ['an option that there is not', (tx: TransactionVerbs) => tx.start(w, 1, { prio: 1 } as never)],
  ['a signal of no name', (tx: TransactionVerbs) => tx.signal('run', undefined as never)],
  ['a retry of another kind', (tx: TransactionVerbs) => tx.retry('run', { form: 's' } as never)],
])(
  'RUN-21 in a transaction %s is refused where it stands, and all is rolled back',
  async (_what, ask) => {
    const { transaction, list } = await opened()
    const both = (tx: TransactionVerbs): void => {
      tx.start(w, 1)
      ask(tx)
    }
    expect(() => transaction(both)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^invalid_/) }),
    )
    expect((await list()).runs).toEqual([])
  },
)

it('RUN-30 a value that cannot be sent is not taken for a server that does not answer, and no request is made', async () => {
  const fetched = vi.fn<typeof fetch>()
  const client = connect({ url: 'http://127.0.0.1:9', fetch: fetched as never })
  await expect(client.start('w', 1n)).rejects.toMatchObject({ code: 'not_serializable' })
  expect(fetched).not.toHaveBeenCalled()
})

it('DX-05 a client refuses an option that there is not: a mistyped token would be none', () => {
  expect(() => connect({ url: 'http://127.0.0.1:9', tokne: 'x' } as never)).toThrow(
    /connect has no option "tokne"; it has url, token/,
  )
})

it.each([
  ['a mistyped file', { flie: 'x.db' }, /embedded has no option "flie"; it has .*file/],
  ['nothing to store in', {}, /neither `file` nor `database`/],
  ['two places', { file: 'x.db', database: 'postgres://h/d' }, /both `file` and `database`/],
  ['an option of the other kind', { file: 'x.db', schema: 's' }, /no option "schema"/],
  ['a file of no name', { file: '' }, /`file` of embedded is ""/],
  ['a database that is no text', { database: 1 }, /`database` of embedded is 1/],
  ['a database that is no URL', { database: 'x' }, /address of the database cannot be read/],
  [
    'a mistyped setting',
    { file: 'x.db', settings: { leseMs: 1 } },
    /settings has no option "leseMs"/,
  ],
])('OPS-01 DX-05 embedded refuses %s and opens nothing', async (_what, options, message) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'leasehold-'))
  const before = process.cwd()
  process.chdir(folder)
  try {
    await expect(embedded({ ...options, workflows: [w] } as never)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(message),
    })
    expect(readdirSync(folder)).toEqual([])
  } finally {
    process.chdir(before)
  }
})
