// Servers and executors of two databases as one store: real processes, each of which knows where an owner's runs are.
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { shardOfId, shardOfOwner } from '../../src/model/shard.ts'
import { fixture, folder, leasehold, ran, runThat, serve } from './processes.ts'

const twoDatabases = async (): Promise<string[]> => {
  const url = new URL(inject('postgresUrl'))
  const names = [0, 1].map(
    (n) => `shard_${n}_${process.pid}_${performance.now().toString(36).replace('.', '')}`,
  )
  const admin = async (text: (name: string) => string): Promise<void> => {
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    for (const name of names) await client.query(text(name))
    await client.end()
  }
  await admin(
    (name) =>
      `create database ${name} template template0 lc_collate 'C' lc_ctype 'C' encoding 'UTF8'`,
  )
  onTestFinished(() => admin((name) => `drop database ${name} with (force)`))
  return names.map((name) => {
    const own = new URL(url)
    own.pathname = `/${name}`
    return own.href
  })
}

const owners = [0, 1].map(
  (shard) =>
    Array.from({ length: 50 }, (_each, i) => `owner-${i}`).find(
      (owner) => shardOfOwner(owner, 2) === shard,
    ) ?? '',
)

test('RUN-18 OPS-06 two servers and an executor on two databases as one store; neither is served alone, nor in the other’s place', async () => {
  const cwd = folder()
  const databases = await twoDatabases()
  const env = { LEASEHOLD_DATABASES: databases.join(',') }
  const migrated = await ran(['migrate'], { cwd, env })
  expect(migrated.out.match(/is at schema/g)).toHaveLength(2)
  const one = await serve(cwd, env)
  const two = await serve(cwd, env)
  const doing = leasehold(['work', fixture('doubles.js'), '--url', two.url], { cwd })
  await doing.line(' works at ')
  const ids: string[] = []
  for (const owner of owners)
    for (const { client } of [one, two]) {
      const { id } = await client.start('doubles', 21, { owner })
      ids.push(id)
    }
  expect(ids.map(shardOfId)).toEqual([0, 0, 1, 1])
  for (const id of ids) await runThat(one.client, id, ({ run }) => run.status === 'succeeded')
  const { runs } = await two.client.list()
  expect(runs.map(({ id }) => id).sort()).toEqual([...ids].sort())
  // a limit that some of them would have nothing of is a mistake that no waiting mends
  const limited = leasehold(['work', fixture('workflows.js'), '--url', one.url], { cwd })
  expect(await limited.ended).not.toBe(0)
  expect(limited.err()).toMatch(/the limit one is 1, fewer than the 2 shards/)
  const doctor = await ran(['doctor', '--url', one.url, '--json'], { cwd })
  expect(JSON.parse(doctor.out)).toMatchObject({ well: true })

  const refused = async (set: object, says: RegExp): Promise<void> => {
    const wrong = await ran(['serve', '--port', '0'], { cwd, env: { ...set } })
    expect(wrong.code).not.toBe(0)
    expect(wrong.err).toMatch(says)
  }
  await refused(
    { LEASEHOLD_DATABASE: databases[1] ?? '' },
    /is shard 1 of 2 and is not opened alone/,
  )
  await refused(
    { LEASEHOLD_DATABASES: [...databases].reverse().join(',') },
    /is shard 1 of 2; expected 0 of 2/,
  )
  await refused({ LEASEHOLD_DATABASES: databases[0] ?? '' }, /two or more URLs/)
  await refused(
    { ...env, LEASEHOLD_DATABASE: databases[0] ?? '' },
    /database and databases are both set/,
  )
})
