// The store of a test as one of several joined databases, where the project of the tests says so: what the contract promises of
// one database is then asked of all through their seam. Cases that cannot hold there are named in `one-database.ts`.
import { expect } from 'vitest'
import type { Engine } from '../../src/orchestrator/engine.ts'
import type { Opened } from '../../src/orchestrator/open.ts'
import { shardOfOwner } from '../../src/model/shard.ts'
import type { Shards } from '../../src/orchestrator/shards/shards.ts'
import { joinShards } from '../../src/orchestrator/shards/shards.ts'
import { onOneDatabase } from './one-database.ts'

/** How many databases the store of the test at hand is joined of: `LEASEHOLD_TEST_SHARDS`, else 1. */
export const databases = (): number => {
  const count = Number(process.env['LEASEHOLD_TEST_SHARDS'] ?? '1')
  const { currentTestName, testPath } = expect.getState()
  return onOneDatabase(testPath ?? '', currentTestName ?? '') ? 1 : count
}

/** Time that a test moves itself tells nothing of a database that answers in its own. */
const PATIENCE_MS = 1e9

export const joined = (opened: readonly Opened[]): Promise<Shards> =>
  joinShards(opened, { patienceMs: PATIENCE_MS })

/** Where runs without an owner are, which most runs of tests are: the test looks at the rows of this one. */
export const homeOf = (count: number): number => shardOfOwner('', count)

/** What a test asks of the engine, at the shard that has it; else of that of runs without an owner. */
export const engineOver = (shards: Shards): Engine => {
  const { engines } = shards
  const home = engines[homeOf(engines.length)] as Engine
  const over: Partial<Engine> = {
    start: shards.start,
    startMany: shards.startMany,
    signal: shards.signal,
    cancel: shards.cancel,
    retry: shards.retry,
    decide: shards.decide,
    pause: shards.pause,
    resume: shards.resume,
    reversion: shards.reversion,
    takeFrom: shards.takeFrom,
    async reload() {
      for (const each of engines) await each.reload()
    },
    async idle() {
      for (const each of engines) await each.idle()
    },
  }
  return new Proxy(home, {
    get: (target, name) => Reflect.get(over, name) ?? (Reflect.get(target, name) as unknown),
  })
}
