// Files that cannot be served: each is refused with a sentence and an exit code, and left as it was.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { folder, ran, serve } from './processes.ts'

/** The migrations that the package brings. */
const carried = readdirSync(new URL('../../migrations/', import.meta.url)).sort()

test('EMB-01 a second owner of the file is refused, and is told who has it', async () => {
  const cwd = folder()
  const { process: owner } = await serve(cwd)
  const second = await ran(['serve', '--file', 'store.db', '--port', '0'], { cwd })
  expect(second.code).toBe(4)
  expect(second.err).toContain(`process ${owner.pid}`)
  expect(second.err).toContain('talk to it over HTTP')
  const migrating = await ran(['migrate', '--file', 'store.db'], { cwd })
  expect(migrating.code).toBe(4)
  owner.kill('SIGTERM')
  expect(await owner.ended).toBe(0)
})

test('OPS-08 S6 a server whose file is moved ends with one sentence and an exit code, and the file has all that was acknowledged', async () => {
  const cwd = folder()
  const { process: owner, client } = await serve(cwd)
  await client.pauseLine({ kind: 'queue', name: 'default', why: 'moving' })
  const known = await client.pauses()
  renameSync(path.join(cwd, 'store.db'), path.join(cwd, 'moved.db'))
  expect(await owner.ended).toBe(1)
  expect(owner.err().match(/is not there any more/g)).toHaveLength(1)
  expect(owner.err()).toContain('put it back and start again')
  renameSync(path.join(cwd, 'moved.db'), path.join(cwd, 'store.db'))
  const again = await serve(cwd)
  expect(await again.client.pauses()).toEqual(known)
})

test.each(['serve', 'migrate'])(
  '%s refuses a file that is not a database, and leaves it alone',
  async (command) => {
    const cwd = folder()
    const file = path.join(cwd, 'notes.txt')
    writeFileSync(
      file,
      'not a database, but longer than the header of one, which has a hundred bytes; so it goes on for a while.',
    )
    const { code, err } = await ran([command, '--file', file], { cwd })
    expect(code).toBe(1)
    expect(err).toContain('not a SQLite database')
    expect(readFileSync(file, 'utf8')).toContain('not a database, but longer')
  },
)

test('a file of a newer schema, or of somebody else, is refused', async () => {
  const cwd = folder()
  const migrated = await ran(['migrate', '--file', 'store.db', '--json'], { cwd })
  expect(migrated.code).toBe(0)
  expect(JSON.parse(migrated.out)).toMatchObject({
    version: carried.length,
    applied: carried,
  })
  const newer = new Database(path.join(cwd, 'store.db'))
  newer
    .prepare(
      `insert into migrations (number, name, checksum, applied_at) values (99, '0099_later.sql', 'x', 1)`,
    )
    .run()
  newer.close()
  const refused = await ran(['serve', '--file', 'store.db', '--port', '0'], { cwd })
  expect(refused.code).toBe(1)
  expect(refused.err).toContain('upgrade the program')

  const foreign = new Database(path.join(cwd, 'foreign.db'))
  foreign.exec('create table customers (id int)')
  foreign.close()
  const alien = await ran(['serve', '--file', 'foreign.db', '--port', '0'], { cwd })
  expect(alien.code).toBe(1)
  expect(alien.err).not.toContain('at Object')
})

test('doctor --after-restore raises the generation, and refuses while the file has an owner', async () => {
  const cwd = folder()
  const { process: owner } = await serve(cwd)
  const refused = await ran(['doctor', '--after-restore', '--file', 'store.db'], { cwd })
  expect(refused.code).toBe(4)
  owner.kill('SIGTERM')
  await owner.ended
  const raised = await ran(['doctor', '--after-restore', '--file', 'store.db', '--json'], { cwd })
  expect(raised.code).toBe(0)
  expect(JSON.parse(raised.out)).toMatchObject({ generation: 2 })
})
