// One measurement of another engine in a process of its own, on a database that is there for it alone: `measure.mjs <peer>
// <figure> <n> <url>` answers one line of JSON, as measure.ts does. Its settings are the best that we found for it.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

const [peer = '', figure = '', n = '', url = ''] = process.argv.slice(2)
const { isDurable, left, open } = await import(`./${peer}.mjs`)
const count = Number(n)
const engine = await open(url)

const startAll = async (workflow, from, to, callers) => {
  let next = from
  const caller = async () => {
    while (next < to) await engine.start(workflow, `k${next++}`)
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

/** From the first body to the time when nothing is left. */
const drained = async (workflow, runs) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await startAll(workflow, 0, runs, 20)
  let first = 0
  await engine.work(() => {
    if (first === 0) first = performance.now()
    return 1
  })
  while (first === 0 || Number((await client.query(left)).rows[0].count) > 0) await sleep(10)
  return performance.now() - first
}

const percentile = (values, share) =>
  values.sort((a, b) => a - b)[Math.floor((values.length - 1) * share)]

const idle = async () => {
  const begun = new Map()
  await engine.work((key) => {
    if (!begun.has(key)) begun.set(key, performance.now())
    return 1
  })
  const bodies = []
  const results = []
  for (let i = 0; i < count; i++) {
    await sleep(5 + (i % 5) * 5)
    const from = performance.now()
    const id = await engine.start('one', `i${i}`)
    if (engine.result) {
      await engine.result(id)
      results.push(performance.now() - from)
    }
    while (!begun.has(`i${i}`)) await sleep(1)
    bodies.push(begun.get(`i${i}`) - from)
  }
  return {
    p50: percentile(bodies, 0.5),
    p99: percentile(bodies, 0.99),
    ...(results.length > 0 ? { result: percentile(results, 0.5) } : {}),
  }
}

const measures = {
  async P1() {
    await startAll('one', -200, 0, 20)
    const from = performance.now()
    await startAll('one', 0, count, 20)
    return { rate: (count / (performance.now() - from)) * 1_000 }
  },
  P3: async () => ({ rate: (count / (await drained('one', count))) * 1_000 }),
  ...(isDurable
    ? { P4: async () => ({ rate: (count / (await drained('twenty', count / 20))) * 1_000 }) }
    : {}),
  P5: idle,
}

process.stdout.write(`${JSON.stringify((await measures[figure]?.()) ?? null)}\n`)
process.exit(0)
