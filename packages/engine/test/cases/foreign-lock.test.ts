// Another program holds a write lock on the SQLite file for as long as it likes: a person in a shell, a tool for backups.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { Bench } from '../support/cases.ts'
import { gate, LEASE_MS, openBench } from '../support/cases.ts'

let folder: string
let bench: Bench
let other: Database.Database
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'leasehold-'))
  const file = path.join(folder, 'store.db')
  bench = await openBench({ file })
  other = new Database(file)
})
afterEach(async () => {
  other.close()
  await bench.close()
  rmSync(folder, { recursive: true })
})

/** Time passes, though what waits for the store does not end with it. */
const later = async (ms: number): Promise<void> => {
  const end = bench.clock.time.mono() + ms
  while (bench.clock.time.mono() < end) {
    bench.clock.moveTo(Math.min(end, bench.clock.next() ?? end))
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
  }
}

it('OPS-08 a lock that another program holds on the file stops no reader, is told to who writes, and outlived by all that runs', async () => {
  const held = gate<string>()
  const begun = gate()
  const waits = workflow('waits', (ctx) =>
    ctx.step<string>('s', () => {
      begun.open()
      return held.opened
    }),
  )
  await bench.process([waits])
  const run = await bench.start(waits)
  await bench.settle()
  await begun.opened
  const { fetch } = makeHandler(bench.engine)
  const ask = async (route: string, body?: string): Promise<[number, unknown]> => {
    const answer = await fetch(
      new Request(`http://localhost${route}`, {
        headers: { host: 'localhost', 'content-type': 'application/json' },
        ...(body === undefined ? {} : { method: 'POST', body }),
      }),
    )
    return [answer.status, ((await answer.json()) as { code?: string }).code]
  }

  other.exec('begin immediate')
  const patient = ask('/v1/runs', '{"workflow":"waits"}')
  await later(500)
  other.exec('rollback')
  await later(100)
  expect(await patient).toEqual([200, undefined])

  other.exec('begin immediate')
  const starting = ask('/v1/runs', '{"workflow":"waits"}')
  await later(100)
  expect(await ask('/healthz')).toEqual([200, undefined])
  expect(await ask('/v1/runs')).toEqual([200, undefined])
  await later(3 * LEASE_MS)
  expect(await starting).toEqual([503, 'store_unavailable'])
  expect(await ask('/healthz')).toEqual([200, undefined])

  other.exec('rollback')
  held.open('done')
  await bench.until(async () => (await bench.get(run)).status === 'succeeded', 60_000)
  expect((await bench.get(run)).attempt).toBe(2)
  const next = await bench.start(waits)
  await bench.until(async () => (await bench.get(next)).status === 'succeeded', 60_000)
  expect(bench.lines.filter(({ event }) => event.endsWith('.defect'))).toEqual([])
})
