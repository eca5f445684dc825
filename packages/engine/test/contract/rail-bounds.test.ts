// What no column and no index can hold is refused by name at the door, or as its own item's: it fails no other, and no server.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Context } from '../../src/executor/authoring/context.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { Outgoing } from '../../src/executor/driving/outgoing.ts'
import { INT_MAX } from '../../src/kernel/numbers.ts'
import { PROTOCOL_VERSION } from '../../src/model/work.ts'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import { advance, executorOn } from '../support/executor.ts'
import type { TestStore } from '../support/store.ts'
import { definition, entry, only, openStore, registration } from '../support/store.ts'

let t: TestStore
let h: Handler
/** What would have ended the server. */
let defects: unknown[]
beforeEach(async () => {
  t = await openStore()
  defects = []
  h = makeHandler(t.engine, { onDefect: (error) => defects.push(error) })
})
afterEach(async () => {
  h.stop()
  await t.close()
})

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}
const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
  const request = new Request(`http://localhost${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const response = await h.fetch(request)
  return {
    status: response.status,
    body: JSON.parse(await response.text()) as Record<string, unknown>,
  }
}

const FAR = 2 ** 40

describe('RAIL-09 a number that no column can hold', () => {
  it('RAIL-09 of a write is the refusal of its item, and the others of its batch are applied', async () => {
    const s = await t.session()
    await t.start('w')
    await t.start('w')
    const [a, b] = await s.claim(2)
    if (!a || !b) throw new Error('two runs are claimed')
    const waits = [{ key: 'r', kind: 'retry' as const, tries: FAR, dueInMs: 5 }]
    const [, good] = await Promise.all([
      // past the door, as an executor beside its engine writes
      s.write(a, { waits }).catch((error: unknown) => error),
      s.write(b, { entries: [entry(1)], waits: [] }),
    ])
    expect(good).toMatchObject({ ok: true })
  })

  it('RAIL-09 of an executor is refused at the door', async () => {
    const s = await t.session()
    await t.start('w')
    const run = only(await s.claim(1))
    const post = (path: string, body: unknown): Promise<Answer> =>
      call('POST', `/v1/executor/${path}`, body)
    const write = async (more: object): Promise<unknown> => {
      const { status, body } = await post('write', {
        session: s.id,
        writes: [{ run: run.run, attempt: 1, entries: [], ...more }],
      })
      expect(status).toBe(200)
      return (body['answers'] as unknown[])[0]
    }
    const register = registration('ses_x', { protocol: PROTOCOL_VERSION })
    for (const [path, body] of [
      ['register', { ...register, pid: FAR }],
      ['register', { ...register, capacity: FAR }],
      ['claim', { session: s.id, claim: FAR, most: 1, except: [], waitMs: 0 }],
      ['journal', { session: s.id, run: run.run, after: FAR }],
      [
        'renew',
        {
          session: s.id,
          draining: false,
          status: null,
          letGo: [{ run: 'a', attempt: FAR, reason: 'x' }],
        },
      ],
      [
        'renew',
        {
          session: s.id,
          draining: false,
          status: null,
          letGo: [],
          held: { claim: FAR, digest: 'a' },
        },
      ],
    ] as const)
      expect(await post(path, body), path).toMatchObject({
        status: 400,
        body: { code: 'invalid_request' },
      })
    for (const more of [
      { attempt: FAR },
      { entries: [entry(FAR)] },
      { waits: [{ key: 'a', kind: 'retry', tries: FAR, dueInMs: 5 }] },
      { stream: [{ stream: 'a', seq: FAR, data: null }] },
    ])
      expect(await write(more), JSON.stringify(more)).toMatchObject({
        ok: false,
        code: 'invalid_request',
      })
    expect(defects).toEqual([])
  })

  it('RAIL-09 SLOT-01 of a limit is refused where it is set, declared or taken', async () => {
    await t.session()
    expect(await call('PUT', '/v1/slots/k', { value: INT_MAX })).toMatchObject({ status: 200 })
    expect(await call('PUT', '/v1/slots/k', { value: INT_MAX + 1 })).toMatchObject({ status: 400 })
    const limits = (value: number, units: number | string) => ({
      definitions: [definition('bytes', { limits: [{ key: 'bytes', value, units }] })],
    })
    for (const [value, units] of [
      [INT_MAX + 1, 'input.size'],
      [1, INT_MAX + 1],
    ] as const)
      await expect(t.session(limits(value, units))).rejects.toMatchObject({
        code: 'invalid_config',
      })
    await t.session(limits(INT_MAX, 'input.size'))
    const start = (size: number): Promise<Answer> =>
      call('POST', '/v1/runs', { workflow: 'bytes', input: { size } })
    expect(await start(INT_MAX)).toMatchObject({ status: 200 })
    expect(await start(INT_MAX + 1)).toMatchObject({ status: 422, body: { code: 'invalid_input' } })
    expect(defects).toEqual([])
  })

  it('RAIL-09 SLOT-07 a weight of almost nothing is refused, and one that is there already ends no server', async () => {
    await t.session()
    const set = (weight: number): Promise<Answer> =>
      call('PUT', '/v1/slots/owner:bob', { value: 5, weight })
    expect(await set(1e-309)).toMatchObject({ status: 400 })
    expect(await set(0.001)).toMatchObject({ status: 200 })
    t.sql("update limits set weight = 1e-309 where key = 'owner:bob' returning key")
    expect(await call('POST', '/v1/runs', { workflow: 'w', owner: 'bob' })).toMatchObject({
      status: 200,
    })
    expect(defects).toEqual([])
  })
})

/** Characters of three bytes each, which no compression makes fewer. */
const long = (characters: number, seed = 1): string => {
  let at = seed
  return Array.from({ length: characters }, () =>
    String.fromCodePoint(
      0x4e00 + (((at = (at * 1_103_515_245 + 12_345) % 2 ** 31) >> 16) % 20_000),
    ),
  ).join('')
}

describe('RAIL-09 a text that no index can hold', () => {
  it('RAIL-09 in the labels of a start is the refusal of that start, and its batch goes on', async () => {
    await t.session()
    const labels = Array.from({ length: 20 }, (_, i) => long(195, i + 1))
    const [bad, good] = await Promise.all([
      t.startAnswer('w', { labels }),
      t.startAnswer('w', { labels: labels.slice(0, 4) }),
    ])
    expect(bad).toMatchObject({ ok: false, code: 'invalid_request' })
    expect(good).toMatchObject({ ok: true, started: true })
    const session = await t.session({
      definitions: [definition('l', { labels }), definition('w')],
    })
    expect(session.answer).toMatchObject({ ok: false, code: 'invalid_request' })
  })

  it('RAIL-09 RUN-24 in the key of an entry is the refusal of that write, and its batch goes on', async () => {
    const s = await t.session()
    for (const id of ['run_a', 'run_b', long(200)]) await t.start('w', { id })
    const [a, b, c] = await s.claim(3)
    if (!a || !b || !c) throw new Error('three runs are claimed')
    const [bad, good, own] = await Promise.all([
      s.checkpoint(a, long(1_990)),
      s.checkpoint(b, long(660)),
      s.checkpoint(c, long(660)),
    ])
    expect(bad).toMatchObject({ ok: false, code: 'invalid_request' })
    expect(good).toMatchObject({ ok: true })
    // a long id leaves less room
    expect(own).toMatchObject({ ok: false, code: 'invalid_request' })
    expect(await s.checkpoint(c, long(460))).toMatchObject({ ok: true })
  })

  it('RAIL-09 RUN-24 in the names of scopes ends the run by name', async () => {
    const within = (ctx: Context, depth: number): Promise<unknown> =>
      depth === 0
        ? ctx.step('leaf', () => 1)
        : ctx.scope(long(190, depth), (inner) => within(inner, depth - 1))
    const x = executorOn(t, { workflows: [workflow('w', (ctx) => within(ctx, 6))] })
    await x.executor.start()
    const id = await t.start('w')
    await vi.waitFor(async () => {
      await advance(t, 1_000)
      expect(t.run(id)).toMatchObject({ status: 'failed' })
    }, 20_000)
    expect(t.run(id)['error']).toContain('the limit is 1999')
    void x.executor.stop()
    await advance(t, 40_000)
  })
})

describe('RUN-34 RAIL-09 items of streams in a run of thousands of attempts', () => {
  it('RUN-34 RAIL-09 are numbered on in their order, within what their column holds', async () => {
    const s = await t.session()
    const id = await t.start('w')
    const numbers: number[] = []
    const first = await s.claim(1)
    for (let attempt = 1, [run] = first; run; attempt++) {
      const out = new Outgoing(run)
      out.append('out', `"${attempt}"`)
      out.append('out', null)
      const { stream = [] } = out.take(null, null, { kind: 'hand_back', reason: 'shutdown' })
      numbers.push(...stream.map(({ seq }) => seq))
      expect(await s.write(run, { stream, end: { kind: 'hand_back', reason: 'x' } })).toMatchObject(
        { ok: true },
      )
      const next = [1_999, 2_000, 2_147, 2_500, 900_000][attempt - 1]
      if (next === undefined) break
      t.sql(
        `update runs set attempt = ${next - 1}, status = 'queued', wait_on = null, ready_at = null, hand_backs = 0 where id = '${id}' returning id`,
      )
      ;[run] = await s.claim(1)
    }
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    expect(new Set(numbers).size).toBe(12)
    expect(Math.max(...numbers)).toBeLessThan(INT_MAX)
    expect(t.sql('select seq from streams order by seq').map((row) => row['seq'])).toEqual(numbers)
  })

  it('RUN-34 a run goes on that appends in its 2,148th attempt', async () => {
    const w = workflow('w', (ctx) =>
      ctx.step('a', ({ append }) => {
        append('out', 'hello')
        return 1
      }),
    )
    const x = executorOn(t, { workflows: [w] })
    const before = await t.session()
    const id = await t.start('w')
    await before.closeSession()
    t.sql(`update runs set attempt = 2147 where id = '${id}' returning id`)
    await x.executor.start()
    await vi.waitFor(async () => {
      await advance(t, 1_000)
      expect(t.run(id)).toMatchObject({ status: 'succeeded' })
    }, 20_000)
    expect(t.sql('select data from streams')).toEqual([{ data: '"hello"' }])
    void x.executor.stop()
    await advance(t, 40_000)
  })
})
