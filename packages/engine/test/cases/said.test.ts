// What the command line and refusals say where people go wrong: where the server is, what is not known, and when it was.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { Listening } from '../../src/orchestrator/http/server.ts'
import { serve } from '../../src/orchestrator/http/server.ts'
import type { Bench } from '../support/cases.ts'
import { definitionOnly, openBench } from '../support/cases.ts'
import { program } from '../support/program.ts'

let bench: Bench
let server: Listening
beforeEach(async () => {
  bench = await openBench()
  server = await serve(bench.engine, { port: 0 })
})
afterEach(async () => {
  await server.close()
  await bench.close()
})

const w = definitionOnly('w')
const call = (...args: string[]) => program(args, { env: { LEASEHOLD_URL: server.url } })

it('OPS-03 where no server answers the command says at which address, and how to start one', async () => {
  const { code, err } = await program(['runs'], { env: { LEASEHOLD_URL: 'http://127.0.0.1:1' } })
  expect(code).toBe(6)
  expect(err).toMatch(/no server answers at http:\/\/127\.0\.0\.1:1 \(listRuns\): /)
  expect(err).toMatch(/Start one with `leasehold serve`, or name another with --url/)
})

it('OPS-06 a variable that has our name and is no setting is told, with what it may have been meant for', async () => {
  const env = {
    LEASEHOLD_URL: server.url,
    LEASEHOLD_LEASEMS: '4h',
    LEASEHOLD_FOO: '1',
    LEASEHOLD_TOKEN_FILE: '',
    LEASEHOLD_SINK_OPS_URL: '',
    LEASEHOLD_SERVICE_HOST: '10.0.0.1',
    LEASEHOLD_PORT_7400_TCP: 'tcp://10.0.0.1:7400',
    LEASEHOLD_RUN: 'run_1',
  }
  const { code, err } = await program(['runs', '--json'], { env })
  expect(code).toBe(0)
  expect(err.trim().split('\n')).toEqual([
    'LEASEHOLD_LEASEMS is not a setting (environment); did you mean LEASEHOLD_LEASE_MS?',
    'LEASEHOLD_FOO is not a setting (environment); `leasehold config` lists those that there are',
  ])
})

it('OPS-03 a limit that no run has declared is set, and said to be such', async () => {
  const limited = workflow({ name: 'limited', limits: [{ key: 'gpu', value: 1 }] }, () => undefined)
  await bench.hand([limited])
  await bench.start(limited)
  expect((await call('slots', 'gpu', '--set', '5')).err).toBe('')
  expect((await call('slots', 'owner:ann', '--set', '5')).err).toBe('')
  const { code, err } = await call('slots', 'gpus', '--set', '5')
  expect(code).toBe(0)
  expect(err).toMatch(/no run has declared the limit gpus so far/)
})

it('OPS-03 a pause of a held run says that an end that comes first stands', async () => {
  const hand = await bench.hand([w])
  const run = await bench.start(w)
  expect((await call('pause', await bench.start(w))).err).toBe('')
  await hand.claim()
  const { out, err } = await call('pause', run)
  expect(out).toBe(`${run} running\n`)
  expect(err).toMatch(
    /pauses at the next end of a step; where the run ends by then, its end stands/,
  )
  expect((await call('show', run)).out).toMatch(/a run that ends by then keeps its end/)
})

it('OPS-03 refusals say instants as people read them', async () => {
  const hand = await bench.hand([w])
  const [asking, held, over] = [await bench.start(w), await bench.start(w), await bench.start(w)]
  const runs = await hand.claim()
  const of = (id: string) => {
    const found = runs.find(({ run }) => run === id)
    if (!found) throw new Error(`${id} was not claimed`)
    return found
  }
  await hand.write(of(asking), {
    waits: [{ key: 'ok', kind: 'approval', approval: { prompt: '?', data: null, deciders: [] } }],
    end: { kind: 'suspend', keys: ['ok'] },
  })
  await bench.engine.cancel({ run: over, by: 'ana', reason: null })
  await hand.end(of(over), { kind: 'complete', output: null })
  await bench.settle()
  await call('approve', `${asking}:ok`, '--yes', '--by', 'ana')
  const said = [
    await call('approve', `${asking}:ok`, '--yes', '--by', 'ana'),
    await call('cancel', over),
    await call('pause', over),
    await call('retry', held),
  ]
  for (const { err } of said) {
    expect(err).toMatch(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/)
    expect(err).not.toMatch(/\d{13}/)
  }
})
