// What a server and its doctor say of a store that takes no writes, and of a clock that jumped: the cause, and nothing else.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import { Fault } from '../../src/kernel/errors.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import { serve } from '../../src/orchestrator/http/server.ts'
import type { Store } from '../../src/store/store.ts'
import type { Bench } from '../support/cases.ts'
import { LEASE_MS, openBench } from '../support/cases.ts'
import { program } from '../support/program.ts'

let bench: Bench
beforeEach(async () => {
  bench = await openBench()
  await bench.advance(2_000)
})
afterEach(() => bench.close())

const HOUR = 3_600_000
const sentence =
  'the store refuses writes: the disk of the store is full; free space, the engine goes on by itself'
const echo = workflow('echo', (_ctx, input) => input)

const ready = async (): Promise<unknown> => {
  const { fetch } = makeHandler(bench.engine)
  const response = await fetch(
    new Request('http://localhost/readyz', { headers: { host: 'localhost' } }),
  )
  return [response.status, await response.json()]
}
/** No page more fits on the disk, until the returned function is called. */
const fill = (): (() => void) => {
  // else what was freed is used first
  bench.db.exec('vacuum')
  const before = bench.db.pragma('max_page_count', { simple: true }) as number
  bench.db.pragma(`max_page_count = ${bench.db.pragma('page_count', { simple: true }) as number}`)
  return () => void bench.db.pragma(`max_page_count = ${before}`)
}
/** Starts that are not done, until the file takes no page more. */
const starting = async (): Promise<void> => {
  for (let i = 0; i < 1_000; i++) {
    const code = await bench.start(echo, 'x'.repeat(10_000)).then(
      () => null,
      (error: unknown) => (error as { code: string }).code,
    )
    if (code === null) continue
    expect(code).toBe('store_full')
    return
  }
  throw new Error('it is never full')
}
const doctor = async () => {
  const server = await serve(bench.engine, { port: 0 })
  try {
    const { code, out } = await program(['doctor', '--json'], {
      env: { LEASEHOLD_URL: server.url },
    })
    const { findings } = JSON.parse(out) as {
      findings: { check: string; ok: boolean; what: string; mend?: string }[]
    }
    return { code, wrong: findings.filter(({ ok, check }) => !ok && check !== 'clocks') }
  } finally {
    await server.close()
  }
}

it('OPS-06 while the disk is full readyz names the disk, and is ready once there has been room for a while', async () => {
  await bench.process([echo])
  expect(await ready()).toMatchObject([200, { ready: true, faults: [], store: null }])
  const free = fill()
  await starting()
  expect(await ready()).toEqual([
    503,
    { ready: false, faults: [sentence], store: 'store_full', warnings: [] },
  ])
  free()
  await bench.start(echo)
  expect(await ready()).toMatchObject([503, { store: 'store_full' }])
  await bench.advance(12_000)
  expect(await ready()).toMatchObject([200, { ready: true, store: null }])
})

it('OPS-06 doctor names a full disk and what to do, and nothing that is late for it', async () => {
  await bench.process([echo])
  const store = Object.getPrototypeOf(bench.engine.store) as Store
  const { run } = store
  store.run = () =>
    Promise.reject(
      new Fault(
        'store_full',
        'the disk of the store is full; free space, the engine goes on by itself',
      ),
    )
  // nobody can renew, nothing is swept
  await bench.advance(3 * LEASE_MS)
  expect(await doctor()).toEqual({
    code: 1,
    wrong: [
      {
        check: 'writes',
        ok: false,
        what: sentence,
        mend: 'Free space; the engine goes on by itself.',
      },
    ],
  })
  store.run = run
  await bench.advance(60_000)
  expect((await doctor()).wrong).toEqual([])
})

it.each([HOUR, -HOUR])(
  'OPS-06 B071 a clock that jumps by %i ms makes no sweep late, and hides none that is',
  async (ms) => {
    bench.jump(ms)
    expect(await ready()).toMatchObject([200, { ready: true, faults: [] }])
    expect((await doctor()).wrong.filter(({ check }) => check === 'sweeps')).toEqual([])
    // no loop passes any more
    await bench.opened.loops.stop()
    await bench.advance(HOUR)
    expect(await ready()).toMatchObject([
      503,
      { faults: expect.arrayContaining([expect.stringMatching(/the sweep wake-due is .* late/)]) },
    ])
  },
)
