// Two databases of one store, of which the network takes one away: refused, cut, or open and dead.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { noLog } from '../../src/kernel/log.ts'
import { systemPorts } from '../../src/kernel/ports.ts'
import { shardOfOwner } from '../../src/model/shard.ts'
import { openOnPostgres } from '../../src/orchestrator/open-postgres.ts'
import type { Shards } from '../../src/orchestrator/shards/shards.ts'
import { joinShards } from '../../src/orchestrator/shards/shards.ts'
import type { TestSchema } from '../support/postgres.ts'
import { postgresUrl, testSchema } from '../support/postgres.ts'
import type { Proxy } from '../support/proxy.ts'
import { openProxy } from '../support/proxy.ts'
import { registration } from '../support/store.ts'

const url = postgresUrl() ?? ''
const ports = systemPorts(noLog)
const owners = [0, 1].map((shard) =>
  Array.from({ length: 50 }, (_each, i) => `owner-${i}`).find(
    (owner) => shardOfOwner(owner, 2) === shard,
  ),
)
const ends: (() => unknown)[] = []
let schemas: TestSchema[]
let proxy: Proxy
let shards: Shards

beforeEach(async () => {
  schemas = [testSchema(url), testSchema(url)]
  proxy = await openProxy(Number(new URL(url).port))
  const by = new URL(url)
  by.port = String(proxy.port)
  const opened = await Promise.all(
    schemas.map(({ schema }, number) =>
      openOnPostgres({
        url: number === 0 ? url : by.href,
        schema,
        ports,
        shard: { number, count: 2 },
      }),
    ),
  )
  ends.push(async () => {
    for (const each of opened) await each.close()
    await proxy.close()
    for (const schema of schemas) schema.free()
  })
  shards = await joinShards(opened)
  await shards.port.register(registration('ses_a'))
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const start = (id: string, shard: number) =>
  shards.start({
    command: {
      id,
      workflow: 'w',
      input: 'null',
      ...(owners[shard] ? { owner: owners[shard] } : {}),
    },
  })
let claims = 0
const claim = async (): Promise<string[]> => {
  claims += 1
  const answer = await shards.port.claim({
    session: 'ses_a',
    claim: claims,
    most: 10,
    except: [],
    waitMs: 0,
  })
  if (!answer.ok) throw new Error(answer.message)
  return answer.runs.map(({ run }) => run).sort()
}
const renew = () =>
  shards.port.renew({ session: 'ses_a', draining: false, status: null, letGo: [] })

for (const how of ['refuse', 'swallow'] as const)
  it(`RUN-05 RUN-08 a database of two that is gone (${how}) costs the other nothing, and goes on when it is back`, async () => {
    expect(await start('run_a', 1)).toMatchObject({ ok: true, id: 'run_a~1' })
    proxy.mode = how
    if (how === 'refuse') proxy.cut()
    expect(await start('run_b', 0)).toMatchObject({ ok: true, id: 'run_b' })
    expect(await claim()).toEqual(['run_b'])
    // how soon a connection that says nothing is given up is the driver's affair
    if (how === 'refuse')
      await expect(start('run_c', 1)).rejects.toMatchObject({
        code: 'store_unavailable',
        retryable: true,
        detail: { shard: 1 },
      })
    expect(await renew()).toMatchObject({ ok: true, unreached: [1] })
    const written = await shards.port.write('ses_a', {
      run: 'run_b',
      attempt: 1,
      entries: [],
      end: { kind: 'complete', output: '1' },
    })
    expect(written).toMatchObject({ ok: true, ended: 'succeeded' })
    proxy.mode = 'pass'
    // what was open and dead is of no use to anybody
    if (how === 'swallow') proxy.cut()
    await expect.poll(renew, { timeout: 60_000 }).not.toHaveProperty('unreached')
    expect(await start('run_c', 1)).toMatchObject({ ok: true, id: 'run_c~1' })
    const got: string[] = []
    await expect
      .poll(async () => got.push(...(await claim())) && got.toSorted(), { timeout: 60_000 })
      .toEqual(['run_a~1', 'run_c~1'])
  })
