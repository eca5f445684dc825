// Servers on one PostgreSQL database: any of them starts, drives and tells; one that is killed takes nothing with it.
import path from 'node:path'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { fixture, folder, ran, runThat, serve, start, until, work } from './processes.ts'

/** A database of the test's own. */
const database = async (collation = 'C'): Promise<string> => {
  const url = new URL(inject('postgresUrl'))
  const name = `e2e_${process.pid}_${performance.now().toString(36).replace('.', '')}`
  const admin = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    await client.query(text)
    await client.end()
  }
  await admin(
    `create database ${name} template template0 lc_collate '${collation}' lc_ctype '${collation}' encoding 'UTF8'`,
  )
  onTestFinished(() => admin(`drop database ${name} with (force)`))
  const own = new URL(url)
  own.pathname = `/${name}`
  return own.href
}

/** The migrations that the package brings. */
const carried = readdirSync(new URL('../../migrations/', import.meta.url)).sort()

test('RAIL-17 two servers on one database: what one starts an executor of the other drives, and a killed server loses nothing', async () => {
  const cwd = folder()
  const env = { LEASEHOLD_DATABASE: await database() }
  const one = await serve(cwd, env)
  const two = await serve(cwd, env)
  const executor = await work(cwd, two.url)
  const file = path.join(cwd, 'steps.txt')

  // each hears of the other's
  await until(async () => (await one.client.executors()).some(({ id }) => id === executor.session))
  const { id } = await one.client.start('steps', { count: 2, file })
  await runThat(two.client, id, ({ run }) => run.status === 'succeeded')

  // the server of the executor is killed while steps run; it comes back elsewhere, under the same address
  const ids = await Promise.all(
    Array.from(
      { length: 10 },
      async (_, i) =>
        (await one.client.start('steps', { count: 3, ms: 50, file }, { key: `k${i}` })).id,
    ),
  )
  await until(() => readFileSync(file, 'utf8').split('\n').length > 8)
  two.process.kill('SIGKILL')
  await two.process.ended
  await serve(cwd, env, new URL(two.url).port)
  for (const each of ids) await runThat(one.client, each, ({ run }) => run.status === 'succeeded')
  const doctor = await ran(['doctor', '--url', one.url, '--json'], { cwd })
  expect(JSON.parse(doctor.out)).toMatchObject({ well: true })
})

test('OPS-06 SEC-01 the database is a setting like any other, and its password is shown nowhere', async () => {
  const cwd = folder()
  const url = new URL(await database())
  url.password = 'very-secret'
  const env = { LEASEHOLD_DATABASE: url.href }
  const shown = await ran(['config', '--json'], { cwd, env })
  expect(shown.out).not.toContain('very-secret')
  const migrated = await ran(['migrate', '--json'], { cwd, env })
  expect(JSON.parse(migrated.out)).toMatchObject({
    version: carried.length,
    applied: carried,
  })
  expect(migrated.out).not.toContain('very-secret')
  const server = await serve(cwd, env)
  expect(server.process.out() + server.process.err()).not.toContain('very-secret')
  const wrong = await ran(['serve', '--database', 'mysql://there', '--port', '0'], { cwd })
  expect(wrong.code).toBe(2)
  expect(wrong.err).toContain('postgres://user@host/database')
})

test('EMB-01 a database that cannot be used is refused with a sentence, and left as it was', async () => {
  const cwd = folder()
  const foreign = await database()
  const client = new pg.Client({ connectionString: foreign })
  await client.connect()
  await client.query('create table customers (id int)')
  await client.end()
  const alien = await ran(['serve', '--database', foreign, '--port', '0'], { cwd })
  expect(alien.code).toBe(1)
  expect(alien.err).toContain('customers')
  expect(alien.err).not.toContain('at Object')

  const sorted = await database('C.UTF-8')
  const fits = await ran(['migrate', '--database', sorted], { cwd })
  expect(fits.code).toBe(0)

  const nobody = new URL(foreign)
  nobody.port = '1'
  const absent = await ran(['serve', '--database', nobody.href, '--port', '0'], { cwd })
  expect(absent.code).not.toBe(0)
  expect(absent.err).toContain('cannot be reached')
})

test('RUN-06 B093 an executor beside the database renews from a thread of its own while a body keeps its main loop busy', async () => {
  const cwd = folder()
  const url = await database()
  const [begun, gate] = [path.join(cwd, 'begun'), path.join(cwd, 'gate')]
  const program = start(process.execPath, [fixture('embeds.js'), url, begun, gate], { cwd })
  await until(() => existsSync(begun))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  const leases = new Set<string>()
  await until(async () => {
    const { rows } = await client.query<{ until: string }>(
      'select lease_until::text as until from sessions',
    )
    for (const { until: at } of rows) leases.add(at)
    return leases.size > 3
  })
  writeFileSync(gate, '')
  expect(await program.line('in attempt')).toBe('succeeded in attempt 1')
  expect(await program.ended).toBe(0)
})
