// SQLite keeps anything in any column: somebody put bytes or a text by hand where something else belongs. That row fails
// where it is read, by its name; no list ends the process.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Bench } from '../support/cases.ts'
import { openBench } from '../support/cases.ts'

let bench: Bench
beforeEach(async () => {
  bench = await openBench()
})
afterEach(() => bench.close())

const echo = workflow('echo', async (ctx, input) => {
  await ctx.step('s', () => 1)
  return input
})

const ask = async (path: string) => {
  const { fetch } = makeHandler(bench.engine, {
    onDefect: (error) => {
      throw error
    },
  })
  const response = await fetch(
    new Request(`http://localhost${path}`, { headers: { host: 'localhost' } }),
  )
  const body = (await response.json()) as Record<string, unknown>
  return { status: response.status, code: body['code'], detail: body['detail'], body }
}
const put = (run: string, column: string, value: unknown): void =>
  void bench.db.prepare(`update runs set ${column} = ? where id = ?`).run(value, run)

const twoEnded = async (): Promise<[string, string]> => {
  await bench.process([echo])
  const runs: [string, string] = [await bench.start(echo), await bench.start(echo)]
  await bench.until(
    async () => (await bench.get(runs[0])).status === (await bench.get(runs[1])).status,
    5_000,
  )
  return runs
}

it('L10 bytes in the place of a value are shown as a sentence that names them, in a list beside the others and in full', async () => {
  const [bad, fine] = await twoEnded()
  for (const column of ['progress', 'output', 'labels']) put(bad, column, Buffer.from([255, 0]))
  bench.db.prepare(`update steps set output = ? where run = ?`).run(Buffer.from([1]), bad)
  const list = await ask('/v1/runs')
  expect(list.status).toBe(200)
  const runs = list.body['runs'] as { id: string; progress: unknown }[]
  expect(runs.map(({ id }) => id).sort()).toEqual([bad, fine].sort())
  expect(runs.find(({ id }) => id === fine)?.progress).toBe(null)
  expect(runs.find(({ id }) => id === bad)?.progress).toBe(
    `the column progress of the row with id "${bad}" in the table runs cannot be read, since somebody changed it in the database: it holds bytes (2), where a text belongs. Put it right there; other rows are not concerned`,
  )
  const full = await ask(`/v1/runs/${bad}`)
  expect(full.status).toBe(200)
  expect(full.body['output']).toMatch(/the column output of the row .* in the table runs cannot/)
  expect((full.body['journal'] as { output: unknown }[])[0]?.output).toMatch(
    /the column output of the row with key "s" and n 1 in the table steps cannot be read/,
  )
  expect(await ask(`/v1/runs/${bad}/result`)).toMatchObject({ status: 500, code: 'row_unreadable' })
})

it.each([
  ['created_at', 'yesterday', /created_at .*holds the text "yesterday", where a number belongs/],
  ['attempt', Buffer.from([1]), /attempt .*holds bytes \(1\), where a number belongs/],
  ['owner', Buffer.from('ana'), /owner .*holds bytes \(3\), where a text belongs/],
])(
  'L10 a run whose %s is of another type is refused by name wherever it is shown, and nothing ends',
  async (column, value, sentence) => {
    const [bad, fine] = await twoEnded()
    put(bad, column, value)
    for (const path of ['/v1/runs', `/v1/runs/${bad}`, `/v1/runs/${bad}/explain`])
      expect(await ask(path)).toMatchObject({
        status: 500,
        code: 'row_unreadable',
        detail: expect.stringMatching(sentence) as string,
      })
    expect((await ask(`/v1/runs/${fine}`)).status).toBe(200)
    await bench.pass()
    expect(bench.lines.filter(({ event }) => event.endsWith('.defect'))).toEqual([])
  },
)

it('L10 an input that is bytes fails its own run, and keeps no other of its lane from being claimed', async () => {
  const hand = await bench.hand([echo])
  const bad = await bench.start(echo, 1)
  put(bad, 'input', Buffer.from([255, 0]))
  const fine = await bench.start(echo, 2)
  await hand.close()
  await bench.process([echo])
  await bench.until(async () => (await bench.get(fine)).status === 'succeeded', 5_000)
  await bench.until(async () => (await bench.get(bad)).status === 'failed', 600_000)
  expect(await bench.get(bad)).toMatchObject({ error: { code: 'row_unreadable' } })
})
