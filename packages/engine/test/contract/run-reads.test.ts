// What people read: lists find what was asked for and nothing else, and a reader who comes back goes on.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Handler } from '../../src/orchestrator/http/handler.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { TestStore } from '../support/store.ts'
import { definition, only, openStore } from '../support/store.ts'

let t: TestStore
let h: Handler
beforeEach(async () => {
  t = await openStore()
  h = makeHandler(t.engine, {})
})
afterEach(async () => {
  h.stop()
  await t.close()
})

const get = async (path: string): Promise<Record<string, unknown>> => {
  const response = await h.fetch(new Request(`http://localhost${path}`))
  expect(response.status).toBe(200)
  return (await response.json()) as Record<string, unknown>
}
const ids = async (query: Record<string, string>): Promise<string[]> => {
  const { runs } = await get(`/v1/runs?${new URLSearchParams(query).toString()}`)
  return (runs as { id: string }[]).map(({ id }) => id)
}

describe('OPS-03 the list of runs', () => {
  it('OPS-03 a part of an error finds its run, letter for letter, whatever its letters are', async () => {
    const s = await t.session()
    const found: Record<string, string> = {}
    for (const note of ['Ärger mit ÖL', 'plain Error', 'İstanbul', 'a "b"', 'ΣΊΣΥΦΟΣ', '100 %_']) {
      const id = await t.start('w')
      const error = JSON.stringify({ name: 'E', message: note })
      await s.end(only(await s.claim(1)), { kind: 'fail', reason: 'error', note, error })
      found[note] = id
    }
    for (const [text, note] of [
      ['Ärger', 'Ärger mit ÖL'],
      ['ÖL', 'Ärger mit ÖL'],
      ['pLAIN eRROR', 'plain Error'],
      ['İstanbul', 'İstanbul'],
      ['a "b"', 'a "b"'],
      ['ΣΊΣΥΦΟΣ', 'ΣΊΣΥΦΟΣ'],
      ['%_', '100 %_'],
    ] as const)
      expect(await ids({ text }), text).toEqual([found[note]])
    expect(await ids({ text: '' })).toHaveLength(6)
  })

  it('OPS-03 a label finds the runs that have it, and none that has it within another', async () => {
    const lists = [['a"b', 'x\\'], [','], ['x,', ',y'], ['a[', ']'], ['b'], []]
    const runs: string[] = []
    await t.session({
      definitions: lists.map((labels, i) => definition(`w${i}`, { labels })),
    })
    for (const i of lists.keys()) runs.push(await t.start(`w${i}`))
    const labels = [...lists.flat(), 'a', 'x', '"', '\\', 'y', '","', 'b","x', '[', '']
    for (const label of labels)
      expect((await ids({ label })).toSorted(), label).toEqual(
        runs.filter((_run, i) => lists[i]?.includes(label)).toSorted(),
      )
  })

  it('OPS-03 its pages show each run once, whatever characters its id has', async () => {
    const s = await t.session()
    const all = ['run_\uffee', 'run_\u{1f600}', 'run_a', 'run_\u{10000}', 'run_\ue000']
    for (const id of all) await t.start('w', { id })
    const [one, two] = await s.claim(2)
    if (!one || !two) throw new Error('two runs are claimed')
    await s.complete(one)
    await s.end(two, { kind: 'fail', reason: 'error', note: 'x', error: '{}' })
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query = new URLSearchParams({ limit: '1', status: 'failed,queued,succeeded' })
      if (cursor !== '') query.set('cursor', cursor)
      const page: Record<string, unknown> = await get(`/v1/runs?${query.toString()}`)
      seen.push(...(page['runs'] as { id: string }[]).map(({ id }) => id))
      cursor = page['next'] as string | null
    }
    expect(seen.toSorted()).toEqual(all.toSorted())
  })
})

describe('OPS-03 a reader who comes back', () => {
  it.each([
    '2147483648',
    '99999999999999999999',
    '9'.repeat(400),
    '2147483648:5',
    '99999999999999999999:1',
    '1:99999999999999999999',
    '1e300',
    '-5',
    '1@x',
    '1.5',
  ])('OPS-03 with a place that no stream has begins at the beginning: %s', async (last) => {
    const s = await t.session()
    const id = await t.start('w')
    const run = only(await s.claim(1))
    await s.write(run, { stream: [{ stream: 'o', seq: 1_000_001, data: '1' }] })
    await s.complete(run)
    for (const path of [`/v1/runs/${id}/events`, `/v1/runs/${id}/stream/o`]) {
      const response = await h.fetch(
        new Request(`http://localhost${path}`, { headers: { 'last-event-id': last } }),
      )
      // the run has ended, so the stream ends by itself
      const text = await response.text()
      if (path.endsWith('/o')) expect(text).toContain('event: end')
      else expect(text).toContain(id)
    }
    const logs = await h.fetch(
      new Request(`http://localhost/v1/runs/${id}/logs/follow`, {
        headers: { 'last-event-id': last },
      }),
    )
    const reader = logs.body?.getReader()
    expect((await reader?.read())?.done).toBe(false)
    await reader?.cancel()
  })
})
